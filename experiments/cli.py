# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold reproduce`: the papers' simulations, our values beside the published ones; a command for each paper."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from netfold.experiments import netreduce_show, options, panama_show, panama_vary
from netfold.experiments import panama as panama_points
from netfold.experiments.inart_derived import derived_table
from netfold.experiments.netreduce import NOTES as NETREDUCE_NOTES
from netfold.experiments.netreduce import QUICK, Grid, conditions
from netfold.experiments.netreduce import rows as netreduce_rows
from netfold.experiments.panama_rows import claims_of, rows_of
from netfold.experiments.published import NOTES, Paper
from netfold.experiments.run import Extent, reproduce
from netfold.experiments.show import document, figure_table, plot_figure
from netfold.experiments.sweep.sweep import Place, sweep

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Repeat the papers' simulations, our values beside the published ones.",
)

Draws = Annotated[
    int | None,
    typer.Option(min=1, max=100, help="Random instances of each point; means are shown. Default: 3."),
]
QuickDraws = Annotated[
    bool, typer.Option("--quick", help="Every other point of each figure, from one instance.")
]


def _rates_command(paper: Paper, text: str) -> None:
    @app.command(str(paper), help=text)
    def run(
        draws: Draws = None,
        seed: options.Seed = 0,
        quick: QuickDraws = False,
        jobs: options.Jobs = options.DEFAULT_JOBS,
        scheduler: options.Scheduler = None,
        no_cache: options.NoCache = False,
        out: options.Out = options.DEFAULT_OUT,
        as_json: options.AsJson = False,
    ) -> None:
        extent = Extent(draws=draws or (1 if quick else 3), seed=seed, stride=2 if quick else 1)
        _rates(paper, extent, Place(jobs, scheduler), no_cache, out, as_json)


_rates_command(
    Paper.GRID,
    "GRID (ToN 2023): plan its simulated set-ups by every scheme, and show bound, rounded, repaired and optimal rates "
    "beside the published figures.",
)
_rates_command(
    Paper.INART, "InArt (WWW 2024): the same for its set-ups, which have several parameter servers."
)


@app.command()
def netreduce(
    quick: Annotated[
        bool, typer.Option("--quick", help="The ends of the ranges and little between.")
    ] = False,
    out: options.Out = options.DEFAULT_OUT,
    as_json: options.AsJson = False,
) -> None:
    """NetReduce (ASPLOS 2023): flat ring (FR), two levels (TA) and parallel NetReduce (PN) over the number of GPUs, the
    bandwidth inside machines and the latency, by their cost model; where they cross, and the sufficient conditions."""
    grid = QUICK if quick else Grid()
    with options.guarded("reproduce", out):
        rows, found = netreduce_rows(grid), conditions(grid)
        text = netreduce_show.document(rows, found)
        (out / "reproduce-netreduce.json").write_text(text)
        (out / "reproduce-netreduce.csv").write_text(netreduce_show.table_of(rows))
        netreduce_show.plot_surfaces(out / "reproduce-netreduce-surfaces.png")
        netreduce_show.plot_crossings(out / "reproduce-netreduce-crossings.png")
    if as_json:
        typer.echo(text)
        return
    console = options.screen()
    for table in netreduce_show.time_tables(grid, rows):
        console.print(table)
    console.print(netreduce_show.crossing_table(grid))
    console.print(netreduce_show.condition_table(found))
    for note in NETREDUCE_NOTES:
        console.print(f"- {note}", markup=False, highlight=False)
    console.print(f"plots, CSV and JSON: {out}/reproduce-netreduce*", markup=False, highlight=False)


@app.command()
def panama(
    seed: options.Seed = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Five loads, and 128 servers in place of 1,024.")
    ] = False,
    vary: Annotated[
        bool,
        typer.Option(
            "--vary",
            help="Instead: one assumption changed after the other, ring beside PANAMA on 128 servers.",
        ),
    ] = False,
    jobs: options.Jobs = options.DEFAULT_JOBS,
    scheduler: options.Scheduler = None,
    no_cache: options.NoCache = False,
    out: options.Out = options.DEFAULT_OUT,
    as_json: options.AsJson = False,
) -> None:
    """PANAMA (MLSys 2021): how long short flows take beside training jobs, by four schemes and the jobs' load, and what
    becomes of the training."""
    with options.guarded("reproduce", out), options.progress_of("simulating PANAMA's cluster") as told:
        wanted = panama_vary.variants(seed) if vary else panama_points.points(seed, quick)
        cache = options.cache_unless(no_cache)
        done = list(sweep(panama_points.point, wanted, Place(jobs, scheduler), cache, told))
    found = [r for r in done if isinstance(r, dict)]
    if vary:
        _varied(panama_vary.pairs(found), out, as_json)
        return
    rows = rows_of(found)
    claims = claims_of(rows)
    text = panama_show.document(rows, claims)
    (out / "reproduce-panama.json").write_text(text)
    (out / "reproduce-panama.csv").write_text(panama_show.table_of(rows))
    panama_show.plot(rows, out / "reproduce-panama.png")
    if as_json:
        typer.echo(text)
        return
    console = options.screen()
    console.print(panama_show.curves(rows))
    for line in (*map(panama_show.verdict, claims), panama_show.PUBLISHED, *panama_points.OURS):
        console.print(f"- {line}", markup=False, highlight=False)
    console.print(f"plot, JSON and CSV: {out}/reproduce-panama*", markup=False, highlight=False)


def _varied(rows: list[panama_vary.Pair], out: Path, as_json: bool) -> None:
    text = panama_vary.document(rows)
    (out / "reproduce-panama-vary.json").write_text(text)
    (out / "reproduce-panama-vary.csv").write_text(panama_vary.table_of(rows))
    if as_json:
        typer.echo(text)
        return
    console = options.screen()
    console.print(panama_vary.table(rows))
    console.print(f"JSON and CSV: {out}/reproduce-panama-vary*", markup=False, highlight=False)


def _rates(
    paper: Paper, extent: Extent, place: Place, no_cache: bool, out: options.Out, as_json: bool
) -> None:
    with options.guarded("reproduce", out), options.progress_of(f"planning {paper.label}'s set-ups") as told:
        points = list(reproduce(paper, extent, place, options.cache_unless(no_cache), told))
    text = document(paper, points)
    (out / f"reproduce-{paper}.json").write_text(text)
    if as_json:
        typer.echo(text)
    console = options.screen()
    for figure, own in groupby(points, key=lambda p: p.figure):
        rows = list(own)
        plot_figure(paper, figure, rows, out / f"reproduce-{paper}-fig{figure.name}.png")
        if not as_json:
            console.print(figure_table(paper, figure, rows))
    if not as_json:
        if paper is Paper.INART:
            console.print(derived_table(points))
        for note in NOTES[paper]:
            console.print(f"- {note}", markup=False, highlight=False)
        console.print(f"plots and JSON: {out}/reproduce-{paper}*", markup=False, highlight=False)
