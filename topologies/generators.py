# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Fabrics from a few numbers: a single switch, leaf-spine, three-tier fat-trees, and the sizes that the
papers use.

Hosts are `h1`, `h2`, ... in rack order, parameter servers `ps1`, `ps2`, ... dealt out to the racks one by
one. In `links` a rack's hosts come before its uplinks, so that host `i` of a rack hangs on port `i`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from netfold.topologies.fabric import Fabric, FabricError, Host, Link, Switch, SwitchRole, Unit

MBIT = Unit("Mbit/s", 1e6)
GBIT = Unit("Gbit/s", 1e9)


@dataclass(frozen=True)
class LinkKind:
    """Properties that all links of one kind share; see `Link`."""

    rate: float
    queue: int = 64
    delay_ms: float = 0.0

    def between(self, a: str, b: str) -> Link:
        return Link(a, b, self.rate, self.queue, self.delay_ms)


@dataclass(frozen=True)
class _Racks:
    hosts: tuple[Host, ...]
    links: tuple[Link, ...]


def single_switch(
    hosts: int,
    *,
    parameter_servers: int = 0,
    rate: float = 100.0,
    queue: int = 64,
    delay_ms: float = 0.0,
    capacity: float | None = None,
    slots: int = 4096,
    children: int | None = None,
    unit: Unit = MBIT,
    name: str | None = None,
) -> Fabric:
    """One switch `s1` with `hosts` hosts. `capacity` None means that it aggregates whatever its links
    carry."""
    _at_least("hosts", hosts, 1)
    racks = _fill_racks(("s1",), [hosts], parameter_servers, LinkKind(rate, queue, delay_ms))
    switch = Switch("s1", SwitchRole.LEAF, slots=slots, children=children)
    return _with_capacity(
        Fabric(name or f"single-{hosts}", racks.hosts, (switch,), racks.links, unit), capacity
    )


def leaf_spine(
    leaves: int,
    spines: int,
    hosts_per_leaf: int | None = None,
    *,
    hosts: int | None = None,
    parameter_servers: int = 0,
    rate: float = 100.0,
    fabric_rate: float | None = None,
    oversubscription: float | None = None,
    queue: int = 64,
    delay_ms: float = 0.0,
    capacity: float | None = None,
    slots: int = 4096,
    children: int | None = None,
    unit: Unit = MBIT,
    name: str | None = None,
) -> Fabric:
    """Every leaf joined with every spine.

    hosts_per_leaf, hosts  one of the two: hosts of each leaf, or of all together (first leaves get one more)
    rate                   of the links between hosts and leaves (fabric units)
    fabric_rate            of the links between leaves and spines; or
    oversubscription       what the fullest leaf's hosts can send, over what its uplinks carry: 1 blocks
                           nothing, 4 is 4:1. With neither, uplinks have `rate`.
    capacity               what each switch can aggregate; None means whatever its links carry
    children               most children of a node in a switch; None means what its program takes by default
    """
    _at_least("leaves", leaves, 1)
    _at_least("spines", spines, 1)
    counts = _deal_hosts(leaves, hosts_per_leaf, hosts)
    if fabric_rate is not None and oversubscription is not None:
        raise FabricError("leaf_spine: give fabric_rate or oversubscription, not both")
    if oversubscription is not None:
        if not oversubscription > 0:
            raise FabricError(f"leaf_spine: oversubscription is {oversubscription}; it must be above 0")
        fabric_rate = max(counts) * rate / (spines * oversubscription)
    leaf_names = _names("leaf", leaves)
    spine_names = _names("spine", spines)
    racks = _fill_racks(leaf_names, counts, parameter_servers, LinkKind(rate, queue, delay_ms))
    uplink = LinkKind(fabric_rate or rate, queue, delay_ms)
    uplinks = tuple(uplink.between(leaf, spine) for leaf in leaf_names for spine in spine_names)
    switches = (
        *(Switch(leaf, SwitchRole.LEAF, slots=slots, children=children) for leaf in leaf_names),
        *(Switch(spine, SwitchRole.SPINE, slots=slots, children=children) for spine in spine_names),
    )
    fabric = Fabric(
        name or f"leaf-spine-{leaves}x{spines}", racks.hosts, switches, racks.links + uplinks, unit
    )
    return _with_capacity(fabric, capacity)


def fat_tree(
    k: int,
    *,
    hosts_per_edge: int | None = None,
    parameter_servers: int = 0,
    rate: float = 100.0,
    queue: int = 64,
    delay_ms: float = 0.0,
    capacity: float | None = None,
    slots: int = 4096,
    children: int | None = None,
    unit: Unit = MBIT,
    name: str | None = None,
) -> Fabric:
    """The k-ary fat-tree (Al-Fares et al., SIGCOMM 2008): k pods of k/2 edge and k/2 aggregation switches,
    (k/2)^2 cores, k/2 hosts on each edge switch unless `hosts_per_edge` says otherwise. Aggregation switch
    `j` of each pod reaches cores `j*k/2 ... j*k/2 + k/2 - 1`."""
    if k < 2 or k % 2:
        raise FabricError(f"fat_tree: k is {k}; it must be even and at least 2")
    half = k // 2
    edges, aggregations, cores = (
        _names("edge", k * half),
        _names("agg", k * half),
        _names("core", half * half),
    )
    kind = LinkKind(rate, queue, delay_ms)
    per_edge = half if hosts_per_edge is None else hosts_per_edge
    racks = _fill_racks(edges, _deal_hosts(len(edges), per_edge, None), parameter_servers, kind)
    links = list(racks.links)
    for pod in range(k):
        mine = range(pod * half, (pod + 1) * half)
        links += [kind.between(edges[e], aggregations[a]) for e in mine for a in mine]
    for a, aggregation in enumerate(aggregations):
        first = (a % half) * half
        links += [kind.between(aggregation, cores[c]) for c in range(first, first + half)]
    switches = (
        *(Switch(n, SwitchRole.LEAF, slots=slots, children=children) for n in edges),
        *(Switch(n, SwitchRole.AGGREGATION, slots=slots, children=children) for n in aggregations),
        *(Switch(n, SwitchRole.CORE, slots=slots, children=children) for n in cores),
    )
    return _with_capacity(
        Fabric(name or f"fat-tree-{k}", racks.hosts, switches, tuple(links), unit), capacity
    )


def grid_fat_tree() -> Fabric:
    """GRID section 6.3: 32 edge, 32 aggregation and 16 core switches, 6 servers a rack (192), links of 100
    Gbit/s. The paper draws capacities at random from 100 to 3,200 Gbit/s; see `with_capacities`."""
    return fat_tree(8, hosts_per_edge=6, unit=GBIT, name="grid-fat-tree")


def grid_leaf_spine() -> Fabric:
    """GRID section 6.3: 30 leaves, 30 spines, 500 servers, links of 100 Gbit/s; capacities as in
    `grid_fat_tree`."""
    return leaf_spine(30, 30, hosts=500, unit=GBIT, name="grid-leaf-spine")


def inart_fat_tree() -> Fabric:
    """InArt section 5.3: 9 core, 18 aggregation and 18 ToR switches, 54 servers (a 6-ary fat-tree); links of
    20 Mbit/s, every switch aggregates 9 Mbit/s."""
    return fat_tree(6, rate=20.0, capacity=9.0, name="inart-fat-tree")


def with_capacities(fabric: Fabric, capacities: Mapping[str, float]) -> Fabric:
    """Replace the aggregation capacities (fabric units) of the named switches. A switch of capacity 0 only
    forwards."""
    _refuse_unknown(fabric, capacities, {s.name for s in fabric.switches}, "switch")
    switches = tuple(replace(s, capacity=capacities.get(s.name, s.capacity)) for s in fabric.switches)
    return replace(fabric, switches=switches)


def with_parameter_servers(fabric: Fabric, names: Iterable[str], capacity: float | None = None) -> Fabric:
    """Make the named hosts, and no others, parameter servers that receive at `capacity` (fabric units)."""
    chosen = set(names)
    _refuse_unknown(fabric, chosen, {h.name for h in fabric.hosts}, "host")
    hosts = tuple(
        replace(h, parameter_server=True, capacity=capacity)
        if h.name in chosen
        else replace(h, parameter_server=False, capacity=None)
        for h in fabric.hosts
    )
    return replace(fabric, hosts=hosts)


def _refuse_unknown(fabric: Fabric, given: Iterable[str], known: set[str], kind: str) -> None:
    for name in given:
        if name not in known:
            raise FabricError(f"{fabric.name}: '{name}' is no {kind}")


def _names(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{i}" for i in range(1, count + 1))


def _at_least(what: str, value: int, least: int) -> None:
    if value < least:
        raise FabricError(f"{what} is {value}; it must be at least {least}")


def _deal_hosts(racks: int, per_rack: int | None, total: int | None) -> list[int]:
    if (per_rack is None) == (total is None):
        raise FabricError(
            "give the hosts of each leaf (hosts_per_leaf) or of all together (hosts): one of the two"
        )
    if total is None:
        assert per_rack is not None
        _at_least("hosts of a rack", per_rack, 1)
        return [per_rack] * racks
    _at_least("hosts", total, 1)
    return [total // racks + (i < total % racks) for i in range(racks)]


def _fill_racks(switches: tuple[str, ...], counts: list[int], servers: int, kind: LinkKind) -> _Racks:
    _at_least("parameter_servers", servers, 0)
    hosts: list[Host] = []
    links: list[Link] = []
    for rack, switch in enumerate(switches):
        first = sum(counts[:rack]) + 1
        own = [Host(f"h{i}") for i in range(first, first + counts[rack])]
        own += [Host(f"ps{i + 1}", parameter_server=True) for i in range(rack, servers, len(switches))]
        hosts += own
        links += [kind.between(h.name, switch) for h in own]
    return _Racks(tuple(hosts), tuple(links))


def _with_capacity(fabric: Fabric, capacity: float | None) -> Fabric:
    """Every switch aggregates `capacity`, or whatever its links carry."""
    if capacity is not None and (capacity < 0 or not math.isfinite(capacity)):
        raise FabricError(f"{fabric.name}: capacity is {capacity}; it must be 0 (only forwards) or more")

    def of(switch: str) -> float:
        rates: float = sum(link.rate for link in fabric.neighbors[switch].values())
        return rates if capacity is None else capacity

    return with_capacities(fabric, {s.name: of(s.name) for s in fabric.switches})
