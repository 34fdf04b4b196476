# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The flow level against closed forms, and what it promises of itself."""

from __future__ import annotations

import pickle
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, packet_bytes
from netfold.simulator.flow.run import simulate
from netfold.simulator.native import sources_of
from netfold.simulator.result import SimulationResult
from netfold.simulator.scenario import (
    Bucket,
    Flow,
    InNetworkCollective,
    Job,
    Model,
    NetworkSettings,
    Scenario,
)
from netfold.simulator.schemes.catalog import SchemeName, SchemeOptions, scheme_of
from netfold.simulator.schemes.straight import straight_plan
from netfold.simulator.workloads.models import all_reduces, model
from netfold.simulator.workloads.sizes import HADOOP, WEB_SEARCH
from netfold.simulator.workloads.traffic import WorkerPlacement, background, place
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import GBIT, fat_tree, leaf_spine, single_switch
from netfold.traffic.congestion import Congestion
from tests import c_programs

SETTINGS = NetworkSettings(hop_delay_s=1e-9)
LINE = 100e9 / 8
RACKS = leaf_spine(4, 2, 4, rate=100.0, fabric_rate=400.0, unit=GBIT)
HOSTS = tuple(h.name for h in RACKS.hosts)
BYTES = 1_000_000_000


def goodput(lanes: int = 256) -> float:
    """Payload bytes/s of one aggregated stream on a link of 100 Gbit/s."""
    return LINE * 4 * lanes / (packet_bytes(lanes) + FRAME_OVERHEAD_BYTES + SETTINGS.gap_bytes)


def all_reduce(
    fabric: Fabric, workers: tuple[str, ...], name: SchemeName, options: SchemeOptions | None = None
) -> float:
    job = Job("j", workers, all_reduces(BYTES), scheme_of(name, fabric, workers, options))
    result = simulate(Scenario(fabric, (job,), settings=SETTINGS))
    return result.job("j").iterations[0].duration


@pytest.mark.parametrize("count", [2, 3, 8, 16])
def test_a_ring_sends_2_n_minus_1_over_n_of_the_gradient(count: int):
    expected = 2 * (count - 1) / count * BYTES * SETTINGS.wire / LINE
    assert all_reduce(RACKS, HOSTS[:count], SchemeName.RING) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", [SchemeName.PANAMA, SchemeName.SWITCHML_BALANCED, SchemeName.NETREDUCE])
@pytest.mark.parametrize("count", [2, 5, 16])
def test_in_the_network_each_link_carries_one_stream_for_any_number_of_workers(name: SchemeName, count: int):
    assert all_reduce(RACKS, HOSTS[:count], name) == pytest.approx(BYTES / goodput(), rel=1e-3)


def test_a_hierarchical_ring_sends_what_a_flat_one_does_from_each_host():
    flat = all_reduce(RACKS, HOSTS, SchemeName.RING)
    assert all_reduce(RACKS, HOSTS, SchemeName.HIERARCHICAL_RING) == pytest.approx(flat, rel=1e-3)


def test_parallel_netreduce_adds_what_the_machines_do_inside():
    options = SchemeOptions(gpus=8, intra=50e9)
    flat = all_reduce(RACKS, HOSTS, SchemeName.NETREDUCE)
    parallel = all_reduce(RACKS, HOSTS, SchemeName.NETREDUCE_PARALLEL, options)
    assert parallel - flat == pytest.approx(2 * 7 / 8 * BYTES / 50e9, rel=1e-6)


def test_nothing_is_better_than_the_bound():
    bound = all_reduce(RACKS, HOSTS, SchemeName.IDEAL)
    assert bound == pytest.approx(BYTES * SETTINGS.wire / LINE)
    servers = SchemeOptions(servers=("h16",))
    for name in (SchemeName.ATP, SchemeName.GRID, SchemeName.INART):
        assert all_reduce(RACKS, HOSTS[:8], name, servers) >= bound


def test_grids_plan_runs_at_the_rate_that_the_planner_says():
    fabric = leaf_spine(4, 2, 4, rate=100.0, capacity=250.0, unit=GBIT)
    scheme = scheme_of(SchemeName.GRID, fabric, HOSTS[:12], SchemeOptions(servers=("h16",)))
    assert isinstance(scheme, InNetworkCollective)
    result = simulate(
        Scenario(fabric, (Job("j", HOSTS[:12], all_reduces(BYTES), scheme),), settings=SETTINGS)
    )
    packets = goodput() / LINE
    expected = BYTES * 8 / (scheme.plan.rate * 1e9 * packets)
    assert result.job("j").iterations[0].duration == pytest.approx(expected, rel=0.02)


def test_a_tree_yields_to_flows_on_a_link_and_a_fixed_window_takes_it():
    """One host sends to another for ever; a job of the same hosts begins beside it."""
    fabric = single_switch(4, rate=100.0, unit=GBIT)
    workers = ("h1", "h2", "h3")
    elephant = Flow("h1", "h2", 100 * BYTES, 0.0)
    plan = straight_plan(fabric, workers, "j", 1)
    taken = {}
    for congestion in (Congestion.PANAMA, Congestion.FIXED):
        job = Job("j", workers, all_reduces(BYTES), InNetworkCollective(plan, congestion))
        result = simulate(Scenario(fabric, (job,), (elephant,), until=5.0, settings=SETTINGS))
        taken[congestion] = BYTES / result.job("j").iterations[0].duration / goodput()
    assert taken[Congestion.PANAMA] == pytest.approx(0.4 / 1.4, rel=0.05), "netfold's workers yield to TCP"
    assert taken[Congestion.FIXED] > 0.9


@pytest.mark.parametrize("lockstep", [False, True])
def test_trees_in_step_share_a_link_as_one_flow_and_those_of_workers_yield_more(lockstep: bool):
    elephant = Flow("h1", "h2", 100 * BYTES, 0.0)
    options = SchemeOptions(trees=2, lockstep=lockstep)
    job = Job("j", HOSTS[:8], all_reduces(BYTES), scheme_of(SchemeName.PANAMA, RACKS, HOSTS[:8], options))
    result = simulate(Scenario(RACKS, (job,), (elephant,), until=5.0, settings=SETTINGS)).job("j")
    taken = BYTES / result.iterations[0].duration / goodput()
    assert result.carried == pytest.approx(BYTES)
    assert taken == pytest.approx(1 / 2 if lockstep else 0.4 / 1.4, rel=0.05)


def test_a_flow_that_was_marked_gains_a_segment_a_round_trip():
    """Two share a link; when one is gone, the other climbs from where the mark has left it."""
    long, short = Flow("h1", "h9", 4 * BYTES, 0.0), Flow("h2", "h9", BYTES, 0.0)
    rate, took = LINE / SETTINGS.wire, {}
    for delay in (1e-6, 1e-5):
        settings = replace(SETTINGS, marking_bytes=SETTINGS.packet_bytes, hop_delay_s=delay)
        alone = simulate(Scenario(RACKS, (), (long,), settings=settings)).completions[0]
        assert alone == pytest.approx(4 * BYTES / rate, rel=0.01), "it is never marked"
        found = simulate(Scenario(RACKS, (), (long, short), settings=settings)).completions[0]
        assert found is not None
        took[delay] = found - 5 * BYTES / rate
    # bytes that are not sent: both climb from a quarter of the link to a half, later one of them to all of it
    climbing = {d: (2 / 16 + 1 / 4) * rate**2 / (2 * 1460 / (8 * d) ** 2) / rate for d in took}
    assert took[1e-5] - took[1e-6] == pytest.approx(climbing[1e-5] - climbing[1e-6], rel=0.25)


def test_connections_of_a_ring_that_do_not_wait_for_each_other_are_quicker_where_one_is_slow():
    elephant = Flow("h1", "h2", 100 * BYTES, 0.0)
    took = {}
    for lockstep in (False, True):
        scheme = scheme_of(
            SchemeName.RING, RACKS, HOSTS[:8], SchemeOptions(ring_lockstep=lockstep, parallel=3)
        )
        job = Job("j", HOSTS[:8], all_reduces(BYTES), scheme)
        done = simulate(Scenario(RACKS, (job,), (elephant,), until=9.0, settings=SETTINGS)).job("j")
        took[lockstep] = done.iterations[0].duration
        assert done.carried == pytest.approx(BYTES)
    assert took[False] <= took[True] * 1.01
    most = 2 * 7 / 8 * BYTES / (LINE / SETTINGS.wire * 3 / 4)
    assert took[True] == pytest.approx(most, rel=0.02), "three connections beside one"


def test_buckets_overlap_with_the_backward_pass():
    """Four buckets of 10 ms each in a backward pass of 40 ms: only the last one is waited for."""
    quarter = int(0.01 * goodput())
    overlapped = Model("m", 0.02, 0.04, tuple(Bucket(quarter, (i + 1) / 4) for i in range(4)))
    job = Job("j", HOSTS, overlapped, scheme_of(SchemeName.PANAMA, RACKS, HOSTS), start=0.5, iterations=3)
    result = simulate(Scenario(RACKS, (job,), settings=SETTINGS)).job("j")
    assert result.iterations[0].start == 0.5
    assert [i.duration for i in result.iterations] == pytest.approx([0.07] * 3, rel=1e-3)
    assert result.all_reduce_s == pytest.approx((0.01,) * 12, rel=1e-2)


def test_a_flows_time_is_its_rounds_and_its_rate():
    fabric = single_switch(2, rate=10.0, unit=GBIT)
    settings = NetworkSettings(hop_delay_s=50e-6)
    small = Flow("h1", "h2", 10_000, 0.0)
    large = Flow("h1", "h2", 100_000_000, 1.0)
    one_way = 2 * (50e-6 + settings.packet_bytes * 8 / 10e9)
    found = simulate(Scenario(fabric, flows=(large, small), settings=settings)).completions
    rate = 10e9 / 8 / settings.wire
    assert found[1] == pytest.approx(10_000 / rate + one_way, rel=1e-9)
    rtt, window, rounds = 2 * one_way, 14_600.0, 0.0
    while window < rate * rtt:
        rounds += rtt - window / rate
        window *= 2
    assert found[0] == pytest.approx(1e8 / rate + one_way + rounds, rel=1e-6)


def test_links_and_slots_are_accounted_for():
    job = Job("j", HOSTS, all_reduces(BYTES), scheme_of(SchemeName.SWITCHML_BALANCED, RACKS, HOSTS))
    result = simulate(Scenario(RACKS, (job,), settings=SETTINGS))
    first = result.links["h1", "leaf1"]
    assert first.bytes == pytest.approx(BYTES * LINE / goodput())
    assert first.utilization == pytest.approx(1.0, rel=1e-3)
    assert first.queue_max > 0
    for slots in result.switches.values():
        assert 0 < slots.mean <= slots.peak <= slots.reserved


def mixed() -> Scenario:
    random = np.random.default_rng(7)
    fabric = fat_tree(4, rate=10.0, unit=GBIT)
    jobs = tuple(
        Job(str(name), workers, model("resnet-50"), scheme_of(name, fabric, workers), iterations=3)
        for name in (SchemeName.RING, SchemeName.PANAMA, SchemeName.SWITCHML_BALANCED, SchemeName.IDEAL)
        for workers in [place(fabric, 6, WorkerPlacement.SCATTERED, random)]
    )
    flows = background(fabric, 0.3, WEB_SEARCH, 0.02, random) + background(
        fabric, 0.05, HADOOP, 0.001, random
    )
    return Scenario(fabric, jobs, flows, seed=3)


def test_the_same_scenario_gives_the_same_bits():
    scenario = mixed()
    result = simulate(scenario)
    assert simulate(scenario) == result
    assert simulate(pickle.loads(pickle.dumps(scenario))) == result
    assert None not in result.completions
    assert all(len(job.iterations) == 3 for job in result.jobs)


def test_a_tolerance_of_rates_changes_times_by_little():
    exact = simulate(mixed())
    rough = simulate(replace(mixed(), settings=NetworkSettings(tolerance=0.01)))
    assert _mean(rough) == pytest.approx(_mean(exact), rel=0.01)


def _mean(result: SimulationResult) -> float:
    return float(np.mean([c for c in result.completions if c is not None]))


def test_what_is_not_over_at_the_end_has_no_time():
    scenario = replace(mixed(), until=0.01)
    result = simulate(scenario)
    assert result.end == 0.01
    assert None in result.completions
    late = [i for i, f in enumerate(scenario.flows) if f.start > 0.01]
    assert all(result.completions[i] is None for i in late)
    assert sum(len(job.iterations) for job in result.jobs) == 0


STRICT = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.fixture(scope="module")
def fuzzer() -> Path:
    own = sources_of("flow")
    sources = [Path(__file__).with_name("flow_fuzz.c"), *(s for s in own if s.suffix == ".c")]
    return c_programs.program("flow_fuzz", sources, [*STRICT, *SANITIZE, f"-I{own[0].parent}"])


@pytest.mark.parametrize("seed", range(12))
def test_everything_ends_within_its_memory_and_capacity(fuzzer: Path, seed: int):
    done = subprocess.run([fuzzer, str(seed)], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "events" in done.stdout
