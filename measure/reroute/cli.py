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
    load: Annotated[float, typer.Option(min=0.05, max=1.0, help="Of the spine's links, by TCP flows.")] = 0.7,
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
    re-routed: with any split. Reaction: from the onset of the flows to the new epoch.

    Exit codes: 0 done and every sum right, 1 something failed (one line says what) or an element was wrong."""
    from netfold.measure.reroute.experiment import Experiment, Rerouting
    from netfold.measure.reroute.picture import draw
    from netfold.testbed.deployment import Setup

    with options.measuring():
        experiment = Experiment(
            Setup(fabric, target, lanes, scale),
            modes.split(","),
            options.numbers(jobs, "--jobs", int),
            size,
            load,
            load_s=load_seconds,
            timeout_s=timeout,
        )
        rows = Rerouting(experiment, options.tell).run()
        if picture is not None:
            options.drawn(picture, lambda file: draw(rows, experiment.load_s, file))
        shown = options.written(json_to, {"load": load, "rows": [r.to_dict() for r in rows]})
    if not shown:
        options.screen().print(_table(fabric, load, rows))
    sys.exit(0 if not any(r.wrong_elements for r in rows) else 1)


def _table(fabric: str, load: float, rows: Sequence[Row]) -> Table:
    table = Table(title=f"{fabric}: iterations before, under and after TCP on {load:.0%} of a spine's links")
    for head in ("jobs", "trees", "job"):
        table.add_column(head)
    for head in (
        "before ms",
        "under ms",
        "after ms",
        "slower",
        "moved after s",
        "settled s",
        "back s",
        "moves",
        "wrong",
    ):
        table.add_column(head, justify="right")
    for r in rows:
        seconds = ("-" if s is None else f"{s:.2f}" for s in (r.reaction_s, r.settled_s, r.back_s))
        times = (f"{t:.0f}" for t in (r.before_ms, r.under_ms, r.after_ms))
        ends = (str(r.moves), str(r.wrong_elements))
        table.add_row(str(r.jobs), r.mode, r.job, *times, f"{r.slowdown:.2f}x", *seconds, *ends)
    return table
