# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Says in netfold's words, with line and column, how a file differs from its pydantic model."""

from __future__ import annotations

import reprlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from netfold.topologies.faults import Place, hint
from netfold.topologies.yaml_locations import Document, Problem

_KINDS: Mapping[str, str] = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
    "path_type": "a path",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
}
"""The expected form of a value, by the type of pydantic's error."""

_LIMITS: Mapping[str, str] = {
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "too_short": "at least {min_length} entries",
    "too_long": "at most {max_length} entries",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "string_pattern_mismatch": "a text that matches {pattern}",
}
"""Expectations by kind of error, for a value of the right type."""


def model_problems(
    document: Document, model: type[BaseModel], error: ValidationError, patterns: Mapping[str, str]
) -> Iterator[Problem]:
    """Every mistake once, at its place. `patterns` has the words for each regular expression of the model."""
    at: defaultdict[Place, list[ErrorDetails]] = defaultdict(list)
    for one in error.errors(include_url=False):
        if one["type"] == "extra_forbidden":
            yield _unknown_key(document, model, _place(document, one))
        elif one["type"] == "missing":
            place = _place(document, one)
            yield document.problem(place, f"'{one['loc'][-1]}' is missing in {_dotted(place) or 'the file'}")
        else:
            at[_place(document, one)].append(one)
    for place, errors in at.items():
        if not _is_outer_form(place, at):
            yield document.problem(place, _wrong_value(model, place, errors, patterns))


def _is_outer_form(place: Place, others: Iterable[Place]) -> bool:
    """A value may have several forms: where one fits down to an inner value, that one was meant."""
    return any(len(other) > len(place) and other[: len(place)] == place for other in others)


def _place(document: Document, error: ErrorDetails) -> Place:
    """pydantic's place has names of forms and marks of keys, which the file has not."""
    place: Place = ()
    for part in error["loc"]:
        if (*place, part) in document.marks:
            place = (*place, part)
    return place


def _dotted(place: Place) -> str:
    return ".".join(map(str, place))


def _unknown_key(document: Document, model: type[BaseModel], place: Place) -> Problem:
    return document.problem(
        place, f"unknown key '{place[-1]}'{hint(str(place[-1]), _keys(model, place[:-1]))}"
    )


def _wrong_value(
    model: type[BaseModel], place: Place, errors: list[ErrorDetails], patterns: Mapping[str, str]
) -> str:
    limits = [e for e in errors if e["type"] in _LIMITS]
    expected = " or ".join(dict.fromkeys(_expected(model, place, e, patterns) for e in limits or errors))
    return f"{_dotted(place) or 'the file'} is {_shown(errors[0]['input'])}; expected {expected}"


def _expected(model: type[BaseModel], place: Place, error: ErrorDetails, patterns: Mapping[str, str]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "string_pattern_mismatch" and context["pattern"] in patterns:
        return patterns[context["pattern"]]
    if kind in ("enum", "literal_error"):
        return str(context["expected"])
    if kind == "value_error":
        return str(context["error"]).removeprefix("expected ")
    if kind in ("model_type", "model_attributes_type"):
        return _mapping(model, place, error["input"])
    limits = {key: f"{value:g}" if isinstance(value, float) else value for key, value in context.items()}
    return _KINDS.get(kind) or _LIMITS.get(kind, "another value").format(**limits)


def _mapping(model: type[BaseModel], place: Place, given: object) -> str:
    """Describe the expected mapping, with an example if the value given is one for its first key."""
    inner, keys = _model_at(model, place), _keys(model, place)
    expected = f"a mapping with {' or '.join(keys)}" if len(keys) < 3 else f"a mapping with {', '.join(keys)}"
    if inner is None or not isinstance(given, str | int | float):
        return expected
    try:
        inner.model_validate({keys[0]: given})
    except ValidationError:
        return expected
    return f"{expected}, as in {{{keys[0]}: {given}}}"


def _keys(model: type[BaseModel], place: Place) -> list[str]:
    inner = _model_at(model, place)
    return [] if inner is None else list(inner.model_fields)


def _model_at(model: type[BaseModel], place: Place) -> type[BaseModel] | None:
    """The model of the mapping at a place of the file, if it has one."""
    kind: Any = model
    for key in place:
        kind = _inner(kind, key)
    kind = _plain(kind)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _plain(kind: Any) -> Any:
    """Strip annotations and None from a type."""
    while get_origin(kind) is Annotated or type(None) in get_args(kind):
        kind = next(a for a in get_args(kind) if a is not type(None))
    return kind


def _inner(kind: Any, key: str | int) -> Any:
    """The type of a member of a model, mapping or list."""
    kind = _plain(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields.get(str(key))
        return None if field is None else field.annotation
    arguments = get_args(kind)
    return arguments[-1 if get_origin(kind) is dict else 0] if arguments else None


def _shown(value: object) -> str:
    return reprlib.repr(value)
