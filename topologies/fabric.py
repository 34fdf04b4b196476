# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The fabric: hosts, switches and the links between them, with their capacities.

Planners read capacities, the testbed builds a network, plots draw it. Rates and capacities are in the fabric's `unit`
(the papers' examples use Gbit/s or none); `unit.bits_per_second` converts one unit to the wire.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Any

from netfold.p4src.manifest import Program, ordinary_program, usual_children
from netfold.topologies.address_faults import number_faults
from netfold.topologies.distances import distances
from netfold.topologies.faults import Fault, hint
from netfold.topologies.ports import Chip, pipe_of, port_faults

if TYPE_CHECKING:
    import networkx as nx

NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9_.-]{0,31}$"
NAME_RULE = "a name starts with a letter and has at most 32 letters, digits, '_', '.' and '-'"


class FabricError(ValueError):
    """An invalid fabric; the message has the element and the expected value. `faults`: all errors of its elements."""

    def __init__(self, message: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class SwitchRole(StrEnum):
    """The tier of a switch. Planners of rack-rooted trees select leaves, those of spine-rooted trees the top tier."""

    LEAF = "leaf"
    AGGREGATION = "aggregation"
    SPINE = "spine"
    CORE = "core"
    PLAIN = "plain"


@dataclass(frozen=True)
class Unit:
    """The unit of a fabric's numbers: its name and its bits per second."""

    name: str = "Mbit/s"
    bits_per_second: float = 1e6


@dataclass(frozen=True)
class Host:
    """A server. `capacity`: ingress rate as a parameter server (fabric units); None: its link's rate. `address`: None:
    one of its rack (address_assignment.py)."""

    name: str
    parameter_server: bool = False
    capacity: float | None = None
    address: IPv4Address | None = None


@dataclass(frozen=True)
class Loopback:
    """A port in loopback mode: receives the packets it sends. `rate`: fabric units; `queue`: packets."""

    port: int
    rate: float
    queue: int = 64


@dataclass(frozen=True)
class Switch:
    """A switch. `capacity`: sum of the incoming rates that it can aggregate (fabric units, GRID's C_s); 0: only
    forwards. `slots`: size of its slot pool (docs/reference/protocol.md).

    ports      (neighbor, port number) of all neighbors, or none: numbered from 1
    chip       None: all ports lie in one pipe
    loopbacks  ports by which packets reach another pipe
    children   most children that it takes as a node of a tree; None: not given, see `max_children`
    program    the program that it runs, if a controller knows it; see `runs`
    prefix     the subnet of its hosts; this, `loopback` and `device_id` are None where the file gives none
    """

    name: str
    role: SwitchRole = SwitchRole.PLAIN
    capacity: float = 0.0
    slots: int = 4096
    ports: tuple[tuple[str, int], ...] = ()
    chip: Chip | None = None
    loopbacks: tuple[Loopback, ...] = ()
    children: int | None = None
    program: Program | None = None
    prefix: IPv4Network | None = None
    loopback: IPv4Address | None = None
    device_id: int | None = None

    @property
    def max_children(self) -> int:
        if self.children is not None:
            return self.children
        return usual_children(self.chip)

    def runs(self, lanes: int) -> Program:
        """The program that it runs for packets of `lanes`; if that is not known, netfold's ordinary one."""
        return self.program or ordinary_program(self.chip, lanes)

    @property
    def aggregates(self) -> bool:
        return self.capacity > 0

    def pipe(self, port: int) -> int:
        """The pipe that a port lies in; 0 on a switch without a chip."""
        return pipe_of(self.chip, port)


@dataclass(frozen=True)
class Link:
    """A full-duplex link: `rate` of each direction (fabric units); `queue` in packets; `delay_ms` one way."""

    a: str
    b: str
    rate: float
    queue: int = 64
    delay_ms: float = 0.0

    def __str__(self) -> str:
        return f"link {self.a}-{self.b}"


Element = Host | Switch


@dataclass(frozen=True)
class Fabric:
    """An immutable fabric."""

    name: str
    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[Link, ...]
    unit: Unit = field(default_factory=Unit)

    def __post_init__(self) -> None:
        faults = list(_faults(self))
        if faults:
            raise FabricError(f"{self.name}: {faults[0].message}", faults)

    @property
    def elements(self) -> tuple[Element, ...]:
        """All nodes: the hosts, then the switches."""
        return (*self.hosts, *self.switches)

    @cached_property
    def neighbors(self) -> dict[str, dict[str, Link]]:
        """`neighbors[node][neighbor]`: the link between them, in the order of `links`. A link to an unknown node, which
        a valid fabric does not have, is left out."""
        neighbors: dict[str, dict[str, Link]] = {e.name: {} for e in self.elements}
        for link in self.links:
            if link.a in neighbors and link.b in neighbors:
                neighbors[link.a][link.b] = neighbors[link.b][link.a] = link
        return neighbors

    @cached_property
    def ports(self) -> dict[str, dict[str, int]]:
        """`ports[node][neighbor]`: the node's port to that neighbor, as given by the switch, otherwise 1, 2, ... in
        the order of `links`."""
        ports: dict[str, dict[str, int]] = {e.name: {} for e in self.elements}
        for link in self.links:
            ports[link.a][link.b] = len(ports[link.a]) + 1
            ports[link.b][link.a] = len(ports[link.b]) + 1
        for switch in self.switches:
            ports[switch.name].update(switch.ports)
        return ports

    @cached_property
    def graph(self) -> nx.Graph[str]:
        """The fabric as a networkx graph, which `from_graph` reads again.

        Nodes have `kind` ("host" or "switch") and the values of their Host or Switch. Edges have `rate` (fabric
        units), `queue` (packets), `delay_ms`, and `ports`, a mapping from each end to its port number. The graph's own
        attributes are `name` and `unit`. Do not change it: it is made once for a fabric.
        """
        import networkx as nx  # noqa: PLC0415 (a third of the start of a process that needs no graph)

        graph: nx.Graph[str] = nx.Graph(name=self.name, unit=self.unit)
        for host in self.hosts:
            graph.add_node(
                host.name,
                kind="host",
                parameter_server=host.parameter_server,
                capacity=host.capacity,
                address=host.address,
            )
        for s in self.switches:
            graph.add_node(
                s.name,
                kind="switch",
                role=s.role,
                capacity=s.capacity,
                slots=s.slots,
                chip=s.chip,
                loopbacks=s.loopbacks,
                children=s.children,
                prefix=s.prefix,
                loopback=s.loopback,
                device_id=s.device_id,
            )
        for x in self.links:
            ports = {x.a: self.ports[x.a][x.b], x.b: self.ports[x.b][x.a]}
            graph.add_edge(x.a, x.b, rate=x.rate, queue=x.queue, delay_ms=x.delay_ms, ports=ports)
        return graph

    @classmethod
    def from_graph(
        cls,
        graph: nx.Graph[Any],
        *,
        name: str | None = None,
        hosts_per_switch: int = 0,
        rate: float = 100.0,
        capacity: float = 400.0,
        unit: Unit | None = None,
    ) -> Fabric:
        """A fabric of an undirected graph: its nodes are hosts and switches, its edges links.

        Nodes and edges may have the attributes that `Fabric.graph` gives them; other attributes are ignored. A node
        without `kind` is a switch. A node that is an integer n is named `s<n>`, or `h<n>` if it is a host.

        name              name of the fabric; default: the graph's, else "graph"
        hosts_per_switch  hosts that each switch gets in addition to the graph's, named s3-h1 at switch s3
        rate              rate of an edge without one, and of the links of these hosts (fabric units)
        capacity          aggregation capacity of a switch without one (fabric units); 0: it only forwards
        unit              unit of rates and capacities; default: the graph's, else Mbit/s

        Raises FabricError, which names the node or edge and the expected value.
        """
        title = str(name or graph.graph.get("name") or "graph")
        if graph.is_directed() or graph.is_multigraph():
            raise FabricError(f"{title}: a directed graph or a multigraph; expected a networkx.Graph")
        kinds = {node: _kind(title, node, values) for node, values in graph.nodes(data=True)}
        names = {node: _name(node, kind) for node, kind in kinds.items()}
        hosts = [
            Host(names[n], bool(v.get("parameter_server", False)), v.get("capacity"), v.get("address"))
            for n, v in graph.nodes(data=True)
            if kinds[n] == "host"
        ]
        links = [_link(title, names, a, b, v, rate) for a, b, v in graph.edges(data=True)]
        switches = []
        for node, values in graph.nodes(data=True):
            if kinds[node] == "host":
                continue
            added = [f"{names[node]}-h{i}" for i in range(1, hosts_per_switch + 1)]
            hosts += [Host(h) for h in added]
            links += [Link(h, names[node], rate) for h in added]
            switches.append(_switch(title, graph, names, node, values, capacity, is_numbered=not added))
        given = graph.graph.get("unit")
        return Fabric(
            title,
            tuple(hosts),
            tuple(switches),
            tuple(links),
            unit or (given if isinstance(given, Unit) else Unit()),
        )

    def part(self, switches: Iterable[Switch], hosts: Iterable[Host], links: Iterable[Link]) -> Fabric:
        """The fabric reduced to these; switches keep the numbers of their remaining ports."""
        kept = tuple(links)
        pairs = {frozenset((x.a, x.b)) for x in kept}

        def trimmed(switch: Switch) -> Switch:
            left = tuple((n, p) for n, p in switch.ports if frozenset((switch.name, n)) in pairs)
            return switch if left == switch.ports else replace(switch, ports=left)

        return Fabric(self.name, tuple(hosts), tuple(trimmed(s) for s in switches), kept, self.unit)

    def in_one_pipe(self, switches: Iterable[str]) -> Fabric:
        """The fabric with these switches as software switches, which have one pipe and no loopback ports; port
        numbers stay."""
        named = set(switches)
        plain = tuple(
            replace(s, chip=None, loopbacks=()) if s.name in named and s.chip is not None else s
            for s in self.switches
        )
        return self if plain == self.switches else replace(self, switches=plain)

    def host(self, name: str) -> Host:
        return self._hosts[name]

    def switch(self, name: str) -> Switch:
        return self._switches[name]

    def is_host(self, name: str) -> bool:
        return name in self._hosts

    def has_link(self, a: str, b: str) -> bool:
        """The two are linked, in either order; names of no node are not."""
        return b in self.neighbors.get(a, {})

    def link(self, a: str, b: str) -> Link:
        return self.neighbors[a][b]

    def attachment(self, host: str) -> str:
        """The switch that a host hangs on."""
        return next(iter(self.neighbors[host]))

    def ingress_capacity(self, host: str) -> float:
        """Rate at which a parameter server can receive (fabric units): its own limit, never above its link's rate."""
        rate = self.link(host, self.attachment(host)).rate
        capacity = self.host(host).capacity
        return rate if capacity is None else min(rate, capacity)

    @cached_property
    def _hosts(self) -> dict[str, Host]:
        return {h.name: h for h in self.hosts}

    @cached_property
    def _switches(self) -> dict[str, Switch]:
        return {s.name: s for s in self.switches}


def _faults(fabric: Fabric) -> Iterator[Fault]:
    """The errors of a fabric's elements; if there are none, whether it is connected, and the errors of its numbers."""
    neighbors = fabric.neighbors
    faults = [*_name_faults(fabric), *_link_faults(fabric)]
    for switch in fabric.switches:
        faults += _switch_faults(switch, neighbors[switch.name])
    yield from faults
    if not faults and neighbors and len(distances(neighbors, next(iter(neighbors)))) < len(neighbors):
        yield Fault((), "the fabric is not connected")
    elif not faults:
        yield from number_faults(fabric)


def _name_faults(fabric: Fabric) -> Iterator[Fault]:
    seen: set[str] = set()
    for kind, elements in (("switches", fabric.switches), ("hosts", fabric.hosts)):
        for element in elements:
            if not re.match(NAME_PATTERN, element.name):
                yield Fault((kind, element.name), f"'{element.name}': {NAME_RULE}")
            elif element.name in seen:
                yield Fault(
                    (kind, element.name),
                    f"the name '{element.name}' is used twice; expected unique names of hosts and switches",
                )
            seen.add(element.name)


def _link_faults(fabric: Fabric) -> Iterator[Fault]:
    """The errors of links, and hosts that have not exactly one."""
    neighbors, hosts = fabric.neighbors, {host.name for host in fabric.hosts}
    linked: set[str] = set()
    first: dict[frozenset[str], int] = {}
    for i, link in enumerate(fabric.links):
        ends, place = frozenset((link.a, link.b)), ("links", i)
        for end in (link.a, link.b):
            if end not in neighbors:
                known = hint(end, neighbors)
                yield Fault(place, f"{link} ends at '{end}', which is no host or switch{known}")
            elif end in linked and end in hosts:
                yield Fault(
                    place, f"{link} is the second one of '{end}'; expected exactly one link of a host"
                )
        if len(ends) == 1:
            yield Fault(place, f"{link} joins '{link.a}' with itself")
        elif ends <= hosts:
            yield Fault(place, f"host '{link.a}' is attached to a host, '{link.b}'; expected a switch")
        elif ends in first and not ends & hosts:
            yield Fault(place, f"{link} is given twice; add the rates up instead", ("links", first[ends]))
        first.setdefault(ends, i)
        linked |= ends
        if not 0 < link.rate < math.inf:
            yield Fault(place, f"{link} has rate {link.rate}; expected a number above 0")
        if link.queue < 1:
            yield Fault(place, f"{link} has a queue of {link.queue}; expected at least 1 packet")
        if not 0 <= link.delay_ms < math.inf:
            yield Fault(place, f"{link} has a delay of {link.delay_ms} ms; expected 0 or more")
    for host in fabric.hosts:
        if host.name not in linked:
            yield Fault(("hosts", host.name), f"host '{host.name}' has no link; expected exactly one")


def _switch_faults(switch: Switch, neighbors: Collection[str]) -> Iterator[Fault]:
    here, what = ("switches", switch.name), f"switch '{switch.name}'"
    if not 0 <= switch.capacity < math.inf:
        yield Fault((*here, "capacity"), f"{what} has capacity {switch.capacity}; expected 0 or more")
    if switch.children is not None and switch.children < 2:
        yield Fault((*here, "children"), f"{what} takes {switch.children} children; expected 2 or more")
    loopbacks = [x.port for x in switch.loopbacks]
    yield from port_faults(switch.name, switch.chip, dict(switch.ports), loopbacks, neighbors)
    for i, loopback in enumerate(switch.loopbacks):
        if not 0 < loopback.rate < math.inf or loopback.queue < 1:
            yield Fault(
                (*here, "loopbacks", i),
                f"loopback {loopback.port} of {what} has rate {loopback.rate} and a queue of {loopback.queue}; "
                "expected both above 0",
            )


_SWITCH_FIELDS = ("slots", "chip", "loopbacks", "children", "prefix", "loopback", "device_id")
_LINK_FIELDS = ("queue", "delay_ms")


def _kind(title: str, node: Any, values: Mapping[str, Any]) -> str:
    kind = str(values.get("kind", "switch"))
    if kind not in ("host", "switch"):
        raise FabricError(f"{title}: node {node!r} is of kind '{kind}'; expected 'host' or 'switch'")
    return kind


def _name(node: Any, kind: str) -> str:
    return f"{kind[0]}{node}" if isinstance(node, int) else str(node)


def _link(
    title: str, names: Mapping[Any, str], a: Any, b: Any, values: Mapping[str, Any], rate: float
) -> Link:
    given = values.get("rate", rate)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise FabricError(
            f"{title}: edge {names[a]}-{names[b]} has rate {given!r}; expected a number above 0"
        )
    return Link(
        names[a], names[b], float(given), **{key: values[key] for key in _LINK_FIELDS if key in values}
    )


def _switch(
    title: str,
    graph: nx.Graph[Any],
    names: Mapping[Any, str],
    node: Any,
    values: Mapping[str, Any],
    capacity: float,
    *,
    is_numbered: bool,
) -> Switch:
    """`is_numbered`: the edges' port numbers hold; a switch with further hosts is numbered anew."""
    try:
        role = SwitchRole(values.get("role", SwitchRole.PLAIN))
    except ValueError:
        raise FabricError(
            f"{title}: node {names[node]} has role {values['role']!r}; expected one of {', '.join(SwitchRole)}"
        ) from None
    ports = tuple(
        (names[other], edge["ports"][node])
        for other, edge in graph.adj[node].items()
        if is_numbered and node in edge.get("ports", {})
    )
    known = {key: values[key] for key in _SWITCH_FIELDS if key in values}
    return Switch(names[node], role, float(values.get("capacity", capacity)), ports=ports, **known)
