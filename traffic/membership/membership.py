# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A member's stream to the controller (`JoinJob` in protocol/netfold.proto): join, heartbeats, assignments, the
job's end.

The stream has a thread of its own. It replaces one immutable `_MembershipState`, which other threads read without a
lock.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace

import grpc

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.channels import open_channel
from netfold.protocol.congestion import Timing
from netfold.protocol.connection import PASSING, Connection, connection
from netfold.protocol.target import Targets
from netfold.protocol.unreachable import unreachable_reason
from netfold.traffic.errors import (
    AllReduceTimeoutError,
    ControllerUnreachableError,
    InvalidAssignmentError,
    JobFailedError,
    MembershipLostError,
    TrafficError,
    WorkerClosedError,
)
from netfold.traffic.membership.assignment import (
    Assignment,
    Neighbors,
    Ring,
    TreeAssignment,
    WorkersLeft,
)
from netfold.traffic.membership.base import STALL_TIMEOUT_S, Stats
from netfold.traffic.membership.calls import calls_message
from netfold.traffic.membership.jobs import ENDED
from netfold.traffic.membership.stall import describe_stall
from netfold.traffic.numerics import (
    Automatic,
    BlockFloat,
    Fixed,
    Float32Sum,
    IntegerSum,
    PackedHalf,
    RotatedQuarter,
    Scheme,
)

log = logging.getLogger(__name__)

ANSWERED_CALLS_MAX = 512
"""Calls in an answer to the controller: some 40 KB."""


@dataclass(frozen=True)
class _MembershipState:
    assignment: Assignment | None = None
    failure: TrafficError | None = None


def from_proto(message: pb.Assignment) -> Assignment:
    """The checked form. Raises InvalidAssignmentError."""
    return Assignment(
        job=message.job,
        epoch=message.epoch,
        udp_port=message.udp_port,
        lanes=message.lanes,
        rank=message.rank,
        workers=message.workers,
        rate_mbps=message.rate_mbps,
        link_mbps=message.link_mbps,
        numerics=_numerics(message.numerics),
        timing=_timing(message),
        quorum=message.quorum,
        quorum_deadline_s=message.quorum_deadline_s or Assignment.quorum_deadline_s,
        allow_newcomers=message.allow_newcomers,
        targets=_targets(message),
        workers_left=_workers_left(message.workers_left) if message.HasField("workers_left") else None,
        address=message.address,
        trees=tuple(
            TreeAssignment(
                tree=part.tree,
                share=part.share,
                slots=part.slots,
                window=part.window,
                child=part.child,
                destination=part.destination,
                children=tuple(part.children),
                sources=tuple(tuple(s.addresses) for s in part.sources),
                direct_children=part.direct_children,
            )
            for part in message.trees
        ),
    )


def _workers_left(message: pb.WorkersLeft) -> WorkersLeft:
    return WorkersLeft(tuple(message.hosts), message.epoch, message.calls, message.call_limit, message.final)


def _ring(message: pb.RoceRing) -> Ring:
    trees = (
        Neighbors(**{field.name: getattr(n, field.name) for field in fields(Neighbors)})
        for n in message.trees
    )
    return Ring(message.min_calls, message.max_calls, message.source_rank, tuple(trees))


def _timing(message: pb.Assignment) -> Timing:
    if not message.HasField("timing"):
        return Timing()
    timing = message.timing
    try:
        return Timing(**{field.name: getattr(timing, field.name) for field in fields(Timing)})
    except ValueError as error:
        raise InvalidAssignmentError(f"assignment: timing: {error}") from error


def _targets(message: pb.Assignment) -> Targets:
    try:
        return Targets(message.targets)
    except ValueError as error:
        raise InvalidAssignmentError(f"assignment: targets: {error}") from error


_PLAIN: dict[str, Scheme] = {
    "": Automatic(),
    "auto": Automatic(),
    "block": BlockFloat(),
    "half": PackedHalf(),
    "quarter": RotatedQuarter(),
    "float32": Float32Sum(),
    "integer": IntegerSum(),
}


def _numerics(message: pb.Numerics) -> Scheme:
    if message.mode in _PLAIN:
        return _PLAIN[message.mode]
    if message.mode != "fixed":
        raise InvalidAssignmentError(
            f"assignment: numerics is '{message.mode}'; expected fixed, {', '.join(filter(None, _PLAIN))}"
        )
    try:
        return Fixed(message.fraction_bits)
    except ValueError as error:
        raise InvalidAssignmentError(f"assignment: numerics: {error}") from error


class ControllerMembership:
    """Membership of `host` in `job` at the controller that `where` leads to. An address ("unix:PATH" or "HOST:PORT")
    stands for `netfold.protocol.connection.connection(address)`, which finds certificate and token in the environment.

    A member that was connected continues without a controller for `reconnect_timeout_s` seconds, whether it computes or
    waits for its assignment (as long as `wait` allows); a restarted controller takes its job over. One that reaches no
    controller at first fails after DEFAULT_LEASE_S. One that leaves while the controller is away waits for it, too
    (`close`): a job whose workers have made all their calls is done, not failed.

    `generation`: of the job's workers, all of which take part together. `transport`: an assignment of another one is
    refused. `is_relay`: the member is another process, whose silence must end its lease. Updates are sent only when one
    of the methods asks for it; each `report` stands for a heartbeat.
    """

    DEFAULT_LEASE_S = 5.0  # until the controller sends its own
    RETRY_S = 0.2
    CLOSE_TIMEOUT_S = 2.0
    LEAVE_TIMEOUT_S = 600.0  # an operator may take so long to start another controller

    def __init__(
        self,
        where: Connection | str,
        job: str,
        host: str,
        reconnect_timeout_s: float = 3600.0,
        *,
        generation: int = 0,
        transport: str = "udp",
        is_relay: bool = False,
    ) -> None:
        self._where = connection(where) if isinstance(where, str) else where
        self._reconnect_timeout_s = reconnect_timeout_s
        self._job = job
        self._host = host
        self._generation = generation
        self._transport = transport
        self._is_relay = is_relay
        self._lease = self.DEFAULT_LEASE_S
        self._is_connected = True  # an update came since the last error
        self._was_connected = False
        self._disconnected_at = 0.0
        self._state = _MembershipState()
        self._unusable_epoch = 0
        self._queue_pairs: pb.RoceQueuePairs | None = None
        self._calls: pb.CallDump | None = None  # that the next update carries
        self._updates_due = 0  # grows with each update that should be sent at once
        self._process = secrets.randbits(64)
        self._stream = 0
        self._stats = Stats()
        self._on_change: Callable[[], None] | None = None
        self._changed = threading.Condition()
        self._is_interrupted = False
        self._leaving = threading.Event()
        self._is_closing = False  # nothing is awaited after the last update
        self._is_last_sent = False  # on the present stream, the update with which it leaves
        self._has_left = False  # the controller has received that
        self._closed = threading.Event()
        self._unreachable_reason = ""
        self._thread = threading.Thread(target=self._run_stream, name=f"member {job}", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> Assignment:
        """The newest assignment; waits for the first, at most `seconds`.

        Raises JobFailedError, ControllerUnreachableError, InvalidAssignmentError, AllReduceTimeoutError,
        WorkerClosedError."""

        def has_outcome() -> bool:
            return self._state.assignment is not None or self._state.failure is not None

        with self._changed:
            self._changed.wait_for(lambda: has_outcome() or self._is_interrupted, seconds)
            if not has_outcome():
                if self._is_interrupted:
                    raise WorkerClosedError(
                        f"job {self._job}: {self._host} was closed before its first assignment"
                    )
                if not self._is_connected:
                    raise ControllerUnreachableError(
                        f"job {self._job}: no controller at {self._where.address}{self._unreachable_reason}, and no "
                        f"assignment for {self._host} within {seconds:g} s"
                    )
                raise AllReduceTimeoutError(
                    f"job {self._job}: no assignment for {self._host} within {seconds:g} s; the job is queued, or "
                    "other members have not joined yet"
                )
        return self.current()

    def current(self) -> Assignment:
        """The newest assignment. Raises JobFailedError, ControllerUnreachableError, InvalidAssignmentError."""
        state = self._state
        if state.failure is not None:
            raise state.failure
        assert state.assignment is not None
        return state.assignment

    def on_change(self, callback: Callable[[], None] | None) -> None:
        with self._changed:
            self._on_change = callback

    def request_new_epoch(self, epoch: int, seconds: float) -> bool:
        """See `Membership.request_new_epoch`."""

        def has_new_epoch() -> bool:
            state = self._state
            return state.failure is not None or (
                state.assignment is not None and state.assignment.epoch != epoch
            )

        with self._changed:
            if epoch != self._unusable_epoch:
                self._unusable_epoch = epoch
                self._send_update()
            self._changed.wait_for(lambda: has_new_epoch() or self._is_interrupted, max(0.0, seconds))
            return has_new_epoch()

    def interrupt(self) -> None:
        """See `Membership.interrupt`."""
        with self._changed:
            self._is_interrupted = True
            self._changed.notify_all()

    def describe_stall(self) -> str:
        return describe_stall(self._where, self._job, STALL_TIMEOUT_S)

    def report(self, stats: Stats) -> None:
        self._stats = stats
        if self._is_relay:
            with self._changed:
                self._send_update()

    def register(self, queue_pairs: pb.RoceQueuePairs) -> None:
        """The queue pairs of a RoCE worker, with the epoch that they are for."""
        with self._changed:
            self._queue_pairs = queue_pairs
            self._send_update()

    def _send_update(self) -> None:
        self._updates_due += 1
        self._changed.notify_all()

    @property
    def lease_s(self) -> float:
        return self._lease

    def leave(self) -> None:
        """Leaves the job, but stays on the stream until the job has ended or `close` is called: `current` tells of the
        job's end."""
        self._leaving.set()
        with self._changed:
            self._changed.notify_all()

    def abandon(self) -> None:
        """Closes the stream without leaving the job: the lease of the lost worker expires."""
        self._end_stream()
        self._thread.join(self.CLOSE_TIMEOUT_S)

    def close(self, *, is_done: bool = True) -> None:
        """Leaves the job: returns when the controller has received the last update. A member that took part and
        `is_done` waits up to LEAVE_TIMEOUT_S for a controller that is away, any other CLOSE_TIMEOUT_S."""
        self._is_closing = True
        self.leave()
        self._thread.join(self.CLOSE_TIMEOUT_S)
        if is_done and self._thread.is_alive() and self._state.assignment is not None:
            timeout = min(self.LEAVE_TIMEOUT_S, self._reconnect_timeout_s)
            log.warning(
                "job %s: %s waits up to %g s for the controller at %s, to leave",
                *(self._job, self._host, timeout, self._where.address),
            )
            self._thread.join(timeout)
        self._end_stream()

    def _end_stream(self) -> None:
        self._closed.set()
        with self._changed:
            self._changed.notify_all()

    def _publish(self, state: _MembershipState) -> None:
        with self._changed:
            self._state = state
            self._changed.notify_all()
            if self._on_change is not None:
                self._on_change()

    def _run_stream(self) -> None:
        """Keeps a stream open until the member has left, the job ends, or the controller stays unreachable."""
        while not self._has_ended():
            with self._changed:
                self._stream += 1
                self._is_last_sent = False
                self._changed.notify_all()
            try:
                with open_channel(self._where) as channel:
                    stream = rpc.ControllerStub(channel).JoinJob(self._updates(self._stream))
                    try:
                        for update in stream:
                            self._is_connected = self._was_connected = True
                            self._on_update(update)
                    finally:
                        stream.cancel()
                self._has_left = self._is_last_sent
            except grpc.RpcError as error:
                self._on_stream_error(error)
            except TrafficError as error:
                self._publish(_MembershipState(failure=error))
            except Exception as error:  # without this thread no waiter would wake up
                lost = MembershipLostError(f"job {self._job}: the stream to the controller ended: {error!r}")
                lost.__cause__ = error
                self._publish(_MembershipState(failure=lost))
            (self._closed if self._leaving.is_set() else self._leaving).wait(self.RETRY_S)

    def _has_ended(self) -> bool:
        return self._has_left or self._closed.is_set() or self._state.failure is not None

    def _on_stream_error(self, error: grpc.RpcError) -> None:
        """Final if the controller refused the member, or stays unreachable; logged when it becomes unreachable."""
        timeout = self._reconnect_timeout_s if self._was_connected else self.DEFAULT_LEASE_S
        unreachable = f"job {self._job}: no controller at {self._where.address}"
        if error.code() not in PASSING:
            where = f"the controller at {self._where.address}"
            refused = JobFailedError(f"job {self._job}: {where} refused {self._host}: {error.details()}")
            self._publish(_MembershipState(failure=refused))
        elif self._is_connected:
            self._is_connected, self._disconnected_at = False, time.monotonic()
            reason = unreachable_reason(self._where, error.details())
            self._unreachable_reason = f" ({reason})"
            log.warning("%s (%s); %s retries for %g s", unreachable, reason, self._host, timeout)
        elif time.monotonic() - self._disconnected_at > timeout:
            reason = unreachable_reason(self._where, error.details())
            lost = ControllerUnreachableError(f"{unreachable} for {timeout:g} s ({reason})")
            self._publish(_MembershipState(failure=lost))

    def _on_update(self, update: pb.ControllerUpdate) -> None:
        if update.lease_ms:
            self._lease = update.lease_ms / 1000
        if update.HasField("ended"):
            has_ended = update.ended.state in ENDED
            state = pb.JobState.Name(update.ended.state).lower() if has_ended else "over for this worker"
            done = update.ended.state == pb.DONE
            reason = update.ended.reason or "no reason given"
            self._publish(
                _MembershipState(failure=JobFailedError(f"job {self._job} is {state}: {reason}", done))
            )
        elif update.HasField("assignment"):
            self._check_transport(update.assignment)
            self._publish(_MembershipState(assignment=from_proto(update.assignment)))
        elif update.HasField("workers_left"):
            assignment = self._state.assignment
            if assignment is not None and assignment.epoch == update.workers_left.epoch:
                left = _workers_left(update.workers_left)
                self._publish(_MembershipState(assignment=replace(assignment, workers_left=left)))
        elif update.HasField("calls_request"):
            self._answer(update.calls_request)
        elif update.HasField("ring"):
            assignment = self._state.assignment
            if assignment is not None and assignment.epoch == update.ring.epoch:
                self._publish(_MembershipState(assignment=replace(assignment, ring=_ring(update.ring))))

    def _answer(self, request: pb.CallsRequest) -> None:
        calls = self._stats.recent(min(request.max_calls, ANSWERED_CALLS_MAX))
        answer = calls_message(request.number, calls, self._stats.location())
        with self._changed:
            self._calls = answer
            self._send_update()

    def _check_transport(self, assignment: pb.Assignment) -> None:
        """A parameter server serves jobs of both transports in UDP. Raises InvalidAssignmentError."""
        transport = assignment.transport or "udp"
        if transport == self._transport or any(part.children for part in assignment.trees):
            return
        raise InvalidAssignmentError(
            f"job {self._job}: its transport is RoCE; its workers run netfold-roce (docs/reference/roce.md)"
            if transport == "roce"
            else f"job {self._job} is not a RoCE job: its file needs transport: roce"
        )

    def _updates(self, stream: int) -> Iterator[pb.MemberUpdate]:
        """One at once, then one every third of the lease and whenever one is due, and the last on leaving."""

        def is_over() -> bool:
            """Whether the controller reads no more of these updates."""
            return stream != self._stream or self._closed.is_set() or self._state.failure is not None

        while not is_over() and not self._leaving.is_set():
            sent = self._updates_due
            yield self._build_update()
            with self._changed:
                self._changed.wait_for(
                    lambda: is_over() or self._leaving.is_set() or self._updates_due > sent,  # noqa: B023
                    None if self._is_relay else self._lease / 3,
                )
        if self._leaving.is_set() and not is_over():
            self._is_last_sent = True
            yield self._build_update(leave=True)
            with self._changed:
                self._changed.wait_for(lambda: is_over() or self._is_closing)

    def _build_update(self, leave: bool = False) -> pb.MemberUpdate:
        stats, assignment = self._stats, self._state.assignment
        progress = None if stats.progress is None else stats.progress()
        with self._changed:
            calls, self._calls = self._calls, None
        return pb.MemberUpdate(
            job=self._job,
            host=self._host,
            leave=leave,
            unusable_epoch=self._unusable_epoch,
            queue_pairs=self._queue_pairs,
            epoch=0 if assignment is None else assignment.epoch,
            process=self._process,
            stream=self._stream,
            supports_targets=True,
            generation=self._generation,
            calls=calls,
            report=pb.Report(
                chunks=stats.chunks,
                retransmits=stats.retransmits,
                reencoded_chunks=stats.reencoded_chunks,
                next_call=stats.next_call if progress is None else progress.next_call,
                progress=None if progress is None else progress.message(),
                silent_s=stats.silent_s(),
                goodput_mbps=stats.goodput_mbps,
                trees=[pb.TreeReport(**asdict(tree)) for tree in stats.trees()],
                socket_errors=stats.socket_errors(),
            ),
        )
