# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Common parts of the commands that sweep: their options, progress and end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

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

from netfold.simulator.sweep.cache import Cache, default_folder
from netfold.simulator.sweep.code_version import code_version
from netfold.simulator.sweep.sweep import JOBS, Executor
from netfold.simulator.sweep.sweep import sweep as run_sweep
from netfold.simulator.sweep.task import Json, SweepError

EXIT_BAD_INPUT, EXIT_SWEEP_FAILED, EXIT_INTERRUPTED = 2, 4, 130
FILE_WIDTH = 170

Seed = Annotated[int, typer.Option(min=0, help="Seed of all random choices.")]

R = TypeVar("R")


@dataclass(frozen=True)
class SweepOptions:
    """Options of every command that runs a sweep."""

    PANEL = "Sweep"

    processes: Annotated[
        int, typer.Option(min=1, max=256, help="Processes of this machine that share the points.")
    ] = JOBS
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Run the points on the workers of this Dask scheduler, such as tls://HOST:8786, in place of "
            "--processes. A client of a scheduler can run code on its workers, and a scheduler can run code here: "
            "name one that you trust. Certificates come from Dask's configuration "
            "(DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ...)."
        ),
    ] = None
    no_cache: Annotated[
        bool,
        typer.Option(
            "--no-cache",
            help="Neither read nor keep points. Default: they are kept in $XDG_CACHE_HOME/netfold/sweeps.",
        ),
    ] = False

    def sweep(
        self, function: Callable[[R], Json], points: Sequence[R], label: str
    ) -> Generator[dict[str, Any]]:
        """Returns the results in the order of the points, and shows a progress bar. Raises SweepError."""
        with progress_bar(label) as progress:
            executor = Executor(self.processes, self.scheduler)
            for result in run_sweep(function, points, executor, open_cache(self.no_cache), progress):
                assert isinstance(result, dict)
                yield result


def open_cache(no_cache: bool) -> Cache | None:
    """Opens the cache. Raises SweepError if its folder cannot be written."""
    return None if no_cache else Cache(default_folder(), code_version())


def console() -> Console:
    """Returns a console as wide as the terminal, or FILE_WIDTH for a file."""
    return Console() if sys.stdout.isatty() else Console(width=FILE_WIDTH)


def remark(text: str) -> None:
    """Prints a line on standard error."""
    Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)


def refusal(command: str, reason: str, code: int = EXIT_BAD_INPUT) -> typer.Exit:
    """Prints the reason to standard error. The caller raises the result."""
    Console(stderr=True).print(
        f"netfold {command}: {reason}", style="red", markup=False, highlight=False, soft_wrap=True
    )
    return typer.Exit(code)


@contextmanager
def exit_on_error(command: str) -> Iterator[None]:
    """Turns an error that ends a sweep early into a line and an exit code."""
    try:
        yield
    except SweepError as error:
        raise refusal(command, str(error), EXIT_SWEEP_FAILED) from None
    except KeyboardInterrupt:
        raise refusal(
            command,
            "interrupted; the same command continues with the remaining points, unless --no-cache",
            EXIT_INTERRUPTED,
        ) from None


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows a bar on standard error with the remaining time. The callback takes the number of completed points and
    of all."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(what, total=None)
        yield lambda done, of: progress.update(bar, completed=done, total=of)
