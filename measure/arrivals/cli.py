# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold measure arrivals`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from netfold.measure import options
from netfold.measure.progress import one_by_one

if TYPE_CHECKING:
    from netfold.measure.arrivals.experiment import Arrival


def arrivals(
    spreads: Annotated[str, typer.Option(help="Milliseconds from the first worker to the last: A,B,C.")] = (
        "0,50,100,200,500"
    ),
    size: Annotated[int, typer.Option(min=1024, help="Bytes of the array.")] = 4_000_000,
    calls: Annotated[
        int, typer.Option(min=1, help="One after the other; the first and the last are shown.")
    ] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="0 and 500 ms.")] = False,
    json_to: options.JsonTo = None,
    picture: options.Picture = Path("out/measure-arrivals.png"),
) -> None:
    """Eight workers come one after the other to each call: what waiting costs, in the packet-level simulator.

    again: what those who wait send beyond their first packets until the last one comes, as a part of what their links
    could carry. rate: of a worker on its link once all are there, of what the plan gives it.

    Exit codes: 0 done and every sum right, 1 something failed (one line says what)."""
    from netfold.measure.arrivals.experiment import arrivals as measured

    milliseconds = options.numbers("0,500" if quick else spreads, "--spreads", float)
    with options.measuring(root=False):
        cases = one_by_one(milliseconds, lambda ms: f"{ms:g} ms apart", options.tell)
        rows = [row for ms in cases for row in measured(ms / 1e3, size, calls)]
        if picture is not None:
            from netfold.measure.arrivals.picture import draw

            options.drawn(picture, lambda file: draw(rows, file))
        shown = options.written(json_to, {"rows": [r.to_dict() for r in rows]})
    if not shown:
        options.screen().print(_table(rows))


def _table(rows: Sequence[Arrival]) -> Table:
    table = Table(title=f"{rows[0].workers} workers, {rows[0].size / 1e6:g} MB, {rows[0].link_mbps:g} Mbit/s")
    for head in (
        "spread ms",
        "call",
        "first bytes",
        "again bytes",
        "again",
        "ms after the last",
        "ms together",
        "rate",
    ):
        table.add_column(head, justify="right")
    for r in rows:
        waited = (f"{r.first_bytes:.0f}", f"{r.again_bytes:.0f}", f"{r.again_part:.3%}")
        times = (f"{r.seconds * 1e3:.1f}", f"{r.together_s * 1e3:.1f}")
        table.add_row(f"{r.spread_ms:g}", str(r.call), *waited, *times, f"{r.rate_part:.1%}")
    return table
