# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A member for a program without netfold: a job of one tree adopts the RC connections that the program has. From then
on its messages are added up; until then the program must not send (docs/reference/roce.md, section 1)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.connection import Connection
from netfold.traffic.errors import AllReduceTimeoutError, JobFailedError, TrafficError
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.membership.membership import ControllerMembership


@dataclass(frozen=True)
class AdoptedQueuePairs:
    """A worker's queue pairs: to its successor, with the first PSN, and from its predecessor."""

    send_qpn: int
    recv_qpn: int
    first_psn: int


class Adoption:
    """A member of `job` as `host` until it is closed; a context manager. It stays in the first epoch: a new one needs
    new connections, which the program does not make, so the adoption ends then (`end_reason`). One thread at a time may
    use it."""

    def __init__(self, where: Connection, job: str, host: str) -> None:
        self._changed = threading.Event()
        self._assigned: Assignment | None = None
        self._end_reason = ""
        self._member = ControllerMembership(where, job, host, transport="roce")
        self._member.on_change(self._changed.set)

    def adopt(self, queue_pairs: AdoptedQueuePairs, timeout_s: float) -> int:
        """Registers the connections, as soon as the job runs. Returns how many packets the program may have in flight,
        from the first unacknowledged one. Raises AllReduceTimeoutError, JobFailedError."""
        self._until(lambda: self._assigned is not None, timeout_s, "no assignment came: the job is queued")
        assert self._assigned is not None
        [tree] = self._assigned.trees
        connection = pb.RoceConnection(
            tree=tree.tree,
            send_qpn=queue_pairs.send_qpn,
            recv_qpn=queue_pairs.recv_qpn,
            first_psn=queue_pairs.first_psn,
        )
        self._member.register(pb.RoceQueuePairs(epoch=self._assigned.epoch, connections=[connection]))
        return tree.window

    def wait_added_up(self, timeout_s: float) -> None:
        """Until the leaf adds up what comes on the connections. Raises AllReduceTimeoutError, JobFailedError."""
        late = "another worker has not registered its connections"
        self._until(lambda: self._assigned is not None and self._assigned.ring is not None, timeout_s, late)

    def wait_ended(self) -> None:
        while not self._has_ended():
            self._changed.wait()

    @property
    def end_reason(self) -> str:
        """Empty while the leaf adds up."""
        return self._end_reason

    def close(self) -> None:
        """Leaves the job."""
        self._member.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _until(self, condition: Callable[[], bool], timeout_s: float, timeout_message: str) -> None:
        until = time.monotonic() + timeout_s
        while True:
            if self._has_ended():
                raise JobFailedError(self._end_reason)
            if condition():
                return
            if not self._changed.wait(max(0.0, until - time.monotonic())):
                raise AllReduceTimeoutError(timeout_message)

    def _has_ended(self) -> bool:
        """Takes the newest assignment first. Whether the job has ended, or the first epoch."""
        self._changed.clear()
        try:
            assignment = self._member.wait(0.0)
        except AllReduceTimeoutError:
            return False  # queued
        except TrafficError as error:
            self._end_reason = self._end_reason or f"{error}"
            return True
        if len(assignment.trees) != 1:
            self._end_reason = "adoption is for jobs of one tree"
        elif self._assigned is not None and self._assigned.epoch != assignment.epoch:
            self._end_reason = "the job needs new connections"
        else:
            self._assigned = assignment
        return bool(self._end_reason)
