# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The agent of a RoCE worker: it joins the job at the controller and passes messages on (traffic/agent/messages.h), so
that a worker needs neither gRPC nor TLS nor Python.

It sends no heartbeats of its own: the lease of a silent worker expires.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from dataclasses import asdict, replace

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.connection import Connection
from netfold.traffic.agent.messages import (
    RINGS_MAX,
    VERSION,
    HelloMessage,
    MessageType,
    NewEpochMessage,
    QueuePairsMessage,
    RingMessage,
    RingNeighbors,
    assign_message,
    departures_message,
)
from netfold.traffic.agent.worker_calls import WorkerCalls
from netfold.traffic.agent.worker_stream import (
    MembershipNews,
    Message,
    WorkerEndedError,
    WorkerMessageError,
    WorkerStream,
)
from netfold.traffic.errors import AllReduceTimeoutError, InvalidAssignmentError, TrafficError
from netfold.traffic.membership.assignment import Assignment, Ring
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.numerics import BlockFloat, Float32Sum, IntegerSum, RotatedQuarter

SILENCE_S = 10.0
"""A running worker sends more often. A serial port does not show that the worker has ended."""


class Agent:
    """A member of `job` as `host`, for the worker at the other end of `stream`. `run` returns when the worker is
    gone, or when the job has ended and the worker has left or is silent: a worker that has left may wait for that."""

    def __init__(self, where: Connection, job: str, host: str, stream: socket.socket) -> None:
        self._where = where
        self._job = job
        self._host = host
        self._worker = WorkerStream(stream)
        self._calls = WorkerCalls(host, os.getpid())
        self._sent: Assignment | None = None
        self._has_left = False
        self._has_ended = False

    def run(self) -> None:
        """Raises WorkerMessageError."""
        try:
            self._await_hello()
            self._represent()
        except WorkerMessageError as error:
            self._send_ended(f"the agent cannot read a message of this worker: {error}")
            raise
        except (WorkerEndedError, OSError):
            pass  # the worker is gone, as one may that has left

    def _await_hello(self) -> None:
        while (hello := self._worker.receive(SILENCE_S)) is None:
            pass
        if hello.kind is not MessageType.HELLO:
            raise WorkerMessageError(f"{hello.kind.name} in place of {MessageType.HELLO.name}")
        version = hello.to(HelloMessage).version
        if version != VERSION:
            raise WorkerMessageError(f"messages of version {version}; expected version {VERSION}")

    def _represent(self) -> None:
        member = ControllerMembership(self._where, self._job, self._host, transport="roce", is_relay=True)
        news = MembershipNews(member)
        try:
            self._serve(member, news)
        finally:
            news.close()
            if self._has_left:
                member.close()
            else:
                member.abandon()

    def _serve(self, member: ControllerMembership, news: MembershipNews) -> None:
        while not (self._has_ended and (self._has_left or self._worker.silence_s() > SILENCE_S)):
            watched: list[WorkerStream | MembershipNews] = [self._worker, news]
            readable, _, _ = select.select(watched, [], [], SILENCE_S)
            if news in readable:
                news.take()
                self._follow(member)
            while (message := self._worker.receive(0.0)) is not None:
                if not self._has_left:
                    self._act_on(message, member)

    # ---- the worker ----

    def _act_on(self, message: Message, member: ControllerMembership) -> None:
        match message.kind:
            case MessageType.REPORT:
                member.report(self._calls.stats_of(message, self._worker.silence_s))
            case MessageType.CALLS:
                self._calls.take(message, self._job)
            case MessageType.QUEUE_PAIRS:
                member.register(_queue_pairs(message.to(QueuePairsMessage)))
            case MessageType.NEW_EPOCH:
                member.request_new_epoch(message.to(NewEpochMessage).epoch, 0.0)
            case MessageType.LEAVE:
                self._has_left = True
                member.report(self._calls.stats_of(message, self._worker.silence_s))
                member.leave()
            case _:
                raise WorkerMessageError(f"{message.kind.name}, which no RoCE worker sends")

    def _send_ended(self, reason: str) -> None:
        with contextlib.suppress(OSError):
            self._worker.send_text(MessageType.ENDED, reason)

    # ---- the controller ----

    def _follow(self, member: ControllerMembership) -> None:
        """Gives the worker what is new in the assignment, or the job's end."""
        try:
            assignment = member.wait(0.0)
            messages = self._news(assignment, member.lease_s)
        except AllReduceTimeoutError:
            return  # queued
        except TrafficError as error:
            if not self._has_ended:
                self._send_ended(f"{error}")
            self._has_ended = True
            return
        for kind, body in messages:
            self._worker.send(kind, body)
        self._sent = assignment

    def _news(self, assignment: Assignment, lease_s: float) -> list[tuple[MessageType, bytes]]:
        """Messages for the worker. Raises InvalidAssignmentError."""
        sent, messages = self._sent, list[tuple[MessageType, bytes]]()
        if sent is None or sent.epoch != assignment.epoch:
            messages.append((MessageType.ASSIGN, _assign(assignment, lease_s)))
            sent = replace(assignment, workers_left=None, ring=None)
        if assignment.workers_left is not None and sent.workers_left != assignment.workers_left:
            messages.append((MessageType.DEPARTURES, bytes(departures_message(assignment))))
        if assignment.ring is not None and sent.ring != assignment.ring:
            messages.append((MessageType.RING, _ring(assignment.epoch, assignment.ring)))
        return messages


def start_agent(where: Connection, job: str, host: str) -> tuple[socket.socket, threading.Thread]:
    """Starts an agent in a thread; the worker's end of its stream, and the thread."""
    ours, agents = socket.socketpair()

    def run() -> None:
        with agents:
            Agent(where, job, host, agents).run()

    thread = threading.Thread(target=run, name=f"agent {job} {host}", daemon=True)
    thread.start()
    return ours, thread


def _queue_pairs(message: QueuePairsMessage) -> pb.RoceQueuePairs:
    """Raises WorkerMessageError."""
    try:
        connections = [
            pb.RoceConnection(tree=t.tree, send_qpn=t.send_qpn, recv_qpn=t.recv_qpn, first_psn=t.first_psn)
            for t in message.trees[: message.tree_count]
        ]
        return pb.RoceQueuePairs(epoch=message.epoch, calls=message.calls, connections=connections)
    except ValueError as error:
        raise WorkerMessageError(f"{MessageType.QUEUE_PAIRS.name}: {error}") from error


def _assign(assignment: Assignment, lease_s: float) -> bytes:
    if len(assignment.trees) > RINGS_MAX:
        raise InvalidAssignmentError(
            f"assignment: {len(assignment.trees)} trees; a RoCE worker takes {RINGS_MAX}"
        )
    numerics = assignment.numerics
    exact = isinstance(numerics, (IntegerSum, Float32Sum, RotatedQuarter))
    return bytes(assign_message(assignment, numerics if exact else BlockFloat(), lease_s))


def _ring(epoch: int, ring: Ring) -> bytes:
    message = RingMessage(
        epoch=epoch,
        source_rank=ring.source_rank,
        tree_count=len(ring.trees),
        min_calls=ring.min_calls,
        max_calls=ring.max_calls,
    )
    for number, neighbors in enumerate(ring.trees):
        values = asdict(neighbors).items()
        message.trees[number] = RingNeighbors(
            **{k: v.encode() if isinstance(v, str) else v for k, v in values}
        )
    return bytes(message)
