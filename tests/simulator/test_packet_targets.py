# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Scatters and gathers at the packet level: short contributions, cut results (docs/reference/protocol.md, sections 2.1
and 3.8), and what links carry of them. A wrong element of an owner raises."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from netfold.controller.planning.plan import JobSpec
from netfold.controller.planning.planner import make_plan
from netfold.simulator.flow.run import simulate as simulate_flows
from netfold.simulator.packet.packet_options import PacketOptions
from netfold.simulator.packet.run import simulate
from netfold.simulator.result import SimulationResult
from netfold.simulator.scenario import (
    Bucket,
    CollectiveEdge,
    HostCollective,
    InNetworkCollective,
    Job,
    Model,
    NetworkSettings,
    Scenario,
    ScenarioError,
)
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import GBIT, leaf_spine, single_switch
from netfold.traffic.engine.call_log import CallKind

ROOT = Path(__file__).parents[2]
LANES = 256
WHOLE, SHORT = 1106, 84
"""Bytes on a link, with preamble, check sequence and gap."""
ROWS = 64
"""A block has so many chunks: fewer than 57 of nine lanes are less than 2 KiB, whose call is a sum (C19)."""
TREES = leaf_spine(2, 2, 3, rate=10, fabric_rate=10, parameter_servers=1, unit=GBIT)
KINDS = [kind for kind in CallKind if kind is not CallKind.BARRIER]


def calls(fabric: Fabric, *buckets: Bucket, scheme: str = "switchml", iterations: int = 1) -> Job:
    workers = tuple(h.name for h in fabric.hosts if not h.parameter_server)
    servers = tuple(h.name for h in fabric.hosts if h.parameter_server) if scheme in ("grid", "none") else ()
    plan = make_plan(fabric, JobSpec("j", workers, servers, elements=buckets[0].bytes // 4, scheme=scheme))
    return Job("j", workers, Model("m", 0.0, 0.0, buckets), InNetworkCollective(plan), iterations=iterations)


def simulated(fabric: Fabric, job: Job, loss: float = 0.0, seed: int = 0) -> SimulationResult:
    settings = NetworkSettings(queue_bytes=10**6)
    return simulate(Scenario(fabric, (job,), seed=seed, settings=settings), PacketOptions(loss=loss))


def published() -> list[tuple[int, float, float]]:
    rows = json.loads((ROOT / "docs/results/data/fsdp-bytes.json").read_text())["rows"]
    return [(int(workers), float(sent), float(received)) for workers, sent, received, _ in rows]


@pytest.mark.parametrize(("workers", "sent", "received"), published())
def test_bytes_of_a_worker_s_link_in_a_step_of_fsdp2_are_those_of_engines(
    workers: int, sent: float, received: float
):
    """Two layers, each gathered twice and scattered once, as the engines' cores count them at 256 lanes. Gathers and
    scatters go beside each other, so a step takes the time of its bytes in the fuller direction."""
    fabric = single_switch(workers, rate=10, unit=GBIT)
    layer = workers * ROWS * 4 * LANES
    gather, scatter = Bucket(layer, kind=CallKind.ALL_GATHER), Bucket(layer, kind=CallKind.REDUCE_SCATTER)
    result = simulated(fabric, calls(fabric, gather, gather, gather, scatter, gather, scatter))
    for host in fabric.hosts:
        assert result.links[host.name, "s1"].bytes / (2 * layer) == pytest.approx(sent, abs=0.02)
        assert result.links["s1", host.name].bytes / (2 * layer) == pytest.approx(received, abs=0.02)
    assert result.jobs[0].iterations[0].duration < 1.05 * received * 2 * layer * 8e-10


@pytest.mark.parametrize("scheme", ["switchml", "panama", "grid", "none"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.label)
def test_blocks_are_right_whatever_is_lost(kind: CallKind, scheme: str):
    buckets = [Bucket(6 * ROWS * 4 * LANES + 100, kind=one) for one in (kind, CallKind.ALL_REDUCE, kind)]
    result = simulated(TREES, calls(TREES, *buckets, scheme=scheme, iterations=2), loss=0.02, seed=3)
    assert len(result.jobs[0].iterations) == 2


def wants(kind: CallKind, rank: int, owner: int) -> bool:
    """Whether a worker wants lanes of a row; else it gives some."""
    return (rank == owner) is (kind in (CallKind.REDUCE_SCATTER, CallKind.REDUCE))


def ends(links: Iterable[tuple[str, str]], node: str, workers: Sequence[str]) -> set[int]:
    """The ranks of the workers that links lead to from a node, itself included."""
    found = {workers.index(node)} if node in workers else set()
    return found.union(*(ends(links, b, workers) for a, b in links if a == node))


@pytest.mark.parametrize("scheme", ["switchml", "panama", "none"])
@pytest.mark.parametrize("kind", KINDS[1:], ids=lambda kind: kind.label)
def test_each_link_carries_lanes_only_where_they_are_given_or_wanted(kind: CallKind, scheme: str):
    job = calls(TREES, Bucket(6 * ROWS * 4 * LANES, kind=kind), scheme=scheme)
    assert isinstance(job.scheme, InNetworkCollective)
    links, workers = simulated(TREES, job).links, job.workers
    owners = range(6 if kind in (CallKind.REDUCE_SCATTER, CallKind.ALL_GATHER) else 1)
    expected, trees = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for tree in job.scheme.plan.trees:
        children = [(edge.parent, edge.child) for edge in tree.edges]
        ways = [(hop, edge.child, children) for edge in tree.edges for hop in itertools.pairwise(edge.path)]
        ways += [(hop, hop[1], tree.result_links) for hop in tree.result_links]
        for hop, end, below in ways:
            ranks, is_up = ends(below, end, workers), below is children
            whole = sum(any(wants(kind, rank, owner) is not is_up for rank in ranks) for owner in owners)
            share = whole / len(owners)
            expected[hop] += 6 * ROWS * tree.share * (share * WHOLE + (1 - share) * SHORT)
            trees[hop] += 1
    for hop, carried in expected.items():  # beside them OPENING and KINDS, which are whole, and CLOSING
        assert -8 * WHOLE <= links[hop].bytes - carried - 2 * WHOLE * trees[hop] <= 8 * WHOLE


@pytest.mark.parametrize("kind", [CallKind.REDUCE_SCATTER, CallKind.BARRIER])
def test_calls_that_hosts_and_flows_do_not_make_are_refused(kind: CallKind):
    model = Model("m", 0.0, 0.0, (Bucket(4, kind=kind),))
    ring = HostCollective((CollectiveEdge("h1", "h2", 1.0),), 1)
    with pytest.raises(
        ScenarioError, match=r"job 'j': (a barrier has no bucket|hosts alone make all-reduces)"
    ):
        Scenario(TREES, (Job("j", ("h1", "h2"), model, ring),))


def test_the_flow_level_refuses_what_is_no_all_reduce():
    with pytest.raises(ScenarioError, match="job 'j': flows make all-reduces"):
        simulate_flows(Scenario(TREES, (calls(TREES, Bucket(4000, kind=CallKind.BROADCAST)),)))
