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
from typing import Self, TypeVar

from netfold.api.connection import Connection
from netfold.traffic.errors import AllReduceTimeout, JobFailed
from netfold.traffic.roce.agent import start_agent

T = TypeVar("T")

ALIVE_PART = 3
"""A member says that it lives so often in a lease."""


@dataclass(frozen=True)
class Ends:
    """Of a worker's two connections: the queue pair that sends to the next worker with its first PSN, and the one where
    the worker before sends to."""

    out_qpn: int
    in_qpn: int
    first_psn: int


@dataclass(frozen=True)
class _Assignment:
    epoch: int
    tree: int
    window: int
    lease_ms: int


class Adoption:
    """Attends `job` as `host` until it is closed; a context manager. It keeps to the first epoch: in a new one
    connections must begin anew, which a program that knows nothing of it does not do, so `over` says that then."""

    def __init__(self, where: Connection, job: str, host: str) -> None:
        self._stream, self._agent = start_agent(where, job, host)
        self._heard = threading.Condition()
        self._assigned: _Assignment | None = None
        self._linked = 0
        self._over = ""
        self._closed = threading.Event()
        self._say("hello 1")
        for what, work in (("hear", self._hear), ("alive", self._live)):
            threading.Thread(target=work, name=f"{what} {job} {host}", daemon=True).start()

    def adopt(self, ends: Ends, timeout_s: float) -> int:
        """Registers the connections, as soon as the job runs. Gives how many packets the program may have under way,
        from the first one not acknowledged on. Raises AllReduceTimeout, JobFailed."""
        to = self._until(lambda: self._assigned, timeout_s, "no assignment came: the job is queued")
        self._say(f"ends {to.epoch} 0 1 {to.tree} {ends.out_qpn} {ends.in_qpn} {ends.first_psn}")
        return to.window

    def wait_added_up(self, timeout_s: float) -> None:
        """Until the leaf adds up what comes on the connections. Raises AllReduceTimeout, JobFailed."""
        late = "another worker has not registered its connections"
        self._until(lambda: self._assigned and self._linked == self._assigned.epoch, timeout_s, late)

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
            with contextlib.suppress(OSError):
                self._stream.shutdown(socket.SHUT_WR)  # and listens no more
            self._agent.join(5.0)
            self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _until(self, what: Callable[[], T | None], timeout_s: float, late: str) -> T:
        """What `what` says, once it says something."""
        with self._heard:
            self._heard.wait_for(lambda: what() or self._over, timeout_s)
            if self._over:
                raise JobFailed(self._over)
            if said := what():
                return said
            raise AllReduceTimeout(late)

    # ---- the lines of control.h ----

    def _say(self, line: str) -> None:
        with contextlib.suppress(OSError):  # the agent is gone: `_hear` notices
            self._stream.sendall(line.encode() + b"\n")

    def _live(self) -> None:
        with self._heard:
            self._heard.wait_for(lambda: self._assigned or self._over)
            assigned = self._assigned
        while assigned and not self._over and not self._closed.wait(assigned.lease_ms / 1000 / ALIVE_PART):
            self._say("alive")

    def _hear(self) -> None:
        with contextlib.suppress(OSError), self._stream.makefile() as lines:
            for line in lines:
                self._line(line.split())
        self._line(["over", "the agent is gone"])

    def _line(self, words: list[str]) -> None:
        with self._heard:
            match words:
                case ["assign", epoch, _, _, _, _, _, lease, "1", tree, _, window, _]:
                    if self._assigned and self._assigned.epoch != int(epoch):
                        self._over = self._over or "the job's connections have to begin anew"
                    else:
                        self._assigned = _Assignment(int(epoch), int(tree), int(window), int(lease))
                case ["assign", *_]:
                    self._over = self._over or "a program's one connection is for a job of one tree"
                case ["ring", epoch, *_]:
                    self._linked = int(epoch)
                case ["over", *why]:
                    self._over = self._over or " ".join(why)
            self._heard.notify_all()
