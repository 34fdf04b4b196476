# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A scenario that cannot be run is refused by name; paths are shortest, spread, and the same for the same choice.
Nodes take as many children as the controller could install."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netfold.controller.planning.plan import PlanningError
from netfold.simulator.command.cli import app
from netfold.simulator.routes import LinkTable, path_hash
from netfold.simulator.scenario import (
    Bucket,
    Flow,
    IdealCollective,
    InNetworkCollective,
    Job,
    Model,
    NetworkSettings,
    Scenario,
    ScenarioError,
)
from netfold.simulator.schemes.catalog import SchemeName, SchemeOptions, scheme_of
from netfold.topologies.generators import fat_tree, leaf_spine, single_switch

FABRIC = single_switch(3)
MODEL = Model("m", 0.1, 0.2, (Bucket(10, 0.5), Bucket(20)))


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        (Flow("h1", "h9", 1, 0.0), "flow 0: 'h9' is no host of single-3"),
        (Flow("h1", "h1", 1, 0.0), "flow 0 goes from 'h1' to itself"),
        (Flow("h1", "h2", 0, 0.0), "bytes and weight must be above 0"),
    ],
)
def test_a_flow_that_cannot_be_is_named(flow: Flow, said: str):
    with pytest.raises(ScenarioError, match=said):
        Scenario(FABRIC, flows=(flow,))


def test_a_job_that_cannot_be_is_named():
    with pytest.raises(ScenarioError, match="job 'a': 'h7' is no host"):
        Scenario(FABRIC, (Job("a", ("h1", "h7"), MODEL, IdealCollective(1.0)),))
    with pytest.raises(ScenarioError, match="job 'a': the name is given twice"):
        Scenario(FABRIC, (Job("a", ("h1",), MODEL, IdealCollective(1.0)),) * 2)


def test_equal_cost_paths_are_shortest_and_all_in_use():
    table = LinkTable(fat_tree(4), NetworkSettings())
    paths = [table.path("h1", "h16", path_hash(3, "flow", i)) for i in range(400)]
    assert {len(p) for p in paths} == {6}
    for path in paths:
        ends = [table.pairs[i] for i in path]
        assert ends[0][0] == "h1"
        assert ends[-1][1] == "h16"
        assert all(a[1] == b[0] for a, b in itertools.pairwise(ends))
    assert len(set(paths)) == 4
    assert min(Counter(paths).values()) > 50
    assert len(table.path("h1", "h2", 12345)) == 2


WIDE = leaf_spine(40, 2, 1)
HOSTS = tuple(h.name for h in WIDE.hosts)


def test_a_scheme_whose_root_has_too_many_children_has_no_plan() -> None:
    with pytest.raises(PlanningError, match="40 children and 32 are the most"):
        scheme_of(SchemeName.PANAMA, WIDE, HOSTS)


def test_straight_trees_keep_to_the_limit_too() -> None:
    with pytest.raises(ScenarioError, match="switch spine1 would have 40 children and takes 32"):
        scheme_of(SchemeName.PANAMA, WIDE, HOSTS, SchemeOptions(planned=8))


def test_a_simulation_that_is_told_so_goes_beyond() -> None:
    scheme = scheme_of(SchemeName.PANAMA, WIDE, HOSTS, SchemeOptions(max_children=64))
    assert isinstance(scheme, InNetworkCollective)
    assert max(Counter(e.parent for e in scheme.plan.trees[0].edges).values()) == 40


def test_the_command_takes_the_packing(tmp_path: Path) -> None:
    fabric, job = tmp_path / "fabric.yaml", tmp_path / "job.yaml"
    fabric.write_text(
        "name: wide\ngenerate: {leaf_spine: {leaves: 36, spines: 2, hosts_per_leaf: 1, rate: 100}}\n"
    )
    job.write_text("name: j\nworkers: 36\nparameter_servers: 0\nelements: 100000\n")
    result = CliRunner().invoke(app, [str(fabric), str(job), "-s", "packing", "-s", "planned", "--json"])
    assert result.exit_code == 0, result.output
