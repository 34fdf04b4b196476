# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated worker: it joins, sends heartbeats, computes while its job's packets get through, leaves. Its stream
follows traffic/membership/membership.py, which has threads and gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import grpc

from netfold.controller.jobs.records import Transport
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.connection import PASSING
from tests.simulation.history import History
from tests.simulation.server import JoinStream, RpcError, Server

RETRY_S = 0.2
CLOSE_TIMEOUT_S = 2.0
LEAVE_TIMEOUT_S = 600.0
UNHEARD = "leaves, unheard"
DEFAULT_LEASE_S = 5.0


class Member:
    """One process of a worker or parameter server. `server()` is the controller that answers now; None: none does.

    assignment  the newest one
    ring_epoch  of a RoCE worker: the epoch whose neighbors it knows
    outcome     why it has ended; empty: it has not
    """

    def __init__(
        self,
        job: str,
        host: str,
        server: Callable[[], Server | None],
        qpns: Iterator[int],
        history: History,
    ) -> None:
        self.job = job
        self.host = host
        self.assignment: pb.Assignment | None = None
        self.outcome = ""
        self.on_assignment: Callable[[Member], None] = lambda member: None
        self.ring_epoch = 0
        self._server = server
        self._qpns = qpns
        self._queue_pairs: pb.RoceQueuePairs | None = None
        self._history = history
        self._lease_s = DEFAULT_LEASE_S
        self._unusable_epoch = 0
        self._was_connected = False
        self._disconnected_at: float | None = None
        self._wake = asyncio.Event()
        self._leaving_at: float | None = None
        self._is_last_sent = False
        self._process = next(qpns)
        self._stream_number = 0
        self._stream: JoinStream | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())
        self._note("joins")

    @property
    def is_alive(self) -> bool:
        return self._task is not None and not self._task.done()

    def kill(self) -> None:
        """As by SIGKILL; the stream breaks."""
        if self._task is not None and not self._task.done():
            self._note("is killed")
            self.outcome = self.outcome or "killed"
            self._task.cancel()
            if self._stream is not None:
                self._stream.cut(half_open=False)

    def vanish(self) -> None:
        """Its machine is gone: the stream stays open, and silent."""
        if self._task is not None and not self._task.done():
            self._note("vanishes")
            self.outcome = self.outcome or "vanished"
            self._task.cancel()
            if self._stream is not None:
                self._stream.cut(half_open=True)

    def break_stream(self, *, half_open: bool) -> None:
        if self._stream is not None:
            self._stream.cut(half_open=half_open)

    def request_new_epoch(self) -> None:
        if self.assignment is not None:
            self._unusable_epoch = self.assignment.epoch
            self._note(f"cannot use epoch {self._unusable_epoch}")
            self._wake.set()

    @property
    def unusable_epoch(self) -> int:
        """The last epoch in which it could not continue; 0: there was none."""
        return self._unusable_epoch

    @property
    def stream(self) -> JoinStream | None:
        """None: it has none, or a broken one."""
        return self._stream

    def leave(self) -> None:
        if self._leaving_at is None:
            self._leaving_at = asyncio.get_running_loop().time()
            self._wake.set()

    @property
    def is_leaving(self) -> bool:
        return self._leaving_at is not None

    @property
    def _leave_deadline(self) -> float:
        """A member that took part waits for a controller that is away."""
        assert self._leaving_at is not None
        return self._leaving_at + (CLOSE_TIMEOUT_S if self.assignment is None else LEAVE_TIMEOUT_S)

    # ---- the stream -----------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self.outcome:
            await self._one_stream()
            if not self.outcome:
                await asyncio.sleep(RETRY_S)
            if self.is_leaving and asyncio.get_running_loop().time() > self._leave_deadline:
                self.outcome = self.outcome or UNHEARD
                self._note(self.outcome)

    async def _one_stream(self) -> None:
        server = self._server()
        self._stream_number += 1
        self._is_last_sent = False
        try:
            if server is None:
                raise RpcError(grpc.StatusCode.UNAVAILABLE, "connection refused")
            stream = self._stream = server.join()
            sending = asyncio.create_task(self._send(stream))
            try:
                await self._listen(stream)
            finally:
                sending.cancel()
                stream.close()
                self._stream = None
        except RpcError as error:
            self._on_error(error)

    async def _listen(self, stream: JoinStream) -> None:
        while not self.outcome:
            receiving = asyncio.ensure_future(stream.receive())
            try:
                while not receiving.done():
                    if self.is_leaving:
                        left_s = self._leave_deadline - asyncio.get_running_loop().time()
                        await asyncio.wait([receiving], timeout=max(0.0, left_s))
                        if not receiving.done():
                            return
                    else:
                        leaving = asyncio.ensure_future(self._wait_for_leave())
                        try:
                            await asyncio.wait([receiving, leaving], return_when=asyncio.FIRST_COMPLETED)
                        finally:
                            leaving.cancel()
                update = receiving.result()
            finally:
                receiving.cancel()
            if update is None:
                if self._is_last_sent:
                    self.outcome = "left"
                    self._note("left")
                return
            self._on_update(update)

    async def _wait_for_leave(self) -> None:
        while not self.is_leaving:
            self._wake.clear()
            await self._wake.wait()

    async def _send(self, stream: JoinStream) -> None:
        """One update at once, then one every third of the lease, and the last on leaving."""
        while not self.is_leaving:
            told = self._news
            stream.send(self._update())
            deadline = asyncio.get_running_loop().time() + self._lease_s / 3
            while not self.is_leaving and self._news == told:
                try:
                    async with asyncio.timeout_at(deadline):
                        self._wake.clear()
                        await self._wake.wait()
                except TimeoutError:
                    break
        self._is_last_sent = True
        stream.send(self._update(leave=True))
        stream.finish()

    def _update(self, leave: bool = False) -> pb.MemberUpdate:
        epoch = 0 if self.assignment is None else self.assignment.epoch
        return pb.MemberUpdate(
            job=self.job,
            host=self.host,
            leave=leave,
            unusable_epoch=self._unusable_epoch,
            epoch=epoch,
            queue_pairs=self._queue_pairs,
            process=self._process,
            stream=self._stream_number,
            supports_targets=True,
        )

    @property
    def _news(self) -> tuple[int, int]:
        """Returns the values that it sends as soon as they change."""
        return self._unusable_epoch, 0 if self._queue_pairs is None else self._queue_pairs.epoch

    def _on_update(self, update: pb.ControllerUpdate) -> None:
        self._was_connected, self._disconnected_at = True, None
        if update.lease_ms:
            self._lease_s = update.lease_ms / 1000
        if update.HasField("ended"):
            self.outcome = f"ended: {pb.JobState.Name(update.ended.state).lower()}"
            self._note(f"hears that the job is {self.outcome[7:]}: {update.ended.reason}")
        elif update.HasField("assignment"):
            self.assignment = update.assignment
            self._note(f"has epoch {update.assignment.epoch}, rank {update.assignment.rank}")
            self._connect_queue_pairs(update.assignment)
            self.on_assignment(self)
            if update.assignment.HasField("workers_left"):
                self._on_workers_left(update.assignment.workers_left)
        elif update.HasField("workers_left"):
            if self.assignment is not None and self.assignment.epoch == update.workers_left.epoch:
                self._on_workers_left(update.workers_left)
        elif update.HasField("ring"):
            self.ring_epoch = update.ring.epoch
            self._note(f"has its ring of epoch {self.ring_epoch}")

    def _on_workers_left(self, left: pb.WorkersLeft) -> None:
        """It has further calls. They fail, and it leaves, too; or another epoch is without those that left."""
        assert self.assignment is not None
        is_server = any(t.children for t in self.assignment.trees)
        if self.is_leaving or is_server:
            return
        self._note(f"hears that {', '.join(left.hosts)} left")
        if left.final:
            self.leave()
        elif left.epoch == self.assignment.epoch:
            self.request_new_epoch()

    def _connect_queue_pairs(self, assignment: pb.Assignment) -> None:
        is_server = any(t.children for t in assignment.trees)
        if assignment.transport == Transport.ROCE and not is_server:
            connections = [
                pb.RoceConnection(tree=t.tree, send_qpn=next(self._qpns), recv_qpn=next(self._qpns))
                for t in assignment.trees
            ]
            self._queue_pairs = pb.RoceQueuePairs(epoch=assignment.epoch, connections=connections)
            self._wake.set()

    def _on_error(self, error: RpcError) -> None:
        now = asyncio.get_running_loop().time()
        if error.code not in PASSING:
            self.outcome = f"refused: {error}"
            self._note(self.outcome)
        elif self._disconnected_at is None:
            self._disconnected_at = now
        elif not self._was_connected and now - self._disconnected_at > DEFAULT_LEASE_S:
            self.outcome = "gave up: no controller"
            self._note(self.outcome)

    def _note(self, text: str) -> None:
        self._history.add(f"{self.job}/{self.host}", text)
