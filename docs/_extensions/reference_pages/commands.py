# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The page of the commands, from typer's declarations. Commands and parameters are of typer's private copy of click."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from typer.core import TyperGroup, TyperOption

from netfold import cli

from .markdown import escaped, table


def page(_: Path) -> str:
    """One section for each command of `netfold`."""
    return "\n".join(line for path in cli.COMMANDS for line in _section(path)) + "\n"


def _section(path: str) -> Iterator[str]:
    entry = cli.COMMANDS[path]
    if isinstance(entry, cli.CommandGroup):
        yield from (f"## netfold {path}", "", escaped(entry.help), "")
        return
    words = path.split()
    command: Any = typer.main.get_command(cli.build(path))
    for word in words:
        command = command.commands[word]
    yield from _command(command, f"netfold {path}", 1 + len(words))


def _command(command: Any, path: str, depth: int) -> Iterator[str]:
    yield from ("#" * depth + f" {path}", "", escaped(inspect.cleandoc(command.help or "")), "")
    if isinstance(command, TyperGroup):
        for name, sub in command.commands.items():
            yield from _command(sub, f"{path} {name}", depth + 1)
        return
    context = typer.Context(command, info_name=path)
    parameters = [p for p in command.get_params(context) if p.name != "help"]
    yield from ("```text", " ".join(command.get_usage(context).removeprefix("Usage: ").split()), "```", "")
    yield from table(
        ("parameter", "meaning", "default"),
        ((_names(p), escaped(getattr(p, "help", "") or ""), _default(p)) for p in parameters),
    )


def _names(parameter: Any) -> str:
    if isinstance(parameter, TyperOption):
        return ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    return f"`{parameter.name}`"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    default = parameter.default
    if default is None or default is False or callable(default) or default in ("", (), []):
        return ""
    shown = " ".join(map(str, default)) if isinstance(default, (list, tuple)) else str(default)
    return f"`{shown}`"
