# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers and a parameter server on loopback, in threads of one process, with packet loss at the server."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from netfold.traffic.congestion import Congestion
from netfold.traffic.errors import JobFailedError
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.membership.base import StaticMembership, Stats
from netfold.traffic.numerics import BlockFloat, ReduceOp, Scheme
from netfold.traffic.packets.transport import Address
from netfold.traffic.worker.worker import Worker
from tests.traffic.oracle_server import Faults, LossySocket, OracleServer
from tests.traffic.serving import serving

NETWORK = "127.77." + os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]
"""Each of pytest-xdist's processes has a network of its own: all count their ports from the first one."""

SERVER = f"{NETWORK}.254"
_PORTS = itertools.cycle(range(61440, 61696))


class Members(StaticMembership):
    """A membership that a test drives: a new epoch, or the end of the job."""

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        self._over = ""
        self._wake: Callable[[], None] | None = None
        self._changed = threading.Condition()
        self.reports: list[int] = []
        self.unusable: list[int] = []
        self.on_request: Callable[[int], None] = lambda epoch: None

    def current(self) -> Assignment:
        if self._over:
            raise JobFailedError(self._over)
        return self._assignment

    def on_change(self, callback: Callable[[], None] | None) -> None:
        self._wake = callback

    def request_new_epoch(self, epoch: int, seconds: float) -> bool:
        self.unusable.append(epoch)
        self.on_request(epoch)
        with self._changed:
            return self._changed.wait_for(
                lambda: bool(self._over) or self._assignment.epoch != epoch, max(0.0, seconds)
            )

    def report(self, stats: Stats) -> None:
        self.reports.append(stats.calls)

    def change(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._notify()

    def end(self, reason: str) -> None:
        self._over = reason
        self._notify()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
        if self._wake is not None:
            self._wake()


@dataclass
class Rig:
    """`workers[i]` has the membership `members[i]`."""

    workers: list[Worker]
    members: list[Members]
    server: OracleServer
    assignments: list[Assignment]
    of_server: Assignment
    server_link: LossySocket | None = None

    def all_reduce(
        self, arrays: list[np.ndarray], timeout: float = 30.0, op: ReduceOp = ReduceOp.SUM
    ) -> list[Exception | None]:
        """Each of the first workers reduces its array; gives what each raised."""

        def one(worker: Worker, array: np.ndarray) -> Exception | None:
            try:
                worker.all_reduce(array, timeout, op)
            except Exception as error:
                return error
            return None

        with ThreadPoolExecutor(len(arrays)) as pool:
            return list(pool.map(one, self.workers, arrays))

    def raise_epoch(self, epoch: int) -> None:
        """A new epoch with the same trees: first at the server, then at the workers, as the controller
        does."""
        self.server.assign(replace(self.of_server, epoch=epoch))
        for members, assignment in zip(self.members, self.assignments, strict=True):
            members.change(replace(assignment, epoch=epoch))

    def lose(self, rank: int, epoch: int) -> None:
        """A new epoch without the worker of this rank."""
        child = self.assignments[rank].trees[0].child
        trees = tuple(
            replace(part, children=tuple(c for c in part.children if c != child))
            for part in self.of_server.trees
        )
        self.server.assign(replace(self.of_server, epoch=epoch, trees=trees))
        for other, (members, assignment) in enumerate(zip(self.members, self.assignments, strict=True)):
            if other != rank:
                members.change(replace(assignment, epoch=epoch, workers=len(self.workers) - 1))

    def grant_new_epochs(self) -> None:
        """From now on members that ask for a new epoch get it, once for each epoch, as from the controller."""
        newest, one_at_a_time = [1], threading.Lock()

        def grant(epoch: int) -> None:
            with one_at_a_time:
                if epoch == newest[0]:
                    newest[0] += 1
                    self.raise_epoch(newest[0])

        for members in self.members:
            members.on_request = grant


@contextmanager
def rig(
    workers: int,
    lanes: int = 8,
    slots: int = 8,
    shares: tuple[float, ...] = (1.0,),
    faults: Faults | None = None,
    scheme: Scheme | None = None,
    congestion: Congestion = Congestion.PANAMA,
    seed: int = 0,
    rate_mbps: float = 0.0,
    numerics: Scheme | None = None,
) -> Iterator[Rig]:
    """`workers` workers and their server at work; all is ended on the way out. The faults are at the server's end."""
    port = next(_PORTS)
    faults = faults or Faults()

    def assignment(rank: int, server: bool) -> Assignment:
        trees = tuple(
            TreeAssignment(
                tree=40 + number,
                share=share,
                slots=slots,
                window=slots // 2,
                child=rank * 3 + number,
                destination=SERVER,
                children=tuple(r * 3 + number for r in range(workers)) if server else (),
            )
            for number, share in enumerate(shares)
        )
        return Assignment("test", 1, port, lanes, rank, workers, trees, rate_mbps, numerics or BlockFloat())

    hosts = [f"{NETWORK}.{rank + 1}" for rank in range(workers)]
    server_link = LossySocket(Address(SERVER, port), faults, seed)
    server = OracleServer(assignment(0, True), server_link, [Address(host, port) for host in hosts])
    assignments = [assignment(rank, False) for rank in range(workers)]
    members = [Members(a) for a in assignments]
    team = [Worker(m, host, scheme, congestion) for m, host in zip(members, hosts, strict=True)]
    with serving(server):
        try:
            yield Rig(team, members, server, assignments, assignment(0, True), server_link)
        finally:
            for worker in team:
                worker.close()
