# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A name keeps its numbers while others come and go, and numbers that a file gives are checked."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.topologies import generators as g
from netfold.topologies.address_assignment import Numbers, numbered
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric, FabricError, Host, Link, Switch
from netfold.topologies.spec import fabric_from_spec, parse_fabric, spec_text
from tests.simulation.fabric_file import without

RACK = """
name: own
defaults: {link: {rate: 100}}
switches:
  leaf1: {role: leaf, prefix: 172.20.4.0/24, loopback: 172.20.0.1, device_id: 7}
  leaf2: {role: leaf}
hosts:
  h1: {at: leaf1, address: 172.20.4.10}
  h2: {at: leaf1}
  h3: {at: leaf2}
links:
  - between: [leaf1, leaf2]
"""


def _with_host(fabric: Fabric, name: str, leaf: str) -> Fabric:
    """The host and its link come first, so that all positions change."""
    return replace(fabric, hosts=(Host(name), *fabric.hosts), links=(Link(name, leaf, 100), *fabric.links))


def _of_names(fabric: Fabric) -> dict[object, object]:
    """Each number by its name."""
    known, ports = addresses(fabric), fabric.ports
    switches = {n: (s.loopback, s.device_id, s.grpc_port, s.mac) for n, s in known.switches.items()}
    prefixes = {("prefix", n): s.prefix for n, s in known.switches.items() if s.prefix is not None}
    hosts = {n: (h.ip, h.mac) for n, h in known.hosts.items()}
    links = {(s.name, n): p for s in fabric.switches for n, p in ports[s.name].items()}
    return {**switches, **prefixes, **hosts, **links}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=8))
@settings(max_examples=25, deadline=None)
def test_a_name_keeps_its_numbers_and_no_other_gets_them(changes: list[tuple[bool, int]]) -> None:
    fabric, known, seen = g.leaf_spine(3, 2, 2), Numbers(), {}
    for number, (is_new, place) in enumerate([(True, 0), *changes]):
        if is_new:
            fabric = _with_host(fabric, f"new{number}", f"leaf{place % 3 + 1}")
        else:
            fabric = without(fabric, ["h1", "h4", "new0", "spine2"][place])
        full = numbered(fabric, known)
        known = Numbers.from_text((known | Numbers.of(full)).text)
        for name, value in _of_names(full).items():
            assert seen.setdefault(name, value) == value
    hosts = [v for k, v in seen.items() if isinstance(k, str)]
    assert len(set(hosts)) == len(hosts)


def test_what_the_file_gives_counts_and_the_rest_is_unused() -> None:
    a = addresses(parse_fabric(RACK, "own.yaml"))
    assert a.hosts["h1"].ip == IPv4Address("172.20.4.10")
    assert a.hosts["h2"].ip == IPv4Address("172.20.4.1")
    assert a.hosts["h1"].gateway_ip == IPv4Address("172.20.4.254")
    assert (a.switches["leaf1"].device_id, a.switches["leaf1"].grpc_port) == (7, 9565)
    assert a.switches["leaf1"].loopback == IPv4Address("172.20.0.1")
    assert (a.switches["leaf2"].device_id, str(a.switches["leaf2"].prefix)) == (1, "10.1.0.0/16")


def test_prefixes_of_a_site_are_not_given_to_other_racks() -> None:
    fabric = parse_fabric(
        RACK.replace("172.20.4.0/24", "10.1.4.0/22").replace("172.20.4.10", "10.1.4.10"), "f"
    )
    assert str(addresses(fabric).switches["leaf2"].prefix) == "10.2.0.0/16"


def test_a_full_fabric_is_read_from_its_text_as_it_was() -> None:
    full = numbered(parse_fabric(RACK, "own.yaml"))
    assert fabric_from_spec(spec_text(full)) == full
    assert numbered(full) == full
    assert Fabric.from_graph(full.graph) == full


def test_a_known_address_outside_of_a_new_prefix_is_not_kept() -> None:
    before = numbered(g.single_switch(2))
    after = replace(g.single_switch(2), switches=(Switch("s1", prefix=IPv4Network("10.9.0.0/24")),))
    assert str(addresses(numbered(after, Numbers.of(before))).hosts["h1"].ip) == "10.9.0.1"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("address: 172.20.4.10", "address: 172.20.5.10", r"own.yaml:8:19: .* is outside of 172.20.4.0/24"),
        ("address: 172.20.4.10", "address: 172.20.4.254", "is the network's, the gateway's or the broadcast"),
        ("address: 172.20.4.10", "address: 172.20.4", "own.yaml:8:19: .*expected an IPv4 address"),
        ("h2: {at: leaf1}", "h2: {at: leaf1, address: 172.20.4.10}", "address 172.20.4.10 of 'h2' is already"),
        ("address: 172.20.4.10", "address: 3232235777", "expected an IPv4 address"),
        ("172.20.4.0/24", "172.20.4.1/24", "expected an IPv4 prefix"),
        ("172.20.4.0/24", "0.0.0.0/0", "expected unicast addresses, from /8 to /29"),
        ("172.20.4.0/24", "172.20.4.10/32", "expected unicast addresses, from /8 to /29"),
        ("172.20.0.1", "172.20.4.77", r"loopback 172.20.4.77 of 'leaf1' lies in 172.20.4.0/24"),
        ("172.20.0.1", "224.0.0.5", "expected a unicast address"),
        ("leaf2: {role: leaf}", "leaf2: {prefix: 172.20.0.0/16}", "overlaps with"),
        ("leaf2: {role: leaf}", "leaf2: {device_id: 7}", "device id 7 of 'leaf2' is already that of 'leaf1'"),
        ("leaf2: {role: leaf}", "leaf2: {loopback: 172.20.4.10}", "172.20.4.10"),
        ("device_id: 7", "device_id: 0", "device_id is 0"),
    ],
)  # fmt: skip
def test_wrong_numbers_are_named_with_their_line(old: str, new: str, message: str) -> None:
    assert old in RACK
    with pytest.raises(FabricError, match=message):
        parse_fabric(RACK.replace(old, new), "own.yaml")


def test_a_small_prefix_has_an_end() -> None:
    text = RACK.replace("172.20.4.0/24", "172.20.4.8/29")
    hosts = "".join(f"  x{i}: {{at: leaf1}}\n" for i in range(8))
    with pytest.raises(FabricError, match=r"172.20.4.8/29 has not enough addresses"):
        addresses(parse_fabric(text.replace("  h3:", hosts + "  h3:"), "own.yaml"))


def test_a_prefix_around_numbers_in_use_is_refused() -> None:
    before = numbered(g.leaf_spine(2, 1, 1))
    text = "10.255.0.0/16"
    switches = tuple(
        replace(s, prefix=IPv4Network(text)) if s.name == "leaf1" else s
        for s in g.leaf_spine(2, 1, 1).switches
    )
    with pytest.raises(FabricError, match=r"10.255.0.1 of"):
        numbered(replace(g.leaf_spine(2, 1, 1), switches=switches), Numbers.of(before))
