# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes entries of the tables `ipv4_routes` and `arp_responder` (p4src/common/forwarding.p4), and `hash_seeds`
(p4src/v1model/hash_seed.p4), for packets that are no gradients."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from ipaddress import IPv4Network

from netfold.controller.switches.delivery import mac_number
from netfold.controller.switches.entries import TableEntry, action, entry


def route(to: IPv4Network, ports: Iterable[int]) -> TableEntry:
    """An entry for a prefix by one port, or by several as an ECMP set (P4Runtime spec 9.2.3, one-shot)."""
    calls = (action("nexthop", port=p) for p in sorted(set(ports)))
    return entry("ipv4_routes", _prefix("destination", to), *calls)


def hash_seed(device_id: int) -> TableEntry:
    """The switch's own factor of the hash by which ECMP sets share flows: odd, and unrelated to those of other ids."""
    digest = hashlib.sha256(device_id.to_bytes(8, "big")).digest()
    return entry(
        "hash_seeds", {"version": 4}, action("set_hash_seed", seed=int.from_bytes(digest[:4], "big") | 1)
    )


def arp_answer(subnet: IPv4Network, mac: str) -> TableEntry:
    """An entry that answers ARP requests for any address of the subnet with the MAC address of the switch."""
    return entry("arp_responder", _prefix("target", subnet), action("reply", mac=mac_number(mac)))


def _prefix(field: str, network: IPv4Network) -> dict[str, int | tuple[int, int]]:
    # in P4Runtime a prefix of length 0 is an absent field
    return {field: (int(network.network_address), network.prefixlen)} if network.prefixlen else {}
