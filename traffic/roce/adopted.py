# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A member for a program that knows nothing of netfold: its RC connections are there already, and a job of one tree
adopts them. What it sends from then on is added up; before, the program has to be held (docs/roce.md, section 1)."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from netfold.api.connection import Connection
from netfold.traffic.errors import AllReduceTimeout, JobFailed
from netfold.traffic.roce.agent import Agent

ALIVE_PART = 3
"""A member says that it lives so often in a lease."""


@dataclass(frozen=True)
class Ends:
    """Of a worker's two connections: the queue pair that sends to the next worker with its first PSN, and the one where
    the worker before sends to."""

    out_qpn: int
    in_qpn: int
    first_psn: int


class Adoption:
    """Attends `job` as `host` until it is closed; a context manager. It keeps to the first epoch: in a new one
    connections must begin anew, which a program that knows nothing of it does not do, so `over` says that then."""

    def __init__(self, where: Connection, job: str, host: str) -> None:
        self._stream, agents = socket.socketpair()
        self._heard = threading.Condition()
        self._assigned: list[int] = []  # epoch, tree, slots; the lease in milliseconds
        self._linked = 0
        self._over = ""
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=work, args=args, name=f"{what} {job} {host}", daemon=True)
            for what, work, args in (
                ("agent", self._attend, (Agent(where, job, host, agents), agents)),
                ("hear", self._hear, ()),
                ("alive", self._live, ()),
            )
        ]
        self._say("hello 1")
        for thread in self._threads:
            thread.start()

    def adopt(self, ends: Ends, timeout_s: float) -> None:
        """Registers the connections, as soon as the job runs. Raises AllReduceTimeout, JobFailed."""
        self._until(lambda: bool(self._assigned), timeout_s, "no assignment came: the job is queued")
        epoch, tree = self._assigned[:2]
        self._say(f"ends {epoch} 0 1 {tree} {ends.out_qpn} {ends.in_qpn} {ends.first_psn}")

    def wait_added_up(self, timeout_s: float) -> None:
        """Until the leaf adds up what comes on the connections. Raises AllReduceTimeout, JobFailed."""
        late = "another worker has not registered its connections"
        self._until(lambda: self._linked == self._assigned[0], timeout_s, late)

    def wait_over(self) -> None:
        with self._heard:
            self._heard.wait_for(lambda: bool(self._over))

    @property
    def over(self) -> str:
        """Why nothing is added up any more; "" while it is."""
        return self._over

    def close(self) -> None:
        """Leaves the job."""
        if not self._closed.is_set():
            self._closed.set()
            self._say("leave")
            self._threads[0].join(5.0)
            self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _until(self, what: Callable[[], bool], timeout_s: float | None, late: str = "") -> None:
        with self._heard:
            if not self._heard.wait_for(lambda: what() or bool(self._over), timeout_s):
                raise AllReduceTimeout(late)
            if self._over:
                raise JobFailed(self._over)

    # ---- the lines of control.h ----

    def _attend(self, agent: Agent, stream: socket.socket) -> None:
        with stream:
            agent.run()

    def _say(self, line: str) -> None:
        with contextlib.suppress(OSError):  # the agent is gone: `_hear` notices
            self._stream.sendall(line.encode() + b"\n")

    def _live(self) -> None:
        with self._heard:
            self._heard.wait_for(lambda: bool(self._assigned or self._over))
        while not self._over and not self._closed.wait(self._assigned[3] / 1000 / ALIVE_PART):
            self._say("alive")

    def _hear(self) -> None:
        with contextlib.suppress(OSError), self._stream.makefile() as lines:
            for line in lines:
                self._line(line.split())
        self._line(["over", "the agent is gone"])

    def _line(self, words: list[str]) -> None:
        with self._heard:
            match words:
                case [
                    "assign",
                    epoch,
                    _address,
                    _rank,
                    _workers,
                    _lanes,
                    _numerics,
                    lease,
                    "1",
                    tree,
                    slots,
                    *_,
                ]:
                    if self._assigned and self._assigned[0] != int(epoch):
                        self._over = self._over or "the job's connections have to begin anew"
                    else:
                        self._assigned = [int(epoch), int(tree), int(slots), int(lease)]
                case ["assign", *_]:
                    self._over = self._over or "a program's one connection is for a job of one tree"
                case ["ring", epoch, *_]:
                    self._linked = int(epoch)
                case ["over", *why]:
                    self._over = self._over or " ".join(why)
            self._heard.notify_all()
