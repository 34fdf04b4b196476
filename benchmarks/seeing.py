# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What it costs to know every link's load: processor time of the controller and of a switch for reading counters,
beside the sign of life that was asked for before, at 64 switches and twice a second.

    python -m benchmarks.seeing

Run in a quiet moment; nothing else of the controller runs.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import finsy as fy
import grpc

from netfold.controller.health.link_loads import LinkLoads, metered_ports
from netfold.controller.switches.manners import read, read_raw
from netfold.controller.switches.port_counters import PortReader
from netfold.topologies.generators import leaf_spine
from netfold.topologies.network.targets import netfold_command
from tests.ports import free_port

COMPILED = Path(__file__).resolve().parents[1] / "p4src" / "compiled"
P4INFO, PROGRAM = COMPILED / "netfold-v1model-64.p4info.txtpb", COMPILED / "netfold-v1model-64.json"
SWITCHES, A_SECOND, READINGS = 64, 2, 400
LISTENS_S = 60.0


async def main() -> None:
    fabric = leaf_spine(leaves=48, spines=16, hosts_per_leaf=16)
    schema = fy.P4Schema(P4INFO)
    switch = "leaf1"
    reader = PortReader(schema, 1, *metered_ports(fabric, switch))
    loads = LinkLoads(fabric, 1.0)
    address = f"127.0.0.1:{free_port()}"
    command = [netfold_command(), "softswitch", "--no-p4", "--device-id", "1", "--grpc-server-addr", address]
    process = subprocess.Popen(command)
    try:
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(timeout=LISTENS_S)
        options = fy.SwitchOptions(p4info=P4INFO, p4blob=PROGRAM, device_id=1)
        async with fy.Switch(switch, address, options) as connected:

            async def sign_of_life() -> None:
                async for _ in read(connected, [fy.P4CounterEntry("verdicts", index=0)]):
                    pass

            async def ports() -> None:
                loads.counted(switch, reader.counts(await read_raw(connected, reader.request)))

            print(
                f"{SWITCHES} switches, {A_SECOND} readings a second, {len(reader.request.entities)} cells each"
            )
            for name, work in (("sign of life", sign_of_life), ("ports' counters", ports)):
                await cost(name, work, process.pid)
    finally:
        process.terminate()
        process.wait()


async def cost(name: str, work: Callable[[], Awaitable[None]], switch: int) -> None:
    """Of one processor, in percent: the controller's for all switches, and one switch's."""
    for _ in range(20):
        await work()
    own, theirs = time.process_time(), seconds_of(switch)
    for _ in range(READINGS):
        await work()
    each = (time.process_time() - own) / READINGS
    served = (seconds_of(switch) - theirs) / READINGS
    print(
        f"{name:16} controller {each * 1e6:4.0f} us a reading, {each * SWITCHES * A_SECOND:.2%}; "
        f"switch {served * 1e6:4.0f} us, {served * A_SECOND:.2%}"
    )


def seconds_of(pid: int) -> float:
    """Processor time of a process and its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    asyncio.run(main())
