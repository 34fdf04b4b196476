# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker of a job: `all_reduce` and the other collectives work on arrays of all workers in the network; `submit` does
so in the background.

The engine (traffic/engine) moves the packets. This module keeps it in the newest epoch that the controller gave, names
the errors, and completes calls.

    all_reduce
      _begin_call            one thread at a time
      _check_call            dtype, scheme and operation against the job's numerics
      _enter_newest_epoch    sockets and assignment of the newest epoch; requests another one after a failed call
      Engine.submit, wait    C: traffic/engine/README
      _complete_call         outcome -> result or error, statistics to the controller
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from netfold.protocol.wire import packet_bytes
from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.blocks import Blocks, CallForm
from netfold.traffic.engine.call_log import CALLS_MAX, CallKind
from netfold.traffic.engine.engine import (
    Call,
    Engine,
    Status,
    departures_of,
    progress_of,
    request_of,
    stats_of,
    to_engine_assignment,
)
from netfold.traffic.errors import (
    AllReduceTimeoutError,
    ConcurrentUseError,
    InvalidAssignmentError,
    TrafficError,
    WorkerClosedError,
)
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.membership.base import Membership, Stats, TreeStats
from netfold.traffic.membership.calls import CallProgress, PresentCall
from netfold.traffic.numerics import ReduceOp, Scheme
from netfold.traffic.packets.host_link import HostLink
from netfold.traffic.packets.job_port import EpochSockets
from netfold.traffic.packets.transport import Address, TransportError
from netfold.traffic.worker.call_dump import CALL_DUMPS, program_location, write_calls
from netfold.traffic.worker.handle import Handle
from netfold.traffic.worker.outcome import (
    Contributors,
    check_array,
    check_blocks,
    check_lossy,
    check_numerics,
    check_quorum,
    check_remainder,
    contributors_of,
    error_of,
    workers_left_error,
)

_SIGNAL_CHECK_S = 0.25
"""The longest wait in C: Python handles signals in between."""


@dataclass(frozen=True)
class _BackgroundCall:
    """A call of `submit`. Times are those of time.monotonic."""

    handle: Handle
    call: Call
    started: float
    deadline: float


class Worker:
    """One worker of a job; a context manager.

    One thread uses it at a time: while its calls are in flight, calls of other threads raise ConcurrentUseError:
    all workers must make their calls in the same order.

    `local`: IPv4 address to bind (0.0.0.0: any). `scheme`: replaces the scheme of the job's file
    (`Assignment.numerics`); all workers of a job must use the same. `link`: the host's link, in place of UDP sockets.
    """

    def __init__(
        self,
        membership: Membership,
        local: str = "0.0.0.0",
        scheme: Scheme | None = None,
        congestion: Congestion = Congestion.PANAMA,
        link: HostLink | None = None,
    ) -> None:
        self._membership = membership
        self._link = link
        self._scheme = scheme
        self._congestion = congestion
        self._sockets = EpochSockets(local)
        self._engine = Engine()
        self.stats = Stats(
            progress=self._progress,
            recent=self._engine.call_log,
            location=program_location,
            trees=self._trees,
            socket_errors=self._engine.socket_errors,
        )
        self._epoch_lock = threading.Lock()  # of the four below
        self._epoch = 0  # the engine's; 0: none yet
        self._lanes = 0
        self._last_assignment: Assignment | None = None
        self._failure: TrafficError | TransportError | None = None  # why no further call can succeed
        self._state_lock = threading.Lock()  # of all below
        self._idle = threading.Condition(self._state_lock)  # no call is in flight
        self._owner = 0  # identity of the thread whose calls are in flight
        self._in_flight = 0  # calls, including those being submitted
        self._last_begun = 0.0  # time.monotonic
        self._background: dict[int, _BackgroundCall] = {}  # by the engine's handle
        self._completion_thread: threading.Thread | None = None
        self._all_completed = False  # every handle of a closed worker is finished
        self._closed = False
        self._on_end: Callable[[Exception], None] | None = None
        membership.on_change(self._on_assignment)
        membership.report(self.stats)
        CALL_DUMPS.add(self)

    def all_reduce(
        self,
        array: NDArray[Any],
        timeout: float = 60.0,
        op: ReduceOp = ReduceOp.SUM,
        *,
        lossy: bool = False,
    ) -> Contributors | None:
        """Replaces `array` (a dtype of numerics.DTYPES; any shape, C order) by its sum or average over all workers, in
        place. Averages take floats and divide by the number of workers whose arrays are in the sum.

        All workers get the same bits; NaN and infinities add up as in IEEE 754. Peak memory: the array, a copy, a few
        windows of packets. `timeout`: seconds. `lossy`: the array is a gradient, whose sum may be approximate: of a job
        with numerics quarter, and of float32, float16 and bfloat16; equal at all workers. Returns the contributors
        where the job has a quorum, else None.

        On an error the array is as before. UnsupportedDtypeError, ConcurrentUseError and SumOverflowError leave the
        workers in the same call; after other errors the next call requests a new epoch.

        Raises TypeError or ValueError for an array that cannot be reduced in place, SequenceExhaustedError for a call
        that needs more chunks than an epoch has numbers, and UnsupportedDtypeError, SumOverflowError (integers),
        CollectiveMismatchError, ConcurrentUseError, WorkerClosedError, AllReduceTimeoutError, StragglerError (with a
        quorum), JobFailedError, WorkersLeftError, ControllerUnreachableError, TransportError.
        """
        return self._call(array, timeout, op, lossy=lossy)

    def reduce_scatter(
        self, array: NDArray[Any], timeout: float = 60.0, op: ReduceOp = ReduceOp.SUM
    ) -> NDArray[Any]:
        """Returns this worker's block of the sum or average over all workers, a view of `array`. Block k of equal
        blocks is that of the worker of rank k. The other blocks of `array` may be overwritten. Of integers, the owner
        of a sum that does not fit gets SumOverflowError, and the others their blocks. Otherwise as `all_reduce`. Raises
        ValueError if the blocks are not equal."""
        rank, workers = self._place(timeout)
        if array.size % workers:
            raise ValueError(f"an array of {array.size} elements has no {workers} equal blocks")
        self._call(array, timeout, op, Blocks.one_each(CallForm.SCATTER, array.size, workers))
        count = array.size // workers
        return array.reshape(-1)[rank * count : (rank + 1) * count]

    def all_gather(self, block: NDArray[Any], timeout: float = 60.0) -> NDArray[Any]:
        """Returns the arrays of all workers, of any dtype and of one size: element k is that of the worker of rank k.
        In a job with a quorum that of a late worker is zeros. Raises as `all_reduce`, and CollectiveMismatchError if a
        worker is lost or comes meanwhile."""
        rank, workers = self._place(timeout)
        words = -(-block.nbytes // 4)
        gathered = np.zeros((workers, words), np.int32)
        every = gathered.view(np.uint8)[:, : block.nbytes]
        every[rank] = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
        blocks = Blocks.one_each(CallForm.GATHER, gathered.size, workers)
        self._call(gathered, timeout, ReduceOp.SUM, blocks)
        return np.ascontiguousarray(every).view(block.dtype).reshape(workers, *block.shape)

    def broadcast(self, array: NDArray[Any], root: int = 0, timeout: float = 60.0) -> None:
        """Replaces `array`, of any dtype, by that of the worker of rank `root`. On an error it is undefined but at the
        root. Raises as `all_reduce`, and ValueError if there is no such worker."""
        words = np.zeros(-(-array.nbytes // 4), np.int32)
        copied = words.view(np.uint8)[: array.nbytes]
        copied[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        blocks = Blocks(CallForm.GATHER, (words.size,), (root,))
        self._call(words, timeout, ReduceOp.SUM, blocks, kind=CallKind.BROADCAST)
        array[...] = copied.view(array.dtype).reshape(array.shape)

    def reduce(
        self, array: NDArray[Any], root: int = 0, timeout: float = 60.0, op: ReduceOp = ReduceOp.SUM
    ) -> None:
        """Replaces `array` at the worker of rank `root` as `all_reduce` does; at the others it may be overwritten.
        Raises as `broadcast`."""
        blocks = Blocks(CallForm.SCATTER, (array.size,), (root,))
        self._call(array, timeout, op, blocks, kind=CallKind.REDUCE)

    def barrier(self, timeout: float = 60.0) -> None:
        """Returns when all workers have called it: they meet in the opening of a call without elements. In a job with
        a quorum, that many are enough after the deadline. Raises as `all_reduce`."""
        self._call(np.zeros(0, np.int32), timeout, ReduceOp.SUM, kind=CallKind.BARRIER)

    def _place(self, timeout: float) -> tuple[int, int]:
        """This worker's rank and the number of workers. Waits for the first assignment."""
        assignment = self._membership.wait(timeout)
        return assignment.rank, assignment.workers

    def _call(
        self,
        array: NDArray[Any],
        timeout: float,
        op: ReduceOp,
        blocks: Blocks | None = None,
        *,
        lossy: bool = False,
        kind: CallKind | None = None,
    ) -> Contributors | None:
        check_array(array)
        if array.size == 0 and kind is not CallKind.BARRIER:
            return None
        started = time.monotonic()
        self._begin_call(started)
        try:
            error, contributors = self._run_call(array, op, blocks, lossy, kind, started, started + timeout)
        finally:
            self._end_call()
        if error is not None:
            raise error
        return contributors

    def _run_call(
        self,
        array: NDArray[Any],
        op: ReduceOp,
        blocks: Blocks | None,
        lossy: bool,
        kind: CallKind | None,
        started: float,
        deadline: float,
    ) -> tuple[Exception | None, Contributors | None]:
        scheme = self._check_call(array, op, lossy, deadline)
        self._enter_newest_epoch(deadline)
        check_blocks(array, blocks, self.workers)
        request = request_of(
            array, op, scheme, deadline, lossy=lossy, follows_all=lossy, blocks=blocks, kind=kind
        )
        call = self._engine.submit(array, request, background=False)
        self._abort_if_ended()
        try:
            while self._engine.wait(call, time.monotonic() + _SIGNAL_CHECK_S) is Status.PENDING:
                self._replace_unusable_epoch(deadline)
        except BaseException:
            self._engine.abort()
            self._complete_call(call, started)
            raise
        return self._complete_call(call, started)

    def submit(
        self,
        array: NDArray[Any],
        op: ReduceOp = ReduceOp.SUM,
        timeout: float = 60.0,
        context: int = 0,
        *,
        lossy: bool = False,
        follows_all: bool = False,
        warm_up: bool = False,
        remainder: NDArray[np.float32] | None = None,
        blocks: Blocks | None = None,
        kind: CallKind | None = None,
    ) -> Handle:
        """As `all_reduce`, but returns at once. All workers must submit their calls in the same order. The array must
        not be used until its call is done. Raises those errors of `all_reduce` that are found before anything is
        sent; the handle raises the others. `context`: any number below 2^63 that must be equal at all workers;
        workers with different ones raise CollectiveMismatchError. `lossy`: as in `all_reduce`. `follows_all`: the call
        starts when all calls before it are finished, and sums of these predict its ranges, too; equal at all workers.
        Of the first gradients of a training step, before which nothing is in flight anyway. `warm_up`: a lossy call is
        made as half; equal at all workers. `remainder`: of a lossy call, as many elements as
        `array`. It gets what the codes of numerics quarter left of this worker's array: its values less those of its
        codes, 0 where it did not travel in codes. Undefined after an error. `blocks`: the call is a scatter or a
        gather; equal at all workers. A gather's array is int32. `kind`: the collective, for
        reports; None: that of the form."""
        check_array(array)
        check_remainder(array, remainder, lossy)
        handle = Handle(array)
        if array.size == 0 and kind is not CallKind.BARRIER:
            handle.finish(None)
            return handle
        started = time.monotonic()
        deadline = started + timeout
        self._begin_call(started)
        try:
            scheme = self._check_call(array, op, lossy, deadline)
            self._enter_newest_epoch(deadline)
            check_blocks(array, blocks, self.workers)
            request = request_of(
                array,
                op,
                scheme,
                deadline,
                context,
                lossy=lossy,
                follows_all=lossy and follows_all,
                warm_up=warm_up,
                remainder=remainder,
                blocks=blocks,
                kind=kind,
            )
            with (
                self._state_lock
            ):  # the completion thread may see the call done before it is in `_background`
                self._refuse_if_closed()
                call = self._engine.submit(array, request, background=True, remainder=remainder)
                self._background[call.handle] = _BackgroundCall(handle, call, started, deadline)
                self._in_flight += 1  # until the completion thread has finished the handle
                if self._completion_thread is None:
                    self._completion_thread = threading.Thread(
                        target=self._complete_background_calls, name="netfold calls", daemon=True
                    )
                    self._completion_thread.start()
            self._abort_if_ended()
        finally:
            self._end_call()
        return handle

    def _begin_call(self, now: float) -> None:
        this_thread = threading.get_ident()
        with self._state_lock:
            self._refuse_if_closed()
            if self._in_flight and self._owner != this_thread:
                raise ConcurrentUseError(
                    "this worker is in a call of another thread; it serves one thread at a time"
                )
            self._owner, self._last_begun = this_thread, now
            self._in_flight += 1

    def _end_call(self) -> None:
        with self._state_lock:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.notify_all()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise WorkerClosedError("this worker is closed: it has left its job")

    def _check_call(self, array: NDArray[Any], op: ReduceOp, lossy: bool, deadline: float) -> Scheme:
        """Returns the scheme of the call. Waits for the first assignment; raises UnsupportedDtypeError."""
        assignment = self._membership.wait(deadline - time.monotonic())
        scheme = self._scheme or assignment.numerics
        check_numerics(array, scheme, op, assignment.job)
        check_lossy(array, lossy)
        check_quorum(array, assignment.quorum, assignment.job)
        return scheme

    # ---- epochs --------------------------------------------------------------------------------------------------

    def _enter_newest_epoch(self, deadline: float) -> None:
        """Enters the newest epoch. After a failed call it has to be later than that call's: the workers' chunk
        numbers may differ in that."""
        self._enter_epoch()
        if self._engine.totals().has_failed_call:
            epoch, assignment = self._epoch, self._membership.current()
            if assignment.workers_left is not None and assignment.workers_left.is_final:
                raise workers_left_error(assignment, self._engine.totals().next_call)
            if not self._membership.request_new_epoch(epoch, deadline - time.monotonic()):
                self._refuse_if_closed()
                raise AllReduceTimeoutError(
                    f"job {self._membership.current().job}: a call failed in job epoch {epoch}, and the controller "
                    "started no new job epoch before the deadline"
                )
            self._enter_epoch()
        self._refuse_if_closed()  # `_enter_epoch` of a closed worker does nothing

    def _enter_epoch(self, first: bool = True) -> None:
        """Gives the engine the newest assignment, if it is of another epoch. `first`: also if it has none yet."""
        with self._epoch_lock:
            assignment = self._membership.current()  # under the lock, so that epochs are entered in order
            if assignment.workers_left is not None and assignment.epoch == self._epoch and not self._closed:
                self._engine.set_departures(assignment.epoch, departures_of(assignment))
            if self._closed or assignment.epoch == self._epoch or not (self._epoch or first):
                return
            if self._lanes and assignment.lanes != self._lanes:
                raise InvalidAssignmentError(
                    f"assignment: lanes changed from {self._lanes} to {assignment.lanes} within a job"
                )
            self._engine.close_sockets()
            roots, port = assignment.roots, assignment.udp_port
            epoch = to_engine_assignment(assignment, roots, self._congestion)
            if self._link is None:
                self._engine.assign(epoch, self._sockets.open(port, roots, packet_bytes(assignment.lanes)))
            else:
                self._engine.assign_link(epoch, self._link, port, [Address(root, port) for root in roots])
            self._epoch, self._lanes, self._failure = assignment.epoch, assignment.lanes, None
            self._last_assignment = assignment

    def on_end(self, callback: Callable[[Exception], None]) -> None:
        """Calls `callback` when no further call can succeed, from a thread of the membership, which it must not hold
        up; at once if that is so."""
        with self._epoch_lock:
            self._on_end = callback
            failure = self._failure
        if failure is not None:
            callback(failure)

    def _on_assignment(self) -> None:
        """Takes a new assignment of the membership, or the end of the job. Any thread may call it."""
        try:
            self._enter_epoch(first=False)
        except (TrafficError, TransportError) as error:
            with self._epoch_lock:
                if self._closed:
                    return
                self._failure = error
                self._engine.abort()
                on_end = self._on_end
            if on_end is not None:
                on_end(error)

    def _abort_if_ended(self) -> None:
        """Ends a call that was submitted after the job ended or the worker was closed, which abort all calls."""
        try:
            self._membership.current()
        except TrafficError as error:
            self._failure = error
        if self._failure is not None or self._closed:
            self._engine.abort()

    def _replace_unusable_epoch(self, deadline: float) -> None:
        """Requests a new epoch if a call cannot continue in this one."""
        epoch = self._engine.totals().unusable_epoch
        if epoch and not self._membership.request_new_epoch(epoch, deadline - time.monotonic()):
            self._engine.fail_epoch_waiters()

    # ---- completion ----------------------------------------------------------------------------------------------

    def _complete_call(self, call: Call, started: float) -> tuple[Exception | None, Contributors | None]:
        """Releases a call that is done; returns its error, or the contributors to its result."""
        outcome = self._engine.release(call.handle)
        totals = self._engine.totals()
        self.stats.next_call = totals.next_call
        self.stats.restarts, self.stats.reencoded_chunks = totals.restarts, totals.reencoded_chunks
        self.stats.retransmits, self.stats.late = totals.retransmits, totals.late_contributions
        if outcome.status == Status.DONE:
            array = call.array
            self.stats.count(
                array.size, array.nbytes, -(-array.size // self._lanes), time.monotonic() - started
            )
            self._membership.report(self.stats)
            return None, contributors_of(outcome)
        if outcome.status == Status.TIMEOUT:
            CALL_DUMPS.dump(self, "a call timed out")
        failure = self._failure or self._engine.error()
        socket_errors = self._engine.socket_errors()
        error = error_of(
            outcome, self._membership, self._epoch, failure, call.array.dtype, socket_errors=socket_errors
        )
        return error, None

    def _complete_background_calls(self) -> None:
        """Finishes handles until the worker is closed."""
        while not self._all_completed:
            done = self._engine.next_completed()
            if done is None:
                if self._closed:
                    self._all_completed = True
                    return
                with self._state_lock:
                    deadlines = [background.deadline for background in self._background.values()]
                self._replace_unusable_epoch(min(deadlines))
                continue
            with self._state_lock:
                background = self._background.pop(done)
            error, contributors = self._complete_call(background.call, background.started)
            self._end_call()
            background.handle.finish(error, contributors)

    # ---- statistics ----------------------------------------------------------------------------------------------

    @property
    def assignment(self) -> Assignment:
        """Returns this member's part in the current epoch. Raises the errors of `Membership.current`."""
        return self._membership.current()

    @property
    def workers(self) -> int:
        """Returns the workers of this epoch. Raises the errors of `Membership.current`."""
        return self.assignment.workers

    @property
    def retransmits(self) -> int:
        """Counts packets that were retransmitted since the worker joined."""
        return int(self._engine.totals().retransmits)

    @property
    def probes(self) -> int:
        """Counts the retransmissions after silence (docs/reference/protocol.md, section 5.2). Most silence is that of
        another worker which is slower."""
        return int(self._engine.totals().probes)

    def _progress(self) -> CallProgress:
        """Returns how far this worker is. A call that waits for its job epoch is not in the engine yet."""
        progress = progress_of(self._engine.totals())
        with self._state_lock:
            is_begun, since = self._in_flight > 0, self._last_begun
        if progress.present is None and is_begun:
            return progress._replace(present=PresentCall("", 0, since))
        return progress

    def dump_to(self, folder: Path, reason: str) -> None:
        """Writes the last calls to a file of the job and this process. Raises OSError."""
        assignment = self._last_assignment
        job, rank = ("", -1) if assignment is None else (assignment.job, assignment.rank)
        address = "" if assignment is None else assignment.address
        header = {"job": job, "rank": rank, "address": address, "reason": reason}
        path = folder / f"netfold-calls-{job}-{rank}-{os.getpid()}.jsonl"
        write_calls(path, header, self._engine.call_log(CALLS_MAX))

    def _trees(self) -> tuple[TreeStats, ...]:
        """Returns the counters of the trees of this epoch, for the controller."""
        return tuple(stats_of(report) for report in self._engine.reports())

    def flows(self) -> list[dict[str, float]]:
        """Returns the counters of the trees of this epoch: congestion windows in chunks, RTTs in milliseconds."""
        return [
            {
                "tree": report.tree,
                "window": report.window,
                "limit": report.max_window,
                "rtt_ms": round(report.srtt * 1e3, 3),
                "min_rtt_ms": round(report.min_rtt * 1e3, 3),
                "retransmits": report.retransmits,
                "probes": report.probes,
            }
            for report in self._engine.reports()
        ]

    def close(self) -> None:
        """Ends all calls, also those of other threads, and leaves the job. A handle's callback may call it; the other
        handles are finished before it returns. Where calls have failed, also by this, it does not wait for a controller
        that is away."""
        with self._state_lock:
            if self._closed:
                return
            self._closed = True
            is_done = not self._in_flight and not self._engine.totals().has_failed_call
        self._membership.on_change(None)
        self._membership.interrupt()
        self._engine.stop()
        if self._completion_thread is threading.current_thread():
            self._complete_background_calls()  # in a callback: the thread's own loop ends when it returns
        elif self._completion_thread is not None:
            self._completion_thread.join()
        self.stats.next_call = self._engine.totals().next_call
        self._membership.report(self.stats)
        self._membership.close(is_done=is_done)
        with self._idle:
            self._idle.wait_for(lambda: not self._in_flight)
        with self._epoch_lock:
            self._engine.close()
            self._sockets.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
