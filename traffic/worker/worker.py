# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker: `all_reduce` adds up an array over all workers of a job, in the network.

The course of a call (docs/protocol.md, section 5): once in each epoch the workers tell each other in which
call they are; an opening chunk, in each tree where exponents are shared, else in the first; the data; once more what
overflowed; a closing chunk, after whose result everybody is known to have everything. So a worker that has
returned from a call is never needed for it again, and when the epoch changes, either all of the workers
that are still inside a call repeat it, or none.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.errors import (
    AllReduceTimeout,
    BadAssignment,
    CallMismatch,
    ConcurrentUse,
    EpochChanged,
    RoundsExhausted,
)
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.worker.call import Gradient, Halves, Opening, Tally, check_array, check_numerics
from netfold.traffic.worker.congestion import Congestion
from netfold.traffic.worker.quantize import ReduceOp, Scheme
from netfold.traffic.worker.session import Connect, Session, connect_udp

_CALLS = 4  # calls are told apart modulo 4; those of two workers differ by one at most


@dataclass
class Stats:
    """What a member reports: totals since it joined. `seconds` spent in calls, `elements` reduced in them."""

    calls: int = 0
    chunks: int = 0
    retransmits: int = 0
    overflows: int = 0
    restarts: int = 0
    elements: int = 0
    bytes: int = 0
    seconds: float = 0.0

    @property
    def goodput_mbps(self) -> float:
        """Array bits reduced for each second inside of calls."""
        return self.bytes * 8e-6 / self.seconds if self.seconds else 0.0


class Membership(Protocol):
    """Where a worker learns its part: a stream from the controller, or a fixed assignment."""

    def wait(self, seconds: float) -> Assignment:
        """The newest assignment, waiting for the first. Raises JobFailed, ControllerUnreachable,
        AllReduceTimeout."""

    def current(self) -> Assignment:
        """The newest assignment, without waiting. Raises JobFailed, ControllerUnreachable."""

    def on_change(self, wake: Callable[[], None] | None) -> None:
        """Whom to call (from any thread) when `current` has something new to say."""

    def renew(self, epoch: int, seconds: float) -> bool:
        """Asks for another epoch, as this one is of no more use, and waits for it at most so long. False: there
        is none, or nobody to ask. After True `current` has it, or raises what ended the job."""

    def report(self, stats: Stats) -> None:
        """Called after each all-reduce, so that the controller learns how it goes."""

    def close(self) -> None: ...


class Alone:
    """A membership without a controller: one assignment, for good."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment

    def wait(self, seconds: float) -> Assignment:
        return self._assignment

    def current(self) -> Assignment:
        return self._assignment

    def on_change(self, wake: Callable[[], None] | None) -> None:
        pass

    def renew(self, epoch: int, seconds: float) -> bool:
        return False

    def report(self, stats: Stats) -> None:
        pass

    def close(self) -> None:
        pass


class Worker:
    """One worker of a job; a context manager. One thread uses it at a time: another one's call is refused with
    ConcurrentUse.

    `local` is the IPv4 address to bind (0.0.0.0: any). `scheme`: in place of the one that the job's file names
    (`Assignment.numerics`); all workers of a job must use the same.
    """

    def __init__(
        self,
        membership: Membership,
        local: str = "0.0.0.0",
        scheme: Scheme | None = None,
        congestion: Congestion = Congestion.PANAMA,
        connect: Connect = connect_udp,
    ) -> None:
        self.stats = Stats()
        self._membership = membership
        self._local = local
        self._scheme = scheme
        self._congestion = congestion
        self._connect = connect
        self._session: Session | None = None
        self._number = 0  # of the next call
        self._complete = False  # all results of that call are in, but perhaps not at all workers
        self._buffer: NDArray[np.uint8] | None = None
        self._busy = threading.Lock()

    def all_reduce(self, array: NDArray[Any], timeout: float = 60.0, op: ReduceOp = ReduceOp.SUM) -> None:
        """Replaces `array` (float32, float16 or int32; any shape, C order) by its sum or average over all workers, in
        place. Averages are of floats, and over those workers whose arrays were added up.

        All workers get the same bits. NaN and infinities travel as IEEE 754 adds them. Peak memory: the array, a copy,
        and a few windows of packets. On any error the array is as before; after other ones than WrongNumbers,
        ConcurrentUse and SumOverflow the workers are out of step, and the next call asks the controller for a new
        epoch. `timeout`: seconds.

        Raises TypeError, ValueError (bad array), WrongNumbers, ConcurrentUse, AllReduceTimeout, JobFailed,
        ControllerUnreachable, CallMismatch, RoundsExhausted (a call of more chunks than an epoch has numbers),
        SumOverflow (int32 only), TransportError.
        """
        check_array(array)
        if array.size == 0:
            return
        if not self._busy.acquire(blocking=False):
            raise ConcurrentUse("this worker is in a call of another thread; a worker serves one at a time")
        try:
            self._all_reduce(array, timeout, op)
        finally:
            self._busy.release()

    def _all_reduce(self, array: NDArray[Any], timeout: float, op: ReduceOp) -> None:
        started = time.monotonic()
        deadline = started + timeout
        assignment = self._membership.wait(timeout)
        scheme = self._scheme or assignment.numerics
        check_numerics(array, scheme, op, assignment.job)
        gradient = Gradient(self._number, array, assignment.lanes, scheme, self._buffer, op)
        self._buffer = gradient.buffer
        try:
            overflow = self._reduce(gradient, deadline)
        except BaseException:
            if self._session is not None:
                self._session.broken = True
            gradient.restore()
            raise
        if overflow is not None:
            gradient.restore()
            raise overflow
        self._count(gradient, array, time.monotonic() - started)

    def _reduce(self, gradient: Gradient, deadline: float) -> Exception | None:
        self._complete = False
        before = self._session
        while True:
            try:
                session = self._enter(gradient, deadline)
                with np.errstate(over="ignore"):  # what is beyond the range of a dtype becomes infinite
                    overflow = self._pass(session, gradient, deadline)
            except EpochChanged:
                self.stats.restarts += 1
                continue
            except RoundsExhausted:
                # a call that began with a new epoch and used it up needs more than any epoch has
                if session is not before or not self._renew(session, deadline):
                    raise
                self.stats.restarts += 1
                continue
            self._number += 1
            return overflow

    def _enter(self, gradient: Gradient, deadline: float) -> Session:
        """The session of the newest epoch."""
        assignment = self._membership.current()
        session = self._session
        if session is not None and session.assignment.epoch == assignment.epoch:
            if not session.broken:
                return session
            if not self._renew(session, deadline):
                raise AllReduceTimeout(
                    f"job {assignment.job}: an earlier call was given up in epoch {assignment.epoch}; the "
                    "workers are out of step until the controller raises the epoch"
                )
            assignment = self._membership.current()
        if assignment.lanes != gradient.lanes:
            raise BadAssignment(
                f"assignment: lanes changed from {gradient.lanes} to {assignment.lanes} within a job"
            )
        self._leave()
        self._session = Session(assignment, self._local, self._congestion, self._connect)
        self._membership.on_change(self._session.wake)
        return self._session

    def _renew(self, session: Session, deadline: float) -> bool:
        return self._membership.renew(session.assignment.epoch, deadline - time.monotonic())

    def _watch(self) -> None:
        assert self._session is not None
        if self._membership.current().epoch != self._session.assignment.epoch:
            raise EpochChanged

    def _pass(self, session: Session, gradient: Gradient, deadline: float) -> Exception | None:
        """The whole call in one epoch. Raises EpochChanged when it has to be done again in another one."""
        if not session.agreed_call and not self._agree(session, gradient, deadline):
            return None
        self._complete = False
        gradient.restart()
        workers = session.assignment.workers
        parts = list(zip(session.flows, session.assignment.cut(gradient.chunks), strict=True))

        openings = [
            (flow, Opening(gradient, lo, min(hi, lo + flow.part.slots // 2), workers))
            for flow, (lo, hi) in parts
            if flow is session.flows[0] or (lo < hi and gradient.shares_exponents)
        ]
        session.run(openings, deadline, self._watch)
        session.run(
            [(flow, gradient.works(lo, hi, flow.part.slots // 2, workers)) for flow, (lo, hi) in parts],
            deadline,
            self._watch,
        )
        specials = [gradient.specials(lo, hi) for _, (lo, hi) in parts]
        session.run(list(zip(session.flows, specials, strict=True)), deadline, self._watch)
        repeats = [
            (flow, gradient.repeats(lo, hi, workers, special))
            for (flow, (lo, hi)), special in zip(parts, specials, strict=True)
        ]
        session.run(repeats, deadline, self._watch)
        self._complete = True
        session.run([(session.flows[0], Tally(gradient.lanes, self._number % _CALLS))], deadline, self._watch)
        self.stats.overflows += int(np.count_nonzero(gradient.overflowed))
        return next((w.overflow for _, w in repeats if isinstance(w, Halves) and w.overflow), None)

    def _agree(self, session: Session, gradient: Gradient, deadline: float) -> bool:
        """In a new epoch: does this call have to be done (again)? False: all workers have all of its results.

        Each worker names the first call whose results it lacks. Nobody returns from a call before
        everybody has its results, so only this call and the next can be named; if anybody lacks this one,
        all do it.
        """
        lacks = self._number + self._complete
        tally = Tally(gradient.lanes, lacks % _CALLS)
        session.run([(session.flows[0], tally)], deadline, self._watch)
        named = {int(lane) for lane in np.flatnonzero(tally.votes)}
        here, following = self._number % _CALLS, (self._number + 1) % _CALLS
        if not named <= {here, following} or (not self._complete and here not in named):
            raise CallMismatch(
                f"job {session.assignment.job}: this worker is in call {self._number}, others lack "
                f"the results of a call that is {sorted(named)} modulo {_CALLS}; did a worker restart, or skip a call?"
            )
        session.agreed_call = True
        return here in named

    def _count(self, gradient: Gradient, array: NDArray[Any], seconds: float) -> None:
        stats = self.stats
        stats.calls += 1
        stats.chunks += gradient.chunks
        stats.elements += array.size
        stats.bytes += array.nbytes
        stats.seconds += seconds
        self._membership.report(stats)

    def _leave(self) -> None:
        if self._session is not None:
            self._membership.on_change(None)
            self.stats.retransmits += self._session.retransmits
            self._session.close()
            self._session = None

    @property
    def workers(self) -> int:
        """Whose arrays are added up in this epoch. Raises what `Membership.current` raises."""
        return self._membership.current().workers

    @property
    def retransmits(self) -> int:
        """Packets that were sent again, up to now."""
        return self.stats.retransmits + (self._session.retransmits if self._session else 0)

    def flows(self) -> list[dict[str, float]]:
        """How the trees of the present epoch do; see `Flow.report`."""
        return [flow.report() for flow in self._session.flows] if self._session else []

    def close(self) -> None:
        self._leave()
        self._membership.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
