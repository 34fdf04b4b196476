# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""R-InArt: a plan at a split that is given, on what foreign load leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netfold.controller.jobs.lookup import default_job
from netfold.controller.planning.plan import JobSpec, Loads, Plan, PlanningError
from netfold.controller.planning.planner import SchemeComparison, make_plan
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import load_fabric


def replanned(fabric: Fabric, job: JobSpec, plan: Plan, foreign: Loads) -> Plan:
    return SchemeComparison(fabric, job, background=foreign).plan_fixed_split(plan.trees)


def split(plan: Plan) -> list[tuple[str, float]]:
    shares: dict[str, float] = {}
    for tree in plan.trees:
        shares[tree.root] = shares.get(tree.root, 0.0) + tree.share
    return sorted((root, round(share, 9)) for root, share in shares.items())


@pytest.mark.parametrize("trees", [1, 2])
def test_servers_keep_their_parts_and_nodes_are_chosen_anew(trees: int):
    fabric = load_fabric("leaf-spine-4x2")
    job = replace(default_job(fabric).spec, scheme="inart", options={"trees_per_server": trees})
    plan = make_plan(fabric, job)
    foreign = Loads(links={(f"leaf{i}", "spine1"): 180.0 for i in range(1, 5)})
    again = replanned(fabric, job, plan, foreign)
    assert split(again) == split(plan)
    assert again.rate >= 0.6 * plan.rate
    assert all(again.loads.links.get(k, 0.0) <= 20 * (1 + 1e-6) for k in foreign.links)


def test_trees_of_switches_keep_their_shares_and_may_have_other_roots():
    fabric = load_fabric("leaf-spine-4x2")
    job = replace(default_job(fabric).spec, scheme="panama", parameter_servers=())
    plan = make_plan(fabric, job)
    foreign = Loads(
        links={p: 170.0 for i in range(1, 5) for p in ((f"leaf{i}", "spine1"), ("spine1", f"leaf{i}"))}
    )
    again = replanned(fabric, job, plan, foreign)
    assert sorted(t.share for t in again.trees) == pytest.approx(sorted(t.share for t in plan.trees))
    assert again.rate == pytest.approx(plan.rate)
    assert all(load <= 30 * (1 + 1e-6) for k, load in again.loads.links.items() if k in foreign.links)


def test_where_the_split_leaves_no_way_it_says_so():
    fabric = load_fabric("leaf-spine-4x2")
    job = replace(default_job(fabric).spec, scheme="inart")
    plan = make_plan(fabric, job)
    server = plan.trees[0].root
    full = Loads(servers={server: fabric.ingress_capacity(server)})
    with pytest.raises(PlanningError, match=server):
        replanned(fabric, job, plan, full)
