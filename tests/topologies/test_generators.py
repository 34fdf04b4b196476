# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Generators: the counts that the papers and the fat-tree's definition give, and what capacities follow."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.topologies import generators as g
from netfold.topologies.fabric import Fabric, FabricError, Host, Link, Switch, SwitchRole


def _counts(fabric: Fabric) -> dict[str, int]:
    roles = [s.role for s in fabric.switches]
    return {str(role): roles.count(role) for role in SwitchRole if role in roles}


def test_sizes_of_the_papers() -> None:
    fat = g.grid_fat_tree()
    assert _counts(fat) == {"leaf": 32, "aggregation": 32, "core": 16}
    assert len(fat.hosts) == 192
    assert all(len(fat.ports[f"edge{i}"]) == 6 + 4 for i in range(1, 33))

    flat = g.grid_leaf_spine()
    assert _counts(flat) == {"leaf": 30, "spine": 30}
    assert len(flat.hosts) == 500
    assert {len(flat.ports[f"leaf{i}"]) - 30 for i in range(1, 31)} == {16, 17}

    inart = g.inart_fat_tree()
    assert _counts(inart) == {"leaf": 18, "aggregation": 18, "core": 9}
    assert len(inart.hosts) == 54
    assert {s.capacity for s in inart.switches} == {9}
    assert {x.rate for x in inart.links} == {20}


@given(k=st.sampled_from([2, 4, 6, 8]))
@settings(max_examples=4)
def test_fat_tree_has_all_shortest_paths(k: int) -> None:
    """Al-Fares et al.: k^3/4 hosts, 5k^2/4 switches of k ports, (k/2)^2 shortest paths between pods."""
    fabric = g.fat_tree(k)
    assert len(fabric.hosts) == k**3 // 4
    assert len(fabric.switches) == 5 * k * k // 4
    assert {len(fabric.ports[s.name]) for s in fabric.switches} == {k}
    paths = list(nx.all_shortest_paths(fabric.graph, "h1", fabric.hosts[-1].name))
    assert len(paths) == (k // 2) ** 2


@given(leaves=st.integers(1, 6), spines=st.integers(1, 4), hosts=st.integers(1, 5), servers=st.integers(0, 4))
@settings(max_examples=40)
def test_leaf_spine_is_complete(leaves: int, spines: int, hosts: int, servers: int) -> None:
    fabric = g.leaf_spine(leaves, spines, hosts, parameter_servers=servers)
    assert len(fabric.links) == leaves * spines + leaves * hosts + servers
    assert [h.name for h in fabric.hosts if not h.parameter_server] == [
        f"h{i + 1}" for i in range(leaves * hosts)
    ]
    assert sum(h.parameter_server for h in fabric.hosts) == servers
    for switch in fabric.switches:
        assert switch.capacity == sum(fabric.link(switch.name, n).rate for n in fabric.ports[switch.name])


def test_oversubscription_sets_the_uplinks() -> None:
    fabric = g.leaf_spine(2, 2, 8, rate=100, oversubscription=4)
    assert fabric.link("leaf1", "spine2").rate == 100
    assert g.leaf_spine(2, 2, 8, rate=100).link("leaf1", "spine1").rate == 100
    assert g.leaf_spine(2, 4, 8, rate=100, oversubscription=1).link("leaf1", "spine1").rate == 200


def test_hosts_come_first_in_the_ports() -> None:
    fabric = g.leaf_spine(2, 2, 2)
    assert fabric.ports["leaf2"] == {"h3": 1, "h4": 2, "spine1": 3, "spine2": 4}


@pytest.mark.parametrize("build", [
    lambda: g.fat_tree(5),
    lambda: g.leaf_spine(0, 1, 1),
    lambda: g.leaf_spine(2, 2, 2, hosts=4),
    lambda: g.leaf_spine(2, 2, 2, oversubscription=0),
    lambda: g.single_switch(0),
    lambda: g.single_switch(1, capacity=float("nan")),
    lambda: g.single_switch(1, rate=0),
    lambda: g.with_capacities(g.single_switch(1), {"s2": 1}),
    lambda: g.with_parameter_servers(g.single_switch(1), ["h9"]),
])  # fmt: skip
def test_bad_arguments(build: object) -> None:
    assert callable(build)
    with pytest.raises(FabricError):
        build()


def test_changes_leave_the_rest() -> None:
    fabric = g.leaf_spine(2, 2, 2)
    other = g.with_parameter_servers(g.with_capacities(fabric, {"leaf1": 7}), ["h2"], capacity=50)
    assert other.switch("leaf1").capacity == 7
    assert other.switch("leaf2") == fabric.switch("leaf2")
    assert [h.name for h in other.hosts if h.parameter_server] == ["h2"]
    assert other.ingress_capacity("h2") == 50
    assert other.links == fabric.links


@pytest.mark.parametrize(("change", "says"), [
    ({"rate": float("inf")}, "rate inf"),
    ({"rate": float("nan")}, "rate nan"),
    ({"queue": 0}, "queue of 0"),
    ({"delay_ms": -1}, "delay of -1"),
])  # fmt: skip
def test_links_that_cannot_be(change: dict[str, float], says: str) -> None:
    with pytest.raises(FabricError, match=says):
        g.single_switch(2, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "1a", "../etc", "a b", "x" * 33])
def test_names_that_would_hurt(name: str) -> None:
    """Names become file names and options."""
    with pytest.raises(FabricError, match="a name starts with a letter"):
        Fabric("f", (), (Switch(name),), ())


def test_a_host_hangs_on_a_switch() -> None:
    with pytest.raises(FabricError, match="is attached to a host"):
        Fabric("f", (Host("a"), Host("b")), (), (Link("a", "b", 1),))
