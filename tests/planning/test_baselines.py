# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Closed forms of the baselines, and the shapes of the trees of each scheme."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from netfold.controller.planning.plan import JobSpec, Plan, PlanningError
from netfold.controller.planning.planner import make_plan
from netfold.topologies.fabric import Fabric, SwitchRole
from netfold.topologies.generators import (
    fat_tree,
    grid_leaf_spine,
    inart_fat_tree,
    leaf_spine,
    with_capacities,
    with_parameter_servers,
)
from tests.planning.cases import job_on, small_leaf_spine, star


def _spread(fabric: Fabric, workers: int, per_rack: int) -> tuple[str, ...]:
    """Workers on the first racks, `per_rack` on each."""
    racks: dict[str, list[str]] = {}
    for host in fabric.hosts:
        if not host.parameter_server:
            racks.setdefault(fabric.attachment(host.name), []).append(host.name)
    return tuple(h for hosts in racks.values() for h in hosts[:per_rack])[:workers]


@pytest.mark.parametrize("workers", [100, 150, 200, 250])
def test_without_aggregation_the_server_is_shared_by_all_workers(workers: int) -> None:
    fabric = with_parameter_servers(grid_leaf_spine(), ["h500"], 100.0)
    job = JobSpec("job", _spread(fabric, workers, 10), ("h500",), scheme="none")
    plan = make_plan(fabric, job)
    assert plan.rate == pytest.approx(100.0 / workers)
    assert plan.gap == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("workers", [100, 150, 200, 250])
def test_switchml_to_a_server_gives_each_rack_an_equal_part(workers: int) -> None:
    fabric = with_parameter_servers(grid_leaf_spine(), ["h500"], 100.0)
    job = JobSpec("job", _spread(fabric, workers, 10), ("h500",), scheme="switchml")
    plan = make_plan(fabric, replace(job, options={"switchml_variant": "server"}))
    assert plan.rate == pytest.approx(1000.0 / workers)


@pytest.mark.parametrize("servers", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("workers", [10, 30, 48])
def test_lbmm_is_the_sum_of_ingress_over_workers(servers: int, workers: int) -> None:
    names = [f"h{9 * i + 1}" for i in range(servers)]
    fabric = with_parameter_servers(inart_fat_tree(), names, 20.0)
    others = [h.name for h in fabric.hosts if not h.parameter_server]
    plan = make_plan(fabric, JobSpec("job", tuple(others[:workers]), tuple(names), scheme="lbmm"))
    assert plan.rate == pytest.approx(20.0 * servers / workers)
    assert [t.root for t in plan.trees] == names


def test_lbmm_splits_in_proportion_to_ingress() -> None:
    fabric = star(4, 2, rate=100.0)
    hosts = tuple(replace(h, capacity=6.0) if h.name == "ps1" else h for h in fabric.hosts)
    plan = make_plan(replace(fabric, hosts=hosts), job_on(fabric, "lbmm"))
    assert {t.root: t.share for t in plan.trees} == pytest.approx({"ps0": 0.4, "ps1": 0.6})
    assert plan.rate == pytest.approx(10.0 / 4)


def test_none_takes_the_better_of_two_servers() -> None:
    fabric = star(4, 2, rate=100.0)
    hosts = tuple(replace(h, capacity=6.0) if h.name == "ps1" else h for h in fabric.hosts)
    plan = make_plan(replace(fabric, hosts=hosts), job_on(fabric, "none"))
    assert [t.root for t in plan.trees] == ["ps1"]


def test_switchml_in_one_rack_runs_at_link_rate_without_a_server() -> None:
    fabric = star(8, 0, rate=10.0, capacity=80.0)
    plan = make_plan(fabric, job_on(fabric, "switchml"))
    assert plan.rate == pytest.approx(10.0)
    assert plan.trees[0].root == "s"
    assert len(plan.trees[0].edges) == 8


def test_switchml_adds_up_in_every_rack_and_then_in_one_of_them() -> None:
    fabric = small_leaf_spine()
    tree = make_plan(fabric, job_on(fabric, "switchml")).trees[0]
    assert fabric.switch(tree.root).role is SwitchRole.LEAF
    leaves = {e.child for e in tree.edges if e.parent == tree.root and not fabric.is_host(e.child)}
    assert leaves == {f"leaf{i}" for i in range(1, 5)} - {tree.root}


def test_panama_deals_equal_shares_to_different_tops() -> None:
    fabric = leaf_spine(4, 4, 4, rate=100.0)
    plan = make_plan(fabric, job_on(fabric, "panama"))
    assert sorted(t.root for t in plan.trees) == ["spine1", "spine2", "spine3", "spine4"]
    assert {t.share for t in plan.trees} == {0.25}
    assert all(len(t.children(t.root)) == 4 for t in plan.trees)


def test_panama_over_four_tops_loads_the_fullest_link_a_quarter_of_one_tree() -> None:
    """PANAMA's slide 17: 400 MB over one tree, or 100 MB over each of four."""
    fabric = leaf_spine(4, 4, 4, rate=100.0)

    def fullest_uplink(plan: Plan) -> float:
        return max(
            load / plan.rate
            for (a, b), load in plan.loads.links.items()
            if not fabric.is_host(a) and not fabric.is_host(b)
        )

    one, four = (make_plan(fabric, job_on(fabric, "panama", trees=n)) for n in (1, 4))
    assert fullest_uplink(one) == pytest.approx(1.0)
    assert fullest_uplink(four) == pytest.approx(0.25)


def test_trees_of_a_fat_tree_add_up_at_every_tier() -> None:
    fabric = fat_tree(4)
    tree = make_plan(fabric, job_on(fabric, "panama", trees=1)).trees[0]
    roles = {fabric.switch(v).role for v in tree.nodes}
    assert roles == {SwitchRole.LEAF, SwitchRole.AGGREGATION, SwitchRole.CORE}


def test_a_tree_goes_around_a_switch_that_would_hold_it_back() -> None:
    fabric = leaf_spine(2, 2, 4, rate=100.0)
    weak = with_capacities(fabric, {"leaf1": 8.0})
    plan = make_plan(weak, job_on(weak, "panama"))
    assert plan.rate == pytest.approx(50.0)  # four streams at half the rate over each of leaf1's uplinks
    assert all("leaf1" not in t.nodes for t in plan.trees)


def test_atp_whole_is_what_the_aggregation_rooms_and_the_server_allow() -> None:
    fabric = star(6, 1, rate=100.0, capacity=6.0, ingress=4.0)
    plan = make_plan(fabric, job_on(fabric, "atp", atp_variant="whole"))
    direct = len(plan.trees[0].children("ps0")) - 1
    assert plan.rate == pytest.approx(min(6.0 / (6 - direct), 4.0 / (direct + 1)))


def test_auto_prefers_a_switch_rooted_tree_when_the_server_is_the_bottleneck() -> None:
    fabric = star(8, 1, rate=10.0, capacity=100.0, ingress=1.0)
    plan = make_plan(fabric, job_on(fabric, "auto"))
    assert plan.algorithm == "switchml"
    assert plan.rate == pytest.approx(10.0)


@pytest.mark.parametrize("scheme", ["none", "lbmm", "atp", "grid", "inart", "optimal"])
def test_schemes_with_a_server_say_so_when_there_is_none(scheme: str) -> None:
    fabric = star(3, 0)
    with pytest.raises(PlanningError, match="names no parameter server"):
        make_plan(fabric, job_on(fabric, scheme))


@pytest.mark.parametrize("scheme", ["switchml", "panama"])
def test_schemes_rooted_at_switches_say_so_when_none_can_add(scheme: str) -> None:
    fabric = star(3, 1, capacity=0.0)
    with pytest.raises(PlanningError, match="capacity left"):
        make_plan(fabric, job_on(fabric, scheme))


@pytest.mark.parametrize(
    ("scheme", "options"),
    [
        ("grid", {"roundings": 0}),
        ("grid", {"roundings": "many"}),
        ("panama", {"trees": 1.5}),
        ("atp", {"atp_variant": "half"}),
        ("optimal", {"time_limit": -1}),
        ("grid", {"rounding": 3}),
    ],
)
def test_a_bad_option_is_named(scheme: str, options: dict[str, str | int | float]) -> None:
    fabric = star(3, 1, capacity=3.0)
    with pytest.raises(PlanningError, match=next(iter(options))):
        make_plan(fabric, replace(job_on(fabric, scheme), options=options))


@pytest.mark.parametrize(
    ("workers", "servers", "message"),
    [
        ((), ("ps0",), "no workers"),
        (("w0", "x"), ("ps0",), "'x', which is no host"),
        (("w0", "s"), ("ps0",), "'s', which is no host"),
        (("w0", "w0"), ("ps0",), "'w0' twice"),
        (("w0", "ps0"), ("ps0",), "'ps0' twice"),
    ],
)
def test_a_job_that_does_not_fit_the_fabric_is_refused(
    workers: tuple[str, ...], servers: tuple[str, ...], message: str
) -> None:
    with pytest.raises(PlanningError, match=message):
        make_plan(star(3, 1), JobSpec("job", workers, servers))


def test_an_unknown_scheme_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PlanningError, match="grid"):
        make_plan(star(3, 1), JobSpec("job", ("w0",), ("ps0",), scheme="best"))


def test_switchml_turns_around_in_a_rack_whose_workers_fit_beside_the_other_racks() -> None:
    fabric = leaf_spine(30, 2, 5)
    only_leaves = with_capacities(fabric, dict.fromkeys(("spine1", "spine2"), 0.0))
    workers = [h.name for h in only_leaves.hosts if h.name not in {"h147", "h148", "h149", "h150"}]
    plan = make_plan(only_leaves, JobSpec("job", tuple(workers), scheme="switchml"))
    assert plan.trees[0].root == "leaf30"
    assert len(plan.trees[0].children("leaf30")) == 30


@pytest.mark.parametrize("scheme", ["switchml", "panama"])
def test_trees_rooted_at_switches_go_down_the_way_they_came_up(scheme: str) -> None:
    """A root answers a repeated packet over the port that it came in on; that has to lead to its worker."""
    for fabric in (small_leaf_spine(), fat_tree(4)):
        for tree in make_plan(fabric, job_on(fabric, scheme)).trees:
            up = {hop for e in tree.edges for hop in pairwise(e.path)}
            assert {(b, a) for a, b in up} == set(tree.result_links)
