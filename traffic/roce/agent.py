# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The agent of a RoCE worker: it attends the job at the controller with what the worker says in lines of words
(traffic/roce/control.h), so that a worker needs neither gRPC nor TLS nor Python.

It says nothing by itself: a worker that is silent is soon a member whose lease expires.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Iterator

import grpc

from netfold.api import netfold_pb2 as pb
from netfold.api import netfold_pb2_grpc as rpc
from netfold.api.connection import PASSING, Connection, open_channel

PATIENCE_S = 60.0
"""How long a controller that does not answer is tried again; the switches carry the job meanwhile."""

RETRY_S = 0.2
FAREWELL_S = 2.0
SILENCE_S = 10.0
"""A worker that lives says so more often; one that is gone at a serial port does not say that."""

LINE_BYTES = 4096


class WorkerLineError(Exception):
    """The worker says what this agent does not understand; the message has its words."""


class Agent:
    """Attends `job` as `host` for the worker at the other end of `stream`; `run` returns when the worker
    is gone, or the job is over and it has left or is silent: one that left may wait for that."""

    def __init__(self, where: Connection, job: str, host: str, stream: socket.socket) -> None:
        self._where = where
        self._job = job
        self._host = host
        self._stream = stream
        self._words: queue.SimpleQueue[pb.Attendance | None] = queue.SimpleQueue()
        self._ends: pb.RoceEnds | None = None
        self._worn = 0
        self._packets = 0
        self._over = threading.Event()
        self._left = threading.Event()

    def run(self) -> None:
        """Raises WorkerLineError."""
        failures: list[WorkerLineError] = []
        attending = threading.Thread(target=self._attend, name=f"attend {self._job}", daemon=True)
        try:
            self._hear_worker(attending)
        except WorkerLineError as error:
            failures.append(error)
            self._end(f"the agent does not understand this worker: {error}")
        finally:
            self._over.set()
            self._words.put(None)
            if attending.ident is not None:
                attending.join(FAREWELL_S)
        for failure in failures:
            raise failure

    # ---- the worker ----

    def _hear_worker(self, attending: threading.Thread) -> None:
        """The job is attended from the first word on."""
        heard = b""
        self._stream.settimeout(SILENCE_S)
        while not (self._left.is_set() and self._over.is_set()):
            try:
                some = self._stream.recv(LINE_BYTES)
            except TimeoutError:
                if self._over.is_set():
                    return
                continue
            except OSError:
                return
            if not some:
                return
            *lines, heard = (heard + some).split(b"\n")
            if len(heard) > LINE_BYTES:
                raise WorkerLineError("a line without end")
            for line in lines:
                self._line(line.decode(errors="replace").split())
            if lines and attending.ident is None:
                attending.start()

    def _line(self, words: list[str]) -> None:
        if self._left.is_set():
            return
        try:
            match words:
                case ["hello", "1"] | ["alive"]:
                    pass
                case ["ends", epoch, calls, trees, *rest]:
                    self._ends = _ends(int(epoch), int(calls), int(trees), [int(r) for r in rest])
                case ["worn", epoch]:
                    self._worn = int(epoch)
                case ["report", packets]:
                    self._packets = int(packets)
                case ["leave"]:
                    self._left.set()
                case _:
                    raise WorkerLineError(" ".join(words)[:80])
        except ValueError as error:
            raise WorkerLineError(f"{' '.join(words)[:80]} ({error})") from error
        self._words.put(self._word())

    def _word(self) -> pb.Attendance:
        return pb.Attendance(
            job=self._job,
            host=self._host,
            leave=self._left.is_set(),
            worn_epoch=self._worn,
            ends=self._ends,
            report=pb.Report(chunks=self._packets),
        )

    def _tell(self, line: str) -> None:
        try:
            self._stream.sendall(line.encode()[: LINE_BYTES - 2] + b"\n")
        except OSError:
            self._over.set()

    def _end(self, why: str) -> None:
        self._tell(f"over {why}".replace("\n", " "))
        self._over.set()
        if self._left.is_set():
            with contextlib.suppress(OSError):
                self._stream.shutdown(socket.SHUT_RD)

    # ---- the controller ----

    def _attend(self) -> None:
        broke: float | None = None
        while not self._over.is_set():
            try:
                with open_channel(self._where) as channel:
                    ended = threading.Event()
                    try:
                        for notice in rpc.ControllerStub(channel).Attend(self._attendance(ended)):
                            broke = None
                            self._hear_controller(notice)
                    finally:
                        ended.set()
            except grpc.RpcError as error:
                broke = broke or time.monotonic()
                if error.code() not in PASSING:
                    self._end(f"the controller refused {self._host}: {error.details()}")
                    return
                if time.monotonic() - broke > PATIENCE_S:
                    self._end(f"no controller at {self._where.address} for {PATIENCE_S:g} s")
                    return
            self._over.wait(RETRY_S)

    def _attendance(self, ended: threading.Event) -> Iterator[pb.Attendance]:
        """What the worker says, until its stream has ended: gRPC's thread would wait here for more."""
        yield self._word()
        while not ended.is_set():
            try:
                word = self._words.get(timeout=RETRY_S)
            except queue.Empty:
                continue
            if word is None:
                return
            if ended.is_set():
                self._words.put(word)
                return
            yield word

    def _hear_controller(self, notice: pb.Notice) -> None:
        if notice.HasField("over"):
            state = pb.JobState.Name(notice.over.state).lower()
            self._end(f"job {self._job} is {state}: {notice.over.reason}")
        elif notice.HasField("assignment"):
            self._tell(_assignment(notice.assignment, notice.lease_ms))
        elif notice.HasField("ring"):
            self._tell(_ring(notice.ring))


def start_agent(where: Connection, job: str, host: str) -> tuple[socket.socket, threading.Thread]:
    """An agent in a thread of its own: the worker's end of its stream, and the thread."""
    ours, agents = socket.socketpair()

    def attend() -> None:
        with agents:
            Agent(where, job, host, agents).run()

    thread = threading.Thread(target=attend, name=f"agent {job} {host}", daemon=True)
    thread.start()
    return ours, thread


def _ends(epoch: int, calls: int, trees: int, numbers: list[int]) -> pb.RoceEnds:
    if len(numbers) != 4 * trees:
        raise ValueError(f"{len(numbers)} numbers for {trees} trees")
    connections = [
        pb.RoceConnection(tree=t, out_qpn=o, in_qpn=i, first_psn=p)
        for t, o, i, p in zip(*(numbers[k::4] for k in range(4)), strict=True)
    ]
    return pb.RoceEnds(epoch=epoch, calls=calls, connections=connections)


def _assignment(told: pb.Assignment, lease_ms: int) -> str:
    if told.transport != "roce":
        return f"over job {told.job} is not a RoCE job: its file needs transport: roce"
    numerics = told.numerics.mode if told.numerics.mode in ("integer", "float32") else "block"
    words: list[object] = ["assign", told.epoch, told.address, told.rank, told.workers, told.lanes, numerics]
    words += [lease_ms, len(told.trees)]
    for part in told.trees:
        words += [part.tree, part.slots, part.window, round(part.share * 1e9)]
    return " ".join(map(str, words))


def _ring(told: pb.RoceRing) -> str:
    words: list[object] = ["ring", told.epoch, told.least_calls, told.most_calls, told.giver, len(told.trees)]
    for n in told.trees:
        words += [n.tree, n.next, n.next_qpn, n.before, n.before_qpn, n.before_psn]
    return " ".join(map(str, words))
