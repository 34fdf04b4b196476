# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold measure plans`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from netfold.measure import options

if TYPE_CHECKING:
    from netfold.measure.plans.measuring import Measurement


def plans(
    fabric: Annotated[str, typer.Argument(help="A fabric's YAML file, or the name of a spec of netfold.")],
    schemes: Annotated[str, typer.Option(help="Planners to compare, A,B,C.")] = "none,atp,grid,inart",
    base: Annotated[str, typer.Option(help="The scheme that reductions are given against.")] = "none",
    target: options.Target = "auto",
    lanes: options.Lanes = 256,
    scale: Annotated[
        float | None,
        typer.Option(
            help="Rates on the wire over those of the fabric's file: 0.01 makes 30 Mbit/s of 3 Gbit/s."
        ),
    ] = None,
    size: Annotated[int, typer.Option(min=4, help="Bytes of the arrays.")] = 1 << 20,
    iterations: Annotated[int, typer.Option(min=1, help="All-reduces of each job.")] = 4,
    jobs: Annotated[
        int, typer.Option(min=1, help="Jobs that share the fabric's workers and run at once.")
    ] = 1,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds for the jobs of one scheme.")] = 300.0,
    json_to: options.JsonTo = None,
) -> None:
    """Run each scheme's plan on a fabric in Mininet: planned and measured rates side by side.

    Choose a scale at which processors are no limit, or "of plan" shows the machine, and arrays that take seconds:
    on two cores some 10 Mbit/s for each of eight workers where nothing is added up on the way (grid-fig1: 0.003 to
    0.01, inart-fig1: 3, leaf-spine-4x2 with two jobs: 0.03).

    Exit codes: 0 done and every sum right, 1 something failed (one line says what) or an element was wrong."""
    from netfold.measure.plans.measuring import Experiment, Measuring, reductions
    from netfold.testbed.deployment import Setup

    setup = Setup(fabric, target, lanes, scale)
    experiment = Experiment(setup, schemes.split(","), size, iterations, jobs, timeout)
    with options.measuring():
        rows = Measuring(experiment, options.tell).run()
        saved = reductions(rows, base)
        figures = {"rows": [r.to_dict() for r in rows], "reduction": saved, "base": base}
        shown = options.written(json_to, figures)
    if not shown:
        options.screen().print(_table(fabric, rows, saved, base))
    sys.exit(0 if not any(r.wrong_elements for r in rows) else 1)


def _table(fabric: str, rows: Sequence[Measurement], saved: Mapping[str, float], base: str) -> Table:
    heads = ("scheme", "job", "plan", "published", "plan Mbit/s", "measured", "of plan", "all-reduce ms")
    table = Table(title=f"{fabric}: planned and measured rate of a worker")
    for column in heads:
        table.add_column(column, justify="left" if column in ("scheme", "job") else "right")
    table.add_column(f"time saved over {base}", justify="right")
    for row in rows:
        table.add_row(
            row.scheme,
            row.job,
            f"{row.rate:.4g} {row.unit}",
            "-" if row.published is None else f"{row.published:g}",
            f"{row.planned_mbps:.2f}",
            f"{row.measured_mbps:.2f}",
            f"{row.of_plan:.1%}",
            f"{row.iteration_ms:.1f}",
            f"{saved[row.scheme]:.1%}" if row.scheme in saved else "-",
        )
    return table
