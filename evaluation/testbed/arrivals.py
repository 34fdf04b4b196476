# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that arrive one after the other at each call, at the packet level: what waiting workers send, and when the
call ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from netfold.controller.drawing.chart import legend, reference, series
from netfold.controller.drawing.plot import Plot
from netfold.controller.planning.plan import JobSpec, Plan
from netfold.controller.planning.planner import make_plan
from netfold.evaluation.core.command import ArrayBytes, Floats, floats
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.core.progress import one_by_one
from netfold.evaluation.testbed.shared_link import FRAME, LANES, PAYLOAD
from netfold.simulator.packet.packet_options import PacketOptions
from netfold.simulator.packet.run import simulate
from netfold.simulator.result import SimulationResult
from netfold.simulator.scenario import Bucket, InNetworkCollective, Job, Model, NetworkSettings, Scenario
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import MBIT, leaf_spine
from netfold.traffic.membership.assignment import Timing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE = 100.0
SETTINGS = NetworkSettings(gap_bytes=0, hop_delay_s=0.002 / 8)
OPTIONS = PacketOptions(timing=Timing(), paced=True, hosts_mark=False)


@dataclass(frozen=True)
class ArrivalRow(Row):
    """Workers arrive evenly over `spread_ms` at each call; this is call number `call` (from 1).

    first_bytes      on the workers' links up until the last worker arrives: the first window of each waiting worker
    resent_bytes     all bytes beyond it until then; `resent_part`: the same as a part of what the links could carry
    seconds          from the last worker's arrival to the sums at all workers; `together_s`: if all arrive at once
    rate_part        the rate of a worker on its link in that time, as a part of the plan's rate
    """

    spread_ms: float
    call: int
    size: int
    link_mbps: float
    workers: int
    first_bytes: float
    resent_bytes: float
    resent_part: float
    seconds: float
    together_s: float
    rate_part: float


COLUMNS = (
    Column[ArrivalRow]("spread ms", lambda r: r.spread_ms, "g"),
    Column[ArrivalRow]("call", lambda r: r.call),
    Column[ArrivalRow]("first bytes", lambda r: r.first_bytes, ".0f"),
    Column[ArrivalRow]("resent bytes", lambda r: r.resent_bytes, ".0f"),
    Column[ArrivalRow]("resent", lambda r: r.resent_part, ".3%"),
    Column[ArrivalRow]("ms after the last arrival", lambda r: r.seconds * 1e3, ".1f"),
    Column[ArrivalRow]("ms if all arrive at once", lambda r: r.together_s * 1e3, ".1f"),
    Column[ArrivalRow]("rate of plan", lambda r: r.rate_part, ".1%"),
)


@dataclass(frozen=True)
class Arrivals(Experiment[ArrivalRow]):
    """Eight workers arrive one after the other at each call: the cost of waiting, in the packet-level simulator.

    resent: what waiting workers send beyond their first window until the last one arrives, as a part of the capacity
    of their links. rate of plan: a worker's rate on its link after that, relative to the plan's rate."""

    name = "measure-arrivals"
    spreads_ms: Annotated[
        Floats, floats("Milliseconds from the first worker's arrival to the last one's.", "--spreads")
    ] = Floats((0, 50, 100, 200, 500))
    size: ArrayBytes = 4_000_000
    calls: Annotated[int, typer.Option(min=1, help="Calls in a row; the first and the last are shown.")] = 3
    quick: Annotated[bool, typer.Option("--quick", help="0 and 500 ms.")] = False

    def rows(self, notify: Notify) -> Iterator[ArrivalRow]:
        for ms in one_by_one(
            (0, 500) if self.quick else self.spreads_ms, lambda ms: f"{ms:g} ms apart", notify
        ):
            yield from arrivals(ms / 1e3, self.size, self.calls)

    def tables(self, rows: Sequence[ArrivalRow]) -> Iterable[Table]:
        first = rows[0]
        title = f"{first.workers} workers, {first.size / 1e6:g} MB, {first.link_mbps:g} Mbit/s"
        return [table(title, COLUMNS, rows)]

    def plots(self, rows: Sequence[ArrivalRow]) -> Iterable[Plot]:
        return [Plot(lambda figure: _draw(figure, rows))]


def _fabric() -> Fabric:
    return leaf_spine(2, 2, 4, rate=RATE, fabric_rate=RATE, unit=MBIT)


def _plan(fabric: Fabric, workers: tuple[str, ...], size: int) -> Plan:
    return make_plan(fabric, JobSpec("job", workers, (), elements=size // 4, scheme="panama"))


@dataclass(frozen=True)
class _Calls:
    """Calls in a row; the workers arrive over `spread_s` at each."""

    fabric: Fabric
    workers: tuple[str, ...]
    job: Job

    def run(self, until: float | None = None) -> SimulationResult:
        return simulate(Scenario(self.fabric, (self.job,), until=until, settings=SETTINGS), OPTIONS)

    def sent(self, until: float) -> list[float]:
        """Bytes on the workers' uplinks until then."""
        links = self.run(until).links if until > 0 else {}
        uplinks = [(w, self.fabric.attachment(w)) for w in self.workers]
        return [links[uplink].bytes if uplink in links else 0.0 for uplink in uplinks]


def _calls(spread_s: float, size: int, calls: int) -> tuple[_Calls, float]:
    """Build the calls of each worker, and return the rate that the plan gives it."""
    fabric = _fabric()
    workers = tuple(h.name for h in fabric.hosts)
    plan = _plan(fabric, workers, size)
    delays = tuple(spread_s * n / (len(workers) - 1) for n in range(len(workers)))
    model = Model("array", 0.0, 0.0, (Bucket(size),))
    scheme = InNetworkCollective(plan, slots=256, lanes=LANES)
    return _Calls(
        fabric, workers, Job("job", workers, model, scheme, iterations=calls, arrivals=delays)
    ), plan.rate


def arrivals(spread_s: float, size: int, calls: int = 1) -> list[ArrivalRow]:
    """Times of the first call and the last one. Raises SimulationFailedError for wrong sums."""
    together, planned = _calls(0.0, size, calls)
    apart, _ = _calls(spread_s, size, calls)
    at_once, late = together.run().jobs[0].iterations, apart.run().jobs[0].iterations
    parts = [n / (len(apart.workers) - 1) for n in range(len(apart.workers))]
    capacity = sum(RATE * 1e6 / 8 * spread_s * (1 - part) for part in parts)
    wire = size * FRAME / PAYLOAD * 8 / 1e6
    found = []
    for call in sorted({1, calls}):
        started = late[call - 1].start
        first = resent = 0.0
        if spread_s:
            before, after = apart.sent(started), apart.sent(started + spread_s)
            sent = [b - a for a, b in zip(before, after, strict=True)]
            # a worker that arrived just before the last one has had no time to retransmit
            window = min(s for s in sent if s)
            first = sum(min(s, window) for s in sent)
            resent = sum(sent) - first
        seconds = late[call - 1].duration - spread_s
        found.append(
            ArrivalRow(
                spread_ms=spread_s * 1e3,
                call=call,
                size=size,
                link_mbps=RATE,
                workers=len(apart.workers),
                first_bytes=first,
                resent_bytes=resent,
                resent_part=resent / capacity if capacity else 0.0,
                seconds=seconds,
                together_s=at_once[call - 1].duration,
                rate_part=wire / seconds / planned,
            )
        )
    return found


def _draw(figure: Figure, rows: Sequence[ArrivalRow]) -> None:
    resent, durations = figure.subplots(1, 2)
    for number, call in enumerate(sorted({r.call for r in rows})):
        own = [r for r in rows if r.call == call]
        spreads = [r.spread_ms for r in own]
        resent.plot(spreads, [100 * r.resent_part for r in own], label=f"call {call}", **series(number))
        durations.plot(spreads, [r.seconds * 1e3 for r in own], **series(number) | {"linestyle": "none"})
        together = [r.together_s * 1e3 for r in own]
        durations.plot(spreads, together, label="all arrive at once", **reference(zorder=3))
    resent.set(ylabel="retransmitted while waiting,\n% of the links' capacity")
    durations.set(ylabel="from the last arrival to all sums, ms")
    durations.set_ylim(top=1.25e3 * max(max(r.seconds, r.together_s) for r in rows))
    for axis in (resent, durations):
        axis.set(xlabel="from the first worker's arrival to the last one's, ms")
        axis.set_ylim(bottom=0)
    first = rows[0]
    figure.suptitle(
        f"{first.workers} workers, {first.size / 1e6:g} MB a call, {first.link_mbps:g} Mbit/s (simulated)"
    )
    legend(figure, (resent, durations))
