# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold measure quorum`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from netfold.measure import options

if TYPE_CHECKING:
    from netfold.measure.quorum.experiment import Row


def quorum(
    workers: Annotated[int, typer.Option(min=2, max=16, help="Workers; the first is the slow one.")] = 4,
    enough: Annotated[int, typer.Option("--quorum", min=1, help="Contributions that are enough.")] = 3,
    deadline: Annotated[float, typer.Option(min=1, help="Milliseconds that a chunk waits for all.")] = 50.0,
    delays: Annotated[
        str, typer.Option(help="How much longer the slow worker computes, in ms: A,B,C.")
    ] = "0,20,100,250,500",
    compute: Annotated[float, typer.Option(min=0, help="What every worker computes in a step, in ms.")] = 10,
    size: Annotated[int, typer.Option(min=1024, help="Bytes of the array.")] = 1 << 18,
    seconds: Annotated[float, typer.Option(min=1, help="How long each point lasts.")] = 5.0,
    json_to: options.JsonTo = None,
    picture: options.Picture = Path("out/measure-quorum.png"),
) -> None:
    """Steps of workers of which one is slow, with and without a quorum, and how many contributed.

    Over a parameter server on this machine's loopback, without switches; needs no root.

    Exit codes: 0 done, 1 something failed (one line says what)."""
    from netfold.measure.quorum.experiment import Experiment, measure
    from netfold.measure.quorum.picture import draw

    with options.measuring(root=False):
        late = options.numbers(delays, "--delays", float)
        if enough > workers:
            raise typer.BadParameter(f"a quorum of {enough} of {workers} workers")
        experiment = Experiment(workers, enough, deadline, late, compute, size, seconds)
        rows = measure(experiment, options.tell)
        if picture is not None:
            options.drawn(picture, lambda file: draw(rows, file))
        if not options.written(json_to, {"rows": [row.to_dict() for row in rows]}):
            options.screen().print(_table(rows))


def _table(rows: Sequence[Row]) -> Table:
    table = Table("slow by (ms)", "quorum", "steps", "step (ms)", "steps of the slow", "left", "contributors")
    for row in rows:
        who = ", ".join(f"{count}: {steps}" for count, steps in row.contributors.items())
        table.add_row(
            f"{row.delay_ms:g}",
            str(row.quorum or "-"),
            str(row.steps),
            f"{row.step_ms:.0f}",
            str(row.slow_steps),
            str(row.left),
            who,
        )
    return table
