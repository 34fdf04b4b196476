# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A member of a job, which sends heartbeats to the controller that leads, and follows it to another machine."""

from __future__ import annotations

import asyncio
import contextlib
import secrets

import grpc

from netfold.controller.jobs.records import JobRecord
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.channels import open_aio_channel
from netfold.protocol.connection import Connection
from tests.simulation.world import ViolationError

OPEN_S = 4.0
HEARTBEAT_S = 1.0
RETRY_S = 0.3


class Member:
    """Runs as a task from its creation until `leave`. `epoch` is the newest that it was assigned; 0: none."""

    def __init__(self, where: Connection, job: str, host: str) -> None:
        self._where = where
        self._job, self._host = job, host
        self._process = secrets.randbits(64)
        self._stream = 0
        self.epoch = 0
        self._task = asyncio.create_task(self._run())

    async def leave(self) -> None:
        """End without a word, as the process of a job that has ended."""
        self._task.cancel()
        await asyncio.wait([self._task])

    def check(self) -> None:
        """Raises ViolationError if an epoch was assigned after a later one."""
        if self._task.done():
            self._task.result()

    def unrest(self, job: JobRecord | None) -> str:
        """Name how the record of its job differs from what it was assigned; "": not at all."""
        stored = None if job is None else job.member(self._host)
        if job is None or stored is None or self.epoch != job.epoch:
            return f"{self._host} of {self._job} has epoch {self.epoch}, and the job {job and job.epoch}"
        if not stored.joined or stored.process != self._process:
            return f"{self._host} of {self._job} was assigned an epoch, and has not joined by the store"
        return ""

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(grpc.aio.AioRpcError, TimeoutError):
                async with open_aio_channel(self._where, OPEN_S) as channel:
                    await self._follow(pb_grpc.ControllerStub(channel).JoinJob())
            await asyncio.sleep(RETRY_S)

    async def _follow(self, call: grpc.aio.StreamStreamCall) -> None:
        """One stream. Raises AioRpcError at its end, and TimeoutError where the controller does not take heartbeats."""
        self._stream += 1
        sending = asyncio.create_task(self._send(call))
        try:
            while not sending.done() and (update := await call.read()) is not grpc.aio.EOF:
                if update.HasField("assignment"):
                    self._take(update.assignment.epoch)
        finally:
            sending.cancel()
            call.cancel()
            await asyncio.wait([sending])

    def _take(self, epoch: int) -> None:
        if epoch < self.epoch:
            raise ViolationError(f"{self._host} of {self._job} was assigned epoch {epoch} after {self.epoch}")
        self.epoch = epoch

    async def _send(self, call: grpc.aio.StreamStreamCall) -> None:
        while True:
            update = pb.MemberUpdate(
                job=self._job,
                host=self._host,
                epoch=self.epoch,
                process=self._process,
                stream=self._stream,
                supports_targets=True,
            )
            try:
                await asyncio.wait_for(call.write(update), OPEN_S)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError, TimeoutError):
                call.cancel()
                return
            await asyncio.sleep(HEARTBEAT_S)
