# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What it costs to know every link's load: processor time of the controller and of a switch at 64 switches, beside the
sign of life by gRPC and beside the least that gRPC could cost: an empty call.

    python -m benchmarks.seeing

The 64 switches are as many connections to one. Run in a quiet moment; nothing else of the controller runs.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import os
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import finsy as fy
import grpc
from finsy.proto import p4r

from netfold.controller.health.link_loads import LinkLoads, metered_ports
from netfold.controller.switches.endpoint import Endpoint
from netfold.controller.switches.manners import read, read_raw
from netfold.controller.switches.port_counters import PortReader
from netfold.controller.switches.port_watch import PortWatch
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine
from netfold.topologies.network.targets import netfold_command
from tests.ports import free_port

COMPILED = Path(__file__).resolve().parents[1] / "p4src" / "compiled"
P4INFO, PROGRAM = COMPILED / "netfold-v1model-64.p4info.txtpb", COMPILED / "netfold-v1model-64.json"
MARKER = ()
SWITCHES, READINGS, TURNS, PAUSE_S = 64, 400, 10, 0.5
LISTENS_S = 60.0


async def main() -> None:
    fabric = leaf_spine(leaves=SWITCHES, spines=16, hosts_per_leaf=16)
    schema = fy.P4Schema(P4INFO)
    switch = "leaf1"
    metered = metered_ports(fabric, switch)
    reader = PortReader(schema, 1, *metered)
    loads = LinkLoads(fabric, 1.0)
    address = f"127.0.0.1:{free_port()}"
    command = [netfold_command(), "softswitch", "--no-p4", "--device-id", "1", "--grpc-server-addr", address]
    process = subprocess.Popen(command)
    try:
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(timeout=LISTENS_S)
        options = fy.SwitchOptions(p4info=P4INFO, p4blob=PROGRAM, device_id=1)
        async with (
            fy.Switch(switch, address, options) as connected,
            grpc.aio.insecure_channel(address) as channel,
        ):
            empty = channel.unary_unary("/p4.v1.P4Runtime/Capabilities")

            async def nothing() -> None:
                await empty(b"")

            async def sign_of_life() -> None:
                async for _ in read(connected, [fy.P4CounterEntry("verdicts", index=0)]):
                    pass

            async def by_grpc() -> None:
                await read_raw(connected, reader.request)

            print(f"{SWITCHES} switches, one reading a second, {len(reader.request.entities)} cells each")
            for name, work in (
                ("empty call", nothing),
                ("sign of life", sign_of_life),
                ("cells by gRPC", by_grpc),
            ):
                await one_by_one(name, work, process.pid)
            watches = []
            for number in range(1, SWITCHES + 1):
                counted = functools.partial(loads.counted, f"leaf{number}")
                watches.append(PortWatch(PortReader(schema, 1, *metered), 0.0, counted, failed, failed))
                assert await watches[-1].open(Endpoint(switch, address, 1, MARKER))
            await together("as it is done", watches, process.pid)
        more = changed(reader, fabric)
        print(f"and {more * 1e6:.0f} us, {more * SWITCHES:.2%} more if every cell changes")
    finally:
        process.terminate()
        process.wait()


def failed(_: str = "") -> None:
    raise RuntimeError("the switch does not answer")


async def one_by_one(name: str, work: Callable[[], Awaitable[None]], switch: int) -> None:
    for _ in range(20):
        await work()
    own, theirs = time.process_time(), seconds_of(switch)
    for _ in range(READINGS):
        await work()
    show(name, (time.process_time() - own) / READINGS, (seconds_of(switch) - theirs) / READINGS)


async def together(name: str, watches: list[PortWatch], switch: int) -> None:
    """All in a turn, as the fleet does, with a pause between two turns: what lies in a processor's caches is gone."""
    own, theirs = 0.0, 0.0
    for turn in range(TURNS + 2):
        began, served = time.process_time(), seconds_of(switch)
        for _ in range(2):  # they ask, and take the answers
            for watch in watches:
                watch.look(time.monotonic())
            await asyncio.sleep(PAUSE_S)
        if turn >= 2:
            own += time.process_time() - began
            theirs += seconds_of(switch) - served
    show(name, own / TURNS / len(watches), theirs / TURNS / len(watches))


def changed(reader: PortReader, fabric: Fabric) -> float:
    """Seconds to decode a reading of a switch where every cell is another one than before, and to make loads of it,
    beyond those of a reading that is as the last one."""
    answers = []
    for number in range(READINGS):
        answer = p4r.ReadResponse()
        for wanted in reader.request.entities:
            data = p4r.CounterData(byte_count=10**9 + 1500 * number, packet_count=10**6 + number)
            answer.entities.add(counter_entry=wanted.counter_entry).counter_entry.data.CopyFrom(data)
        answers.append(answer.SerializeToString())
    clock = itertools.count()
    loads = LinkLoads(fabric, 1.0)

    def seconds(read: list[bytes]) -> float:
        began = time.process_time()
        for encoded in read:
            loads.counted("leaf1", reader.counts([encoded]), float(next(clock)))
        return (time.process_time() - began) / READINGS

    return seconds(answers) - seconds([answers[-1]] * READINGS)


def show(name: str, each: float, served: float) -> None:
    """Of one processor: the controller's for all switches, and one switch's."""
    print(
        f"{name:16} controller {each * 1e6:4.0f} us a reading, {each * SWITCHES:.2%}; "
        f"switch {served * 1e6:4.0f} us, {served:.3%}"
    )


def seconds_of(pid: int) -> float:
    """Processor time of a process and its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    asyncio.run(main())
