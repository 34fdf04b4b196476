# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The cost of measuring every link's load: processor time of the controller and of a switch for a reading of port
counters at 64 switches, beside the minimum of gRPC, an empty RPC.

    python -m netfold.evaluation.speed.telemetry_cost
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import finsy as fy
import grpc
import typer
from finsy.proto import p4r
from rich.table import Table

from netfold.controller.health.link_loads import LinkLoads, metered_ports
from netfold.controller.switches.connection import CallTimeouts
from netfold.controller.switches.finsy_adapter import TimeoutSwitch
from netfold.controller.switches.p4info import read_schema
from netfold.controller.switches.port_counters import PortReader
from netfold.evaluation.core.command import run_command
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.testbed.network.targets import installed_command
from netfold.testbed.processor_load import processor_seconds
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine

COMPILED = Path(__file__).resolve().parents[2] / "p4src" / "compiled"
P4INFO, PROGRAM = COMPILED / "netfold-v1model-64.p4info.txtpb", COMPILED / "netfold-v1model-64.json"
WARM_UP = 20
START_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class TelemetryRow(Row):
    """Processor seconds of one call at the controller and at the switch; None: not measured. `controller_part`: of a
    processor, with a call a second for each switch."""

    call: str
    switches: int
    controller_s: float
    switch_s: float | None

    @property
    def controller_part(self) -> float:
        return self.controller_s * self.switches


COLUMNS = (
    Column[TelemetryRow]("call", lambda r: r.call, is_text=True),
    Column[TelemetryRow]("controller, us", lambda r: r.controller_s * 1e6, ".0f"),
    Column[TelemetryRow]("of a processor, all switches", lambda r: r.controller_part, ".2%"),
    Column[TelemetryRow]("switch, us", lambda r: None if r.switch_s is None else r.switch_s * 1e6, ".0f"),
)


@dataclass(frozen=True)
class TelemetryCost(Experiment[TelemetryRow]):
    """Processor time for one reading of port counters a second at each switch.

    The switches are one switch, read as often. Nothing else of the controller runs; keep the machine idle."""

    name = "bench-telemetry-cost"
    switches: Annotated[int, typer.Option(min=2, help="Leaves of the fabric.")] = 64
    readings: Annotated[int, typer.Option(min=1, help="Calls of each kind.")] = 400

    def rows(self, notify: Notify) -> Iterator[TelemetryRow]:
        fabric = leaf_spine(leaves=self.switches, spines=16, hosts_per_leaf=16)
        reader = PortReader(read_schema(P4INFO), 1, *metered_ports(fabric, "leaf1"))
        notify(f"{self.switches} switches, one reading a second, {len(reader.request.entities)} cells each")
        for call, own, served in asyncio.run(self._measure(fabric, reader)):
            yield TelemetryRow(call, self.switches, own, served)
        extra = changed_cells_s(reader, fabric, self.readings)
        yield TelemetryRow("extra if every cell changes", self.switches, extra, None)

    def tables(self, rows: Sequence[TelemetryRow]) -> Iterable[Table]:
        return [table(f"{self.switches} switches, one call a second each", COLUMNS, rows)]

    async def _measure(self, fabric: Fabric, reader: PortReader) -> list[tuple[str, float, float]]:
        """Of each call the seconds at the controller and at the switch."""
        loads = LinkLoads(fabric, 1.0)
        address = f"127.0.0.1:{_free_port()}"
        command = [installed_command("softswitch"), "--no-p4", "--device-id", "1"]
        process = subprocess.Popen([*command, "--grpc-server-addr", address])
        try:
            with grpc.insecure_channel(address) as channel:
                grpc.channel_ready_future(channel).result(timeout=START_TIMEOUT_S)
            options, schema = fy.SwitchOptions(device_id=1), read_schema(P4INFO, PROGRAM)
            connected = TimeoutSwitch("leaf1", address, options, schema, CallTimeouts(30.0, 10.0))
            async with connected, grpc.aio.insecure_channel(address) as aio_channel:
                empty = aio_channel.unary_unary("/p4.v1.P4Runtime/Capabilities", None, None)

                async def empty_rpc() -> None:
                    await empty(b"")

                async def read() -> None:
                    responses = await connected.read_responses(reader.request)
                    loads.counted("leaf1", reader.counts(responses), time.monotonic())

                calls = (("empty RPC", empty_rpc), ("reading", read))
                return [(name, *await self._repeat(call, process.pid)) for name, call in calls]
        finally:
            process.terminate()
            process.wait()

    async def _repeat(self, call: Callable[[], Awaitable[None]], switch: int) -> tuple[float, float]:
        for _ in range(WARM_UP):
            await call()
        own, served = time.process_time(), processor_seconds([switch])
        for _ in range(self.readings):
            await call()
        return (time.process_time() - own) / self.readings, (
            processor_seconds([switch]) - served
        ) / self.readings


def changed_cells_s(reader: PortReader, fabric: Fabric, readings: int) -> float:
    """Seconds to decode a reading in which every cell has changed, and to compute loads of it, beyond those of a
    reading without changes."""
    answers = []
    for number in range(readings):
        answer = p4r.ReadResponse()
        for wanted in reader.request.entities:
            data = p4r.CounterData(byte_count=10**9 + 1500 * number, packet_count=10**6 + number)
            answer.entities.add(counter_entry=wanted.counter_entry).counter_entry.data.CopyFrom(data)
        answers.append(answer)
    clock = itertools.count()
    loads = LinkLoads(fabric, 1.0)

    def seconds(responses: list[p4r.ReadResponse]) -> float:
        started = time.process_time()
        for response in responses:
            loads.counted("leaf1", reader.counts([response]), float(next(clock)))
        return (time.process_time() - started) / readings

    return seconds(answers) - seconds([answers[-1]] * readings)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    run_command(TelemetryCost)
