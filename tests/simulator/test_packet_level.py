# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The packet level where the answer is known: times of empty networks, one stream on every edge of a tree, right sums
under loss (a wrong one raises), the same result every time."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter

import pytest

from netfold.controller.planning.plan import JobSpec, Plan
from netfold.controller.planning.planner import make_plan
from netfold.protocol.congestion import Timing
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, packet_bytes
from netfold.simulator.packet.packet_options import PacketOptions
from netfold.simulator.packet.run import simulate
from netfold.simulator.scenario import (
    Bucket,
    CollectiveEdge,
    Flow,
    HostCollective,
    IdealCollective,
    InNetworkCollective,
    Job,
    Model,
    NetworkSettings,
    Scenario,
    TcpVariant,
)
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import GBIT, leaf_spine, single_switch
from netfold.traffic.congestion import Congestion

FABRIC = leaf_spine(2, 2, 3, rate=10, fabric_rate=10, parameter_servers=1, unit=GBIT)
WORKERS = tuple(h.name for h in FABRIC.hosts if not h.parameter_server)
SERVERS = tuple(h.name for h in FABRIC.hosts if h.parameter_server)
LANES = 256
SIZE = 4 * LANES * 200
DEEP = NetworkSettings(queue_bytes=10**6)
CHUNK = packet_bytes(LANES) + FRAME_OVERHEAD_BYTES + 24


def model(*sizes: int, compute: float = 0.0) -> Model:
    count = len(sizes)
    return Model("m", 0.0, compute, tuple(Bucket(b, (i + 1) / count) for i, b in enumerate(sizes)))


def plan_of(scheme: str, fabric: Fabric = FABRIC) -> Plan:
    servers = SERVERS if scheme in ("grid", "inart", "none", "lbmm", "atp") else ()
    return make_plan(fabric, JobSpec("j", WORKERS, servers, elements=SIZE // 4, scheme=scheme))


def training(scheme: str, iterations: int = 2, congestion: Congestion = Congestion.PANAMA) -> Job:
    return Job(
        "j",
        WORKERS,
        model(SIZE, SIZE),
        InNetworkCollective(plan_of(scheme), congestion),
        iterations=iterations,
    )


def test_a_flow_alone_takes_the_time_of_its_bytes():
    fabric = single_switch(2, rate=10, unit=GBIT)
    settings = NetworkSettings(initial_segments=50)
    result = simulate(Scenario(fabric, flows=(Flow("h1", "h2", 20 * 1460 + 10, 0.5),), settings=settings))
    full, last = settings.packet_bytes, settings.packet_bytes - 1450
    # the short last one waits at the switch for the one before
    expected = (21 * full + last) * 0.8e-9 + 2 * settings.hop_delay_s
    assert result.completions[0] == pytest.approx(expected, abs=1e-12)


def test_a_handshake_costs_a_round_trip():
    fabric = single_switch(2, rate=10, unit=GBIT)
    flows = (Flow("h1", "h2", 1460, 0.0),)
    quick = simulate(Scenario(fabric, flows=flows)).completions[0]
    whole = simulate(Scenario(fabric, flows=flows, settings=NetworkSettings(handshake=True))).completions[0]
    assert quick is not None
    assert whole is not None
    assert whole - quick == pytest.approx(4 * (1e-6 + 78 * 0.8e-9), abs=1e-9)


@pytest.mark.parametrize(("workers", "loss", "most"), [(4, 0.2, 3.0), (8, 0.1, 2.0), (8, 0.2, 3.0)])
def test_a_network_that_loses_much_takes_seconds_and_not_minutes(workers: int, loss: float, most: float):
    """A chunk is through only if all workers' packets are: at 8 workers and a fifth lost one in six. Timeouts
    must not grow by what each worker waits for the others' losses. (The first reduction also learns how long
    round trips are. Half of the others are in time: single ones vary by a factor of ten from draw to draw.)"""
    fabric = single_switch(workers, rate=0.1, unit=GBIT)
    hosts = tuple(h.name for h in fabric.hosts)
    plan = make_plan(fabric, JobSpec("j", hosts, (), elements=1 << 16, scheme="switchml"))
    job = Job("j", hosts, model(1 << 18), InNetworkCollective(plan, Congestion.PANAMA), iterations=8)
    result = simulate(Scenario(fabric, jobs=(job,)), PacketOptions(timing=Timing(), paced=True, loss=loss))
    assert statistics.median(i.end - i.start for i in result.jobs[0].iterations[1:]) < most


@pytest.mark.parametrize("scheme", ["switchml", "panama", "grid", "atp", "none"])
def test_every_edge_carries_each_chunk_once(scheme: str):
    job = training(scheme, iterations=1)
    result = simulate(Scenario(FABRIC, (job,), settings=DEEP))
    assert isinstance(job.scheme, InNetworkCollective)
    chunks, trees = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for tree in job.scheme.plan.trees:
        hops = [hop for edge in tree.edges for hop in itertools.pairwise(edge.path)]
        for hop in (*hops, *tree.result_links):
            chunks[hop] += 2 * SIZE / (4 * LANES) * tree.share
            trees[hop] += 1
    for hop, count in chunks.items():
        # beside them each tree has two or three packets in which calls say what they are: OPENING, KINDS, CLOSING
        more = result.links[hop].bytes / CHUNK - count
        assert 2 * trees[hop] - 0.01 <= more <= 3 * trees[hop] + 0.01


@pytest.mark.parametrize("scheme", ["switchml", "panama", "grid", "none"])
def test_sums_are_right_whatever_is_lost(scheme: str):
    result = simulate(Scenario(FABRIC, (training(scheme),), seed=3), PacketOptions(loss=0.02))
    assert len(result.jobs[0].iterations) == 2


@pytest.mark.parametrize("congestion", list(Congestion))
def test_one_stream_for_aggregation(congestion: Congestion):
    """An all-reduce takes the time of one stream at the links' rate, and a few round trips."""
    result = simulate(Scenario(FABRIC, (training("switchml", 3, congestion),), settings=DEEP))
    stream = 2 * SIZE / (4 * LANES) * CHUNK * 0.8e-9
    last = result.jobs[0].iterations[-1].duration
    assert stream < last < stream + 2 * 4 * 15e-6


@pytest.mark.parametrize("queue", [64, 1000])
def test_a_long_call_over_fast_links_ends_in_the_time_of_its_bytes(queue: int):
    """16 MiB of 4 workers at 1 Gbit/s, with the timing and the pace of a controller."""
    fabric = single_switch(4, rate=1, unit=GBIT)
    workers, size = tuple(h.name for h in fabric.hosts), 16 << 20
    plan = make_plan(fabric, JobSpec("j", workers, (), elements=size // 4, scheme="switchml"))
    job = Job("j", workers, model(size), InNetworkCollective(plan, Congestion.PANAMA), iterations=2)
    settings = NetworkSettings(queue_bytes=queue * 1514, hop_delay_s=1e-4)
    result = simulate(Scenario(fabric, (job,), settings=settings), PacketOptions(timing=Timing(), paced=True))
    stream = size / (4 * LANES) * CHUNK * 8e-9
    assert result.jobs[0].iterations[-1].duration < 1.1 * stream


@pytest.mark.parametrize("delay", [1e-6, 1e-4, 4e-4])
def test_a_job_alone_fills_its_links_though_queues_are_short_and_mark_early(delay: float):
    """8 workers over two levels at 100 Mbit/s, as `make run` has them: marks meant for the short flows of others must
    not cost a job its rate when it has the network to itself. `delay` of a hop, as quick and slow switches have it."""
    fabric = leaf_spine(2, 2, 4, rate=0.1, fabric_rate=0.1, unit=GBIT)
    workers, size = tuple(h.name for h in fabric.hosts if not h.parameter_server), 4 << 20
    plan = make_plan(fabric, JobSpec("j", workers, (), elements=size // 4, scheme="panama"))
    job = Job("j", workers, model(size), InNetworkCollective(plan, Congestion.PANAMA), iterations=4)
    settings = NetworkSettings(queue_bytes=64 * 1514, hop_delay_s=delay)
    result = simulate(Scenario(fabric, (job,), settings=settings), PacketOptions(timing=Timing(), paced=True))
    stream = size / (4 * LANES) * CHUNK * 8 / 1e8
    assert result.jobs[0].iterations[-1].duration < stream / 0.95


def test_a_ring_moves_the_gradient_almost_twice():
    n = len(WORKERS)
    hops = tuple(
        CollectiveEdge(a, b, 2 * (n - 1) / n)
        for a, b in zip(WORKERS, (*WORKERS[1:], WORKERS[0]), strict=True)
    )
    exchange = HostCollective(hops, 2 * (n - 1))
    result = simulate(Scenario(FABRIC, (Job("j", WORKERS, model(4 * 10**6), exchange, iterations=2),)))
    bound = 2 * (n - 1) / n * 4 * 10**6 * NetworkSettings().wire * 0.8e-9
    assert bound < result.jobs[0].iterations[-1].duration < 1.15 * bound


def test_buckets_overlap_the_backward_pass_and_iterations_follow_each_other():
    job = Job(
        "j",
        WORKERS,
        model(SIZE, SIZE, compute=0.01),
        InNetworkCollective(plan_of("switchml")),
        start=0.1,
        iterations=3,
    )
    ring = Job(
        "k",
        WORKERS,
        model(SIZE, compute=0.02),
        HostCollective((CollectiveEdge("h1", "h2", 1.0),), 1),
        iterations=2,
    )
    free = Job("l", WORKERS, model(10, 10, compute=0.01), IdealCollective(1000.0))
    result = simulate(Scenario(FABRIC, (job, ring, free)))
    first, second, third = result.job("j").iterations
    assert first.start == 0.1
    assert [ready for ready, _ in first.reduced] == pytest.approx([0.105, 0.11])
    assert first.reduced[0][1] < 0.11 < first.reduced[1][1]
    assert first.end == second.start == pytest.approx(first.reduced[1][1])
    assert second.end == third.start
    assert result.job("k").iterations[1].start == pytest.approx(result.job("k").iterations[0].end)
    assert result.job("l").iterations[0].duration == pytest.approx(0.005 + 0.01 + 0.01)


def test_the_same_seed_gives_the_same_result():
    flows = tuple(
        Flow(WORKERS[i % 3], WORKERS[3 + i % 3], 300_000, 1e-5 * i, list(TcpVariant)[i % 3])
        for i in range(12)
    )
    scenario = Scenario(FABRIC, (training("panama"),), flows, seed=5)
    options = PacketOptions(loss=0.01)
    assert simulate(scenario, options) == simulate(scenario, options)
    assert simulate(scenario, options) != simulate(Scenario(FABRIC, scenario.jobs, flows, seed=6), options)


@pytest.mark.parametrize("transport", list(TcpVariant))
def test_flows_arrive_whatever_is_lost(transport: TcpVariant):
    flows = tuple(
        Flow(WORKERS[i % 3], WORKERS[3 + i % 3], 200_000 + i, 1e-5 * i, transport) for i in range(9)
    )
    result = simulate(
        Scenario(FABRIC, flows=flows, settings=NetworkSettings(handshake=True)), PacketOptions(loss=0.05)
    )
    assert None not in result.completions


def test_a_lost_retransmission_or_a_lost_tail_seldom_costs_a_timeout():
    """A timeout takes ten seconds here. A single segment that is lost, or a probe that is lost, still costs one."""
    patient = PacketOptions(loss=0.02, min_rto_s=10.0)
    long = Flow(WORKERS[0], WORKERS[1], 900_000, 0.0, TcpVariant.CUBIC)
    short = tuple(Flow(WORKERS[i % 3], WORKERS[3 + i % 3], 30_000, 1e-3 * i) for i in range(60))
    first, *others = simulate(Scenario(FABRIC, flows=(long, *short), seed=3), patient).completions
    assert first is not None
    assert first < 1
    assert sum(seconds is None or seconds > 1 for seconds in others) < 8


def test_dctcp_keeps_the_queue_at_its_mark_and_reno_fills_it():
    longest = {}
    for transport in (TcpVariant.DCTCP, TcpVariant.RENO):
        flows = tuple(Flow(w, SERVERS[0], 10_000_000, 0.0, transport) for w in WORKERS[:2])
        settings = NetworkSettings(marking_bytes=65 * 1538, queue_bytes=400 * 1538)
        result = simulate(Scenario(FABRIC, flows=flows, settings=settings))
        into = result.links["leaf1", SERVERS[0]]
        longest[transport] = into.queue_max / 1538
    assert longest[TcpVariant.DCTCP] < 150
    assert longest[TcpVariant.RENO] > 395


def test_it_ends_when_it_is_told_to():
    flows = (Flow("h1", "h2", 10**8, 0.0), Flow("h1", "h2", 10**4, 0.0))
    result = simulate(Scenario(FABRIC, (training("switchml", 1000),), flows, until=0.01, settings=DEEP))
    assert result.completions[0] is None
    assert 0 < len(result.jobs[0].iterations) < 1000
    assert result.end <= 0.01
