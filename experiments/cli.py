# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold reproduce`: the simulations of the GRID and InArt papers, our values beside the published ones."""

from __future__ import annotations

import os
import sys
from itertools import groupby
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

from netfold.experiments.published import NOTES, Paper
from netfold.experiments.run import Extent, Point, reproduce
from netfold.experiments.show import document, figure_table, plot_figure

app = typer.Typer(add_completion=False)

BAD_INPUT = 2
FILE_WIDTH = 170


@app.command()
def run(
    paper: Annotated[Paper, typer.Argument(help="Whose simulations.")],
    draws: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Random instances of each point; means are shown. Default: 3."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Every other point of each figure, from one instance.")
    ] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, max=256, help="Default: as many as there are processors.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the plots and the JSON file go.")] = Path("out"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the JSON document in place of tables.")
    ] = False,
) -> None:
    """Plan the papers' simulated set-ups by every scheme, and show bound, rounded, repaired and optimal rates
    beside the published figures."""
    errors = Console(stderr=True)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        errors.print(f"netfold reproduce: --out {out}: {error.strerror}", style="red", markup=False)
        raise typer.Exit(BAD_INPUT) from None
    extent = Extent(
        draws=draws or (1 if quick else 3),
        seed=seed,
        stride=2 if quick else 1,
        processes=processes or len(os.sched_getaffinity(0)),
    )
    points = _with_progress(paper, extent, errors)
    text = document(paper, points)
    (out / f"reproduce-{paper}.json").write_text(text)
    if as_json:
        typer.echo(text)
    console = Console() if sys.stdout.isatty() else Console(width=FILE_WIDTH)
    for figure, own in groupby(points, key=lambda p: p.figure):
        rows = list(own)
        plot_figure(paper, figure, rows, out / f"reproduce-{paper}-fig{figure.name}.png")
        if not as_json:
            console.print(figure_table(paper, figure, rows))
    if not as_json:
        for note in NOTES[paper]:
            console.print(f"- {note}", markup=False, highlight=False)
        console.print(f"plots and JSON: {out}/reproduce-{paper}*", markup=False, highlight=False)


def _with_progress(paper: Paper, extent: Extent, console: Console) -> list[Point]:
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(f"planning {paper.label}'s set-ups", total=None)
        return list(reproduce(paper, extent, lambda done, of: progress.update(bar, completed=done, total=of)))
