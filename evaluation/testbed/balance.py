# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A call over four trees of which one is slow, at the packet level: its duration, and the bytes of each tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from netfold.controller.drawing.chart import legend, log_y, reference, series
from netfold.controller.drawing.plot import Plot
from netfold.controller.planning.plan import JobSpec
from netfold.controller.planning.planner import make_plan
from netfold.evaluation.core.command import Floats, floats
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.core.progress import one_by_one
from netfold.evaluation.testbed.shared_link import FRAME, LANES, PAYLOAD
from netfold.simulator.packet.packet_options import PacketOptions
from netfold.simulator.packet.run import simulate
from netfold.simulator.scenario import Bucket, InNetworkCollective, Job, Model, NetworkSettings, Scenario
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import GBIT, leaf_spine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE, TREES, QUEUE = 10, 4, 256
SETTINGS = NetworkSettings(queue_bytes=QUEUE * 1538)


@dataclass(frozen=True)
class BalanceRow(Row):
    """`speed` is what remains of the rate of the slow tree's links. `ideal_s`: all trees are busy to the end.
    `unbalanced_s`: each tree carries its planned share. `carried`: the trees' parts of the bytes, the slow tree's
    first."""

    size: int
    speed: float
    seconds: float
    ideal_s: float
    unbalanced_s: float
    carried: tuple[float, ...]

    @property
    def of_ideal(self) -> float:
        return self.seconds / self.ideal_s

    @property
    def unbalanced_of_ideal(self) -> float:
        return self.unbalanced_s / self.ideal_s


COLUMNS = (
    Column[BalanceRow]("MB", lambda r: r.size / 1e6, "g"),
    Column[BalanceRow]("slow tree", lambda r: r.speed, "g"),
    Column[BalanceRow]("ms", lambda r: r.seconds * 1e3, ".2f"),
    Column[BalanceRow]("ideal ms", lambda r: r.ideal_s * 1e3, ".2f"),
    Column[BalanceRow]("of ideal", lambda r: f"{r.of_ideal:.3f}x"),
    Column[BalanceRow]("as planned", lambda r: f"{r.unbalanced_of_ideal:.2f}x"),
    Column[BalanceRow]("carried by the slow tree", lambda r: r.carried[0], ".1%"),
)


@dataclass(frozen=True)
class Balance(Experiment[BalanceRow]):
    """One call over four trees of which one is slow: its duration and the ideal one, in the packet-level simulator.

    ideal: all trees are busy to the end. The plan does not contain the slow tree's rate. 400 MB take some minutes."""

    name = "measure-balance"
    megabytes: Annotated[Floats, floats("Megabytes of the arrays.", "--sizes-mb")] = Floats((4, 16, 64, 400))
    speeds: Annotated[Floats, floats("Rate of one tree's links / planned rate.")] = Floats(
        (1, 0.5, 0.25, 0.1)
    )
    quick: Annotated[bool, typer.Option("--quick", help="16 MB; 1 and 0.5 of a tree.")] = False

    def rows(self, notify: Notify) -> Iterator[BalanceRow]:
        cases = list(product(*(((16.0,), (1.0, 0.5)) if self.quick else (self.megabytes, self.speeds))))
        for size, speed in one_by_one(
            cases, lambda case: f"{case[0]:g} MB, {case[1]:g} of a tree", notify, lambda case: case[0]
        ):
            yield balanced(round(size * 1e6), speed)

    def tables(self, rows: Sequence[BalanceRow]) -> Iterable[Table]:
        return [table("A call over four trees, one of them slow", COLUMNS, rows)]

    def plots(self, rows: Sequence[BalanceRow]) -> Iterable[Plot]:
        return [Plot(lambda figure: _draw(figure, rows))]


def fabric() -> Fabric:
    """Two racks of four workers under four spines. A worker's link has the rate of all its rack's uplinks together."""
    return leaf_spine(2, TREES, 4, rate=TREES * RATE, fabric_rate=RATE, unit=GBIT, queue=QUEUE)


def slowed(whole: Fabric, spine: str, speed: float) -> Fabric:
    links = tuple(replace(x, rate=x.rate * speed) if spine in (x.a, x.b) else x for x in whole.links)
    return replace(whole, links=links)


def balanced(size: int, speed: float) -> BalanceRow:
    """One call. The plan is made for the fabric without the slow spine. Raises SimulationFailedError for wrong sums."""
    whole = fabric()
    workers = tuple(h.name for h in whole.hosts)
    spec = JobSpec("job", workers, (), elements=size // 4, scheme="panama", options={"trees": TREES})
    plan = make_plan(whole, spec)
    roots = [tree.root for tree in plan.trees]
    slow = roots[1]
    model = Model("array", 0.0, 0.0, (Bucket(size),))
    job = Job("job", workers, model, InNetworkCollective(plan, lanes=LANES))
    result = simulate(Scenario(slowed(whole, slow, speed), (job,), settings=SETTINGS), PacketOptions())
    slow_first = [slow, *(r for r in roots if r != slow)]
    leaf = next(s.name for s in whole.switches if s.name not in roots)
    up = [result.links[leaf, root].bytes for root in slow_first]
    wire = size * (FRAME + SETTINGS.gap_bytes) / PAYLOAD * 8 / (RATE * 1e9)
    return BalanceRow(
        size=size,
        speed=speed,
        seconds=result.job("job").iterations[0].duration,
        ideal_s=wire / (TREES - 1 + speed),
        unbalanced_s=wire * max(t.share for t in plan.trees) / speed,
        carried=tuple(b / sum(up) for b in up),
    )


def _draw(figure: Figure, rows: Sequence[BalanceRow]) -> None:
    times, parts = figure.subplots(1, 2)
    for number, size in enumerate(dict.fromkeys(r.size for r in rows)):
        own = sorted((r for r in rows if r.size == size), key=lambda r: r.speed)
        speeds = [r.speed for r in own]
        times.plot(speeds, [r.of_ideal for r in own], label=f"{size / 1e6:g} MB", **series(number))
        parts.plot(speeds, [r.carried[0] for r in own], **series(number))
    planned = {r.speed: r.unbalanced_of_ideal for r in sorted(rows, key=lambda r: r.speed)}
    times.plot(
        list(planned),
        list(planned.values()),
        label="by planned shares",
        **reference(marker="x", linestyle=":"),
    )
    ideal = [s / (TREES - 1 + s) for s in planned]
    parts.plot(list(planned), ideal, label="ideal: all trees busy to the end", **reference(zorder=3))
    times.axhline(1.0, **reference(zorder=3))
    times.set(ylabel="duration / ideal duration")
    log_y(times)
    parts.set(ylabel="share of the bytes on the slow tree")
    parts.set_ylim(bottom=0)
    for axis in (times, parts):
        axis.set(xlabel="rate of the slow tree's links / planned rate", xlim=(0, 1.05))
    figure.suptitle(
        f"One call over {TREES} trees of {RATE} Gbit/s, one of them slow (packet-level simulation)"
    )
    legend(figure, (times, parts))
