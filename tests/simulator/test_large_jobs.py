# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs of a thousand hosts at the packet level, with the workers' own engine and slot pool: sums are right (a wrong one
raises), and calls take the time of one stream."""

from __future__ import annotations

from collections import Counter

import pytest

from netfold.controller.planning.plan import JobSpec, Plan
from netfold.controller.planning.planner import make_plan
from netfold.p4src.manifest import usual_children
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, packet_bytes
from netfold.simulator.packet.packet_options import PacketOptions
from netfold.simulator.packet.run import simulate
from netfold.simulator.scenario import InNetworkCollective, Job, NetworkSettings, Scenario
from netfold.simulator.workloads.models import all_reduces
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import GBIT, leaf_spine

LANES, RATE = 256, 10
CHUNK_S = 8 * (packet_bytes(LANES) + FRAME_OVERHEAD_BYTES + 24) / (RATE * 1e9)
CASES = [
    pytest.param(leaf_spine(33, 2, 2, rate=RATE, unit=GBIT), 256, id="33 x 2"),
    pytest.param(leaf_spine(64, 16, 16, rate=RATE, unit=GBIT), 256, id="64 x 16", marks=pytest.mark.long),
]


def widest(plan: Plan) -> int:
    return max(max(Counter(e.parent for e in tree.edges).values()) for tree in plan.trees)


@pytest.mark.parametrize(("fabric", "chunks"), CASES)
@pytest.mark.parametrize("loss", [0.0, 1e-4])
def test_more_racks_than_a_node_takes_children_are_summed_at_the_rate_of_their_links(
    fabric: Fabric, chunks: int, loss: float
) -> None:
    workers = tuple(h.name for h in fabric.hosts)
    plan = make_plan(fabric, JobSpec("large", workers, elements=chunks * LANES))
    assert widest(plan) <= usual_children(None) < len(fabric.switches)
    load = all_reduces(4 * LANES * chunks)
    job = Job("large", workers, load, InNetworkCollective(plan), iterations=2)
    settings = NetworkSettings(queue_bytes=10**6)
    result = simulate(Scenario(fabric, (job,), settings=settings), PacketOptions(loss=loss))
    first, last = result.jobs[0].iterations
    assert last.duration >= chunks * CHUNK_S
    if not loss:
        assert last.duration < 1.1 * chunks * CHUNK_S + 100e-6
        assert first.end == last.start
