# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Processor time of a controller that probes the links of a large fabric. Its switches are fakes in this process.

python -m tests.controller.probe_load [LEAVES SPINES [SECONDS]]
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from netfold.controller.jobs.stored_fabric import fabric_text
from netfold.topologies.generators import leaf_spine
from tests.controller.deployment import Deployment

PERIOD_S = 0.3
"""The controller's own probe interval."""


def processor_s(process: int) -> float:
    """The processor time of all threads of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.asynccontextmanager
async def controller(deployment: Deployment, interval_s: float) -> AsyncIterator[int]:
    """Start the switches, and a controller in a process of its own."""
    folder, lines = deployment.folder, ["switches:"]
    for name, switch in deployment.switches.items():
        await switch.start()
        lines.append(f'  {name}: {{address: "{switch.address}", device_id: {switch.device_id}}}')
    (folder / "fabric.yaml").write_text(fabric_text(deployment.fabric))
    (folder / "switches.yaml").write_text("\n".join(lines))
    options = {
        "state": folder / "state.db",
        "switches": folder / "switches.yaml",
        "listen": f"unix:{folder}/s",
        "probe-interval": interval_s,
        "lanes": 32,
    }
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    run = ("-P", "-m", "netfold", "controller", "run", str(folder / "fabric.yaml"), *words)
    process = await asyncio.create_subprocess_exec(sys.executable, *run)
    try:
        yield process.pid
    finally:
        process.terminate()
        await process.wait()
        for switch in deployment.switches.values():
            await switch.stop()


async def share_of_a_core(leaves: int, spines: int, seconds: float, interval_s: float) -> tuple[float, float]:
    """Return the processor time for each second, and the probes a second, once each link has carried one."""
    fabric = leaf_spine(leaves, spines, 1)
    carried = set[tuple[str, str]]()
    probes = 0
    with tempfile.TemporaryDirectory() as folder:
        deployment = Deployment(fabric, Path(folder))
        near = {s.name: {port: n for n, port in fabric.ports[s.name].items()} for s in fabric.switches}
        for name, switch in deployment.switches.items():

            def carry(packet, name=name):
                nonlocal probes
                egress = int.from_bytes(packet.metadata[0].value, "big")
                if egress in near[name]:
                    probes += 1
                    carried.add((name, near[name][egress]))
                    deployment._answer(
                        near[name][egress], fabric.ports[near[name][egress]][name], packet.payload
                    )
                else:
                    deployment._carry(name, packet)

            switch.on_packet_out = carry
        async with controller(deployment, interval_s) as process:
            while len(carried) < 2 * leaves * spines and interval_s:
                await asyncio.sleep(1)
            await asyncio.sleep(10 if interval_s else 60)
            before, since, used = probes, time.monotonic(), processor_s(process)
            await asyncio.sleep(seconds)
            lasted = time.monotonic() - since
            return (processor_s(process) - used) / lasted, (probes - before) / lasted


def main() -> None:
    leaves, spines, seconds = (*map(int, sys.argv[1:]), *(180, 50, 30)[len(sys.argv) - 1 :])
    for interval_s in (PERIOD_S, 0.0):
        share, probes = asyncio.run(share_of_a_core(leaves, spines, seconds, interval_s))
        sys.stdout.write(f"{leaves * spines:,} links, {probes:.0f} probes a second: {share:.2f} of a core\n")


if __name__ == "__main__":
    main()
