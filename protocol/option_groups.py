# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Groups of command-line options: a command takes a frozen dataclass, and its user the dataclass's fields.

netfold and softswitch are distributions that do not need each other, so both have this file.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer.models import OptionInfo


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """For Typer: `command` with each parameter of a dataclass type replaced by the dataclass's annotated fields, behind
    the other parameters. All are keywords; fields keep their annotations and defaults. The options of a dataclass with
    a `PANEL` are in the panel of that name."""
    hints = get_type_hints(command, include_extras=True)
    given = inspect.signature(command).parameters
    groups = {name: _options(hints[name]) for name in given if dataclasses.is_dataclass(hints[name])}
    parameters = [_keyword(name, hints[name], p.default) for name, p in given.items() if name not in groups]
    parameters += [option for options in groups.values() for option in options]

    @functools.wraps(command)
    def expanded(**values: Any) -> None:
        built = {
            name: hints[name](**{option.name: values.pop(option.name) for option in options})
            for name, options in groups.items()
        }
        command(**values, **built)

    expanded.__annotations__ = {p.name: p.annotation for p in parameters}
    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return expanded


def _options(group: Any) -> list[inspect.Parameter]:
    hints, panel = get_type_hints(group, include_extras=True), getattr(group, "PANEL", None)
    return [
        _keyword(f.name, _in_panel(hints[f.name], panel), _default(f))
        for f in dataclasses.fields(group)
        if get_origin(hints[f.name]) is Annotated
    ]


def _in_panel(annotation: Any, panel: str | None) -> Any:
    kind, *metadata = get_args(annotation)
    placed = [copy.copy(info) for info in metadata]
    for info in placed:
        if panel is not None and isinstance(info, OptionInfo):
            info.rich_help_panel = panel
    return Annotated[(kind, *placed)]


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
