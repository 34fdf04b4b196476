# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What all measurements have in common: options, how they become root, how they end, and where their figures go."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from netfold.testbed.errors import RunError
from netfold.topologies.fabric import FabricError
from netfold.topologies.network.caller import as_caller, become_root
from netfold.topologies.network.errors import NetworkError

FILE_WIDTH = 170
STDOUT = Path("-")
Number = TypeVar("Number", int, float)

JsonTo = Annotated[
    Path | None,
    typer.Option(
        "--json", help="Write the figures as JSON to this file; - prints them in place of the table."
    ),
]
Picture = Annotated[Path | None, typer.Option(help="Draw the figures to this file (.png, .svg, .pdf).")]
Target = Annotated[str, typer.Option(help="The switches: softswitch, bmv2, or auto.")]
Lanes = Annotated[int, typer.Option(help="Lanes of a packet: 32, 64 or 256.")]


def numbers(text: str, option: str, kind: type[Number]) -> list[Number]:
    """A,B,C as an option gives them."""
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{option} takes numbers, A,B,C") from None


def tell(text: str) -> None:
    """What is done now, on standard error."""
    Console(stderr=True).print(f"[dim]{text}[/dim]")


def screen() -> Console:
    """As wide as the terminal, or as a file may be."""
    return Console() if sys.stdout.isatty() else Console(width=FILE_WIDTH)


@contextmanager
def measuring(*, root: bool = True) -> Iterator[None]:
    """Within, a measurement runs (as root, by sudo if need be): what stops it becomes one line and exit code 1."""
    try:
        if root:
            become_root()
        yield
    except (RunError, NetworkError, FabricError, OSError) as error:
        typer.echo(f"netfold: {error}", err=True)
        sys.exit(1)


def drawn(file: Path, draw: Callable[[Path], None]) -> None:
    """Let `draw` write a picture, which belongs to the user who called sudo. Raises RunError."""
    with tempfile.TemporaryDirectory(prefix="netfold-") as folder:
        made = Path(folder) / file.name
        try:
            draw(made)
        except ValueError as error:  # a format that matplotlib does not know
            raise RunError(f"--picture {file}: {error}") from error
        content = made.read_bytes()
    try:
        with as_caller():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    except OSError as error:
        raise RunError(f"--picture {file}: {error.strerror}") from error


def written(to: Path | None, figures: dict[str, Any]) -> bool:
    """Write the figures where --json says, as the user who called sudo; True if they stand for the table."""
    if to is None:
        return False
    text = json.dumps(figures, indent=2)
    if to == STDOUT:
        typer.echo(text)
        return True
    try:
        with as_caller():
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(text + "\n")
    except OSError as error:
        raise RunError(f"--json {to}: {error.strerror}") from error
    return False
