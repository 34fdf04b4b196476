# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold measure reroute`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from netfold.measure import options

if TYPE_CHECKING:
    from netfold.measure.reroute.experiment import Row


def reroute(
    fabric: Annotated[
        str, typer.Argument(help="A leaf-spine fabric: its YAML file, or the name of a spec of netfold.")
    ] = "leaf-spine-4x2",
    modes: Annotated[
        str, typer.Option(help="Ways of choosing trees to compare, A,B,C.")
    ] = "static,ecmp,r-inart,re-routed",
    jobs: Annotated[str, typer.Option(help="Numbers of jobs that run at once: 1,2.")] = "1,2",
    load: Annotated[str, typer.Option(help="Of the spine's links, by TCP flows: A,B,C.")] = "0.6,0.7,0.8",
    scale: Annotated[float, typer.Option(help="Rates on the wire over those of the fabric's file.")] = 0.05,
    size: Annotated[int, typer.Option(min=1024, help="Bytes of the arrays.")] = 1 << 17,
    load_seconds: Annotated[float, typer.Option(min=6, help="How long the flows send.")] = 8.0,
    target: options.Target = "auto",
    lanes: options.Lanes = 256,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds for the jobs of one mode.")] = 120.0,
    json_to: options.JsonTo = None,
    picture: options.Picture = Path("out/measure-reroute.png"),
) -> None:
    """TCP flows fill a spine's links while jobs train: time per iteration static, by ECMP, and re-routed.

    static: one tree over that spine. ecmp: equal parts over both spines. r-inart: planned again with the split fixed.
    re-routed: with any split. "moved": from the onset of the flows to the new epoch; "settled": until iterations are
    as short as they stay; "as before": from the end of the flows until iterations are as short as before them. A case
    takes some 25 s, all 24 ten minutes; --load, --jobs and --modes take fewer.

    Exit codes: 0 done and every sum right, 1 something failed (one line says what) or an element was wrong."""
    from netfold.measure.reroute.experiment import Experiment, Rerouting
    from netfold.measure.reroute.picture import draw
    from netfold.testbed.deployment import Setup

    loads = options.numbers(load, "--load", float)
    if not all(0.05 <= part <= 1 for part in loads):
        raise typer.BadParameter("--load takes parts of a link, 0.05 to 1")
    with options.measuring():
        experiment = Experiment(
            Setup(fabric, target, lanes, scale),
            modes.split(","),
            options.numbers(jobs, "--jobs", int),
            size,
            loads,
            load_s=load_seconds,
            timeout_s=timeout,
        )
        rows = Rerouting(experiment, options.tell).run()
        if picture is not None:
            options.drawn(picture, lambda file: draw(rows, experiment.load_s, file))
        shown = options.written(json_to, {"rows": [r.to_dict() for r in rows]})
    if not shown:
        options.screen().print(_table(fabric, rows))
    sys.exit(0 if not any(r.wrong_elements for r in rows) else 1)


def _table(fabric: str, rows: Sequence[Row]) -> Table:
    table = Table(title=f"{fabric}: iterations before, under and after TCP on a spine's links")
    for head in ("TCP", "jobs", "trees", "job"):
        table.add_column(head)
    for head in (
        "before ms",
        "under ms",
        "after ms",
        "slower",
        "moved s",
        "settled s",
        "back s",
        "as before s",
        "moves",
        "wrong",
    ):
        table.add_column(head, justify="right")

    def shown(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    for r in rows:
        times = (shown(t, ".0f") for t in (r.before_ms, r.under_ms, r.after_ms))
        seconds = (shown(s, ".2f") for s in (r.slowdown, r.reaction_s, r.settled_s, r.back_s, r.restored_s))
        ends = (str(len(r.moved)), str(r.wrong_elements))
        table.add_row(f"{r.load:.0%}", str(r.jobs), r.mode, r.job, *times, *seconds, *ends)
    return table
