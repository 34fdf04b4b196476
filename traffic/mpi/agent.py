# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The agent of an MPI program's worker: a process that is the job's member for it, since the worker is C inside the
program's own process (member.c), with neither gRPC nor TLS.

    python -m netfold.traffic.mpi.agent      descriptor 3: the stream to the worker (messages.h)

It opens the sockets of each epoch and passes them to the worker. A worker that closes the stream without having left,
or is silent for a lease, has died: the job is canceled, so that the other workers' calls fail at once.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from netfold.protocol.connection import ConnectError, Connection, connection
from netfold.protocol.wire import packet_bytes
from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.engine import SCHEMES, departures_of, stats_of, to_engine_assignment
from netfold.traffic.errors import AllReduceTimeoutError, TrafficError
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.membership.base import Stats
from netfold.traffic.membership.host import MemberHost, bindable, own_host
from netfold.traffic.membership.job_options import LEASE_MS, JobOptions
from netfold.traffic.membership.jobs import cancel_job, submit_job
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.mpi.messages import (
    AssignMessage,
    DeparturesMessage,
    MessageType,
    NewEpochMessage,
    ReportMessage,
)
from netfold.traffic.numerics import (
    DTYPES,
    FLOAT32,
    FLOAT64,
    Automatic,
    Fixed,
    Float32Sum,
    IntegerSum,
    RotatedQuarter,
    Scheme,
    scheme_for,
)
from netfold.traffic.packets.job_port import EpochSockets
from netfold.traffic.packets.transport import TransportError

STREAM_FD: Final = 3
MESSAGE_BYTES: Final = 1 << 17
SUBMIT_TIMEOUT_S: Final = 300.0
CANCEL_TIMEOUT_S: Final = 5.0


def float_dtypes_of(numerics: Scheme) -> int:
    """Floats whose sums are the nodes' at any length, as bits of their numbers in DTYPES: those that nodes add as MPI
    does, and all where the user has chosen how they are added."""
    match numerics:
        case Automatic() | RotatedQuarter() | IntegerSum():
            chosen: tuple[np.dtype[Any], ...] = ()
        case Float32Sum():
            chosen = (FLOAT32,)
        case _:
            chosen = (FLOAT32, FLOAT64)
    return sum(1 << DTYPES.index(dtype) for dtype in chosen)


class WorkerLostError(Exception):
    """The worker's process has ended, is silent, or cannot take part in an epoch."""


@dataclass
class _Job:
    """A joined job."""

    name: str
    membership: ControllerMembership
    changed: socket.socket
    """Readable when there is a new assignment, or the job has ended."""
    sockets: EpochSockets
    epoch: int = 0
    """The epoch that the worker has."""


class MemberAgent:
    """For the worker at the other end of `stream`."""

    def __init__(
        self, stream: socket.socket, where: Connection, host: MemberHost, options: JobOptions
    ) -> None:
        self._stream = stream
        self._where = where
        self._host = host
        self._options = options
        self._lease_s = (options.lease_ms or LEASE_MS) / 1000
        self._job: _Job | None = None
        self._received_at = time.monotonic()
        self._left = False

    def run(self) -> None:
        """Until the worker has left or is lost, or its job has ended."""
        self._send_text(MessageType.HOST, self._host.name)
        try:
            while not self._left:
                self._step()
        except (OSError, WorkerLostError) as error:
            self._cancel(f"{error}")
        finally:
            if self._job is not None:
                self._job.membership.close()

    def _step(self) -> None:
        watched = [self._stream] if self._job is None else [self._stream, self._job.changed]
        readable, _, _ = select.select(watched, [], [], self._lease_s)
        if self._stream in readable or self._silence_left_s() == 0.0:
            self._receive()
        if self._job is not None and self._job.changed in readable:
            self._job.changed.recv(MESSAGE_BYTES)
            self._follow(self._job)

    # ---- the worker ----

    def _silence_left_s(self) -> float:
        """How long the worker may still be silent."""
        return max(0.0, self._received_at + self._lease_s - time.monotonic())

    def _receive(self) -> bytes:
        """The next message, which is acted on. Raises WorkerLostError."""
        if not select.select([self._stream], [], [], self._silence_left_s())[0]:
            raise WorkerLostError(f"the MPI process on {self._host.name} is silent for {self._lease_s:g} s")
        message = self._stream.recv(MESSAGE_BYTES)
        if not message:
            raise WorkerLostError(f"the MPI process on {self._host.name} has ended without MPI_Finalize")
        self._received_at = time.monotonic()
        kind = MessageType(int.from_bytes(message[:8], "little"))
        text = message[8:].rstrip(b"\0").decode(errors="replace")
        match kind:
            case MessageType.SUBMIT:
                self._attempt(lambda: self._submit(text.split(",")))
            case MessageType.JOIN:
                self._attempt(lambda: self._join(text))
            case MessageType.REPORT:
                self._report(message)
            case MessageType.NEW_EPOCH if self._job is not None:
                self._job.membership.request_new_epoch(NewEpochMessage.from_buffer_copy(message).epoch, 0.0)
            case MessageType.ENDED:
                self._cancel(text)
            case MessageType.LEAVE:
                self._report(message)
                self._left = True
        return message

    def _report(self, message: bytes) -> None:
        report = ReportMessage.from_buffer_copy(message)
        totals = report.totals
        trees = tuple(stats_of(tree) for tree in report.trees[: report.tree_count])
        stats = Stats(
            calls=report.calls,
            chunks=sum(tree.results for tree in trees),
            retransmits=totals.retransmits,
            reencoded_chunks=totals.reencoded_chunks,
            restarts=totals.restarts,
            late=totals.late_contributions,
            elements=report.elements,
            bytes=report.bytes,
            seconds=report.seconds,
            next_call=totals.next_call,
            trees=lambda: trees,
            socket_errors=lambda: report.socket_errors,
        )
        if self._job is not None:
            self._job.membership.report(stats)

    def _send(self, message: bytes, sockets: list[int] | None = None) -> None:
        if sockets:
            socket.send_fds(self._stream, [message], sockets)
        else:
            self._stream.sendall(message)

    def _send_text(self, kind: MessageType, text: str) -> None:
        self._send(kind.to_bytes(8, "little") + text.encode())

    def _attempt(self, action: Callable[[], None]) -> None:
        """Ends the worker's calls if the action fails."""
        try:
            action()
        except (TrafficError, TransportError, ConnectError, ValueError) as error:
            self._send_text(MessageType.ENDED, f"{error}")

    # ---- the job ----

    def _submit(self, hosts: list[str]) -> None:
        name = self._options.job or f"mpi-{secrets.token_hex(4)}"
        submit_job(self._where, self._options.job_file(name, hosts), self._options.queue, SUBMIT_TIMEOUT_S)
        self._send_text(MessageType.JOB, name)

    def _join(self, name: str) -> None:
        notified, notify = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.setblocking(False)
        membership = ControllerMembership(self._where, name, self._host.name)
        self._job = _Job(name, membership, notified, EpochSockets(bindable(self._host.address)))

        def on_change() -> None:
            with contextlib.suppress(BlockingIOError):
                notify.send(b"1")

        membership.on_change(on_change)
        on_change()  # the first assignment may have come before

    def _follow(self, job: _Job) -> None:
        """Gives the worker the newest assignment, or the job's end."""
        try:
            assignment = job.membership.wait(0.0)
        except AllReduceTimeoutError:
            return  # queued
        except TrafficError as error:
            self._send_text(MessageType.ENDED, f"{error}")
            return
        if assignment.epoch != job.epoch:
            try:
                self._enter(job, assignment)
            except (TransportError, ValueError) as error:
                reason = (
                    f"the MPI process on {self._host.name} cannot enter epoch {assignment.epoch}: {error}"
                )
                self._send_text(MessageType.ENDED, reason)
                raise WorkerLostError(reason) from error
        elif assignment.workers_left is not None:
            message = DeparturesMessage(
                type=MessageType.DEPARTURES, epoch=job.epoch, departures=departures_of(assignment)
            )
            self._send(bytes(message))

    def _enter(self, job: _Job, assignment: Assignment) -> None:
        """The worker closes its sockets first: those of the new epoch have the same port."""
        self._send(MessageType.PREPARE.to_bytes(8, "little"))
        while int.from_bytes(self._receive()[:8], "little") != MessageType.READY:
            if self._left:
                return
        scheme = scheme_for(assignment.numerics, FLOAT32)
        message = AssignMessage(
            type=MessageType.ASSIGN,
            scheme=SCHEMES[type(scheme)],
            bits=scheme.bits if isinstance(scheme, Fixed) else 0,
            float_dtypes=float_dtypes_of(assignment.numerics),
            assignment=to_engine_assignment(assignment, assignment.roots, Congestion.PANAMA),
        )
        sockets = job.sockets.open(assignment.udp_port, assignment.roots, packet_bytes(assignment.lanes))
        try:
            self._send(bytes(message), sockets)
        finally:
            for descriptor in sockets:
                os.close(descriptor)
        job.epoch = assignment.epoch

    def _cancel(self, reason: str) -> None:
        if self._job is not None:
            cancel_job(self._where, self._job.name, reason, CANCEL_TIMEOUT_S)


def main() -> None:
    stream = socket.socket(fileno=STREAM_FD)
    try:
        where = connection()
        agent = MemberAgent(stream, where, own_host(where), JobOptions.from_environment())
    except (TrafficError, ConnectError, ValueError) as error:
        stream.sendall(MessageType.ENDED.to_bytes(8, "little") + f"{error}".encode())
        return
    agent.run()


if __name__ == "__main__":
    main()
