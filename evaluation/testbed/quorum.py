# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Steps of workers of which one is slow, with and without a quorum.

Workers and a parameter server, the root of their tree, on this machine's loopback, without switches. In each step every
worker computes for some time, the slow one longer, and all average an array. EpochCoordinator has the controller's
part: it raises the epoch when a worker that was left behind requests it."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.table import Table

from netfold.controller.drawing.chart import legend, series
from netfold.controller.drawing.plot import Plot
from netfold.evaluation.core.command import ArrayBytes, Floats, floats
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.core.progress import one_by_one
from netfold.traffic.errors import StragglerError, TrafficError
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.membership.base import StaticMembership
from netfold.traffic.numerics import ReduceOp
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TREE, SLOTS, LANES, PORT = 1, 1024, 256, 61680
CALL_TIMEOUT_S = 3.0
SLOW = 0
"""The rank of the slow worker."""


@dataclass(frozen=True)
class QuorumRow(Row):
    """`step_ms`: median of the workers that are not slow. `contributors`: steps of one of them, by the smallest number
    of contributions in a chunk. `left_behind`: how often the slow worker was too far behind, and rejoined."""

    delay_ms: float
    quorum: int
    steps: int
    step_ms: float
    slow_steps: int
    left_behind: int
    contributors: dict[int, int] = field(default_factory=dict)


COLUMNS = (
    Column[QuorumRow]("slow by, ms", lambda r: r.delay_ms, "g"),
    Column[QuorumRow]("quorum", lambda r: r.quorum or None),
    Column[QuorumRow]("steps", lambda r: r.steps),
    Column[QuorumRow]("step, ms", lambda r: r.step_ms, ".0f"),
    Column[QuorumRow]("steps of the slow worker", lambda r: r.slow_steps),
    Column[QuorumRow]("left behind", lambda r: r.left_behind),
    Column[QuorumRow](
        "contributors: steps",
        lambda r: ", ".join(f"{count}: {steps}" for count, steps in r.contributors.items()),
        is_text=True,
    ),
)


@dataclass(frozen=True)
class Quorum(Experiment[QuorumRow]):
    """Steps of workers of which one is slow, with and without a quorum, and the number of contributors.

    Over a parameter server on this machine's loopback, without switches; needs no root."""

    name = "measure-quorum"
    workers: Annotated[int, typer.Option(min=2, max=16, help="Workers; the first is the slow one.")] = 4
    quorum: Annotated[int, typer.Option(min=1, help="Contributions that suffice.")] = 3
    deadline_ms: Annotated[
        float, typer.Option("--deadline-ms", min=1, help="Milliseconds that a chunk waits for all workers.")
    ] = 50.0
    delays_ms: Annotated[Floats, floats("Additional compute time of the slow worker, ms.", "--delays-ms")] = (
        Floats((0, 20, 100, 250, 500))
    )
    compute_ms: Annotated[float, typer.Option("--compute-ms", min=0, help="Compute time of a step, ms.")] = (
        10.0
    )
    size: ArrayBytes = 1 << 18
    seconds: Annotated[float, typer.Option(min=1, help="Duration of each case.")] = 5.0

    def __post_init__(self) -> None:
        if self.quorum > self.workers:
            raise typer.BadParameter(f"a quorum of {self.quorum} of {self.workers} workers")

    def rows(self, notify: Notify) -> Iterator[QuorumRow]:
        """Measure each delay without and with the quorum. Raises TrafficError, TransportError."""
        cases = list(product(self.delays_ms, (0, self.quorum)))
        for delay_ms, quorum in one_by_one(cases, _label, notify):
            yield _measure(self, delay_ms, quorum)

    def tables(self, rows: Sequence[QuorumRow]) -> Iterable[Table]:
        return [table(f"{self.workers} workers, one of them slow", COLUMNS, rows)]

    def plots(self, rows: Sequence[QuorumRow]) -> Iterable[Plot]:
        return [Plot(lambda figure: _draw(figure, rows), size=(8.0, 4.4))]


class EpochCoordinator:
    """Holds the current assignments of all workers and the server."""

    def __init__(self, parts: Sequence[Assignment], server: ParameterServer) -> None:
        self._parts = list(parts)
        self._server = server
        self._lock = threading.RLock()
        self._listeners: dict[int, Callable[[], None]] = {}

    def part(self, rank: int) -> Assignment:
        return self._parts[rank]

    def set_listener(self, rank: int, notify: Callable[[], None] | None) -> None:
        with self._lock:
            if notify is None:
                self._listeners.pop(rank, None)
            else:
                self._listeners[rank] = notify

    def start_new_epoch(self, epoch: int) -> None:
        with self._lock:
            if self._parts[0].epoch != epoch:
                return
            self._parts = [replace(part, epoch=epoch + 1) for part in self._parts]
            self._server.assign(self._parts[SLOW])
            listeners = list(self._listeners.values())
        for notify in listeners:
            notify()


class CoordinatedMembership(StaticMembership):
    """A worker's membership whose assignment is the coordinator's newest one."""

    def __init__(self, coordinator: EpochCoordinator, rank: int) -> None:
        super().__init__(coordinator.part(rank))
        self._coordinator = coordinator
        self._rank = rank

    def current(self) -> Assignment:
        return self._coordinator.part(self._rank)

    def on_change(self, callback: Callable[[], None] | None) -> None:
        self._coordinator.set_listener(self._rank, callback)

    def request_new_epoch(self, epoch: int, seconds: float) -> bool:
        self._coordinator.start_new_epoch(epoch)
        return True


def _label(case: tuple[float, int]) -> str:
    delay, quorum = case
    return f"{delay:g} ms late, " + (f"quorum {quorum}" if quorum else "no quorum")


def _measure(experiment: Quorum, delay_ms: float, quorum: int) -> QuorumRow:
    times: list[list[float]] = [[] for _ in range(experiment.workers)]
    contributions: Counter[int] = Counter()
    left_behind = 0
    ended = threading.Event()
    end = time.monotonic() + experiment.seconds
    with _workers(experiment, quorum) as workers:

        def train(rank: int) -> None:
            nonlocal left_behind
            worker = workers[rank]
            rng = np.random.default_rng(rank)
            gradient = rng.standard_normal(experiment.size // 4).astype(np.float32)
            late = delay_ms if rank == SLOW else 0.0
            while time.monotonic() < end and not ended.is_set():
                began = time.monotonic()
                # simulated compute; the slow worker takes longer
                time.sleep((experiment.compute_ms + late) / 1e3)
                try:
                    found = worker.all_reduce(gradient.copy(), CALL_TIMEOUT_S, ReduceOp.AVERAGE)
                except StragglerError:
                    left_behind += 1
                    continue
                except TrafficError:
                    if not ended.is_set():
                        raise
                    return
                times[rank].append(time.monotonic() - began)
                if rank == SLOW + 1:
                    contributions[experiment.workers if found is None else found.minimum] += 1

        def run(rank: int) -> None:
            try:
                train(rank)
            finally:
                ended.set()

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(experiment.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    fast = [t for rank, own in enumerate(times) if rank != SLOW for t in own]
    return QuorumRow(
        delay_ms,
        quorum,
        len(times[SLOW + 1]),
        statistics.median(fast) * 1e3 if fast else float("nan"),
        len(times[SLOW]),
        left_behind,
        dict(sorted(contributions.items())),
    )


@contextmanager
def _workers(experiment: Quorum, quorum: int) -> Iterator[list[Worker]]:
    hosts = [f"127.58.0.{rank + 1}" for rank in range(experiment.workers)]
    at = "127.58.1.1"
    children = tuple(range(experiment.workers))

    def part(rank: int, children: tuple[int, ...] = ()) -> Assignment:
        tree = TreeAssignment(TREE, 1.0, SLOTS, SLOTS // 2, rank, at, children)
        return Assignment(
            "measured", 1, PORT, LANES, rank, experiment.workers, (tree,),
            quorum=quorum, quorum_deadline_s=experiment.deadline_ms / 1e3,
        )  # fmt: skip

    server = ParameterServer(part(SLOW, children), at, [Address(host, PORT) for host in hosts])
    coordinator = EpochCoordinator(
        [part(rank, children if rank == SLOW else ()) for rank in children], server
    )
    serving = threading.Thread(target=server.serve)
    serving.start()
    workers: list[Worker] = []
    try:
        for rank, host in enumerate(hosts):
            workers.append(Worker(CoordinatedMembership(coordinator, rank), host))
        yield workers
    finally:
        for worker in workers:
            worker.close()
        server.stop()
        serving.join()
        server.close()


def _draw(figure: Figure, rows: Sequence[QuorumRow]) -> None:
    axis = figure.subplots()
    for number, quorum in enumerate(sorted({r.quorum for r in rows})):
        own = [r for r in rows if r.quorum == quorum]
        label = f"quorum {quorum}" if quorum else "no quorum"
        axis.plot([r.delay_ms for r in own], [r.step_ms for r in own], label=label, **series(number))
    axis.set(xlabel="additional compute time of the slow worker, ms", ylabel="median step of the others, ms")
    axis.set_ylim(bottom=0)
    axis.set_title("Steps beside a slow worker (parameter server on the loopback)")
    legend(figure, [axis])
