# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Where the page's lines come from: a running controller, or a recording."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Any, Protocol

import grpc

from netfold.controller.recording.history import History
from netfold.controller.recording.lines import event_line, starts_segment
from netfold.controller.web.slot_reads import READS_PER_S, ReadPace, SlotRequest, read_slots
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.channels import open_aio_channel
from netfold.protocol.connection import Connection

log = logging.getLogger(__name__)

RETRY_S = 1.0
"""Time between two attempts to connect: only an attempt shows whether the controller is there again."""
EXPLAIN_TIMEOUT_S = 30.0
MAX_RECORDING_BYTES = 1 << 30


class SourceError(Exception):
    """The source has no answer; the message says why."""


class LineSource(Protocol):
    """Fills `history` while `run` runs. `is_live`: more lines may follow."""

    history: History
    is_live: bool

    async def run(self) -> None: ...

    async def explain(self, job: str) -> list[str]:
        """Why the job is as it is, step by step. Raises SourceError."""

    async def read_slots(self, request: SlotRequest) -> dict[str, dict[str, Any]]:
        """Return by switch what its slot holds, or an `error`. Raises SourceError."""


class RecordingReplay:
    """A recording that is complete."""

    is_live = False

    def __init__(self, lines: Iterable[str]) -> None:
        """`lines` are checked (recording_file.py)."""
        self.history = History(MAX_RECORDING_BYTES)
        fill(self.history, lines)
        self.history.close()

    async def run(self) -> None:
        """There is nothing to wait for."""

    async def explain(self, job: str) -> list[str]:
        raise SourceError("a recording has no switches to ask; its events have the reasons")

    async def read_slots(self, request: SlotRequest) -> dict[str, dict[str, Any]]:
        raise SourceError("a recording has no slots: the sums were in the switches")


class ControllerSource:
    """A running controller, by its service; one that goes away is waited for."""

    is_live = True

    def __init__(self, where: Connection) -> None:
        self.history = History()
        self._where = where
        self._is_first = True
        self._is_lost = False
        self._pace = ReadPace()

    async def run(self) -> None:
        """Run until it is canceled."""
        try:
            while True:
                try:
                    async with open_aio_channel(self._where) as channel:
                        await self._follow(pb_grpc.ControllerStub(channel))
                except grpc.aio.AioRpcError as error:
                    self._lost(error.details() or error.code().name)
                await asyncio.sleep(RETRY_S)
        finally:
            self.history.close()

    async def explain(self, job: str) -> list[str]:
        try:
            async with open_aio_channel(self._where) as channel:
                stub = pb_grpc.ControllerStub(channel)
                answer = await stub.ExplainJob(pb.JobName(name=job), timeout=EXPLAIN_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise SourceError(error.details() or error.code().name) from error
        return list(answer.steps)

    async def read_slots(self, request: SlotRequest) -> dict[str, dict[str, Any]]:
        delays_s = self._pace.reserve(len(request.switches))
        if delays_s is None:
            raise SourceError(f"pages read {READS_PER_S:g} slots a second already: try again")
        try:
            async with open_aio_channel(self._where) as channel:
                return await read_slots(pb_grpc.ControllerStub(channel), request, delays_s)
        except grpc.aio.AioRpcError as error:
            raise SourceError(error.details() or error.code().name) from error

    async def _follow(self, stub: pb_grpc.ControllerStub) -> None:
        """A controller that returns has another history; what was seen before stays."""
        call = stub.WatchRecording(pb.WatchRecordingRequest(latest=not self._is_first))
        async for message in call:
            self._is_first = self._is_lost = False
            fill(self.history, message.lines)
        self._lost("it ended the stream")

    def _lost(self, why: str) -> None:
        log.info("controller %s: %s", self._where.address, why)
        if self.history.end and not self._is_lost:
            text = f"no recording from {self._where.address}: {why}"
            self.history.append([event_line(time.time(), "controller_lost", text)])
            self._is_lost = True


def fill(history: History, lines: Iterable[str]) -> None:
    """Append lines of a recording; each description of the fabric starts a segment."""
    for line in lines:
        if starts_segment(line):
            history.start_segment([line])
        else:
            history.append([line])
