# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Fabrics that planners must not stumble over: any unit, hosts of no capacity, weak roots, ways down that bind."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import netfold.controller.planning.optimal as optimal_module
from netfold.controller.planning.formulation import FixedShares
from netfold.controller.planning.grid import drafts_of
from netfold.controller.planning.layout import Draft, feasible_rate, pass_single_children
from netfold.controller.planning.plan import JobSpec, Loads, PlanningError
from netfold.controller.planning.planner import make_plan
from netfold.controller.planning.residual_network import ResidualNetwork
from netfold.controller.planning.scheme_registry import SCHEMES
from netfold.controller.planning.search import improve
from netfold.controller.planning.sparse import Effort, LinearProgram, Outcome, Stopped
from netfold.topologies.fabric import Fabric, Host, Link, Switch
from netfold.topologies.generators import leaf_spine, with_capacities
from tests.planning.cases import job_on, star, tiny_fabric


def in_units(fabric: Fabric, factor: float) -> Fabric:
    return replace(
        fabric,
        hosts=tuple(
            replace(h, capacity=None if h.capacity is None else h.capacity * factor) for h in fabric.hosts
        ),
        switches=tuple(replace(s, capacity=s.capacity * factor) for s in fabric.switches),
        links=tuple(replace(x, rate=x.rate * factor) for x in fabric.links),
    )


@pytest.mark.parametrize("factor", [1e-9, pytest.param(1e-5, marks=pytest.mark.slow), 1e12])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_fabric_s_unit_changes_nothing_but_the_numbers(scheme: str, factor: float) -> None:
    fabric = tiny_fabric(4, 1)
    plan, scaled = (make_plan(f, job_on(f, scheme)) for f in (fabric, in_units(fabric, factor)))
    assert scaled.rate == pytest.approx(plan.rate * factor)


@pytest.mark.parametrize("scheme", ["grid", "inart", "optimal", "auto"])
def test_a_capacity_without_end_leaves_the_links_their_own(scheme: str) -> None:
    fabric = with_capacities(star(4, 1, rate=10.0, ingress=None), {"s": 1e13})
    assert make_plan(fabric, job_on(fabric, scheme)).rate == pytest.approx(10.0)


def test_chains_of_single_children_all_pass_on() -> None:
    names = ("a", "b", "c")
    hosts = (Host("w"), Host("ps", True))
    links = (Link("w", "a", 1.0), Link("a", "b", 1.0), Link("b", "c", 1.0), Link("c", "ps", 1.0))
    network = ResidualNetwork(Fabric("line", hosts, tuple(Switch(n, capacity=5.0) for n in names), links))
    for order in (("w", *names), (*reversed(names), "w")):
        draft, above = Draft("ps", 1.0), {"w": "a", "a": "b", "b": "c", "c": "ps"}
        for child in order:
            draft.connect(child, above[child], network.paths.routes(child, above[child])[0])
        pass_single_children(network, draft)
        assert draft.parent == {"w": "ps"}
        assert network.path(draft.route["w"]) == ("w", "a", "b", "c", "ps")


def test_switchml_turns_around_where_there_is_room() -> None:
    fabric = with_capacities(leaf_spine(2, 1, 4, rate=100.0), {"leaf1": 12.0, "spine1": 0.0})
    one_rack_more = JobSpec("job", tuple(f"h{i}" for i in (1, 2, 3, 4, 5)), scheme="switchml")
    assert make_plan(fabric, one_rack_more).trees[0].root == "leaf2"


def test_panama_takes_the_tops_with_room_and_leaves_weak_ones_little() -> None:
    fabric = leaf_spine(4, 4, 4, rate=100.0)
    weak = with_capacities(fabric, {"spine1": 8.0, "spine3": 8.0})
    two = make_plan(weak, job_on(weak, "panama", trees=2))
    assert {t.root for t in two.trees} == {"spine2", "spine4"}
    four = make_plan(weak, job_on(weak, "panama"))
    assert four.rate == pytest.approx(two.rate)


def test_panama_goes_around_tops_that_other_jobs_load() -> None:
    fabric = leaf_spine(4, 4, 4, rate=100.0)
    first = make_plan(fabric, job_on(fabric, "panama", trees=2))
    second = make_plan(fabric, job_on(fabric, "panama", trees=2), background=first.times(0.5).loads)
    assert not {t.root for t in first.trees} & {t.root for t in second.trees}


def test_optimal_keeps_the_way_down_that_it_solved() -> None:
    """Here results go around: a shorter way would not be what was solved."""
    hosts = (*(Host(f"w{i}") for i in range(3)), Host("ps", True))
    ends = {"w0": "a", "w1": "a", "w2": "c", "ps": "b"}
    links = (
        *(Link(h, s, 8.0) for h, s in ends.items()),
        *(Link(x, y, 4.0) for x, y in (("a", "b"), ("b", "c"), ("a", "c"))),
    )
    network = ResidualNetwork(Fabric("ring", hosts, tuple(Switch(n) for n in "abc"), links))
    model = FixedShares(network, ("w0", "w1", "w2"), ["ps"], [], [1.0], whole=True)
    ways = ((_route(network, "ps", "b", "c"), 1.0), (_route(network, "ps", "b", "c", "a"), 1.0))
    [draft] = drafts_of(network, model, replace(model.solve(), result_routes={0: ways}))
    around = {("ps", "b"), ("b", "c"), ("c", "a"), ("a", "w0"), ("a", "w1"), ("c", "w2")}
    assert {network.links[i] for i in draft.result_links} == around
    known = feasible_rate(network, [draft])
    assert improve(network, [draft], model.groups[0].workers + model.groups[1].workers, []) >= known


def _route(network: ResidualNetwork, *path: str) -> tuple[int, ...]:
    return tuple(network.link_id[hop] for hop in pairwise(path))


@pytest.mark.slow
def test_optimal_takes_no_point_at_which_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS may have found but the empty point when it is stopped."""
    fabric = tiny_fabric(0, 2)
    inart = make_plan(fabric, job_on(fabric, "inart"))
    solve = LinearProgram.solve

    def emptied(self: LinearProgram, effort: Effort) -> Outcome:
        outcome = solve(self, effort)
        if not any(self.integer) or outcome.values is None:
            return outcome
        return replace(outcome, values=np.zeros_like(outcome.values), stopped=Stopped.STEPS)

    monkeypatch.setattr(optimal_module, "packing_bound", lambda *_: 1e9)
    monkeypatch.setattr(optimal_module, "upper_bound", lambda *_: 1e9)
    monkeypatch.setattr(LinearProgram, "solve", emptied)
    plan = make_plan(fabric, job_on(fabric, "optimal"))
    assert plan.rate == pytest.approx(inart.rate)
    assert plan.stopped is Stopped.STEPS


@pytest.mark.slow
def test_what_the_clock_stops_is_the_rounded_plan_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    fabric = tiny_fabric(0, 2)
    inart = make_plan(fabric, job_on(fabric, "inart"))
    solve = LinearProgram.solve

    def late(self: LinearProgram, effort: Effort) -> Outcome:
        outcome = solve(self, effort)
        return replace(outcome, stopped=Stopped.TIME) if any(self.integer) else outcome

    monkeypatch.setattr(optimal_module, "packing_bound", lambda *_: 1e9)
    monkeypatch.setattr(optimal_module, "upper_bound", lambda *_: 1e9)
    monkeypatch.setattr(LinearProgram, "solve", late)
    plan = make_plan(fabric, job_on(fabric, "optimal"))
    assert plan.trees == inart.trees
    assert plan.stopped is Stopped.TIME


def test_work_bounds_a_search_and_every_run_ends_at_the_same_point() -> None:
    fabric = leaf_spine(6, 3, 6, parameter_servers=1, rate=10.0)
    fabric = with_capacities(fabric, {f"leaf{i}": 7.0 * i for i in range(1, 7)})
    job, network = job_on(fabric), ResidualNetwork(fabric)
    model = FixedShares(network, job.workers, ["ps1"], network.aggregators(), [1.0], whole=True)
    first, second = (model.solve(Effort(work=20 * model.size)) for _ in range(2))
    assert (first.rate, first.choices, first.stopped) == (second.rate, second.choices, second.stopped)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_one_worker_is_a_job_too(scheme: str) -> None:
    fabric = leaf_spine(2, 2, 2, parameter_servers=1, rate=10.0)
    plan = make_plan(fabric, JobSpec("job", ("h3",), ("ps1",), scheme=scheme))
    assert plan.rate == pytest.approx(10.0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_worker_whose_link_is_full_ends_in_an_error_that_says_what_binds(scheme: str) -> None:
    fabric = star(3, 1, capacity=30.0)
    with pytest.raises(PlanningError):
        make_plan(fabric, job_on(fabric, scheme), background=Loads(links={("w1", "s"): 10.0}))
