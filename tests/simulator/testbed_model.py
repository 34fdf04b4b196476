# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The runs of `netfold measure plans` as a Scenario of the packet level: the same plans, the windows of a controller,
the waiting times that it tells workers, and links as the kernel and softswitch shape them."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import median
from typing import Any

from netfold.controller.jobs.lookup import default_job
from netfold.controller.lifecycle.member_assignment import timing_of
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.planning.plan import Loads, Plan
from netfold.controller.planning.planner import make_plan
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.protocol.congestion import Timing
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, packet_bytes
from netfold.simulator.packet.packet_options import PacketOptions
from netfold.simulator.packet.run import simulate
from netfold.simulator.scenario import Bucket, InNetworkCollective, Job, Model, NetworkSettings, Scenario
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric, Unit
from netfold.topologies.spec import load_fabric

LANES = 256
FRAME = packet_bytes(LANES) + FRAME_OVERHEAD_BYTES
HOST_RTT_S = 0.002
"""Delay of hosts and switches in an RTT: the controller's figure (lifecycle/packet_model.py) for windows.
Here it lies on the eight links of a long round trip."""

KERNEL = PacketOptions(
    paced=True,
    host_queue=1000,
    hosts_mark=False,
    host_burst_bytes=3 * 1514,  # testbed/network/kernel.py
    switch_burst_bytes=FRAME,  # softswitch sends a packet when its turn comes, then waits for as long as it takes
)


def rates(row: dict[str, Any]) -> list[float]:
    """Mbit/s of a worker on the wire, headers included, by job: as in testbed_measured.json."""
    fabric = load_fabric(row["fabric"])
    fabric = replace(fabric, unit=Unit(fabric.unit.name, fabric.unit.bits_per_second * row["scale"]))
    jobs = _jobs(fabric, row["scheme"], row["size"], len(row["mbps"]))
    scenario = Scenario(fabric, jobs, settings=NetworkSettings(gap_bytes=0, hop_delay_s=HOST_RTT_S / 8))
    options = replace(KERNEL, timings={job.name: _timing(fabric, job) for job in jobs})
    wire = row["size"] * 8 * FRAME / (4 * LANES)
    return [
        wire / median(i.duration for i in job.iterations) / 1e6 for job in simulate(scenario, options).jobs
    ]


def _jobs(fabric: Fabric, scheme: str, size: int, count: int) -> tuple[Job, ...]:
    """Each takes its part of workers and servers, on what the earlier ones leave, as evaluation/testbed/plans."""
    spec, used, found = default_job(fabric).spec, Loads(), []
    for number in range(count):
        workers, servers = spec.workers[number::count], spec.parameter_servers[number::count]
        own = replace(spec, name=f"j{number}", workers=workers, parameter_servers=servers)
        plan = make_plan(fabric, replace(own, elements=size // 4, scheme=scheme), background=used)
        used = _both(used, plan.loads)
        model = Model("array", 0.0, 0.0, (Bucket(size),))
        found.append(
            Job(own.name, workers, model, InNetworkCollective(plan, slots=_slots(fabric, plan)), iterations=4)
        )
    return tuple(found)


def _slots(fabric: Fabric, plan: Plan) -> int:
    """Two windows of what is under way in a round trip, as admission has it."""
    rate = plan.rate * max(t.share for t in plan.trees) * fabric.unit.bits_per_second
    packets = max(1.0, rate * HOST_RTT_S / (8 * (FRAME + 24)))
    return 2 * max(8, 1 << math.ceil(math.log2(packets)))


def _timing(fabric: Fabric, job: Job) -> Timing:
    """Returns the timing that the controller sends the job's workers."""
    assert isinstance(job.scheme, InNetworkCollective)
    return timing_of(
        FabricConfig(fabric, addresses(fabric), management_tree=2000), job.scheme.plan, PacketModel(LANES)
    )


def _both(a: Loads, b: Loads) -> Loads:
    def add(one: Any, other: Any) -> dict[Any, float]:
        return {key: one.get(key, 0.0) + other.get(key, 0.0) for key in {*one, *other}}

    return Loads(
        add(a.links, b.links),
        add(a.switches, b.switches),
        add(a.servers, b.servers),
        add(a.loopbacks, b.loopbacks),
    )
