# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Real workers and real packets where the children of a node bind: a leaf with more workers than an ordinary program
takes, and trees with more levels of nodes than the fabric has tiers."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml

from netfold.controller.planning.plan import Tree
from netfold.testbed.testbed import Testbed

pytestmark = [pytest.mark.root, pytest.mark.mininet, pytest.mark.long]

WORKERS = 48
LEAVES, SPINES, HOSTS_PER_LEAF, CHILDREN = 11, 4, 2, 4
"""As 66 workers over 33 leaves with 32 children, only smaller."""


@pytest.fixture(params=["softswitch", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def target(request: pytest.FixtureRequest) -> str:
    if request.param == "bmv2" and shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    return str(request.param)


def test_forty_eight_workers_under_one_leaf_are_one_node(tmp_path: Path, target: str) -> None:
    hosts = {f"h{number}": {"at": "leaf"} for number in range(1, WORKERS + 1)}
    spec = {
        "name": "rack",
        "defaults": {"link": {"rate": 100}, "switch": {"capacity": 100 * WORKERS, "children": 64}},
        "switches": {"leaf": {}},
        "hosts": hosts,
    }
    fabric = tmp_path / "rack.yaml"
    fabric.write_text(yaml.safe_dump(spec))
    with Testbed(str(fabric), target=target, lanes=64, name="rack", first_grpc_port=20060) as system:
        flags = ["--workload", "alexnet", "--model-scale", "0.0001", "--iterations", 2, "--timeout", 300]
        job = system.submit("wide", flags, scheme="panama", lease_ms=60_000)
        results = job.result(400)
    assert [len(tree.children("leaf")) for tree in job.plan.trees] == [WORKERS]
    assert sum(r["wrong_elements"] for r in results.values()) == 0
    assert min(r["checked_elements"] for r in results.values()) > 0
    assert len({r["digest"] for r in results.values()}) == 1


def test_eleven_leaves_are_added_up_by_nodes_of_four_children(tmp_path: Path) -> None:
    """No spine takes eleven leaves: spines add up some of them each, and another node adds up the spines."""
    leaves = [f"leaf{number}" for number in range(1, LEAVES + 1)]
    spines = [f"spine{number}" for number in range(1, SPINES + 1)]
    spec = {
        "name": "deep",
        "defaults": {"link": {"rate": 20}, "switch": {"capacity": 1000, "children": CHILDREN}},
        "switches": {**{leaf: {"role": "leaf"} for leaf in leaves}, **{s: {"role": "spine"} for s in spines}},
        "hosts": {f"h{n}": {"at": leaves[(n - 1) // HOSTS_PER_LEAF]} for n in range(1, 2 * LEAVES + 1)},
        "links": [{"between": [leaf, spine]} for leaf in leaves for spine in spines],
    }
    fabric = tmp_path / "deep.yaml"
    fabric.write_text(yaml.safe_dump(spec))
    with Testbed(str(fabric), target="softswitch", lanes=64, name="deep", first_grpc_port=9850) as system:
        flags = ["--workload", "alexnet", "--model-scale", "0.0001", "--iterations", 2, "--timeout", 60]
        job = system.submit("deep", flags, scheme="packing")
        results = job.result(150)
    for tree in job.plan.trees:
        assert max(Counter(edge.parent for edge in tree.edges).values()) <= CHILDREN
        assert max(levels_above(worker, tree) for worker in results) > 2
    assert len(results) == HOSTS_PER_LEAF * LEAVES
    assert sum(r["wrong_elements"] for r in results.values()) == 0
    assert min(r["checked_elements"] for r in results.values()) > 0
    assert len({r["digest"] for r in results.values()}) == 1


def levels_above(worker: str, tree: Tree) -> int:
    """Nodes between a worker and the root, the root included."""
    parents = {edge.child: edge.parent for edge in tree.edges}
    levels, at = 0, worker
    while at in parents:
        at, levels = parents[at], levels + 1
    return levels
