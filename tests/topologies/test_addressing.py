# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Addresses: unique, inside their rack's prefix, the same for the same fabric, and enough for 1,024 hosts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.topologies import generators as g
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric, FabricError, Host, Link, Switch


def _check(fabric: Fabric) -> None:
    a = addresses(fabric)
    assert set(a.hosts) == {h.name for h in fabric.hosts}
    everything = [*a.hosts.values(), *a.switches.values()]
    gateways = [s.gateway_ip for s in a.switches.values() if s.gateway_ip]
    ips = [a.ip(e.name) for e in everything] + gateways
    assert len(set(ips)) == len(ips)
    assert len({e.mac for e in everything}) == len(everything)
    prefixes = [s.prefix for s in a.switches.values() if s.prefix]
    assert len(set(prefixes)) == len(prefixes)
    for host in a.hosts.values():
        switch = a.switches[host.switch]
        assert host.ip in host.prefix
        assert host.prefix == switch.prefix
        assert host.gateway_ip == switch.gateway_ip
        assert host.gateway_ip in host.prefix
        assert host.gateway_mac == switch.mac
        assert fabric.ports[host.switch][host.name] == host.port
    for i, switch in enumerate(fabric.switches):
        assert a.switches[switch.name].device_id == i + 1
        assert a.switches[switch.name].grpc_port == 9559 + i
    assert addresses(fabric) == a


@given(leaves=st.integers(1, 9), spines=st.integers(1, 3), hosts=st.integers(1, 6), servers=st.integers(0, 3))
@settings(max_examples=30)
def test_unique_and_consistent(leaves: int, spines: int, hosts: int, servers: int) -> None:
    _check(g.leaf_spine(leaves, spines, hosts, parameter_servers=servers))


@pytest.mark.parametrize(
    "fabric", [g.fat_tree(16), g.single_switch(1024), g.grid_leaf_spine()], ids=lambda f: f.name
)
def test_large_fabrics_fit(fabric: Fabric) -> None:
    _check(fabric)


def test_form() -> None:
    a = addresses(g.leaf_spine(2, 1, 2))
    assert str(a.hosts["h3"].ip) == "10.2.0.1"
    assert a.hosts["h3"].mac == "02:00:0a:02:00:01"
    assert str(a.hosts["h3"].gateway_ip) == "10.2.255.254"
    assert str(a.ip("spine1")) == "10.255.0.3"
    assert a.switches["spine1"].prefix is None
    assert a.switches["leaf2"].grpc_address == "127.0.0.1:9560"


def test_too_many_racks() -> None:
    n = 255
    switches = tuple(Switch(f"s{i}") for i in range(n))
    links = [Link(f"h{i}", f"s{i}", 1) for i in range(n)] + [Link("s0", f"s{i}", 1) for i in range(1, n)]
    fabric = Fabric("wide", tuple(Host(f"h{i}") for i in range(n)), switches, tuple(links))
    with pytest.raises(FabricError, match="255 switches have hosts"):
        addresses(fabric)
