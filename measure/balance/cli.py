# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold measure balance`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from netfold.measure import options
from netfold.measure.progress import one_by_one

if TYPE_CHECKING:
    from netfold.measure.balance.experiment import Balanced


def balance(
    sizes: Annotated[str, typer.Option(help="Megabytes of the arrays: A,B,C.")] = "4,16,64,400",
    speeds: Annotated[str, typer.Option(help="What is left of one tree's links: A,B,C.")] = "1,0.5,0.25,0.1",
    quick: Annotated[bool, typer.Option("--quick", help="16 MB, half a tree.")] = False,
    json_to: options.JsonTo = None,
    picture: options.Picture = Path("out/measure-balance.png"),
) -> None:
    """One call over four trees of which one is slow: its time against the ideal, in the packet-level simulator.

    ideal: all trees are busy to the end. The plan does not know that a tree is slow. 400 MB take some minutes.

    Exit codes: 0 done and every sum right, 1 something failed (one line says what)."""
    from netfold.measure.balance.experiment import balanced

    megabytes = options.numbers("16" if quick else sizes, "--sizes", float)
    left = options.numbers("0.5" if quick else speeds, "--speeds", float)
    with options.measuring(root=False):
        rows = [
            balanced(round(size * 1e6), speed)
            for size, speed in one_by_one(
                list(product(megabytes, left)),
                lambda case: f"{case[0]:g} MB, {case[1]:g} of a tree",
                options.tell,
                lambda case: case[0],
            )
        ]
        if picture is not None:
            from netfold.measure.balance.picture import draw

            options.drawn(picture, lambda file: draw(rows, file))
        shown = options.written(json_to, {"rows": [r.to_dict() for r in rows]})
    if not shown:
        options.screen().print(_table(rows))


def _table(rows: Sequence[Balanced]) -> Table:
    table = Table(title="A call over four trees, one of them slow")
    for head in ("MB", "slow tree", "ms", "ideal ms", "of ideal", "as planned", "carried by the slow tree"):
        table.add_column(head, justify="right")
    for r in rows:
        times = (f"{r.seconds * 1e3:.2f}", f"{r.ideal_s * 1e3:.2f}", f"{r.of_ideal:.3f}x")
        planned = f"{r.unbalanced_s / r.ideal_s:.2f}x"
        table.add_row(f"{r.size / 1e6:g}", f"{r.speed:g}", *times, planned, f"{r.carried[0]:.1%}")
    return table
