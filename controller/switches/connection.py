# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines the interface of a connection to one switch, as a session needs it. finsy_adapter.py has the one over gRPC; a
simulation has one that breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import finsy as fy

from netfold.controller.switches.endpoint import Endpoint, Pipeline
from netfold.controller.switches.entries import Contents
from netfold.controller.switches.install import WriteBatch
from netfold.controller.switches.port_counters import PortCounts


class PortCounters(Protocol):
    """Counters of certain ports. The value is False if the program of the switch has none."""

    def __bool__(self) -> bool: ...

    async def read(self) -> PortCounts:
        """Read the counters. Raises fy.P4ClientError; AnswerError if the answer is malformed."""


class SwitchConnection(Protocol):
    """A connection to a switch. If a method raises fy.P4ClientError, the switch refused, did not answer in time, or the
    channel broke.

    rpc_lock  held by `read` and `write`, and by its users for RPCs that must not wait behind those on the switch
    """

    rpc_lock: asyncio.Lock

    @property
    def is_up(self) -> bool: ...

    @property
    def is_primary(self) -> bool: ...

    async def open(self) -> None:
        """Connect, become primary unless a newer controller is, and push the pipeline if it is missing. Raises
        fy.P4ClientError, and the exceptions of the library for protocol violations."""

    async def close(self) -> None: ...

    async def is_listening(self) -> bool:
        """Whether the switch takes connections, even if it does not answer: its machine and its server are there."""

    def create_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` concurrently with the connection; it is canceled when the channel breaks."""

    def packets(self) -> AsyncIterator[fy.P4PacketIn]: ...

    async def has_pipeline(self) -> bool:
        """Whether the switch reports the program of the request. Raises fy.P4ClientError."""

    async def read(self) -> Contents:
        """All entries that a controller writes. Raises fy.P4ClientError; UnknownEntityError for one that this
        controller cannot have written."""

    async def write(self, batch: WriteBatch) -> None:
        """Write a batch. Raises fy.P4ClientError; any part of the batch may then be written."""

    async def read_counters(self, cells: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Read (packets, bytes) of cells of the counter `verdicts`. Raises fy.P4ClientError."""

    def port_counters(self, rx_ports: Iterable[int], tx_ports: Iterable[int]) -> PortCounters: ...

    async def send_packet(self, payload: bytes, egress_port: int) -> None:
        """Send a packet by a port, or (0) into the switch as if it came from the CPU port. Raises fy.P4ClientError."""


@dataclass(frozen=True)
class CallTimeouts:
    """Seconds for a pipeline push, and for any other RPC."""

    push_s: float
    call_s: float


@dataclass(frozen=True)
class ConnectionRequest:
    """A request for a connection. `must_push`: the pipeline is pushed even if the switch has it. The connection calls,
    until it is closed:

    on_up     the channel is up
    on_down   the channel broke
    on_port   a port's number and whether it is down, from switches that report ports
    on_ready  awaited in a task when arbitration is decided and the pipeline is there; canceled when the channel breaks
              or another controller becomes primary
    """

    endpoint: Endpoint
    pipeline: Pipeline
    election_id: int
    timeouts: CallTimeouts
    must_push: bool
    on_up: Callable[[], None]
    on_down: Callable[[], None]
    on_port: Callable[[int, bool], None]
    on_ready: Callable[[SwitchConnection], Coroutine[Any, Any, None]]


Connect = Callable[[ConnectionRequest], SwitchConnection]
"""Makes a connection, which its user opens and closes."""
