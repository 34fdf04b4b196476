# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The validator refuses every broken plan, and passes what the planners make of random fabrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.controller.planning.candidate_paths import Limits
from netfold.controller.planning.plan import Edge, InvalidPlanError, JobSpec, Loads, Plan, PlanningError, Tree
from netfold.controller.planning.planner import make_plan
from netfold.controller.planning.scheme_registry import SCHEMES
from netfold.controller.planning.validate import add_loads, recompute_loads, validate
from netfold.topologies.fabric import Fabric, Host, Link, Switch
from netfold.topologies.generators import leaf_spine
from tests.planning.cases import job_on, random_fabrics, star, worked_example

Breaker = Callable[[Tree], Tree]


def _with_edge(tree: Tree, child: str, **changes: object) -> Tree:
    edges = tuple(replace(e, **changes) if e.child == child else e for e in tree.edges)  # type: ignore[arg-type]
    return replace(tree, edges=edges)


BREAKERS: dict[str, tuple[Breaker, str]] = {
    "a worker is missing": (
        lambda t: replace(t, edges=tuple(e for e in t.edges if e.child != "W7")),
        "worker 'W7' has no edge",
    ),
    "a worker sends twice": (lambda t: replace(t, edges=(*t.edges, t.edges[-1])), "has 2 edges"),
    "the root is a foreign host": (
        lambda t: replace(t, root="W1", edges=tuple(e for e in t.edges if e.child != "W1")),
        "no parameter server",
    ),
    "a path jumps": (lambda t: _with_edge(t, "W7", path=("W7", "S1"), parent="S1"), "no link"),
    "a path visits a node twice": (
        lambda t: _with_edge(t, "W7", path=("W7", "S3", "S1", "S3"), parent="S3"),
        "twice",
    ),
    "a path ends elsewhere": (lambda t: _with_edge(t, "W7", path=("W7", "S3", "S1")), "does not run"),
    "a host passes packets through": (
        lambda t: _with_edge(t, "W7", path=("W7", "S3", "W8", "S3")[:3], parent="W8"),
        "W8",
    ),
    "a loop of nodes": (
        lambda t: _with_edge(
            _with_edge(t, "S1", path=("S1", "S2"), parent="S2"), "S2", path=("S2", "S1"), parent="S1"
        ),
        "lead to the root",
    ),
    "results miss a worker": (
        lambda t: replace(t, result_links=tuple(d for d in t.result_links if d[1] != "W7")),
        "misses worker 'W7'",
    ),
    "results arrive twice": (lambda t: replace(t, result_links=(*t.result_links, ("S1", "S2"))), "twice"),
    "results start nowhere": (
        lambda t: replace(t, result_links=tuple(d for d in t.result_links if d != ("PS", "S3"))),
        "root",
    ),
}


@pytest.mark.parametrize("what", list(BREAKERS))
def test_a_broken_tree_is_refused(what: str) -> None:
    fabric, job = worked_example("grid-fig1", "grid")
    plan = make_plan(fabric, job)
    breaker, message = BREAKERS[what]
    with pytest.raises(InvalidPlanError, match=message):
        validate(fabric, job, replace(plan, trees=(breaker(plan.trees[0]),)))


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf"), 3.1])
def test_a_wrong_rate_is_refused(rate: float) -> None:
    fabric, job = worked_example("grid-fig1", "grid")
    plan = make_plan(fabric, job)
    loads = recompute_loads(fabric, plan.trees, rate)
    with pytest.raises(InvalidPlanError):
        validate(fabric, job, replace(plan, rate=rate, loads=loads))


def test_shares_have_to_sum_to_one() -> None:
    fabric, job = worked_example("inart-fig1", "inart")
    plan = make_plan(fabric, job)
    trees = (replace(plan.trees[0], share=plan.trees[0].share / 2), *plan.trees[1:])
    with pytest.raises(InvalidPlanError, match="sum to 1"):
        validate(fabric, job, replace(plan, trees=trees))


def test_loads_other_than_stated_are_refused() -> None:
    fabric, job = worked_example("grid-fig1", "grid")
    plan = make_plan(fabric, job)
    with pytest.raises(InvalidPlanError, match="the plan has"):
        validate(fabric, job, replace(plan, loads=Loads()))


def test_background_counts_against_every_capacity() -> None:
    fabric, job = worked_example("grid-fig1", "grid")
    plan = make_plan(fabric, job)
    for busy in (
        Loads(links={("W1", "S1"): 0.1}),
        Loads(links={("S3", "W8"): 0.1}),
        Loads(switches={"S1": 0.1}),
        Loads(servers={"PS": 0.1}),
    ):
        with pytest.raises(InvalidPlanError):
            validate(fabric, job, plan, busy)


def test_other_jobs_may_use_what_the_fabric_has_lost_meanwhile() -> None:
    """A link goes down under an installed job: the next one is planned on the rest of the fabric."""
    whole = leaf_spine(2, 2, 2, parameter_servers=1)
    gone = {"leaf1", "spine1"}
    rest = whole.part(whole.switches, whole.hosts, (x for x in whole.links if {x.a, x.b} != gone))
    busy = Loads(links={("leaf1", "spine1"): 30.0}, switches={"gone": 1.0}, loopbacks={("gone", 68): 1.0})
    assert make_plan(rest, job_on(rest, "none"), background=busy).rate > 0


def test_more_than_32_children_are_refused_at_a_switch_but_not_at_a_server() -> None:
    fabric = star(33, 1, capacity=1000.0, ingress=None)
    job = job_on(fabric, "none")
    validate(fabric, job, make_plan(fabric, job))
    down = (("ps0", "s"), *(("s", w) for w in job.workers))
    edges = tuple(Edge(w, "s", (w, "s")) for w in job.workers)
    tree = Tree("ps0", 1.0, (*edges, Edge("s", "ps0", ("s", "ps0"))), down)
    plan = Plan("job", "star", "none", "", (tree,), 0.1, recompute_loads(fabric, (tree,), 0.1))
    with pytest.raises(InvalidPlanError, match="33 children"):
        validate(fabric, job, plan)


@settings(max_examples=40)
@given(fabric=random_fabrics(), scheme=st.sampled_from(sorted(SCHEMES)), seed=st.integers(0, 99))
def test_every_scheme_makes_valid_plans_or_says_why_not(fabric: Fabric, scheme: str, seed: int) -> None:
    job = job_on(fabric, scheme, time_limit=1.0, roundings=3)
    try:
        plan = make_plan(fabric, job, seed=seed)  # validates
    except InvalidPlanError:
        raise
    except PlanningError:
        return
    assert plan.rate > 0
    if plan.bound is not None:
        assert plan.rate <= plan.bound * (1 + 1e-6)


@settings(max_examples=15)
@given(fabric=random_fabrics(), seed=st.integers(0, 99))
def test_a_second_job_fits_beside_the_first(fabric: Fabric, seed: int) -> None:
    job = job_on(fabric, "inart", roundings=2)
    half = Limits()
    try:
        first = make_plan(fabric, job, seed=seed, limits=half)
    except PlanningError:
        return
    slower = replace(first, rate=first.rate / 2, loads=recompute_loads(fabric, first.trees, first.rate / 2))
    try:
        second = make_plan(fabric, job, seed=seed, background=slower.loads)
    except InvalidPlanError:
        raise
    except PlanningError:
        return
    both = add_loads(slower.loads, second.loads)
    for (a, b), load in both.links.items():
        assert load <= fabric.link(a, b).rate * (1 + 1e-6)
    for switch, load in both.switches.items():
        assert load <= fabric.switch(switch).capacity * (1 + 1e-6)


def test_a_plan_fits_what_it_was_planned_on_and_never_more() -> None:
    fabric = star(4, 1)
    job: JobSpec = job_on(fabric, "grid")
    alone = make_plan(fabric, job)
    beside = make_plan(fabric, job, background=Loads(switches={"s": 8.0}, servers={"ps0": 2.0}))
    assert beside.rate < alone.rate
    assert beside.loads.switches.get("s", 0.0) <= 2.0 + 1e-6
    assert beside.loads.servers["ps0"] <= 2.0 + 1e-6


def test_answers_of_a_root_that_is_a_switch_have_to_reach_the_workers_a_child_speaks_for() -> None:
    """`a` adds up for w0 and w1 and sends over `c`; results go down over `b`, so an answer to `a` has no way to w1."""
    hosts = tuple(Host(f"w{i}") for i in range(3))
    pairs = (
        ("a", "root"),
        ("a", "c"),
        ("c", "root"),
        ("w0", "a"),
        ("w1", "b"),
        ("w2", "b"),
        ("a", "b"),
        ("b", "root"),
    )
    switches = tuple(Switch(n, capacity=9.0) for n in ("root", "a", "b", "c"))
    fabric = Fabric("round", hosts, switches, tuple(Link(a, b, 10.0) for a, b in pairs))
    edges = (
        Edge("w0", "a", ("w0", "a")),
        Edge("w1", "a", ("w1", "b", "a")),
        Edge("a", "root", ("a", "c", "root")),
        Edge("w2", "root", ("w2", "b", "root")),
    )
    down = (("root", "b"), ("b", "w1"), ("b", "w2"), ("b", "a"), ("a", "w0"))
    job = JobSpec("job", ("w0", "w1", "w2"))
    trees = (Tree("root", 1.0, edges, down),)
    plan = Plan("job", "round", "test", "Mbit/s", trees, 1.0, recompute_loads(fabric, trees, 1.0))
    with pytest.raises(InvalidPlanError, match="resent results for 'a'"):
        validate(fabric, job, plan)
