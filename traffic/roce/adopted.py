# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A member for a program without netfold: a job of one tree adopts the RC connections that the program has. From then
on its messages are added up; until then the program must not send (docs/reference/roce.md, section 1)."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

from netfold.protocol.connection import Connection
from netfold.traffic.errors import AllReduceTimeoutError, JobFailedError
from netfold.traffic.roce.agent import start_agent

T = TypeVar("T")

HEARTBEATS_PER_LEASE = 3


@dataclass(frozen=True)
class AdoptedQueuePairs:
    """A worker's queue pairs: to its successor, with the first PSN, and from its predecessor."""

    send_qpn: int
    recv_qpn: int
    first_psn: int


@dataclass(frozen=True)
class _Assignment:
    epoch: int
    tree: int
    window: int
    lease_ms: int


class Adoption:
    """A member of `job` as `host` until it is closed; a context manager. It stays in the first epoch: a new one needs
    new connections, which the program does not make, so the adoption ends then (`end_reason`)."""

    def __init__(self, where: Connection, job: str, host: str) -> None:
        self._stream, self._agent = start_agent(where, job, host)
        self._changed = threading.Condition()
        self._assigned: _Assignment | None = None
        self._connected_epoch = 0
        self._end_reason = ""
        self._closed = threading.Event()
        self._send("hello 2")
        for what, work in (("read", self._read_agent), ("heartbeat", self._send_heartbeats)):
            threading.Thread(target=work, name=f"{what} {job} {host}", daemon=True).start()

    def adopt(self, queue_pairs: AdoptedQueuePairs, timeout_s: float) -> int:
        """Registers the connections, as soon as the job runs. Returns how many packets the program may have in flight,
        from the first unacknowledged one. Raises AllReduceTimeoutError, JobFailedError."""
        to = self._until(lambda: self._assigned, timeout_s, "no assignment came: the job is queued")
        self._send(
            f"qps {to.epoch} 0 1 {to.tree} {queue_pairs.send_qpn} {queue_pairs.recv_qpn} {queue_pairs.first_psn}"
        )
        return to.window

    def wait_added_up(self, timeout_s: float) -> None:
        """Until the leaf adds up what comes on the connections. Raises AllReduceTimeoutError, JobFailedError."""
        late = "another worker has not registered its connections"
        self._until(lambda: self._assigned and self._connected_epoch == self._assigned.epoch, timeout_s, late)

    def wait_ended(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._end_reason))

    @property
    def end_reason(self) -> str:
        """Empty while the leaf adds up."""
        return self._end_reason

    def close(self) -> None:
        """Leaves the job."""
        if not self._closed.is_set():
            self._closed.set()
            self._send("leave 0")
            with contextlib.suppress(OSError):
                self._stream.shutdown(socket.SHUT_WR)  # the agent reads the end of the stream
            self._agent.join(5.0)
            self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _until(self, condition: Callable[[], T | None], timeout_s: float, timeout_message: str) -> T:
        """Waits for a true result of `condition`, and returns it."""
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._end_reason, timeout_s)
            if self._end_reason:
                raise JobFailedError(self._end_reason)
            if found := condition():
                return found
            raise AllReduceTimeoutError(timeout_message)

    # ---- the lines of control.h ----

    def _send(self, line: str) -> None:
        with contextlib.suppress(OSError):  # the agent is gone: `_read_agent` ends the adoption
            self._stream.sendall(line.encode() + b"\n")

    def _send_heartbeats(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._assigned or self._end_reason)
            assigned = self._assigned
        while (
            assigned
            and not self._end_reason
            and not self._closed.wait(assigned.lease_ms / 1000 / HEARTBEATS_PER_LEASE)
        ):
            self._send("alive")

    def _read_agent(self) -> None:
        with contextlib.suppress(OSError), self._stream.makefile() as lines:
            for line in lines:
                self._line(line.split())
        self._line(["ended", "the agent is gone"])

    def _line(self, words: list[str]) -> None:
        with self._changed:
            match words:
                case ["assign", epoch, _, _, _, _, _, lease, "1", tree, _, window, _]:
                    if self._assigned and self._assigned.epoch != int(epoch):
                        self._end_reason = self._end_reason or "the job needs new connections"
                    else:
                        self._assigned = _Assignment(int(epoch), int(tree), int(window), int(lease))
                case ["assign", *_]:
                    self._end_reason = self._end_reason or "adoption is for jobs of one tree"
                case ["ring", epoch, *_]:
                    self._connected_epoch = int(epoch)
                case ["ended", *reason]:
                    self._end_reason = self._end_reason or " ".join(reason)
            self._changed.notify_all()
