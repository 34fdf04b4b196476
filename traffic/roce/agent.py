# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The agent of a RoCE worker: it joins the job at the controller and translates between its stream and the worker's
lines (traffic/roce/control.h), so that a worker needs neither gRPC nor TLS nor Python.

It sends no heartbeats of its own: the lease of a silent worker expires.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.connection import Connection
from netfold.traffic.errors import AllReduceTimeoutError, TrafficError
from netfold.traffic.membership.assignment import Assignment, Ring, WorkersLeft
from netfold.traffic.membership.base import Stats
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.numerics import Float32Sum, IntegerSum, RotatedQuarter, Scheme

SILENCE_S = 10.0
"""A running worker sends more often. A serial port does not show that the worker has ended."""

LINE_BYTES = 4096
LEFT_BYTES = 128


class WorkerLineError(Exception):
    """A line of the worker is not one of the protocol's; the message contains it."""


class _WorkerGoneError(Exception):
    """The worker has closed its stream."""


class Agent:
    """A member of `job` as `host`, for the worker at the other end of `stream`. `run` returns when the worker is
    gone, or when the job has ended and the worker has left or is silent: a worker that has left may wait for that."""

    def __init__(self, where: Connection, job: str, host: str, stream: socket.socket) -> None:
        self._where = where
        self._job = job
        self._host = host
        self._stream = stream
        self._received = b""
        self._received_at = time.monotonic()
        self._stats = Stats()
        self._sent: Assignment | None = None
        self._has_left = False
        self._has_ended = False

    def run(self) -> None:
        """Raises WorkerLineError."""
        changed, changes = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        changes.setblocking(False)

        def on_change() -> None:
            with contextlib.suppress(BlockingIOError):
                changes.send(b"1")

        with changed, changes:
            try:
                lines = self._receive()
                while not lines:
                    lines = self._receive()
            except _WorkerGoneError:
                return
            member = ControllerMembership(self._where, self._job, self._host, transport="roce", is_relay=True)
            try:
                member.on_change(on_change)
                on_change()
                self._serve(member, changed, lines)
            except _WorkerGoneError:
                pass
            except WorkerLineError as error:
                self._send(f"ended the agent cannot read a line of this worker: {error}")
                raise
            finally:
                member.on_change(None)
                if self._has_left:
                    member.close()
                else:
                    member.abandon()

    def _serve(self, member: ControllerMembership, changed: socket.socket, lines: list[str]) -> None:
        while True:
            for line in lines:
                self._act_on(line, member)
            readable, _, _ = select.select([self._stream, changed], [], [], SILENCE_S)
            if changed in readable:
                changed.recv(1)
                self._follow(member)
            is_silent = time.monotonic() - self._received_at > SILENCE_S
            if self._has_ended and (self._has_left or is_silent):
                return
            lines = self._receive() if self._stream in readable else []

    # ---- the worker ----

    def _receive(self) -> list[str]:
        """The lines that have come. Raises WorkerLineError, _WorkerGoneError."""
        try:
            received = self._stream.recv(LINE_BYTES)
        except OSError as error:
            raise _WorkerGoneError from error
        if not received:
            raise _WorkerGoneError
        self._received_at = time.monotonic()
        *lines, self._received = (self._received + received).split(b"\n")
        if len(self._received) > LINE_BYTES:
            raise WorkerLineError(f"a line of more than {LINE_BYTES} bytes")
        return [line.decode(errors="replace") for line in lines]

    def _act_on(self, line: str, member: ControllerMembership) -> None:
        if self._has_left:
            return
        try:
            match line.split():
                case ["hello", "2"] | ["alive"]:
                    member.report(self._stats)
                case ["qps", epoch, calls, trees, *numbers]:
                    member.register(
                        _queue_pairs(int(epoch), int(calls), int(trees), [int(number) for number in numbers])
                    )
                case ["new-epoch", epoch]:
                    member.request_new_epoch(int(epoch), 0.0)
                case ["report", packets]:
                    self._stats = Stats(chunks=int(packets))
                    member.report(self._stats)
                case ["leave", calls]:
                    self._has_left = True
                    member.report(Stats(chunks=self._stats.chunks, next_call=int(calls)))
                    member.leave()
                case _:
                    raise WorkerLineError(line[:80])
        except ValueError as error:
            raise WorkerLineError(f"{line[:80]} ({error})") from error

    def _send(self, line: str) -> None:
        with contextlib.suppress(OSError):  # the worker is gone: `_receive` ends the attendance
            self._stream.sendall(line.encode()[: LINE_BYTES - 2].replace(b"\n", b" ") + b"\n")

    # ---- the controller ----

    def _follow(self, member: ControllerMembership) -> None:
        """Gives the worker what is new in the assignment, or the job's end."""
        try:
            assignment = member.wait(0.0)
        except AllReduceTimeoutError:
            return  # queued
        except TrafficError as error:
            if not self._has_ended:
                self._send(f"ended {error}")
            self._has_ended = True
            return
        sent = self._sent
        if sent is None or sent.epoch != assignment.epoch:
            self._send(_assign(assignment, round(member.lease_s * 1000)))
            sent = replace(assignment, workers_left=None, ring=None)
        if assignment.workers_left is not None and sent.workers_left != assignment.workers_left:
            self._send(_departures(assignment.epoch, assignment.workers_left))
        if assignment.ring is not None and sent.ring != assignment.ring:
            self._send(_ring(assignment.epoch, assignment.ring))
        self._sent = assignment


def start_agent(where: Connection, job: str, host: str) -> tuple[socket.socket, threading.Thread]:
    """Starts an agent in a thread; the worker's end of its stream, and the thread."""
    ours, agents = socket.socketpair()

    def run() -> None:
        with agents:
            Agent(where, job, host, agents).run()

    thread = threading.Thread(target=run, name=f"agent {job} {host}", daemon=True)
    thread.start()
    return ours, thread


def _queue_pairs(epoch: int, calls: int, trees: int, numbers: list[int]) -> pb.RoceQueuePairs:
    if len(numbers) != 4 * trees:
        raise ValueError(f"{len(numbers)} numbers for {trees} trees")
    connections = [
        pb.RoceConnection(tree=t, send_qpn=o, recv_qpn=i, first_psn=p)
        for t, o, i, p in zip(*(numbers[k::4] for k in range(4)), strict=True)
    ]
    return pb.RoceQueuePairs(epoch=epoch, calls=calls, connections=connections)


def _assign(assignment: Assignment, lease_ms: int) -> str:
    words: list[object] = [
        "assign",
        assignment.epoch,
        assignment.address,
        assignment.rank,
        assignment.workers,
    ]
    words += [assignment.lanes, _numerics(assignment.numerics), lease_ms, len(assignment.trees)]
    for part in assignment.trees:
        words += [part.tree, part.slots, part.window, round(part.share * 1e9)]
    return " ".join(map(str, words))


def _numerics(scheme: Scheme) -> str:
    match scheme:
        case IntegerSum():
            return "integer"
        case Float32Sum():
            return "float32"
        case RotatedQuarter():
            return "quarter"
    return "block"


def _departures(epoch: int, left: WorkersLeft) -> str:
    present = left.epoch >= epoch
    words = (
        "left",
        epoch,
        left.call_limit,
        int(left.is_final),
        int(present),
        left.calls,
        _listed(left.hosts),
    )
    return " ".join(map(str, words))


def _listed(hosts: Sequence[str]) -> str:
    """With commas; as many as fit NR_LEFT_BYTES of control.h, then "..."."""
    text = ",".join(hosts)
    if len(text) < LEFT_BYTES:
        return text
    whole, _, _ = text[: LEFT_BYTES - len(",...")].rpartition(",")
    return f"{whole},..."


def _ring(epoch: int, ring: Ring) -> str:
    words: list[object] = ["ring", epoch, ring.min_calls, ring.max_calls, ring.source_rank, len(ring.trees)]
    for n in ring.trees:
        words += [n.tree, n.successor, n.successor_qpn, n.predecessor, n.predecessor_qpn, n.predecessor_psn]
    return " ".join(map(str, words))
