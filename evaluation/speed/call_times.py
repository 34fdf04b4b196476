# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Time of an all-reduce, and of a training step, by the number of workers: a plan's trees beside rings and NCCL's
double binary trees, by flows.

python -m netfold.evaluation.speed.call_times [--workers 2,64,1024] [--sizes 4096,1048576,100000000]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from netfold.controller.drawing.chart import series
from netfold.controller.drawing.plot import Plot
from netfold.controller.planning.plan import JobSpec
from netfold.controller.planning.planner import make_plan
from netfold.evaluation.core.command import Integers, Words, expect, integers, run_command, words
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.core.progress import one_by_one
from netfold.simulator.flow.run import simulate
from netfold.simulator.result import SimulationResult
from netfold.simulator.scenario import InNetworkCollective, Job, Model, Scenario, Scheme
from netfold.simulator.schemes.catalog import SchemeName, scheme_of
from netfold.simulator.schemes.straight import straight_plan
from netfold.simulator.workloads.models import MODELS, all_reduces, model
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import GBIT, fat_tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NETFOLD = "netfold"
RIVALS = (SchemeName.RING, SchemeName.HIERARCHICAL_RING, SchemeName.DOUBLE_BINARY_TREE)
SCHEMES = (NETFOLD, *(str(name) for name in RIVALS))
K, HOSTS_PER_EDGE, RATE = 32, 32, 100
"""512 racks of 32 hosts in 32 pods: 16,384 hosts. No node of a straight tree has more than 32 children."""
MAX_PLANNED = 1024
"""Larger jobs fill whole racks of an empty fabric, so straight trees have the rate of the workers' links."""
STRAIGHT_TREES = 4
SMALLEST = 4
"""Bytes of the call whose time is all latency."""
COMPUTED = 1.1
"""A step is bound by computation if it takes less than so many times its passes."""
PLOT_SIZE = (9.6, 3.6)  # inches


@dataclass(frozen=True)
class CallTimeRow(Row):
    """`what`: the bytes of a call, or the model of a step. `binds`: latency where the smallest call takes more than
    half as long; else the fullest link. A step that takes hardly longer than its passes is bound by computation."""

    workers: int
    scheme: str
    what: str
    seconds: float
    latency_s: float
    binds: str
    trees: int


COLUMNS = (
    Column[CallTimeRow]("workers", lambda r: r.workers, ",d"),
    Column[CallTimeRow]("what", lambda r: r.what, is_text=True),
    Column[CallTimeRow]("scheme", lambda r: r.scheme, is_text=True),
    Column[CallTimeRow]("ms", lambda r: 1e3 * r.seconds, ",.4g"),
    Column[CallTimeRow]("binds", lambda r: r.binds, is_text=True),
    Column[CallTimeRow]("trees", lambda r: r.trees or None, "d"),
)


@dataclass(frozen=True)
class CallTimes(Experiment[CallTimeRow]):
    """Time of an all-reduce, and of a training step, by the number of workers.

    Workers fill the racks of a fat-tree of 16,384 hosts, 32 a rack, with links of 100 Gbit/s. Beside the trees of a
    plan are a ring, a ring of two levels and NCCL's double binary trees over TCP. Flows have no time on hosts: a ring's
    steps cost what links and packets cost."""

    name = "bench-call-times"
    workers: Annotated[Integers, integers("Numbers of workers.")] = Integers(2**n for n in range(1, 15))
    sizes: Annotated[Integers, integers("Bytes of a call.")] = Integers((4096, 1 << 20, 100_000_000))
    models: Annotated[Words, words(f"Models of a training step, some of {', '.join(MODELS)}.")] = Words(
        ("resnet-50", "bert-large")
    )

    def __post_init__(self) -> None:
        expect("--models", self.models, tuple(MODELS))
        most = K * (K // 2) * HOSTS_PER_EDGE
        wrong = next((count for count in self.workers if not 2 <= count <= most), None)
        if wrong is not None:
            raise typer.BadParameter(f"--workers: {wrong}, expected 2 to {most}")

    @cached_property
    def _fabric(self) -> Fabric:
        return fat_tree(K, hosts_per_edge=HOSTS_PER_EDGE, rate=RATE, unit=GBIT)

    @property
    def _loads(self) -> Mapping[str, Model]:
        calls = {f"{size:,} bytes": all_reduces(size) for size in self.sizes}
        return {**calls, **{name: model(name) for name in self.models}}

    def rows(self, notify: Notify) -> Iterator[CallTimeRow]:
        cases = [(count, scheme) for count in self.workers for scheme in SCHEMES]
        hosts = tuple(h.name for h in self._fabric.hosts)
        for count, name in one_by_one(
            cases, lambda case: f"{case[0]} workers, {case[1]}", notify, cost=lambda case: case[0]
        ):
            workers = hosts[:count]
            scheme = chosen_scheme(name, self._fabric, workers)
            smallest = run(self._fabric, workers, scheme, all_reduces(SMALLEST))
            latency = smallest.jobs[0].all_reduce_s[0]
            for what, load in self._loads.items():
                result = run(self._fabric, workers, scheme, load)
                trees = len(scheme.plan.trees) if isinstance(scheme, InNetworkCollective) else 0
                seconds = result.jobs[0].iterations[0].duration
                limit = binds(self._fabric, result, seconds, latency, load.compute_s)
                yield CallTimeRow(count, name, what, seconds, latency, limit, trees)

    def tables(self, rows: Sequence[CallTimeRow]) -> Iterable[Table]:
        order = list(self._loads)
        shown = sorted(rows, key=lambda r: (order.index(r.what), r.workers))
        return [table("Time by the number of workers, links of 100 Gbit/s", COLUMNS, shown)]

    def plots(self, rows: Sequence[CallTimeRow]) -> Iterable[Plot]:
        def draw(figure: Figure) -> None:
            panels = figure.subplots(1, len(self._loads), squeeze=False)[0]
            for panel, what in zip(panels, self._loads, strict=True):
                for number, scheme in enumerate(SCHEMES):
                    mine = [r for r in rows if (r.what, r.scheme) == (what, scheme)]
                    times = [1e3 * r.seconds for r in mine]
                    panel.plot([r.workers for r in mine], times, label=scheme, **series(number))
                panel.set(title=what, xlabel="workers", xscale="log", yscale="log")
            panels[0].set_ylabel("ms")
            panels[0].legend()

        return [Plot(draw, PLOT_SIZE)]


def chosen_scheme(name: str, fabric: Fabric, workers: tuple[str, ...]) -> Scheme:
    """Raises PlanningError."""
    if name != NETFOLD:
        return scheme_of(SchemeName(name), fabric, workers)
    if len(workers) > MAX_PLANNED:
        return InNetworkCollective(straight_plan(fabric, workers, NETFOLD, STRAIGHT_TREES))
    return InNetworkCollective(make_plan(fabric, JobSpec(NETFOLD, workers)))


def run(fabric: Fabric, workers: tuple[str, ...], scheme: Scheme, load: Model) -> SimulationResult:
    return simulate(Scenario(fabric, (Job("job", workers, load, scheme),)))


def binds(
    fabric: Fabric, result: SimulationResult, seconds: float, latency_s: float, compute_s: float
) -> str:
    """Name the resource that bounds the time."""
    if seconds < COMPUTED * compute_s:
        return "computation"
    if 2 * latency_s > seconds:
        return "latency"
    (a, b), _ = max(result.links.items(), key=lambda item: item[1].utilization)
    hosts = [end for end in (a, b) if fabric.is_host(end)]
    return "workers' links" if hosts else f"links {tier(fabric, a)} to {tier(fabric, b)}"


def tier(fabric: Fabric, switch: str) -> str:
    return fabric.switch(switch).role.value


if __name__ == "__main__":
    run_command(CallTimes)
