# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A member's stream to the controller (`Attend` in api/netfold.proto): join, heartbeats, assignments, the
job's end.

The stream lives in a thread of its own. What it learns is one immutable `_News`, exchanged as a whole, so
that the worker's loop can look at it in every turn without a lock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields

import grpc

from netfold.api import netfold_pb2 as pb
from netfold.api import netfold_pb2_grpc as rpc
from netfold.api.connection import PASSING, Connection, connection, open_channel
from netfold.traffic.errors import (
    AllReduceTimeout,
    BadAssignment,
    ControllerUnreachable,
    JobFailed,
    MembershipLost,
    TrafficError,
)
from netfold.traffic.membership.assignment import Assignment, Timing, TreePart
from netfold.traffic.membership.part import Stats
from netfold.traffic.numerics import Automatic, Fixed, Floats, Half, Scheme, SharedExponent, WholeNumbers

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _News:
    assignment: Assignment | None = None
    failure: TrafficError | None = None


def from_proto(message: pb.Assignment) -> Assignment:
    """The checked form. Raises BadAssignment."""
    return Assignment(
        job=message.job,
        epoch=message.epoch,
        udp_port=message.udp_port,
        lanes=message.lanes,
        rank=message.rank,
        workers=message.workers,
        rate_mbps=message.rate_mbps,
        numerics=_numerics(message.numerics),
        timing=_timing(message),
        quorum=message.quorum,
        quorum_deadline_s=message.quorum_deadline_s or Assignment.quorum_deadline_s,
        newcomers=message.newcomers,
        trees=tuple(
            TreePart(
                tree=part.tree,
                share=part.share,
                slots=part.slots,
                window=part.window,
                child=part.child,
                destination=part.destination,
                children=tuple(part.children),
                sources=tuple(tuple(s.addresses) for s in part.sources),
                own_children=part.own_children,
            )
            for part in message.trees
        ),
    )


def _timing(message: pb.Assignment) -> Timing:
    if not message.HasField("timing"):
        return Timing()
    told = message.timing
    return Timing(**{field.name: getattr(told, field.name) for field in fields(Timing)})


_PLAIN: dict[str, Scheme] = {
    "": Automatic(),
    "auto": Automatic(),
    "block": SharedExponent(),
    "half": Half(),
    "float32": Floats(),
    "integer": WholeNumbers(),
}


def _numerics(message: pb.Numerics) -> Scheme:
    if message.mode in _PLAIN:
        return _PLAIN[message.mode]
    if message.mode != "fixed":
        raise BadAssignment(
            f"assignment: numerics is '{message.mode}'; it must be auto, block, half, float32, fixed or integer"
        )
    try:
        return Fixed(message.fraction_bits)
    except ValueError as error:
        raise BadAssignment(f"assignment: numerics: {error}") from error


class Attending:
    """Membership of `host` in `job` at the controller that `where` leads to. An address ("unix:PATH" or "HOST:PORT")
    stands for `netfold.api.connection.connection(address)`, which finds certificate and token in the environment.

    A job that runs goes on without a controller for `patience` seconds: the switches carry it, and one
    that is restarted takes up where it was."""

    FIRST_LEASE = 5.0  # seconds; how long an unreachable controller is tried before it told its own lease
    RETRY = 0.2
    FAREWELL = 2.0  # seconds that `close` gives the controller to take note

    def __init__(self, where: Connection | str, job: str, host: str, patience: float = 60.0) -> None:
        self._where = connection(where) if isinstance(where, str) else where
        self._patience = patience
        self._job = job
        self._host = host
        self._lease = self.FIRST_LEASE
        self._up = True  # whether something was heard since the last break
        self._broke_at = 0.0
        self._news = _News()
        self._worn = 0  # the epoch that is of no more use here
        self._stats = Stats()
        self._wake: Callable[[], None] | None = None
        self._changed = threading.Condition()
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._attend, name=f"attend {job}", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> Assignment:
        """The newest assignment; waits for the first, at most so long.

        Raises JobFailed, ControllerUnreachable, BadAssignment, AllReduceTimeout."""

        def known() -> bool:
            return self._news.assignment is not None or self._news.failure is not None

        with self._changed:
            if not self._changed.wait_for(known, seconds):
                raise AllReduceTimeout(
                    f"job {self._job}: no assignment for {self._host} within {seconds:g} s; the job is queued, or "
                    "other members have not joined yet"
                )
        return self.current()

    def current(self) -> Assignment:
        """The newest assignment. Raises JobFailed, ControllerUnreachable, BadAssignment."""
        news = self._news
        if news.failure is not None:
            raise news.failure
        assert news.assignment is not None
        return news.assignment

    def on_change(self, wake: Callable[[], None] | None) -> None:
        with self._changed:
            self._wake = wake

    def renew(self, epoch: int, seconds: float) -> bool:
        """Asks the controller for another epoch than this one, and waits for it at most so long. After True `current`
        has it, or raises."""

        def renewed() -> bool:
            news = self._news
            return news.failure is not None or (
                news.assignment is not None and news.assignment.epoch != epoch
            )

        with self._changed:
            self._worn = epoch
            self._changed.notify_all()
            return self._changed.wait_for(renewed, max(0.0, seconds))

    def report(self, stats: Stats) -> None:
        self._stats = stats

    def close(self) -> None:
        """Leaves the job, and waits a moment for the controller to hear it."""
        self._leaving.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join(self.FAREWELL)

    def _publish(self, news: _News) -> None:
        with self._changed:
            self._news = news
            self._changed.notify_all()
            if self._wake is not None:
                self._wake()

    def _attend(self) -> None:
        """Keeps a stream open until the member leaves, the job is over, or the lease has run out."""
        while not self._over():
            try:
                with open_channel(self._where) as channel:
                    stream = rpc.ControllerStub(channel).Attend(self._attendance())
                    try:
                        for notice in stream:
                            self._up = True
                            self._hear(notice)
                    finally:
                        stream.cancel()
            except grpc.RpcError as error:
                self._stumble(error)
            except TrafficError as error:
                self._publish(_News(failure=error))
            except Exception as error:  # whoever waits has to learn that nobody listens any more
                lost = MembershipLost(f"job {self._job}: the stream to the controller ended: {error!r}")
                lost.__cause__ = error
                self._publish(_News(failure=lost))
            self._leaving.wait(self.RETRY)

    def _over(self) -> bool:
        return self._leaving.is_set() or self._news.failure is not None

    def _stumble(self, error: grpc.RpcError) -> None:
        """A stream that broke: fatal if the controller refused it, or if none answers for too long, which is told when
        it begins."""
        patience = self._lease if self._news.assignment is None else self._patience
        what = f"job {self._job}: "
        nobody = f"{what}no controller at {self._where.address}"
        if error.code() not in PASSING:
            what += f"the controller at {self._where.address} refused {self._host}: {error.details()}"
            self._publish(_News(failure=JobFailed(what)))
        elif self._up:
            self._up, self._broke_at = False, time.monotonic()
            log.warning("%s (%s); %s tries again for %g s", nobody, error.details(), self._host, patience)
        elif time.monotonic() - self._broke_at > patience:
            what = f"{nobody} for {patience:g} s ({error.details()})"
            self._publish(_News(failure=ControllerUnreachable(what)))

    def _hear(self, notice: pb.Notice) -> None:
        if notice.lease_ms:
            self._lease = notice.lease_ms / 1000
        if notice.HasField("over"):
            state = pb.JobState.Name(notice.over.state).lower()
            done = notice.over.state == pb.DONE
            reason = notice.over.reason or "no reason given"
            self._publish(_News(failure=JobFailed(f"job {self._job} is {state}: {reason}", done)))
        elif notice.HasField("assignment"):
            serves = any(part.children for part in notice.assignment.trees)
            if notice.assignment.transport == "roce" and not serves:
                raise BadAssignment(
                    f"job {self._job}: its transport is RoCE; its workers run netfold-roce (docs/roce.md)"
                )
            self._publish(_News(assignment=from_proto(notice.assignment)))

    def _attendance(self) -> Iterator[pb.Attendance]:
        """A word at once, then one in every third of the lease or when the epoch is worn, and the last on leaving."""
        while not self._over():
            word = self._word()
            yield word
            with self._changed:
                self._changed.wait_for(lambda: self._over() or self._worn > word.worn_epoch, self._lease / 3)  # noqa: B023
        if self._leaving.is_set():
            yield self._word(leave=True)

    def _word(self, leave: bool = False) -> pb.Attendance:
        stats, told = self._stats, self._news.assignment
        return pb.Attendance(
            job=self._job,
            host=self._host,
            leave=leave,
            worn_epoch=self._worn,
            epoch=0 if told is None else told.epoch,
            report=pb.Report(
                chunks=stats.chunks,
                retransmits=stats.retransmits,
                overflows=stats.overflows,
                goodput_mbps=stats.goodput_mbps,
                trees=[pb.TreeReport(**asdict(tree)) for tree in stats.trees()],
            ),
        )
