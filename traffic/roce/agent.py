# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The agent of a RoCE worker: it joins the job at the controller and translates between its stream and the worker's
lines (traffic/roce/control.h), so that a worker needs neither gRPC nor TLS nor Python.

It sends no heartbeats of its own: the lease of a silent worker expires.
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Sequence

import grpc

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.connection import PASSING, Connection, open_channel

RECONNECT_TIMEOUT_S = 3600.0
"""A running job continues without a controller for this time, as other workers do."""

RETRY_S = 0.2
CLOSE_TIMEOUT_S = 2.0
LEAVE_TIMEOUT_S = 600.0
"""For the controller to receive that the worker has left: an operator may take so long to start another one."""

SILENCE_S = 10.0
"""A running worker sends more often. A serial port does not show that the worker has ended."""

LINE_BYTES = 4096
LEFT_BYTES = 128


class WorkerLineError(Exception):
    """A line of the worker is not one of the protocol's; the message contains it."""


class Agent:
    """A member of `job` as `host`, for the worker at the other end of `stream`. `run` returns when the worker is
    gone, or when the job has ended and the worker has left or is silent: a worker that has left may wait for that."""

    def __init__(self, where: Connection, job: str, host: str, stream: socket.socket) -> None:
        self._where = where
        self._job = job
        self._host = host
        self._stream = stream
        self._updates: queue.SimpleQueue[pb.MemberUpdate | None] = queue.SimpleQueue()
        self._queue_pairs: pb.RoceQueuePairs | None = None
        self._unusable_epoch = 0
        self._packets = 0
        self._calls = 0  # when it left
        self._epoch = 0  # assigned last
        self._process = secrets.randbits(64)
        self._stream_number = 0
        self._ended = threading.Event()
        self._left = threading.Event()
        self._closing = threading.Event()  # the worker is gone

    def run(self) -> None:
        """Raises WorkerLineError."""
        failures: list[WorkerLineError] = []
        stream = threading.Thread(target=self._run_stream, name=f"attend {self._job}", daemon=True)
        try:
            self._read_worker(stream)
        except WorkerLineError as error:
            failures.append(error)
            self._end(f"the agent cannot read a line of this worker: {error}")
        finally:
            self._closing.set()
            if not self._left.is_set():
                self._ended.set()
            self._updates.put(None)
            if stream.ident is not None:
                stream.join(LEAVE_TIMEOUT_S if self._left.is_set() else CLOSE_TIMEOUT_S)
            self._ended.set()
        for failure in failures:
            raise failure

    # ---- the worker ----

    def _read_worker(self, stream: threading.Thread) -> None:
        """Starts `stream`, the thread of the controller's, with the first line."""
        rest = b""
        self._stream.settimeout(SILENCE_S)
        while not (self._left.is_set() and self._ended.is_set()):
            try:
                received = self._stream.recv(LINE_BYTES)
            except TimeoutError:
                if self._ended.is_set():
                    return
                continue
            except OSError:
                return
            if not received:
                return
            *lines, rest = (rest + received).split(b"\n")
            if len(rest) > LINE_BYTES:
                raise WorkerLineError(f"a line of more than {LINE_BYTES} bytes")
            for line in lines:
                self._line(line.decode(errors="replace").split())
            if lines and stream.ident is None:
                stream.start()

    def _line(self, words: list[str]) -> None:
        if self._left.is_set():
            return
        try:
            match words:
                case ["hello", "2"] | ["alive"]:
                    pass
                case ["qps", epoch, calls, trees, *numbers]:
                    self._queue_pairs = _queue_pairs(
                        int(epoch), int(calls), int(trees), [int(number) for number in numbers]
                    )
                case ["new-epoch", epoch]:
                    self._unusable_epoch = int(epoch)
                case ["report", packets]:
                    self._packets = int(packets)
                case ["leave", calls]:
                    self._calls = int(calls)
                    self._left.set()
                case _:
                    raise WorkerLineError(" ".join(words)[:80])
        except ValueError as error:
            raise WorkerLineError(f"{' '.join(words)[:80]} ({error})") from error
        self._updates.put(self._build_update())

    def _build_update(self) -> pb.MemberUpdate:
        return pb.MemberUpdate(
            job=self._job,
            host=self._host,
            leave=self._left.is_set(),
            unusable_epoch=self._unusable_epoch,
            epoch=self._epoch,
            queue_pairs=self._queue_pairs,
            process=self._process,
            stream=self._stream_number,
            report=pb.Report(chunks=self._packets, next_call=self._calls),
        )

    def _send(self, line: str) -> None:
        try:
            self._stream.sendall(line.encode()[: LINE_BYTES - 2] + b"\n")
        except OSError:
            self._ended.set()

    def _end(self, reason: str) -> None:
        self._send(f"ended {reason}".replace("\n", " "))
        self._ended.set()
        if self._left.is_set():
            with contextlib.suppress(OSError):
                self._stream.shutdown(socket.SHUT_RD)

    # ---- the controller ----

    def _run_stream(self) -> None:
        disconnected_at: float | None = None
        while not self._ended.is_set():
            self._stream_number += 1
            try:
                with open_channel(self._where) as channel:
                    ended = threading.Event()
                    try:
                        for update in rpc.ControllerStub(channel).JoinJob(self._member_updates(ended)):
                            disconnected_at = None
                            self._on_update(update)
                    finally:
                        ended.set()
                if self._closing.is_set():  # the controller has received all
                    return
            except grpc.RpcError as error:
                disconnected_at = disconnected_at or time.monotonic()
                if error.code() not in PASSING:
                    self._end(f"the controller refused {self._host}: {error.details()}")
                    return
                if time.monotonic() - disconnected_at > RECONNECT_TIMEOUT_S:
                    self._end(f"no controller at {self._where.address} for {RECONNECT_TIMEOUT_S:g} s")
                    return
            self._ended.wait(RETRY_S)

    def _member_updates(self, ended: threading.Event) -> Iterator[pb.MemberUpdate]:
        """Until `ended`: after the stream has ended gRPC's thread would wait here for further updates."""
        yield self._build_update()
        while not ended.is_set():
            try:
                update = self._updates.get(timeout=RETRY_S)
            except queue.Empty:
                update = None
            if update is None and self._closing.is_set():
                return
            if update is None:
                continue
            if ended.is_set():
                self._updates.put(update)
                return
            yield update

    def _on_update(self, update: pb.ControllerUpdate) -> None:
        if update.HasField("ended"):
            state = pb.JobState.Name(update.ended.state).lower()
            self._end(f"job {self._job} is {state}: {update.ended.reason}")
        elif update.HasField("assignment"):
            self._epoch = update.assignment.epoch
            self._send(_assignment(update.assignment, update.lease_ms))
            if update.assignment.HasField("workers_left"):
                self._send(_departures(self._epoch, update.assignment.workers_left))
        elif update.HasField("workers_left"):
            if update.workers_left.epoch == self._epoch:
                self._send(_departures(self._epoch, update.workers_left))
        elif update.HasField("ring"):
            self._send(_ring(update.ring))


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


def _assignment(assignment: pb.Assignment, lease_ms: int) -> str:
    if assignment.transport != "roce":
        return f"ended job {assignment.job} is not a RoCE job: its file needs transport: roce"
    numerics = (
        assignment.numerics.mode if assignment.numerics.mode in ("integer", "float32", "quarter") else "block"
    )
    words: list[object] = [
        "assign",
        assignment.epoch,
        assignment.address,
        assignment.rank,
        assignment.workers,
        assignment.lanes,
        numerics,
    ]
    words += [lease_ms, len(assignment.trees)]
    for part in assignment.trees:
        words += [part.tree, part.slots, part.window, round(part.share * 1e9)]
    return " ".join(map(str, words))


def _departures(epoch: int, left: pb.WorkersLeft) -> str:
    present = left.epoch >= epoch
    words = ("left", epoch, left.call_limit, int(left.final), int(present), left.calls, _listed(left.hosts))
    return " ".join(map(str, words))


def _listed(hosts: Sequence[str]) -> str:
    """With commas; as many as fit NR_LEFT_BYTES of control.h, then "..."."""
    text = ",".join(hosts)
    if len(text) < LEFT_BYTES:
        return text
    whole, _, _ = text[: LEFT_BYTES - len(",...")].rpartition(",")
    return f"{whole},..."


def _ring(ring: pb.RoceRing) -> str:
    words: list[object] = [
        "ring",
        ring.epoch,
        ring.min_calls,
        ring.max_calls,
        ring.source_rank,
        len(ring.trees),
    ]
    for n in ring.trees:
        words += [n.tree, n.successor, n.successor_qpn, n.predecessor, n.predecessor_qpn, n.predecessor_psn]
    return " ".join(map(str, words))
