# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers and a parameter server on loopback, in threads of one process, over lossy endpoints."""

from __future__ import annotations

import itertools
import os
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from netfold.traffic.congestion import Congestion
from netfold.traffic.errors import JobFailed
from netfold.traffic.membership.assignment import Assignment, TreePart
from netfold.traffic.membership.part import Stats
from netfold.traffic.numerics import ReduceOp, Scheme, SharedExponent
from netfold.traffic.packets.transport import Address
from netfold.traffic.worker.worker import Worker
from tests.traffic.batches import BATCH, BatchEndpoint, Endpoint, Inbox, Rows
from tests.traffic.numpy_server import NumpyServer

NETWORK = "127.77." + os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]
"""Of each of pytest-xdist's processes its own: all count their ports from the first one."""

SERVER = f"{NETWORK}.254"
_PORTS = itertools.cycle(range(61440, 61696))


@dataclass(frozen=True)
class Faults:
    """Chances of a packet to be lost, doubled, or held back until after the next ones."""

    loss: float = 0.0
    duplicate: float = 0.0
    delay: float = 0.0


class LossyEndpoint:
    """An endpoint that mistreats what it sends, and with `both_ways` loses some of what it receives."""

    def __init__(
        self, inner: Endpoint, lanes: int, faults: Faults, seed: int, both_ways: bool = False
    ) -> None:
        self.drop_all = False
        self.sent = 0
        self.on_send: Callable[[int], None] = lambda sent: None
        self._inner = inner
        self._faults = faults
        self._both_ways = both_ways
        self._random = random.Random(seed)
        self._out = Rows(BATCH, lanes)
        self._held: list[tuple[bytes, bytes]] = []

    def fileno(self) -> int:
        return self._inner.fileno()

    def receive(self, inbox: Inbox) -> int:
        count = self._inner.receive(inbox)
        for packet in range(count if self._both_ways else 0):
            if self._random.random() < self._faults.loss:
                inbox.records["version_kind"][packet] = 0  # nobody's
        return count

    def close(self) -> None:
        self._inner.close()

    def send(self, rows: Rows, count: int) -> int:
        out, self._held, held = [], [], self._held
        for message in range(count):
            packet = (rows.payload(message), rows.destination(message))
            if self.drop_all or self._random.random() < self._faults.loss:
                continue
            late = self._random.random() < self._faults.delay
            (self._held if late else out).append(packet)
            if self._random.random() < self._faults.duplicate:
                (self._held if not late else out).append(packet)
        out += held
        for start in range(0, len(out), BATCH):
            self._transmit(out[start : start + BATCH])
        self.sent += count
        self.on_send(self.sent)
        return count

    def _transmit(self, packets: list[tuple[bytes, bytes]]) -> None:
        whole = b"".join(payload for payload, _ in packets)
        self._out.records[: len(packets)] = np.frombuffer(whole, self._out.records.dtype)
        names = [np.frombuffer(name, np.uint8) for _, name in packets]
        self._out.point(np.arange(len(packets)))
        if names and len(names[0]):
            self._out.address(np.array(names))
        self._inner.send(self._out, len(packets))


class Members:
    """A membership that a test drives: a new epoch, or the end of the job."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._over = ""
        self._wake: Callable[[], None] | None = None
        self._changed = threading.Condition()
        self.reports: list[int] = []
        self.worn: list[int] = []
        self.on_worn: Callable[[int], None] = lambda epoch: None

    def wait(self, seconds: float) -> Assignment:
        return self.current()

    def current(self) -> Assignment:
        if self._over:
            raise JobFailed(self._over)
        return self._assignment

    def on_change(self, wake: Callable[[], None] | None) -> None:
        self._wake = wake

    def renew(self, epoch: int, seconds: float) -> bool:
        self.worn.append(epoch)
        self.on_worn(epoch)
        with self._changed:
            return self._changed.wait_for(
                lambda: bool(self._over) or self._assignment.epoch != epoch, max(0.0, seconds)
            )

    def report(self, stats: Stats) -> None:
        self.reports.append(stats.calls)

    def close(self) -> None:
        pass

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
    server: NumpyServer
    assignments: list[Assignment]
    of_server: Assignment
    server_link: LossyEndpoint | None = None

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

    def renew_worn_epochs(self) -> None:
        """From now on members that ask for a new epoch get it, once for each epoch, as from the controller."""
        newest, one_at_a_time = [1], threading.Lock()

        def worn(epoch: int) -> None:
            with one_at_a_time:
                if epoch == newest[0]:
                    newest[0] += 1
                    self.raise_epoch(newest[0])

        for members in self.members:
            members.on_worn = worn


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
            TreePart(
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
        return Assignment(
            "test", 1, port, lanes, rank, workers, trees, rate_mbps, numerics or SharedExponent()
        )

    hosts = [f"{NETWORK}.{rank + 1}" for rank in range(workers)]
    server_link = LossyEndpoint(
        BatchEndpoint(Address(SERVER, port), ecn=True), lanes, faults, seed, both_ways=True
    )
    server = NumpyServer(
        assignment(0, True), reply_to=[Address(host, port) for host in hosts], endpoint=server_link
    )
    assignments = [assignment(rank, False) for rank in range(workers)]
    members = [Members(a) for a in assignments]
    team = [Worker(m, host, scheme, congestion) for m, host in zip(members, hosts, strict=True)]
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield Rig(team, members, server, assignments, assignment(0, True), server_link)
    finally:
        for worker in team:
            worker.close()
        server.stop()
        thread.join()
        server.close()
