# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The agent of an MPI program's worker: a process that is the job's member for it, since the worker is C inside the
program's own process (member.c), with neither gRPC nor TLS.

    python -m netfold.traffic.mpi.agent      descriptor 3: the stream to the worker (traffic/agent)

It opens the sockets of each epoch and passes them to the worker. A worker that closes the stream without having left,
or is silent for a lease, has died: the job is canceled, so that the other workers' calls fail at once.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from netfold.protocol.connection import ConnectError, Connection, connection
from netfold.protocol.job_token import job_of_token
from netfold.protocol.wire import packet_bytes
from netfold.traffic.agent.messages import (
    MessageType,
    NewEpochMessage,
    assign_message,
    departures_message,
)
from netfold.traffic.agent.worker_calls import WorkerCalls
from netfold.traffic.agent.worker_stream import (
    MembershipNews,
    Message,
    WorkerEndedError,
    WorkerLostError,
    WorkerStream,
)
from netfold.traffic.errors import AllReduceTimeoutError, TrafficError
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.membership.host import MemberHost, bindable, own_host
from netfold.traffic.membership.job_options import LEASE_MS, JobOptions
from netfold.traffic.membership.jobs import cancel_job, submit_job
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.numerics import (
    DTYPES,
    FLOAT32,
    FLOAT64,
    Automatic,
    Float32Sum,
    IntegerSum,
    RotatedQuarter,
    Scheme,
    scheme_for,
)
from netfold.traffic.packets.job_port import EpochSockets
from netfold.traffic.packets.transport import TransportError

STREAM_FD: Final = 3
SUBMIT_TIMEOUT_S: Final = 300.0
CANCEL_TIMEOUT_S: Final = 5.0
LONG_S: Final = 3600.0
"""Seconds between two checks where there is nothing to check."""


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


@dataclass
class _Job:
    """A joined job."""

    name: str
    membership: ControllerMembership
    news: MembershipNews
    sockets: EpochSockets
    epoch: int = 0
    """The epoch that the worker has."""


class MemberAgent:
    """For the worker at the other end of `stream`."""

    def __init__(
        self, stream: socket.socket, where: Connection, host: MemberHost, options: JobOptions
    ) -> None:
        self._worker = WorkerStream(stream)
        self._where = where
        self._host = host
        self._options = options
        self._lease_s = (options.lease_ms or LEASE_MS) / 1000
        self._job: _Job | None = None
        self._calls = WorkerCalls(host.name, os.getppid())
        self._left = False

    def run(self) -> None:
        """Until the worker has left or is lost, or its job has ended."""
        self._worker.send_text(MessageType.HOST, self._host.name)
        try:
            while not self._left:
                self._step()
        except (OSError, WorkerEndedError):
            self._cancel(f"the MPI process on {self._host.name} has ended without MPI_Finalize")
        except WorkerLostError as error:
            self._cancel(f"{error}")
        finally:
            if self._job is not None:
                self._job.news.close()
                self._job.membership.close()

    def _step(self) -> None:
        watched: list[WorkerStream | MembershipNews] = [self._worker]
        if self._job is not None:
            watched.append(self._job.news)
        readable, _, _ = select.select(watched, [], [], self._silence_left_s())
        while not self._left and (message := self._worker.receive(0.0)) is not None:
            self._act_on(message)
        self._check_silence()
        if self._job is not None and self._job.news in readable:
            self._job.news.take()
            self._follow(self._job)

    # ---- the worker ----

    def _silence_left_s(self) -> float:
        """Seconds that the worker may still be silent. It has no lease before it joins: it waits for the other ranks,
        whose agents are starting, too."""
        return LONG_S if self._job is None else max(0.0, self._lease_s - self._worker.silence_s())

    def _check_silence(self) -> None:
        """Raises WorkerLostError."""
        if not self._left and self._silence_left_s() == 0.0:
            raise WorkerLostError(f"the MPI process on {self._host.name} is silent for {self._lease_s:g} s")

    def _receive(self) -> Message:
        """Raises WorkerLostError."""
        while (message := self._worker.receive(self._silence_left_s())) is None:
            self._check_silence()
        return message

    def _act_on(self, message: Message) -> None:
        match message.kind:
            case MessageType.SUBMIT:
                self._attempt(lambda: self._submit(message.text.split(",")))
            case MessageType.JOIN:
                self._attempt(lambda: self._join(message.text))
            case MessageType.REPORT:
                self._report(message)
            case MessageType.CALLS if self._job is not None:
                self._calls.take(message, self._job.name)
            case MessageType.NEW_EPOCH if self._job is not None:
                self._job.membership.request_new_epoch(message.to(NewEpochMessage).epoch, 0.0)
            case MessageType.ENDED:
                self._cancel(message.text)
            case MessageType.LEAVE:
                self._report(message)
                self._left = True

    def _report(self, message: Message) -> None:
        if self._job is not None:
            self._job.membership.report(self._calls.stats_of(message, self._worker.silence_s))

    def _attempt(self, action: Callable[[], None]) -> None:
        """Ends the worker's calls if the action fails."""
        try:
            action()
        except (TrafficError, TransportError, ConnectError, ValueError) as error:
            self._worker.send_text(MessageType.ENDED, f"{error}")

    # ---- the job ----

    def _submit(self, hosts: list[str]) -> None:
        name = self._options.job or f"mpi-{secrets.token_hex(4)}"
        file, queue = self._options.job_file(name, hosts), self._options.queue
        token = submit_job(self._where, file, queue, SUBMIT_TIMEOUT_S)
        self._worker.send_text(MessageType.JOB, token or name)

    def _join(self, text: str) -> None:
        """Join a job by its token, which has the name, or by its name."""
        name = job_of_token(text)
        if name is None:
            name = text
        else:
            self._where = self._where.as_member(text)
        membership = ControllerMembership(self._where, name, self._host.name)
        news = MembershipNews(membership)
        self._job = _Job(name, membership, news, EpochSockets(bindable(self._host.address)))

    def _follow(self, job: _Job) -> None:
        """Gives the worker the newest assignment, or the job's end."""
        try:
            assignment = job.membership.wait(0.0)
        except AllReduceTimeoutError:
            return  # queued
        except TrafficError as error:
            self._worker.send_text(MessageType.ENDED, f"{error}")
            return
        if assignment.epoch != job.epoch:
            try:
                self._enter(job, assignment)
            except (TransportError, ValueError) as error:
                reason = (
                    f"the MPI process on {self._host.name} cannot enter job epoch {assignment.epoch}: {error}"
                )
                self._worker.send_text(MessageType.ENDED, reason)
                raise WorkerLostError(reason) from error
        elif assignment.workers_left is not None:
            self._worker.send(MessageType.DEPARTURES, bytes(departures_message(assignment)))

    def _enter(self, job: _Job, assignment: Assignment) -> None:
        """The worker closes its sockets first: those of the new epoch have the same port."""
        self._worker.send(MessageType.PREPARE)
        while (message := self._receive()).kind is not MessageType.READY:
            self._act_on(message)
            if self._left:
                return
        scheme = scheme_for(assignment.numerics, FLOAT32)
        dtypes = float_dtypes_of(assignment.numerics)
        assign = assign_message(assignment, scheme, job.membership.lease_s, dtypes)
        sockets = job.sockets.open(assignment.udp_port, assignment.roots, packet_bytes(assignment.lanes))
        try:
            self._worker.send(MessageType.ASSIGN, bytes(assign), sockets)
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
        WorkerStream(stream).send_text(MessageType.ENDED, f"{error}")
        return
    agent.run()


if __name__ == "__main__":
    main()
