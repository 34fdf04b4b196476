# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, as frozen dataclasses: a command takes the dataclass, its user the fields."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_origin, get_type_hints


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """For Typer: `command` with each parameter of a dataclass type replaced by the dataclass's annotated fields, behind
    the other parameters. All are keywords; fields keep their annotations and defaults."""
    hints = get_type_hints(command, include_extras=True)
    given = inspect.signature(command).parameters
    groups: dict[str, Any] = {name: hints[name] for name in given if dataclasses.is_dataclass(hints[name])}
    parameters = [_keyword(name, hints[name], p.default) for name, p in given.items() if name not in groups]
    fields = {name: _options(group) for name, group in groups.items()}
    parameters += [p for own in fields.values() for p in own]

    def expanded(**values: Any) -> None:
        built = {
            name: group(**{p.name: values.pop(p.name) for p in fields[name]})
            for name, group in groups.items()
        }
        command(**values, **built)

    expanded.__name__, expanded.__doc__ = command.__name__, command.__doc__
    expanded.__module__ = command.__module__
    expanded.__annotations__ = {p.name: p.annotation for p in parameters}
    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return expanded


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        _keyword(f.name, hints[f.name], _default(f))
        for f in dataclasses.fields(group)
        if get_origin(hints[f.name]) is Annotated
    ]


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
