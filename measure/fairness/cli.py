# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold measure fairness`."""

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
    from netfold.measure.fairness.shares import Shares
    from netfold.measure.fairness.short_flows import Short


def fairness(
    testbed: Annotated[
        bool,
        typer.Option(
            "--testbed", help="In Mininet, with this kernel's TCP; else by the packet-level simulator."
        ),
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A few of the cases, for a shorter time.")] = False,
    seconds: Annotated[float | None, typer.Option(min=2, help="In Mininet, for each case.")] = None,
    json_to: options.JsonTo = None,
    picture: options.Picture = Path("out/measure-fairness.png"),
) -> None:
    """A job against TCP flows on one link, and against another job; short flows beside a job.

    Jain's index is 1 where all have the same. "least" is the smallest share, of a fair one.

    Exit codes: 0 done, 1 something failed (one line says what)."""
    with options.measuring(root=testbed):
        shares, short = _in_mininet(quick, seconds) if testbed else _simulated(quick)
        if picture is not None:
            from netfold.measure.fairness.picture import draw

            options.drawn(picture, lambda file: draw(shares, short, file))
        figures = {"shares": [s.to_dict() for s in shares], "short": [s.to_dict() for s in short]}
        shown = options.written(json_to, figures)
    if not shown:
        screen = options.screen()
        screen.print(_shares_table(shares))
        screen.print(_short_table(short))


def _in_mininet(quick: bool, seconds: float | None) -> tuple[list[Shares], list[Short]]:
    from netfold.measure.fairness.testbed import CASES, QUICK, measured

    return measured(seconds or (8.0 if quick else 20.0), QUICK if quick else CASES, options.tell)


def _simulated(quick: bool) -> tuple[list[Shares], list[Short]]:
    from netfold.measure import worlds
    from netfold.measure.fairness import shares, short_flows
    from netfold.simulator.scenario import Transport
    from netfold.traffic.congestion import Congestion

    job, other = worlds.Training(), worlds.Training(workers=("w3", "w4"))
    long = [(t, n) for t in Transport for n in ((1,) if quick else (1, 2, 4))]
    brief = list(
        product(
            (Transport.CUBIC, Transport.CUBIC_ECN, Transport.DCTCP),
            (None, job, worlds.Training(Congestion.FIXED)),
        )
    )
    found, short = [], []
    for world in (worlds.quick(worlds.TESTBED),) if quick else (worlds.TESTBED, worlds.DATA_CENTER):

        def words(case: tuple[Transport, object], world: worlds.World = world) -> str:
            return f"{world.name}: {case[0]}"

        for transport, flows in one_by_one(long, words, options.tell):
            found.append(shares.simulated(world, transport, flows, [job]))
        found.append(shares.simulated(world, Transport.CUBIC, 0, [job, other]))
        for transport, beside in one_by_one(brief, words, options.tell):
            short.append(short_flows.simulated(world, transport, beside))
    return found, short


def _shares_table(rows: Sequence[Shares]) -> Table:
    table = Table(title="Shares of one link, of its rate on the wire")
    for head in ("link", "against"):
        table.add_column(head)
    for head in ("flows", "a job", "a flow", "Jain", "least"):
        table.add_column(head, justify="right")
    for r in rows:
        job, flows = r.shares[: r.jobs], r.shares[r.jobs :]
        other = f"{sum(flows) / len(flows):.2f}" if flows else "-"
        own = f"{sum(job) / len(job):.2f}"
        table.add_row(r.world, r.against, str(r.flows), own, other, f"{r.jain:.3f}", f"{r.least:.2f}")
    return table


def _short_table(rows: Sequence[Short]) -> Table:
    table = Table(title="Completion of flows of 20 kB, and p99 over that on an idle network")
    for head in ("link", "TCP", "beside"):
        table.add_column(head)
    for head in ("flows", "not over", "p50 ms", "p99 ms", "of idle"):
        table.add_column(head, justify="right")
    idle = {(r.world, r.transport): r.p99_ms for r in rows if r.beside == "nothing"}
    for r in rows:
        ratio = r.p99_ms / idle[r.world, r.transport] if (r.world, r.transport) in idle else float("nan")
        figures = (str(r.flows), str(r.unfinished), f"{r.p50_ms:.3g}", f"{r.p99_ms:.3g}", f"{ratio:.1f}x")
        table.add_row(r.world, r.transport, r.beside, *figures)
    return table
