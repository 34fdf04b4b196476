# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A scenario that cannot be run is refused by name; paths are shortest, spread, and the same for the same choice."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from netfold.simulator.routes import LinkTable, path_hash
from netfold.simulator.scenario import (
    Bucket,
    Flow,
    IdealCollective,
    Job,
    Model,
    NetworkSettings,
    Scenario,
    ScenarioError,
)
from netfold.topologies.generators import fat_tree, single_switch

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
