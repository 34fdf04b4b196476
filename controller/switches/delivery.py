# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes entries of the tables `neighbors` and `ecn_thresholds` (p4src/common/delivery.p4): the last step before a
packet is sent, one entry a port."""

from __future__ import annotations

from ipaddress import IPv4Address

from netfold.controller.switches.entries import TableEntry, action, entry


def to_host(port: int, src: str, dst: str, address: IPv4Address) -> TableEntry:
    call = action("to_host", src=mac_number(src), dst=mac_number(dst), address=int(address))
    return entry("neighbors", {"port": port}, call)


def to_switch(port: int, src: str, dst: str) -> TableEntry:
    return entry("neighbors", {"port": port}, action("to_switch", src=mac_number(src), dst=mac_number(dst)))


def ecn_threshold(port: int, depth: int) -> TableEntry:
    """An entry that marks ECN-capable packets from a queue depth of `depth` on, in the unit of the switch."""
    return entry("ecn_thresholds", {"port": port}, action("set_ecn_threshold", depth=depth))


def mac_number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)
