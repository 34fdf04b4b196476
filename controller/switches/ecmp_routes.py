# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Computes equal-cost routes between racks, around failed elements."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import FailedElements
from netfold.topologies.distances import distances
from netfold.topologies.fabric import Fabric

MAX_NEXT_HOPS = 512
"""Maximum members of all ECMP sets of a switch together (p4src/common/sizes.p4)."""


def ecmp_routes(
    config: FabricConfig, failed: FailedElements
) -> Iterator[tuple[str, IPv4Network, tuple[int, ...]]]:
    """For each switch and each other rack, yield switch, prefix of the rack, ports of all shortest paths there.

    A switch that does not answer its controller may still forward. Paths avoid it unless no other path exists.
    """
    fabric = config.fabric
    working = _working_neighbors(fabric, failed)
    with_silent = _working_neighbors(fabric, FailedElements(failed.links)) if failed.switches else working
    racks = {s.name: s.prefix for s in config.addresses.switches.values() if s.prefix is not None}
    max_ports = max(1, MAX_NEXT_HOPS // max(1, len(racks)) - 1)
    for rack, prefix in racks.items():
        hops = distances(working, rack)
        hops_with_silent = distances(with_silent, rack) if failed.switches else hops
        for switch, distance in hops_with_silent.items():
            if distance == 0:
                continue
            graph, known = (working, hops) if switch in hops else (with_silent, hops_with_silent)
            closer = known[switch] - 1
            ports = [fabric.ports[switch][n] for n in graph[switch] if known.get(n) == closer]
            yield switch, prefix, tuple(ports[:max_ports])


def _working_neighbors(fabric: Fabric, failed: FailedElements) -> dict[str, list[str]]:
    """For each switch, the switches behind its working links."""

    def works(a: str, b: str) -> bool:
        return not fabric.is_host(b) and not failed.covers(a, b)

    return {s.name: [n for n in fabric.neighbors[s.name] if works(s.name, n)] for s in fabric.switches}
