# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the entries of every switch that do not depend on jobs: management, ports, hosts, and equal-cost routes between
racks around failed and drained elements."""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network

from netfold.controller.jobs.revisions import REVISIONS, TERMS, Revision
from netfold.controller.switches import tables
from netfold.controller.switches.devices import Device, SwitchTarget
from netfold.controller.switches.entries import Contents, Entity, Field, TableEntry, add
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import NO_ELEMENTS, FailedElements
from netfold.controller.switches.tables import MANAGEMENT_PORT, refuse_all
from netfold.p4src.manifest import Program
from netfold.protocol.wire import Kind
from netfold.topologies.distances import distances
from netfold.topologies.fabric import Fabric, Link, Loopback

MAX_NEXT_HOPS = 512
"""Maximum members of all ECMP sets of a switch together (p4src/common/sizes.p4)."""

MAX_QUEUE_US = 0x7FFFE
"""Longest time in a queue that a threshold of v1model can be (p4src/v1model/arch.p4)."""


OVER_DRAINED, OVER_SILENT = 1 << 20, 1 << 40
"""Costs of a drained element and of a switch that does not answer on a path, where a hop costs 1."""

_KIND = Kind.RESULT
"""Kind of packet that the entry matches: under the management tree there are only READ and RESET, so no packet
matches."""

_CHILD, _SLOT = 1 << 16, 1 << 16


class BaseEntries:
    """Contents of all switches without jobs. Entries that stay the same are reused between calls."""

    def __init__(self, config: FabricConfig) -> None:
        self._config = config
        self._static: dict[str, Contents] | None = None
        self._routes: dict[tuple[IPv4Network, tuple[int, ...]], TableEntry] = {}

    def contents(self, failed: FailedElements, drained: FailedElements = NO_ELEMENTS) -> dict[str, Contents]:
        if self._static is None:
            self._static = _static_entries(self._config)
        contents = {switch: dict(entries) for switch, entries in self._static.items()}
        routes: dict[tuple[IPv4Network, tuple[int, ...]], TableEntry] = {}
        for switch, prefix, ports in ecmp_routes(self._config, failed, drained):
            key = (prefix, ports)
            if key not in routes:
                routes[key] = self._routes.get(key) or tables.route(prefix, ports)
            add(contents[switch], routes[key])
        self._routes = routes
        return contents

    def set_program(self, switch: str, program: Program) -> Contents:
        """Set the program that a switch runs from now on. Return the entries that depend on it."""
        thresholds: Contents = {}
        for entity in _thresholds(self._config, switch, program):
            add(thresholds, entity)
        if self._static is not None:
            self._static[switch].update(thresholds)
        return thresholds


def management_entries(config: FabricConfig, switch: str) -> Iterator[Entity]:
    """Entries for READ and RESET from the port of the controller, and from loopback ports, which lead to the slots of
    other pipes, and for READ alone from neighboring switches (link probes). The first entry is the marker of the
    store."""
    loopbacks = (x.port for x in config.fabric.switch(switch).loopbacks)
    for port in (config.device(switch).cpu_port, *loopbacks):
        yield from tables.slot_access(port, config.management_tree, Kind.READ, Kind.RESET)
    for near, port in config.fabric.ports[switch].items():
        if not config.fabric.is_host(near):
            yield from tables.slot_access(port, config.management_tree, Kind.READ)


def _port_entries(config: FabricConfig, switch: str) -> Iterator[Entity]:
    """Entries for delivery by each port."""
    fabric, known = config.fabric, config.addresses
    own = known.switches[switch].mac
    for near, port in fabric.ports[switch].items():
        if fabric.is_host(near):
            host = known.hosts[near]
            yield tables.to_host(port, own, host.mac, host.ip)
        else:
            yield tables.to_switch(port, own, known.switches[near].mac)


def _thresholds(config: FabricConfig, switch: str, program: Program | None) -> Iterator[Entity]:
    """Entries for ECN marking at each port. `program`: the one that the switch runs, if it is known."""
    fabric, device = config.fabric, config.device(switch)
    links: list[tuple[int, Link | Loopback]] = [
        (port, fabric.link(switch, near)) for near, port in fabric.ports[switch].items()
    ]
    links += [(loopback.port, loopback) for loopback in fabric.switch(switch).loopbacks]
    is_timed = device.target is SwitchTarget.V1MODEL if program is None else program.timed
    for port, link in links:
        threshold = _marking_threshold(config, device, link.queue, link.rate, is_timed=is_timed)
        yield tables.ecn_threshold(port, threshold)


def _marking_threshold(
    config: FabricConfig, device: Device, queue: int, rate: float, *, is_timed: bool
) -> int:
    """Depth of a queue of `queue` packets from which packets are marked, in the unit of the program: cells of a chip's
    buffer, packets, or microseconds that full packets take, because headers alone take less."""
    packets = max(1, int(queue * config.mark_fraction))
    if not is_timed:
        return packets * device.packet_cells
    seconds = packets * config.packet_bits / (rate * config.fabric.unit.bits_per_second)
    return round(min(max(1.0, 1e6 * seconds), MAX_QUEUE_US))


def _static_entries(config: FabricConfig) -> dict[str, Contents]:
    """The entries that switches have independently of failures: management, ports, routes and ARP of the hosts of the
    own rack."""
    known = config.addresses
    contents: dict[str, Contents] = {s.name: {} for s in config.fabric.switches}
    for switch, entries in contents.items():
        program = config.fabric.switch(switch).program
        if config.device(switch).target is SwitchTarget.V1MODEL if program is None else program.seeded:
            add(entries, tables.hash_seed(known.switches[switch].device_id))
        for entity in (
            *management_entries(config, switch),
            *_port_entries(config, switch),
            *_thresholds(config, switch, program),
        ):
            add(entries, entity)
    for host in known.hosts.values():
        add(contents[host.switch], tables.route(_host_prefix(host.ip), [host.port]))
    for rack in known.switches.values():
        if rack.prefix is not None:
            add(contents[rack.name], tables.arp_answer(rack.prefix, rack.mac))
    return contents


def _host_prefix(ip: IPv4Address) -> IPv4Network:
    return IPv4Network((int(ip), 32))


def ecmp_routes(
    config: FabricConfig, failed: FailedElements, drained: FailedElements = NO_ELEMENTS
) -> Iterator[tuple[str, IPv4Network, tuple[int, ...]]]:
    """For each switch and each other rack, yield switch, prefix of the rack, ports of all shortest paths there.

    Paths take no failed link. A switch that does not answer its controller may still forward, and drained elements do:
    paths take as few of them as possible, drained ones rather than silent ones.
    """
    fabric = config.fabric
    neighbors = _working_neighbors(fabric, failed.links)
    steps = _steps(neighbors, failed.switches, drained)
    racks = {s.name: s.prefix for s in config.addresses.switches.values() if s.prefix is not None}
    max_ports = max(1, MAX_NEXT_HOPS // max(1, len(racks)) - 1)
    for rack, prefix in racks.items():
        costs = _costs(neighbors, steps, rack) if failed.switches or drained else distances(neighbors, rack)
        for switch, cost in costs.items():
            if switch == rack:
                continue
            closer = (n for n in neighbors[switch] if costs[n] + steps[n, switch] == cost)
            yield switch, prefix, tuple(fabric.ports[switch][n] for n in closer)[:max_ports]


def _working_neighbors(fabric: Fabric, failed: Container[frozenset[str]]) -> dict[str, list[str]]:
    """For each switch, the switches behind its working links."""

    def works(a: str, b: str) -> bool:
        return not fabric.is_host(b) and frozenset((a, b)) not in failed

    return {s.name: [n for n in fabric.neighbors[s.name] if works(s.name, n)] for s in fabric.switches}


def _steps(
    neighbors: Mapping[str, Iterable[str]], silent: Container[str], drained: FailedElements
) -> dict[tuple[str, str], int]:
    """The cost of each step (from, to) between neighbors, on paths that begin at a rack."""
    over = {s: OVER_SILENT * (s in silent) + OVER_DRAINED * (s in drained.switches) for s in neighbors}
    return {
        (a, b): 1 + over[b] + OVER_DRAINED * (frozenset((a, b)) in drained.links)
        for a, found in neighbors.items()
        for b in found
    }


def _costs(
    neighbors: Mapping[str, Iterable[str]], steps: Mapping[tuple[str, str], int], rack: str
) -> dict[str, int]:
    """The cost of the cheapest path from the rack to each switch that it reaches."""
    costs: dict[str, int] = {}
    queue = [(0, rack)]
    while queue:
        cost, switch = heapq.heappop(queue)
        if switch not in costs:
            costs[switch] = cost
            for near in neighbors[switch]:
                if near not in costs:
                    heapq.heappush(queue, (cost + steps[switch, near], near))
    return costs


def revision_entry(cpu_port: int, management_tree: int, revision: Revision) -> TableEntry:
    number = revision.number % REVISIONS
    return refuse_all(
        {
            "ingress_port": cpu_port,
            "udp_port": MANAGEMENT_PORT,
            "kind": _KIND.value,
            "tree": management_tree,
            "child": (revision.term % TERMS, _CHILD - 1),
            "epoch": (number // _SLOT, REVISIONS // _SLOT - 1),
            "slot": (number % _SLOT, _SLOT - 1),
        }
    )


def revisions_in(contents: Contents, management_tree: int) -> list[Revision]:
    """The revisions of a switch: one, or two if a write was interrupted."""
    found = []
    for entity in contents.values():
        if isinstance(entity, TableEntry) and entity.table == "admission":
            match = dict(entity.match)
            if (match["tree"], match["kind"]) == (management_tree, _KIND.value):
                number = _value(match.get("epoch", 0)) * _SLOT + _value(match.get("slot", 0))
                found.append(Revision(_value(match.get("child", 0)), number))
    return found


def _value(field: Field) -> int:
    return field if isinstance(field, int) else field[0]
