# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A switch in the controller's own process, which takes every entry and forwards no packet."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Coroutine, Iterable
from pathlib import Path
from typing import Any

import finsy as fy
import numpy as np

from netfold.controller.switches.connection import ConnectionRequest
from netfold.controller.switches.entries import Contents
from netfold.controller.switches.install import WriteBatch, apply
from netfold.controller.switches.port_counters import PortCounts


class NoPortCounters:
    """See PortCounters: a program without them."""

    def __bool__(self) -> bool:
        return False

    async def read(self) -> PortCounts:
        return np.empty((0, 2), np.int64)


class MemorySwitches:
    """All switches of a fabric. `file`: what they had when it was last saved."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._contents: dict[str, Contents] = {}
        if file.exists():
            self._contents = pickle.loads(file.read_bytes())

    def connect(self, request: ConnectionRequest) -> MemorySwitch:
        return MemorySwitch(request, self._contents.setdefault(request.endpoint.name, {}))

    def save(self) -> None:
        self._file.write_bytes(pickle.dumps(self._contents))


class MemorySwitch:
    """See SwitchConnection. Its entries are a dict, so that the processor time is the controller's own."""

    def __init__(self, request: ConnectionRequest, contents: Contents) -> None:
        self.rpc_lock = asyncio.Lock()
        self.is_up = False
        self.is_primary = False
        self._request = request
        self._contents = contents
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self.is_up = self.is_primary = True
        self._request.on_up()
        self.create_task(self._request.on_ready(self))

    async def is_listening(self) -> bool:
        return True

    async def close(self) -> None:
        self.is_up = self.is_primary = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def create_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def packets(self) -> AsyncIterator[fy.P4PacketIn]:
        await asyncio.Event().wait()
        yield fy.P4PacketIn(b"", metadata={})

    async def read(self) -> Contents:
        return dict(self._contents)

    async def write(self, batch: WriteBatch) -> None:
        apply(self._contents, batch)

    async def read_counters(self, cells: Iterable[int]) -> dict[int, tuple[int, int]]:
        return dict.fromkeys(cells, (0, 0))

    def port_counters(self, rx_ports: Iterable[int], tx_ports: Iterable[int]) -> NoPortCounters:
        return NoPortCounters()

    async def send_packet(self, payload: bytes, egress_port: int) -> None:
        pass
