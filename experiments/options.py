# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What the commands that sweep have in common: options, progress, and how they end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from netfold.experiments.sweep.cache import Cache, default_folder
from netfold.experiments.sweep.point import SweepError
from netfold.experiments.sweep.sweep import JOBS
from netfold.experiments.sweep.version import code_version

BAD_INPUT, BROKEN_SWEEP, INTERRUPTED = 2, 4, 130
FILE_WIDTH = 170

Seed = Annotated[int, typer.Option(min=0, help="Of all random choices.")]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs", "--processes", min=1, max=256, help="Processes of this machine that share the points."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="Run the points on the workers of this Dask scheduler, such as tls://HOST:8786, in place of --jobs. "
        "Whoever reaches a scheduler can run code on its workers, and it can run code here: name none that you do "
        "not trust. "
        "Certificates come from Dask's configuration (DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ...)."
    ),
]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        help="Neither read nor keep points; else they are kept in $XDG_CACHE_HOME/netfold/sweeps.",
    ),
]
Out = Annotated[Path, typer.Option(help="Where the plots and files go.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the JSON document in place of tables.")]

DEFAULT_JOBS, DEFAULT_OUT = JOBS, Path("out")


def cache_unless(left_out: bool) -> Cache | None:
    """Raises SweepError if its folder cannot be written."""
    return None if left_out else Cache(default_folder(), code_version())


def screen() -> Console:
    """As wide as the terminal, or as a file may be."""
    return Console() if sys.stdout.isatty() else Console(width=FILE_WIDTH)


def refused(command: str, reason: str, code: int = BAD_INPUT) -> typer.Exit:
    """Said on standard error; to be raised."""
    Console(stderr=True).print(
        f"netfold {command}: {reason}", style="red", markup=False, highlight=False, soft_wrap=True
    )
    return typer.Exit(code)


@contextmanager
def guarded(command: str, out: Path | None = None) -> Iterator[None]:
    """`out` exists within. What ends a sweep early becomes a line and an exit code."""
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(command, f"--out {out}: {error.strerror}") from None
    try:
        yield
    except SweepError as error:
        raise refused(command, str(error), BROKEN_SWEEP) from None
    except KeyboardInterrupt:
        raise refused(
            command, "interrupted; the same command goes on where it was, unless --no-cache", INTERRUPTED
        ) from None


@contextmanager
def progress_of(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error with the time left; the callback takes how many are done of how many."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(what, total=None)
        yield lambda done, of: progress.update(bar, completed=done, total=of)
