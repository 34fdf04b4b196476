# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker: `all_reduce` adds up an array over all workers of a job, in the network; `submit` does so in the
background.

The engine (traffic/engine) moves the packets, in docs/protocol.md's words. Here is what it cannot know: which epoch the
controller gave, what an outcome is called, and who waits for it.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray

from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.engine import Call, Engine, Request, Status, epoch_of, request_of
from netfold.traffic.errors import (
    AllReduceTimeout,
    BadAssignment,
    ConcurrentUse,
    TrafficError,
    WorkerClosed,
)
from netfold.traffic.membership.part import Membership, Stats, TreeStats
from netfold.traffic.numerics import ReduceOp, Scheme
from netfold.traffic.packets.job_port import JobPort
from netfold.traffic.packets.transport import Address, TransportError
from netfold.traffic.worker.handle import Handle
from netfold.traffic.worker.outcome import (
    Contributors,
    check_array,
    check_numerics,
    check_quorum,
    contributors_of,
    error_of,
)

_SLICE = 0.25  # seconds that a call waits in C before signals are looked at


class Worker:
    """One worker of a job; a context manager.

    One thread uses it at a time: as long as its calls are under way, another one's are refused with ConcurrentUse, as
    nobody could say in which order they come at the other workers.

    `local` is the IPv4 address to bind (0.0.0.0: any). `scheme`: in place of the one that the job's file names
    (`Assignment.numerics`); all workers of a job must use the same.
    """

    def __init__(
        self,
        membership: Membership,
        local: str = "0.0.0.0",
        scheme: Scheme | None = None,
        congestion: Congestion = Congestion.PANAMA,
    ) -> None:
        self.stats = Stats(trees=self._trees)
        self._membership = membership
        self._local = local
        self._scheme = scheme
        self._congestion = congestion
        self._port: JobPort | None = None
        self._engine = Engine()
        self._entering = threading.Lock()
        self._epoch = 0  # the one that the engine is in
        self._lanes = 0
        self._failure: TrafficError | TransportError | None = (
            None  # why there is no way on, from a thread that learned it
        )
        self._books = threading.Lock()
        self._idle = threading.Condition(self._books)  # no call is under way
        self._owner = 0  # the thread whose calls are under way,
        self._under_way = 0  # and how many, with those that are being submitted
        self._handles: dict[
            int, tuple[Handle, Call, float, float]
        ] = {}  # in the background: and begin and deadline
        self._finisher: threading.Thread | None = None
        self._all_told = False  # what became of their calls, the handles of a closed worker
        self._closed = False
        membership.on_change(self._changed)

    def all_reduce(
        self, array: NDArray[Any], timeout: float = 60.0, op: ReduceOp = ReduceOp.SUM
    ) -> Contributors | None:
        """Replaces `array` (of numerics.DTYPES; any shape, C order) by its sum or average over all workers, in
        place. Averages are of floats, and over those workers whose arrays were added up.

        All workers get the same bits. NaN and infinities travel as IEEE 754 adds them. Peak memory: the array, a copy,
        and a few windows of packets. On any error the array is as before; after other ones than WrongNumbers,
        ConcurrentUse and SumOverflow the workers are out of step, and the next call asks the controller for a new
        epoch. `timeout`: seconds. Gives how many workers' arrays are in it where the job has a quorum, else None.

        Raises TypeError, ValueError (bad array), WrongNumbers, ConcurrentUse, WorkerClosed, AllReduceTimeout,
        JobFailed, ControllerUnreachable, CallMismatch, Straggled (with a quorum), RoundsExhausted (a call of more
        chunks than an epoch has numbers), SumOverflow (integers only), TransportError.
        """
        check_array(array)
        if array.size == 0:
            return None
        started = time.monotonic()
        self._begin()
        try:
            error, contributors = self._reduce(array, op, started, started + timeout)
        finally:
            self._end()
        if error is not None:
            raise error
        return contributors

    def _reduce(
        self, array: NDArray[Any], op: ReduceOp, started: float, deadline: float
    ) -> tuple[Exception | None, Contributors | None]:
        call = self._engine.submit(array, self._request(array, op, deadline), background=False)
        self._look_again()
        try:
            while self._engine.wait(call, time.monotonic() + _SLICE) is Status.PENDING:
                self._renew_worn(deadline)
        except BaseException:
            self._engine.abort()
            self._finish(call, started)
            raise
        return self._finish(call, started)

    def submit(self, array: NDArray[Any], op: ReduceOp = ReduceOp.SUM, timeout: float = 60.0) -> Handle:
        """As `all_reduce`, but returns at once. Calls take place in the order of submission, which has to be the same
        at all workers; nobody may touch the array until its call is done. Raises what `all_reduce` raises before
        anything is sent; all else comes out of the handle."""
        check_array(array)
        handle = Handle(array)
        if array.size == 0:
            handle.finish(None)
            return handle
        started = time.monotonic()
        self._begin()
        try:
            request = self._request(array, op, started + timeout)
            with self._books:  # the finisher may find the call over before it is noted
                self._refuse_if_closed()
                call = self._engine.submit(array, request, background=True)
                self._handles[call.handle] = (handle, call, started, started + timeout)
                # Until the finisher has told the handle. This thread is one more, until it returns.
                self._under_way += 1
                if self._finisher is None:
                    self._finisher = threading.Thread(
                        target=self._finish_all, name="netfold calls", daemon=True
                    )
                    self._finisher.start()
            self._look_again()
        finally:
            self._end()
        return handle

    def _begin(self) -> None:
        me = threading.get_ident()
        with self._books:
            self._refuse_if_closed()
            if self._under_way and self._owner != me:
                raise ConcurrentUse(
                    "this worker is in a call of another thread; a worker serves one at a time"
                )
            self._owner = me
            self._under_way += 1

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise WorkerClosed("this worker was closed: it has left its job")

    def _end(self) -> None:
        with self._books:
            self._under_way -= 1
            if not self._under_way:
                self._idle.notify_all()

    def _request(self, array: NDArray[Any], op: ReduceOp, deadline: float) -> Request:
        """Brings the engine into the newest epoch; gives what to submit there."""
        assignment = self._membership.wait(deadline - time.monotonic())
        scheme = self._scheme or assignment.numerics
        check_numerics(array, scheme, op, assignment.job)
        check_quorum(array, assignment.quorum, assignment.job)
        self._enter()
        if self._engine.totals().broken:
            epoch = self._epoch
            if not self._membership.renew(epoch, deadline - time.monotonic()):
                raise AllReduceTimeout(
                    f"job {assignment.job}: an earlier call was given up in epoch {epoch}; the workers are out of step "
                    "until the controller raises the epoch"
                )
            self._enter()
        self._refuse_if_closed()  # as `_enter` did without a word
        return request_of(array, op, scheme, deadline)

    def _enter(self, first: bool = True) -> None:
        """Lets the engine go on in the newest epoch, if it is in another one. `first`: also if it is in none yet."""
        with self._entering:
            assignment = self._membership.current()  # here, so that no older one comes after a newer one
            if self._closed or assignment.epoch == self._epoch or not (self._epoch or first):
                return
            if self._lanes and assignment.lanes != self._lanes:
                raise BadAssignment(
                    f"assignment: lanes changed from {self._lanes} to {assignment.lanes} within a job"
                )
            self._engine.retire()
            roots = list(dict.fromkeys(part.destination for part in assignment.trees))
            port = assignment.udp_port
            epoch = epoch_of(assignment, roots, self._congestion)
            endpoints = self._hold(port).connect([Address(root, port) for root in roots])
            self._engine.assign(epoch, [endpoint.detach() for endpoint in endpoints])
            self._epoch, self._lanes, self._failure = assignment.epoch, assignment.lanes, None

    def _hold(self, port: int) -> JobPort:
        """The job's port, from its first epoch to the worker's end."""
        if self._port is not None and self._port.local.port != port:
            self._port.close()
            self._port = None
        if self._port is None:
            self._port = JobPort(self._local, port)
        return self._port

    def _changed(self) -> None:
        """The controller has news; called from any thread."""
        try:
            self._enter(first=False)
        except (TrafficError, TransportError) as error:
            with self._entering:
                if not self._closed:
                    self._failure = error
                    self._engine.abort()

    def _look_again(self) -> None:
        """Ends a call that was submitted just after all calls were ended: by the news that there is no way on, or by
        `close`."""
        try:
            self._membership.current()
        except TrafficError as error:
            self._failure = error
        if self._failure is not None or self._closed:
            self._engine.abort()

    def _renew_worn(self, deadline: float) -> None:
        """Gets another epoch if a call needs one."""
        worn = self._engine.totals().worn
        if worn and not self._membership.renew(worn, deadline - time.monotonic()):
            self._engine.no_epoch()

    def _finish(self, call: Call, started: float) -> tuple[Exception | None, Contributors | None]:
        """Forgets a call that is over; gives the error that it ended in, or who contributed."""
        outcome = self._engine.release(call.handle)
        totals = self._engine.totals()
        self.stats.restarts, self.stats.overflows = totals.restarts, totals.overflows
        self.stats.retransmits, self.stats.late = totals.retransmits, totals.late
        if outcome.status == Status.DONE:
            array = call.array
            self.stats.count(
                array.size, array.nbytes, -(-array.size // self._lanes), time.monotonic() - started
            )
            self._membership.report(self.stats)
            return None, contributors_of(outcome)
        failure = self._failure or self._engine.error()
        return error_of(outcome, self._membership, self._epoch, failure, call.array.dtype), None

    def _finish_all(self) -> None:
        """Tells handles what became of their calls, until the worker is closed."""
        while not self._all_told:
            over = self._engine.next()
            if over is None:
                if self._closed:
                    self._all_told = True
                    return
                with self._books:
                    deadlines = [deadline for *_, deadline in self._handles.values()]
                self._renew_worn(min(deadlines))
                continue
            with self._books:
                handle, call, started, _ = self._handles.pop(over)
            error, contributors = self._finish(call, started)
            self._end()
            handle.finish(error, contributors)

    @property
    def workers(self) -> int:
        """Whose arrays are added up in this epoch. Raises what `Membership.current` raises."""
        return self._membership.current().workers

    @property
    def retransmits(self) -> int:
        """Packets that were sent again, up to now."""
        return int(self._engine.totals().retransmits)

    def _trees(self) -> tuple[TreeStats, ...]:
        """How the trees of the present epoch do, for the controller."""
        return tuple(
            TreeStats(r.tree, r.results, r.marked, r.retransmits, r.rtt * 1e3, r.rtt_least * 1e3)
            for r in self._engine.reports()
        )

    def flows(self) -> list[dict[str, float]]:
        """How the trees of the present epoch do: window and limit in chunks, round trips in milliseconds."""
        return [
            {
                "tree": report.tree,
                "window": report.window,
                "limit": report.limit,
                "rtt_ms": round(report.rtt * 1e3, 3),
                "rtt_min_ms": round(report.rtt_least * 1e3, 3),
                "retransmits": report.retransmits,
                "probes": report.probes,
            }
            for report in self._engine.reports()
        ]

    def close(self) -> None:
        """Ends what is under way, also in other threads, and leaves the job. A handle's callback may call it: the
        other handles are told before it returns."""
        with self._books:
            if self._closed:
                return
            self._closed = True
        self._membership.on_change(None)
        self._engine.stop()
        if self._finisher is threading.current_thread():
            self._finish_all()  # the one that called the callback, and ends when it is back
        elif self._finisher is not None:
            self._finisher.join()
        self._membership.close()
        with self._idle:
            self._idle.wait_for(lambda: not self._under_way)
        with self._entering:
            self._engine.close()
            if self._port is not None:
                self._port.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
