# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A process of many members: each has a connection and a JoinJob stream of its own, and sends heartbeats with reports
as a worker does."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TypeAlias

import grpc

from netfold.controller.service.connection_limits import raise_file_limit
from netfold.evaluation.speed.member_streams.pipes import received
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.connection import PASSING
from netfold.traffic.membership.membership import ControllerMembership

HEARTBEATS_A_LEASE = 3
_Stream: TypeAlias = "grpc.aio.StreamStreamCall[pb.MemberUpdate, pb.ControllerUpdate]"


@dataclass(frozen=True)
class Join:
    """All hosts of the process join the job."""

    job: str
    lease_s: float


@dataclass(frozen=True)
class Lose:
    """The member of this host falls silent. Answered with the time of its last heartbeat (CLOCK_MONOTONIC, s)."""

    host: str


@dataclass(frozen=True)
class Assigned:
    """All members of the process have their assignment in `epoch`, the last of them at `at_s` (CLOCK_MONOTONIC).
    `workers`: of the job, as each assignment says. `stream`: the member's with the fewest streams so far."""

    epoch: int
    workers: int
    at_s: float
    stream: int


def members(address: str, hosts: tuple[str, ...], pipe: Connection) -> None:
    """Obeys Join and Lose, and sends Assigned for each epoch, and again when all members have new streams."""
    asyncio.run(MemberGroup(address, hosts, pipe).run())


class MemberGroup:
    """The members of one process."""

    def __init__(self, address: str, hosts: tuple[str, ...], pipe: Connection) -> None:
        self._address = address
        self._pipe = pipe
        self._members = {host: StreamMember(host, self) for host in hosts}
        self._reported = (0, 0)

    async def run(self) -> None:
        raise_file_limit()
        running: list[asyncio.Task[None]] = []
        async for message in received(self._pipe):
            if isinstance(message, Join):
                work = [member.run(self._address, message) for member in self._members.values()]
                running += [asyncio.create_task(w) for w in work]
            elif isinstance(message, Lose):
                self._pipe.send(self._members.pop(message.host).die())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def on_assignment(self, assignment: pb.Assignment) -> None:
        epochs = {member.epoch for member in self._members.values()}
        stream = min(member.assigned_stream for member in self._members.values())
        if epochs == {assignment.epoch} and (assignment.epoch, stream) > self._reported:
            self._reported = (assignment.epoch, stream)
            self._pipe.send(Assigned(assignment.epoch, assignment.workers, time.monotonic(), stream))


class StreamMember:
    """`epoch`: of its newest assignment; 0: none. `assigned_stream`: the number of the stream that has brought it."""

    def __init__(self, host: str, group: MemberGroup) -> None:
        self.host = host
        self.epoch = 0
        self.assigned_stream = 0
        self._group = group
        self._process = secrets.randbits(64)
        self._trees: tuple[int, ...] = ()
        self._chunks = 0
        self._last_beat_s = 0.0
        self._is_silent = False
        self._beating: asyncio.Task[None] | None = None

    async def run(self, address: str, join: Join) -> None:
        """Opens the next stream when one breaks."""
        options = [("grpc.use_local_subchannel_pool", 1)]
        for number in itertools.count(1):
            async with grpc.aio.insecure_channel(address, options=options) as channel:
                try:
                    await self._attend(rpc.ControllerStub(channel).JoinJob(), join, number)
                except grpc.aio.AioRpcError as error:
                    if error.code() not in PASSING:
                        raise
            if self._is_silent:
                return
            await asyncio.sleep(ControllerMembership.RETRY_S)

    async def _attend(self, call: _Stream, join: Join, number: int) -> None:
        self._beating = asyncio.create_task(self._beat(call, join, number))
        try:
            async for update in call:
                if update.HasField("assignment"):
                    self.epoch = update.assignment.epoch
                    self.assigned_stream = number
                    self._trees = tuple(tree.tree for tree in update.assignment.trees)
                    self._group.on_assignment(update.assignment)
        finally:
            self._beating.cancel()

    def die(self) -> float:
        """No further heartbeat; the connection stays. Returns the time of the last one."""
        assert self._beating is not None
        self._is_silent = True
        self._beating.cancel()
        return self._last_beat_s

    async def _beat(self, call: _Stream, join: Join, stream: int) -> None:
        while True:
            self._chunks += 1
            report = pb.Report(
                chunks=self._chunks, trees=[pb.TreeReport(tree=t, results=self._chunks) for t in self._trees]
            )
            await call.write(
                pb.MemberUpdate(
                    job=join.job,
                    host=self.host,
                    report=report,
                    epoch=self.epoch,
                    process=self._process,
                    stream=stream,
                )
            )
            self._last_beat_s = time.monotonic()
            await asyncio.sleep(join.lease_s / HEARTBEATS_A_LEASE)
