# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How hosts with several ranks reduce: the cost model exactly, and what `netfold plan` makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from netfold.cli import build
from netfold.controller.jobs.file import JobError, resolve_job
from netfold.controller.planning.document import plan_document, plan_from_document
from netfold.controller.planning.hierarchy import Machines, Ranks, Reduction, ring_bytes, ring_s, stream_s
from netfold.controller.planning.plan import JobSpec, Plan
from netfold.controller.planning.planner import make_plan
from netfold.controller.scheduling.job_planner import cap_rate
from netfold.topologies.fabric import Fabric, Unit
from netfold.topologies.spec import load_fabric

EXACT = 1e-12
"""The bound of a sum of three roundings."""


def _machines(hosts: int, intra_gbs: float, latency_us: float = 1.0) -> Machines:
    return Machines(hosts, 8, intra_gbs * 1e9, 12.5e9, latency_us * 1e-6, latency_us * 1e-6)


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """16 hosts with links of 100 Gbit/s."""
    return replace(load_fabric("leaf-spine-4x2"), unit=Unit("Gbit/s", 1e9))


def _plan(fabric: Fabric, elements: int, ranks: Ranks, hosts: int = 16, scheme: str = "panama") -> Plan:
    workers = tuple(h.name for h in fabric.hosts[:hosts])
    return make_plan(fabric, JobSpec("job", workers, elements=elements, scheme=scheme, ranks=ranks))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 1024])
def test_a_ring_moves_2_n_minus_1_over_n_and_a_tree_one_stream(n: int) -> None:
    assert ring_bytes(n, 3 * 2**30) == float(Fraction(2 * (n - 1), n) * 3 * 2**30)
    seconds = 2 * (n - 1) * Fraction(1, 10**6) + Fraction(2 * (n - 1), n) * Fraction(5 * 10**8, 125 * 10**8)
    assert ring_s(n, 5e8, 12.5e9, 1e-6) == pytest.approx(float(seconds), rel=EXACT, abs=0)
    assert stream_s(5e8, 12.5e9) == 0.04


@pytest.mark.parametrize("hosts", [2, 4, 128])
@pytest.mark.parametrize("intra", [15.75, 100.0])
@pytest.mark.parametrize("latency", [0.1, 100.0])
def test_fr_ta_and_pn_are_their_equations(hosts: int, intra: float, latency: float) -> None:
    n, p, size = 8, 8 * hosts, Fraction(5 * 10**8)
    inside, between, a = Fraction(intra) * 10**9, Fraction(12_500_000_000), Fraction(latency) / 10**6
    flat = 2 * (p - 1) * a + Fraction(2 * (p - 1), p) * size / between
    leaders = 2 * size / inside + 2 * (hosts - 1) * a + Fraction(2 * (hosts - 1), hosts) * size / between
    parallel = 2 * (n - 1) * a + Fraction(2 * (n - 1), n) * size / inside + size / between
    here = _machines(hosts, intra, latency)
    assert here.flat_s(5e8) == pytest.approx(float(flat), rel=EXACT, abs=0)
    assert here.leaders_s(5e8) == pytest.approx(float(leaders), rel=EXACT, abs=0)
    assert here.parallel_s(5e8) == pytest.approx(float(parallel), rel=EXACT, abs=0)


@pytest.mark.parametrize("hosts", [2, 4, 16, 128])
@pytest.mark.parametrize("latency", [0.0, 1.0, 100.0])
def test_on_a_crossing_line_two_are_equal(hosts: int, latency: float) -> None:
    at = _machines(hosts, 1.0, latency)
    parallel = replace(at, intra=at.parallel_beats_flat_from(5e8))
    assert parallel.parallel_s(5e8) == pytest.approx(parallel.flat_s(5e8), rel=1e-9)
    leaders = replace(at, intra=at.leaders_beat_flat_from(5e8))
    assert leaders.leaders_s(5e8) == pytest.approx(leaders.flat_s(5e8), rel=1e-9)
    p, n = 8 * hosts, 8
    if latency == 0:
        assert parallel.intra / at.inter == pytest.approx(2 * (n - 1) * p / (n * (p - 2)))
        assert leaders.intra / at.inter == pytest.approx(p / (n - 1))


def test_nothing_inside_a_host_is_fast_enough_where_its_messages_take_too_long() -> None:
    assert replace(_machines(2, 1.0), intra_latency=1.0).parallel_beats_flat_from(1000) == float("inf")


def test_each_reduction_is_chosen_where_it_is_fastest(fabric: Fabric) -> None:
    fast, slow = Ranks(8, intra_gbs=100.0), Ranks(8, intra_gbs=5.0)
    chosen = {
        name: plan.hierarchy.chosen(plan.rate).reduction
        for name, plan in {
            "large": _plan(fabric, 125_000_000, fast),
            "large, slow inside": _plan(fabric, 125_000_000, slow),
            "small": _plan(fabric, 1000, fast),
        }.items()
        if plan.hierarchy is not None
    }
    assert chosen == {
        "large": Reduction.PARALLEL,
        "large, slow inside": Reduction.FLAT,
        "small": Reduction.LEADER_ONLY,
    }


def test_the_figures_are_those_of_the_cost_model(fabric: Fabric) -> None:
    plan = _plan(fabric, 125_000_000, Ranks(8, intra_gbs=50.0, intra_us=1.0, network_us=2.0))
    assert plan.hierarchy is not None
    here = Machines(16, 8, 50e9, 12.5e9, 1e-6, 2e-6)
    assert [way.ms for way in plan.hierarchy.ways(plan.rate)] == pytest.approx(
        [1e3 * here.flat_s(5e8), 60.0, 1e3 * here.leaders_s(5e8), 1e3 * here.parallel_s(5e8)]
    )


def test_trees_that_have_little_lose_to_a_ring(fabric: Fabric) -> None:
    plan = _plan(fabric, 125_000_000, Ranks(8, intra_gbs=50.0))
    assert plan.hierarchy is not None
    assert plan.hierarchy.chosen(plan.rate).reduction is Reduction.PARALLEL
    less = cap_rate(plan, plan.rate / 4)
    assert less.hierarchy is not None
    assert less.hierarchy.chosen(less.rate).reduction is Reduction.FLAT


@pytest.mark.parametrize(("ranks", "hosts"), [(Ranks(), 16), (Ranks(8), 1)])
def test_there_is_nothing_to_choose_for_one_rank_a_host_or_one_host(
    fabric: Fabric, ranks: Ranks, hosts: int
) -> None:
    assert _plan(fabric, 1000, ranks, hosts).hierarchy is None


def test_a_plan_keeps_it_as_json(fabric: Fabric) -> None:
    plan = _plan(fabric, 1000, Ranks(4))
    document = json.loads(json.dumps(plan_document(fabric, plan)))
    assert plan_from_document(document) == plan
    assert document["hierarchy"]["reduction"] == "leader-only"
    del document["hierarchy"]  # of a store that is older
    assert plan_from_document(document) == replace(plan, hierarchy=None)


def _netfold_plan(tmp_path: Path, ranks: str, *options: str) -> Result:
    file = tmp_path / "job.yaml"
    file.write_text(f"name: wide\nparameter_servers: 0\nelements: 125_000_000\nranks: {ranks}\n")
    return CliRunner().invoke(build("plan"), ["plan", "leaf-spine-4x2", str(file), "-s", "panama", *options])


def test_netfold_plan_says_which_and_why(tmp_path: Path) -> None:
    said = _netfold_plan(tmp_path, "{per_host: 8, intra_gbs: 0.005}").stdout
    assert "Ranks of a host" in said
    why = " ".join(said.split())
    assert "flat: a ring of all ranks, past the trees (FR): 79,378 ms against" in why
    assert "16 hosts of 8 ranks, 0.005 GB/s inside, 0.0125 GB/s in the trees" in why
    document = json.loads(_netfold_plan(tmp_path, "{per_host: 8}", "--json").stdout)["hierarchy"]
    assert document["reduction"] == "parallel"
    assert document["of"]["ranks"] == {"per_host": 8, "intra_gbs": 15.75, "intra_us": 1.0, "network_us": 10.0}
    assert len(document["ways"]) == 4


def test_netfold_plan_is_silent_where_hosts_are_ranks() -> None:
    result = CliRunner().invoke(build("plan"), ["plan", "grid-fig1", "-s", "grid"])
    assert "Ranks of a host" not in result.stdout


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ("{per_hosts: 8}", "did you mean 'per_host'"),
        ("{per_host: 0}", "ranks.per_host is 0"),
        ("{per_host: 8, intra_gbs: 0}", "ranks.intra_gbs is 0"),
        ("{per_host: 8, intra_us: -1}", "ranks.intra_us is -1"),
        ("8", "ranks is 8"),
    ],
)
def test_ranks_that_cannot_be_are_refused(fabric: Fabric, ranks: str, said: str) -> None:
    with pytest.raises(JobError, match=said):
        resolve_job(f"name: a\nranks: {ranks}\n", fabric)
