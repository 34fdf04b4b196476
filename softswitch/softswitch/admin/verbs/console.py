# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Dispatches a command line to its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from softswitch.admin.verbs import arrays, tables, traffic
from softswitch.admin.verbs.arguments import CommandError, Target
from softswitch.engine.engine import Engine, EngineError
from softswitch.errors import SwitchError
from softswitch.state.switch import Switch

VERBS: dict[str, Callable[..., str]] = {
    verb.__name__: verb for verb in (*tables.VERBS, *arrays.VERBS, *traffic.VERBS)
}


class Console:
    """Runs command lines on one switch."""

    def __init__(self, switch: Switch, engine: Engine) -> None:
        self._target = Target(switch, engine)

    def run(self, line: str) -> str:
        """The output of the command; "" for empty lines and comments (#). Raises CommandError."""
        words = line.partition("#")[0].split()
        if not words:
            return ""
        name, *arguments = words
        if name in ("help", "?"):
            return _help(arguments)
        verb = VERBS.get(name)
        if verb is None:
            raise CommandError(f"unknown command {name!r}; `help` lists all")
        try:
            inspect.signature(verb).bind(self._target, *arguments)
        except TypeError:
            raise CommandError(f"usage: {_usage(verb)}") from None
        try:
            return verb(self._target, *arguments)
        except (SwitchError, EngineError) as error:
            raise CommandError(str(error)) from error


def _doc(verb: Callable[..., Any]) -> str:
    return inspect.getdoc(verb) or ""


def _usage(verb: Callable[..., Any]) -> str:
    return _doc(verb).partition("\n")[0].partition(": ")[2]


def _help(names: list[str]) -> str:
    if not names:
        return "Commands (help <command> for details):\n" + "\n".join(
            f"  {_usage(verb)}" for verb in VERBS.values()
        )
    if names[0] not in VERBS:
        raise CommandError(f"unknown command {names[0]!r}; `help` lists all")
    return _doc(VERBS[names[0]])
