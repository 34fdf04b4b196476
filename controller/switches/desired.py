# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The exact contents of every switch, as a pure function of the fabric, what is broken in it, and the jobs.

Nothing is remembered of how a switch came to hold what it holds: installing, repairing and removing are
all the same difference between this and what the switch reads back.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network

from netfold.controller.jobs.records import JobRecord, PlannedTree
from netfold.controller.planning.pipes import Loop, loops
from netfold.controller.planning.plan import Tree
from netfold.controller.switches import admission_table as admission
from netfold.controller.switches import delivery, forwarding, groups, roce, tree_routes
from netfold.controller.switches.admission_table import Sender
from netfold.controller.switches.devices import Device
from netfold.controller.switches.entries import Contents, Entity, TableEntry, add
from netfold.controller.switches.quorum import quorum_entities, senders_through
from netfold.controller.switches.roce import NO_RINGS, ROCE_SIDE
from netfold.topologies.addressing import Addressing
from netfold.topologies.fabric import Fabric
from netfold.traffic.congestion import MARK_FRACTION
from netfold.traffic.packets.wire import Kind

NEXTHOPS = 512
"""Members of all ECMP sets of a switch together (p4src/common/sizes.p4)."""


QUICK_ROUTES = 2_000
"""Entries towards other racks, in all switches together."""

_V1MODEL = Device()


class UnroutableError(Exception):
    """A tree whose repeated results cannot find their way to the child that asks; the message names it."""


@dataclass(frozen=True)
class Setting:
    """What all switches of a deployment share.

    mark           tree number of management packets, above those of trees; it tells this store's switches from others'
    mark_fraction  of a port's queue: from there on packets are marked with congestion
    devices        switches that are not as v1model programs are, by name
    """

    fabric: Fabric
    addresses: Addressing
    mark: int
    mark_fraction: float = MARK_FRACTION
    devices: Mapping[str, Device] = field(default_factory=dict)

    def device(self, switch: str) -> Device:
        return self.devices.get(switch, _V1MODEL)


@dataclass(frozen=True)
class Broken:
    """Links (both directions) and switches that do not work."""

    links: frozenset[frozenset[str]] = frozenset()
    switches: frozenset[str] = frozenset()

    def hits(self, a: str, b: str) -> bool:
        return frozenset((a, b)) in self.links or a in self.switches or b in self.switches


def desired(setting: Setting, jobs: Iterable[JobRecord], broken: Broken) -> dict[str, Contents]:
    """For each switch what it should hold. Only installed jobs count."""
    return Targets(setting).of(jobs, broken)


class Targets:
    """`desired`, remembering what does not change: the part without jobs while the same things are broken, and the
    entries of each tree in its epoch (a placement never changes, and numbers its trees anew)."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._infrastructure = Infrastructure(setting)
        self._base: tuple[Broken, dict[str, Contents]] | None = None
        self._trees: dict[tuple[int, int], list[tuple[str, Entity]]] = {}

    @property
    def quick(self) -> bool:
        """Routes are computed in milliseconds: `of` does it where it is called."""
        racks = sum(s.prefix is not None for s in self._setting.addresses.switches.values())
        return racks * len(self._setting.fabric.switches) <= QUICK_ROUTES

    def knows(self, broken: Broken) -> bool:
        return self._base is not None and self._base[0] == broken

    def learn(self, broken: Broken) -> None:
        """Compute the routes around what is broken. May run in a thread, one at a time."""
        self._base = (broken, self._infrastructure.contents(broken))

    def of(self, jobs: Iterable[JobRecord], broken: Broken) -> dict[str, Contents]:
        """Of a large fabric with the routes that were learnt last."""
        if self._base is None or (self.quick and not self.knows(broken)):
            self.learn(broken)
        assert self._base is not None
        held = {switch: dict(base) for switch, base in self._base[1].items()}
        jobs = list(jobs)
        trees = {key: entities for job in jobs for key, entities in self._entities(job)}
        for entities in trees.values():
            for switch, entity in entities:
                add(held[switch], entity)
        for switch, entity in roce.connection_entities(self._setting.fabric, self._setting.addresses, jobs):
            add(held[switch], entity)
        self._trees = trees
        return held

    def _entities(self, job: JobRecord) -> Iterator[tuple[tuple[int, int], list[tuple[str, Entity]]]]:
        for placement in job.placements:
            for planned, tree in zip(placement.trees, placement.plan.trees, strict=True):
                key = (planned.tree, placement.epoch)
                known = self._trees.get(key)
                if not known:
                    ring = roce.ring_of(self._setting.fabric, job, tree)
                    known = list(
                        tree_entities(
                            self._setting.fabric, planned, tree, placement.epoch, job.udp_port, ring
                        )
                    )
                yield key, known


class Infrastructure:
    """What switches hold without any job. Entries that stay the same are not made again."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._standing: dict[str, Contents] | None = None
        self._known: dict[tuple[IPv4Network, tuple[int, ...]], TableEntry] = {}

    def contents(self, broken: Broken) -> dict[str, Contents]:
        if self._standing is None:
            self._standing = _standing(self._setting)
        held = {switch: dict(contents) for switch, contents in self._standing.items()}
        known: dict[tuple[IPv4Network, tuple[int, ...]], TableEntry] = {}
        for switch, prefix, ports in _ways(self._setting, broken):
            key = (prefix, ports)
            if key not in known:
                known[key] = self._known.get(key) or forwarding.route(prefix, ports)
            add(held[switch], known[key])
        self._known = known
        return held


# ---- what does not depend on jobs ----------------------------------------------------------------


def management(setting: Setting, switch: str) -> Iterator[Entity]:
    """The controller's own way in, also by loopback ports to the registers of other pipes; between switches
    READ alone, with which it probes links."""
    loopbacks = (x.port for x in setting.fabric.switch(switch).loopbacks)
    for port in (setting.device(switch).cpu_port, *loopbacks):
        yield from admission.managed(port, setting.mark, Kind.READ, Kind.RESET)
    for near, port in setting.fabric.ports[switch].items():
        if not setting.fabric.is_host(near):
            yield from admission.managed(port, setting.mark, Kind.READ)


def _ports(setting: Setting, switch: str) -> Iterator[Entity]:
    fabric, known = setting.fabric, setting.addresses
    own = known.switches[switch].mac
    for near, port in fabric.ports[switch].items():
        if fabric.is_host(near):
            host = known.hosts[near]
            yield delivery.to_host(port, own, host.mac, host.ip)
        else:
            yield delivery.to_switch(port, own, known.switches[near].mac)
        yield delivery.mark_above(port, _threshold(setting, switch, fabric.link(switch, near).queue))
    for loopback in fabric.switch(switch).loopbacks:
        yield delivery.mark_above(loopback.port, _threshold(setting, switch, loopback.queue))


def _threshold(setting: Setting, switch: str, queue: int) -> int:
    """From which depth of a queue of `queue` packets on packets are marked, in the switch's own unit."""
    return max(1, int(queue * setting.mark_fraction)) * setting.device(switch).packet_cells


def _standing(setting: Setting) -> dict[str, Contents]:
    """What switches hold whatever is broken: management, ports, hosts of the own rack by their port, ARP for them."""
    known = setting.addresses
    held: dict[str, Contents] = {s.name: {} for s in setting.fabric.switches}
    for switch, contents in held.items():
        for entity in (*management(setting, switch), *_ports(setting, switch)):
            add(contents, entity)
    for host in known.hosts.values():
        add(held[host.switch], forwarding.route(_single(host.ip), [host.port]))
    for rack in known.switches.values():
        if rack.prefix is not None:
            add(held[rack.name], forwarding.arp_answer(rack.prefix, rack.mac))
    return held


def _ways(setting: Setting, broken: Broken) -> Iterator[tuple[str, IPv4Network, tuple[int, ...]]]:
    """For each switch and each other rack the ports of every shortest way that works."""
    fabric = setting.fabric
    working = _neighbors(fabric, broken)
    # a switch that does not answer may still forward: it is avoided, unless nothing else leads there
    any_way = _neighbors(fabric, Broken(broken.links)) if broken.switches else working
    racks = {s.name: s.prefix for s in setting.addresses.switches.values() if s.prefix is not None}
    widest = max(1, NEXTHOPS // max(1, len(racks)) - 1)
    for rack, prefix in racks.items():
        surely = _distances(working, rack)
        perhaps = _distances(any_way, rack) if broken.switches else surely
        for switch, distance in perhaps.items():
            near, away = (working, surely) if switch in surely else (any_way, perhaps)
            if distance:
                closer = away[switch] - 1
                yield switch, prefix, tuple([p for n, p in near[switch] if away.get(n) == closer][:widest])


def _neighbors(fabric: Fabric, broken: Broken) -> dict[str, list[tuple[str, int]]]:
    """The switches next to each switch that a packet can go to, each with the port."""
    near: dict[str, list[tuple[str, int]]] = {s.name: [] for s in fabric.switches}
    for link in fabric.links:
        if link.a in near and link.b in near and not broken.hits(link.a, link.b):
            near[link.a].append((link.b, fabric.ports[link.a][link.b]))
            near[link.b].append((link.a, fabric.ports[link.b][link.a]))
    return near


def _distances(near: Mapping[str, list[tuple[str, int]]], start: str) -> dict[str, int]:
    """Hops from each switch that is reached."""
    known = {start: 0}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for other, _ in near[at]:
            if other not in known:
                known[other] = known[at] + 1
                queue.append(other)
    return known


def _single(ip: IPv4Address) -> IPv4Network:
    return IPv4Network((int(ip), 32))


# ---- trees ---------------------------------------------------------------------------------------


def tree_entities(
    fabric: Fabric,
    planned: PlannedTree,
    tree: Tree,
    epoch: int,
    udp_port: int,
    roce: Mapping[str, str] = NO_RINGS,
) -> Iterator[tuple[str, Entity]]:
    """All that one tree puts into switches, for packets of the job's `udp_port`. `roce` are workers that speak RoCE,
    each with the one that it sends to. Raises UnroutableError."""
    looped = loops(fabric, tree)
    for number in range(len(tree.edges)):
        yield from _edge(fabric, planned, tree, number, looped.get(number), epoch, udp_port, roce)
    yield from _way_down(fabric, planned, tree, epoch, udp_port)
    if planned.quorum:
        yield from quorum_entities(fabric, planned, tree, epoch, udp_port)
    if not fabric.is_host(tree.root):
        yield from _answers(fabric, planned, tree, epoch, udp_port, roce)


def _edge(
    fabric: Fabric,
    planned: PlannedTree,
    tree: Tree,
    number: int,
    loop: Loop | None,
    epoch: int,
    udp_port: int,
    roce: Mapping[str, str],
) -> Iterator[tuple[str, Entity]]:
    edge = tree.edges[number]
    path = edge.path

    def entrance(at: str, before: str) -> int:
        return fabric.ports[at][before] + (ROCE_SIDE if before in roce else 0)

    if not fabric.is_host(edge.child):
        yield edge.child, tree_routes.uplink(planned.tree, fabric.ports[edge.child][path[1]], number)
    for before, at, after in zip(path, path[1:], path[2:], strict=False):
        sender = Sender(entrance(at, before), udp_port, planned.tree, number, epoch, planned.slots)
        yield at, admission.passed_up(sender, fabric.ports[at][after])
    if not fabric.is_host(edge.parent):
        children = tree.children(edge.parent)
        port = entrance(edge.parent, path[-2])
        sender = Sender(port, udp_port, planned.tree, number, epoch, planned.slots)
        if loop is not None:
            yield edge.parent, admission.passed_up(sender, loop.loopback)
            sender = replace(sender, port=loop.loopback)
            if edge.parent == tree.root:
                yield edge.parent, admission.answer_passed(sender, loop.entry)
        for entity in admission.added_up(
            sender,
            root=edge.parent == tree.root,
            bit=children.index(edge.child),
            full=(1 << len(children)) - 1,
            base=planned.bases[edge.parent],
        ):
            yield edge.parent, entity


def _way_down(
    fabric: Fabric, planned: PlannedTree, tree: Tree, epoch: int, udp_port: int
) -> Iterator[tuple[str, Entity]]:
    below = down_ports(fabric, tree)
    for switch, ports in below.items():
        yield switch, groups.down(planned.tree, ports)
        yield switch, tree_routes.downlink(planned.tree, planned.tree)
    for above, at in tree.down:
        if at in below:
            yield at, admission.relayed(fabric.ports[at][above], udp_port, planned.tree, epoch)


def down_ports(fabric: Fabric, tree: Tree) -> dict[str, list[int]]:
    """For each switch on the way down the ports that results leave by."""
    ports: dict[str, list[int]] = defaultdict(list)
    for a, b in tree.down:
        if not fabric.is_host(a):
            ports[a].append(fabric.ports[a][b])
    return ports


def _answers(
    fabric: Fabric, planned: PlannedTree, tree: Tree, epoch: int, udp_port: int, roce: Mapping[str, str]
) -> Iterator[tuple[str, Entity]]:
    """A root that is a switch answers a child that asks again by the port that the question came in from.
    Where that is no link of the way down, the answer is passed back along the child's own way up, until
    it is at the child or joins the way down above all workers that the child speaks for. What a RoCE worker sends again
    is what the next one of its ring lacks: the answer goes there."""
    down = set(tree.down)
    below = _workers_below(fabric, tree)
    for number, edge in enumerate(tree.edges):
        if edge.parent != tree.root:
            continue
        wanted = _workers_of(fabric, tree, edge.child)
        back = edge.path[::-1]
        late = senders_through(tree, edge.child) if planned.quorum else []
        for step in range(1, len(back)):
            above, at = back[step - 1], back[step]
            if fabric.is_host(at) or ((above, at) in down and wanted <= below[at]):
                break
            if (above, at) in down:
                raise UnroutableError(
                    f"tree {planned.tree}: results repeated for '{edge.child}' meet the way down at {at}, which does "
                    f"not lead to {sorted(wanted - below[at])[0]}"
                )
            sender = Sender(fabric.ports[at][above], udp_port, planned.tree, number, epoch, planned.slots)
            if step + 1 < len(back):
                after = back[step + 1]
                for asking in (number, *late):
                    asked = replace(sender, child=asking)
                    yield at, admission.answer_passed(asked, fabric.ports[at][roce.get(after, after)])
            elif wanted <= below[at]:
                yield at, admission.relayed(sender.port, udp_port, planned.tree, epoch)
            else:
                raise UnroutableError(
                    f"tree {planned.tree}: results repeated for node {at} do not reach {sorted(wanted - below[at])[0]}"
                )


def _workers_of(fabric: Fabric, tree: Tree, child: str) -> set[str]:
    if fabric.is_host(child):
        return {child}
    return {w for c in tree.children(child) for w in _workers_of(fabric, tree, c)}


def _workers_below(fabric: Fabric, tree: Tree) -> Mapping[str, set[str]]:
    """For each switch on the way down the workers that its results reach."""
    next_hops: dict[str, list[str]] = defaultdict(list)
    for a, b in tree.down:
        next_hops[a].append(b)

    def reached(at: str) -> set[str]:
        return {at} if fabric.is_host(at) else {w for b in next_hops[at] for w in reached(b)}

    return defaultdict(set, {a: reached(a) for a in list(next_hops) if not fabric.is_host(a)})
