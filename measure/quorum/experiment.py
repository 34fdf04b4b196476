# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold measure quorum`: what a slow worker costs the others, with and without a quorum.

Workers and a parameter server, the root of their tree, on this machine's loopback, without switches. In each step every
worker computes for a while, the slow one so much longer, and all average an array. What the controller does in a job is
`Conductor` here: it raises the epoch when a worker that was left behind asks for it.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from netfold.measure.progress import one_by_one
from netfold.traffic.errors import Straggled, TrafficError
from netfold.traffic.membership.assignment import Assignment, TreePart
from netfold.traffic.membership.part import Stats
from netfold.traffic.numerics import ReduceOp
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker

TREE, SLOTS, LANES, PORT = 1, 1024, 256, 61680
WAIT_S = 3.0
SLOW = 0
"""The rank of the slow worker."""


@dataclass(frozen=True)
class Experiment:
    """`delays_ms` of the slow worker beside `compute_ms`; `size` in bytes; each point lasts `seconds`."""

    workers: int = 4
    quorum: int = 3
    deadline_ms: float = 50.0
    delays_ms: Sequence[float] = (0, 20, 100, 250, 500)
    compute_ms: float = 10.0
    size: int = 1 << 18
    seconds: float = 5.0


@dataclass(frozen=True)
class Row:
    """`step_ms`: the median of the workers that are not slow. `contributors`: steps of one of them, by the fewest
    contributions in a chunk. `left`: how often the slow worker was told that it is too far behind, and came back."""

    delay_ms: float
    quorum: int
    steps: int
    step_ms: float
    slow_steps: int
    left: int
    contributors: dict[int, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Conductor:
    """The newest assignment, for all workers and the server."""

    def __init__(self, parts: Sequence[Assignment], server: ParameterServer) -> None:
        self._parts = list(parts)
        self._server = server
        self._lock = threading.RLock()
        self._tell: dict[int, Callable[[], None]] = {}

    def part(self, rank: int) -> Assignment:
        return self._parts[rank]

    def hear(self, rank: int, tell: Callable[[], None] | None) -> None:
        with self._lock:
            if tell is None:
                self._tell.pop(rank, None)
            else:
                self._tell[rank] = tell

    def renew(self, epoch: int) -> None:
        with self._lock:
            if self._parts[0].epoch != epoch:
                return
            self._parts = [replace(part, epoch=epoch + 1) for part in self._parts]
            self._server.assign(self._parts[SLOW])
            tell = list(self._tell.values())
        for one in tell:
            one()


class Member:
    """A worker's membership (`netfold.traffic.membership.part.Membership`)."""

    def __init__(self, conductor: Conductor, rank: int) -> None:
        self._conductor = conductor
        self._rank = rank

    def wait(self, seconds: float) -> Assignment:
        return self.current()

    def current(self) -> Assignment:
        return self._conductor.part(self._rank)

    def on_change(self, tell: Callable[[], None] | None) -> None:
        self._conductor.hear(self._rank, tell)

    def renew(self, epoch: int, seconds: float) -> bool:
        self._conductor.renew(epoch)
        return True

    def report(self, stats: Stats) -> None:
        pass

    def close(self) -> None:
        pass


def measure(experiment: Experiment, tell: Callable[[str], None]) -> list[Row]:
    """A row for each delay, without and with the quorum. Raises TrafficError, TransportError."""
    points = list(product(experiment.delays_ms, (0, experiment.quorum)))
    return [_point(experiment, *point) for point in one_by_one(points, _words, tell)]


def _words(point: tuple[float, int]) -> str:
    delay, quorum = point
    return f"{delay:g} ms late, " + (f"quorum {quorum}" if quorum else "no quorum")


def _point(experiment: Experiment, delay_ms: float, quorum: int) -> Row:
    times: list[list[float]] = [[] for _ in range(experiment.workers)]
    seen: Counter[int] = Counter()
    left = 0
    over = threading.Event()
    end = time.monotonic() + experiment.seconds
    with _team(experiment, quorum) as team:

        def train(rank: int) -> None:
            nonlocal left
            worker = team[rank]
            rng = np.random.default_rng(rank)
            gradient = rng.standard_normal(experiment.size // 4).astype(np.float32)
            late = delay_ms if rank == SLOW else 0.0
            while time.monotonic() < end and not over.is_set():
                began = time.monotonic()
                # the computing of a step, and how much longer the slow worker takes for it
                time.sleep((experiment.compute_ms + late) / 1e3)
                try:
                    found = worker.all_reduce(gradient.copy(), WAIT_S, ReduceOp.AVERAGE)
                except Straggled:
                    left += 1
                    continue
                except TrafficError:
                    if not over.is_set():
                        raise
                    return
                times[rank].append(time.monotonic() - began)
                if rank == SLOW + 1:
                    seen[experiment.workers if found is None else found.least] += 1

        def run(rank: int) -> None:
            try:
                train(rank)
            finally:
                over.set()

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(experiment.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    quick = [t for rank, own in enumerate(times) if rank != SLOW for t in own]
    return Row(
        delay_ms,
        quorum,
        len(times[SLOW + 1]),
        statistics.median(quick) * 1e3 if quick else float("nan"),
        len(times[SLOW]),
        left,
        dict(sorted(seen.items())),
    )


@contextmanager
def _team(experiment: Experiment, quorum: int) -> Iterator[list[Worker]]:
    hosts = [f"127.58.0.{rank + 1}" for rank in range(experiment.workers)]
    at = "127.58.1.1"
    children = tuple(range(experiment.workers))

    def part(rank: int, children: tuple[int, ...] = ()) -> Assignment:
        tree = TreePart(TREE, 1.0, SLOTS, SLOTS // 2, rank, at, children)
        return Assignment(
            "measured", 1, PORT, LANES, rank, experiment.workers, (tree,),
            quorum=quorum, quorum_deadline_s=experiment.deadline_ms / 1e3,
        )  # fmt: skip

    server = ParameterServer(part(SLOW, children), at, [Address(host, PORT) for host in hosts])
    conductor = Conductor([part(rank, children if rank == SLOW else ()) for rank in children], server)
    serving = threading.Thread(target=server.serve)
    serving.start()
    team: list[Worker] = []
    try:
        for rank, host in enumerate(hosts):
            team.append(Worker(Member(conductor, rank), host))
        yield team
    finally:
        for worker in team:
            worker.close()
        server.stop()
        serving.join()
        server.close()
