# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""May a job run, and where? A plan at an acceptable rate on what earlier jobs leave, and numbers for all
of it: trees, slots, the epoch. A refusal names the resource that binds and what would fit."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import networkx as nx

from netfold.controller.jobs.file import JobOrder, Reroute
from netfold.controller.jobs.records import (
    LAST_EPOCH,
    JobRecord,
    Placement,
    PlannedTree,
    Transport,
    links_of,
)
from netfold.controller.jobs.rings import lonely
from netfold.controller.jobs.slot_ranges import BLOCK, Range, SlotPool, SlotsExhaustedError
from netfold.controller.planning.network import NOTHING
from netfold.controller.planning.pipes import loopback_rate
from netfold.controller.planning.plan import InvalidPlan, JobSpec, Loads, Plan, PlanningError, Tree
from netfold.controller.planning.planner import SideBySide, make_plan
from netfold.controller.planning.validate import add_loads, check_capacities
from netfold.controller.switches.desired import Broken, UnroutableError, tree_entities
from netfold.topologies.fabric import Fabric, FabricError, Link
from netfold.topologies.ports import Chip

TREES = {None: 1023, Chip.TOFINO: 1023, Chip.TOFINO2: 511}
UDP_PORTS = range(61440, 61696)
ADMISSION_ENTRIES, ADMISSION_ENTRIES_OF_CHIPS = 8192, 4096
"""p4src/common/sizes.p4, p4src/tna/arch.p4. A tree's number is its index in every switch, so the smallest counts."""

SENDERS_OF_A_QUORUM = 32
"""A root that is a switch has a bit for each sender of the tree."""

ACCEPTABLE = 0.05
"""Of the slowest worker's link: the least rate of a job that names none."""

NEARLY = 0.99
"""Another split has to be better than the same one by a hundredth."""

ROCE_LANES = (64, 256)
ROCE_TREES = 16
"""traffic/roce/control.h: connections of a worker."""

_HEADERS_BYTES = 14 + 20 + 8 + 16
_FRAMING_BYTES = 24  # preamble, check sequence, gap
_LEAST_WINDOW, _MOST_WINDOW = 8, 2048
_ROCE_WINDOW = 512
"""Three messages of 170 packets, as NetReduce has them, where a switch has the slots."""


class RefusedError(Exception):
    """The job does not fit now; the message says why and what would."""


@dataclass(frozen=True)
class Wire:
    """How a plan's rates become packets. `scale` is what one bit/s of the fabric is on the wire,
    `host_rtt_s` what hosts and switches add to a round trip beyond the links' delays."""

    lanes: int
    scale: float = 1.0
    host_rtt_s: float = 0.002

    @property
    def packet_bits(self) -> int:
        return 8 * (_HEADERS_BYTES + 4 * self.lanes + _FRAMING_BYTES)

    def bits_per_second(self, fabric: Fabric, rate: float) -> float:
        return rate * fabric.unit.bits_per_second * self.scale


@dataclass(frozen=True)
class Numbers:
    """From where free numbers are looked for: the last tree that was handed out, and the epochs that
    blocks of slots have seen, by switch."""

    last_tree: int
    epochs: Mapping[str, Mapping[int, int]]


# ---- planning ------------------------------------------------------------------------------------


WHOLE = Broken()


@dataclass(frozen=True)
class PlanRequest:
    """A job to plan: on what `background` leaves, around what is broken, without the members that are lost, within
    `deadline_s`.

    foreign  what others send. A plan leaves it room; but a job that would have no place gets one that does not
    held     of a job that moves to gain something: its trees. The plan leaves foreign loads their room, and is the
             better one of those with the same split and with another
    enough   a rate with which it would be content: no further plan is made
    """

    order: JobOrder
    background: Loads = NOTHING
    foreign: Loads = NOTHING
    held: tuple[Tree, ...] = ()
    enough: float = math.inf
    broken: Broken = WHOLE
    without: frozenset[str] = frozenset()
    deadline_s: float = 60.0
    time_limit_s: float = math.inf
    """Of a solver that improves its plan for as long as it may."""


def plan_order(fabric: Fabric, request: PlanRequest) -> Plan:
    """A plan on what the background leaves, at most at the rate that the job asks for. Raises RefusedError."""
    if not request.foreign.links:
        return _plan_order(fabric, request)
    beside = replace(request, background=add_loads(request.background, request.foreign))
    if request.held:
        return _plan_order(fabric, beside)
    try:
        return _plan_order(fabric, beside)
    except RefusedError:
        return _plan_order(fabric, request)


def _plan_order(fabric: Fabric, request: PlanRequest) -> Plan:
    order, background, broken = request.order, request.background, request.broken
    spec = _hastened(order.spec(request.without), request.time_limit_s)
    if not spec.workers:
        raise RefusedError(f"job '{spec.name}' has no worker left")
    if order.file.transport is Transport.ROCE and (alone := lonely(fabric, spec.workers)):
        raise RefusedError(f"job '{spec.name}': {alone}")
    try:
        working = without_broken(fabric, broken, (*spec.workers, *spec.parameter_servers))
        plan = _best_plan(working, spec, request)
    except (PlanningError, FabricError) as error:
        raise RefusedError(str(error)) from error
    least = acceptable_rate(fabric, order, spec.workers)
    if plan.rate < least * (1 - 1e-9):
        raise RefusedError(
            f"job '{spec.name}' would get {plan.rate:g} {plan.unit}, below its least rate {least:g}; "
            f"{binding(fabric, plan, background)}; a min_rate of at most {plan.rate:.4g} would fit"
        )
    return plan if order.file.rate is None else slowed(plan, order.file.rate)


def _best_plan(working: Fabric, spec: JobSpec, request: PlanRequest) -> Plan:
    """Of a job that moves the best one, and of (nearly) equal ones that with the same split. Raises PlanningError."""
    file = request.order.file
    if not request.held:
        return make_plan(working, spec, background=request.background, seed=file.seed)
    makers = SideBySide(working, spec, background=request.background, seed=file.seed)
    same, other = None, None
    try:
        same = makers.plan_fixed_split(request.held)
    except PlanningError:
        if file.reroute is Reroute.FIXED_SPLIT:
            raise
    if same is not None and (file.reroute is Reroute.FIXED_SPLIT or same.rate >= NEARLY * request.enough):
        return same
    try:
        other = makers.plan(spec.scheme, spec.options)
    except PlanningError:
        if same is None:
            raise
    if same is None or (other is not None and other.rate * NEARLY > same.rate):
        assert other is not None
        return other
    return same


def _hastened(spec: JobSpec, seconds: float) -> JobSpec:
    """The same job with a time limit of at most so much, if its scheme has one."""
    if spec.scheme != "optimal" or math.isinf(seconds):
        return spec
    own = spec.options.get("time_limit", seconds)
    limit = min(float(own), seconds) if isinstance(own, int | float) else seconds
    return replace(spec, options={**spec.options, "time_limit": limit})


def background_of(jobs: Iterable[JobRecord]) -> Loads:
    loads = NOTHING
    for job in jobs:
        if job.state.installed and job.placement is not None:
            loads = add_loads(loads, job.placement.plan.loads)
    return loads


def acceptable_rate(fabric: Fabric, order: JobOrder, workers: Iterable[str]) -> float:
    if order.file.min_rate is not None:
        return order.file.min_rate
    slowest = min(fabric.link(w, fabric.attachment(w)).rate for w in workers)
    return ACCEPTABLE * slowest if order.file.rate is None else min(ACCEPTABLE * slowest, order.file.rate)


def slowed(plan: Plan, rate: float) -> Plan:
    """The same trees at no more than `rate`."""
    if plan.rate <= rate:
        return plan
    return replace(plan, rate=rate, loads=plan.loads.times(rate / plan.rate))


def binding(fabric: Fabric, plan: Plan, background: Loads) -> str:
    """The fullest resource of a plan, in words."""
    rows: list[tuple[float, str, float, float]] = []
    for (a, b), load in plan.loads.links.items():
        used, capacity = background.links.get((a, b), 0.0), fabric.link(a, b).rate
        rows.append(((used + load) / capacity, f"link {a}->{b}", used, capacity))
    for name, load in plan.loads.switches.items():
        used, capacity = background.switches.get(name, 0.0), fabric.switch(name).capacity
        rows.append(((used + load) / capacity, f"aggregation in switch {name}", used, capacity))
    for name, load in plan.loads.servers.items():
        used, capacity = background.servers.get(name, 0.0), fabric.ingress_capacity(name)
        rows.append(((used + load) / capacity, f"parameter server {name}", used, capacity))
    for (name, port), load in plan.loads.loopbacks.items():
        used, capacity = background.loopbacks.get((name, port), 0.0), loopback_rate(fabric, name, port)
        rows.append(((used + load) / capacity, f"loopback port {port} of switch {name}", used, capacity))
    _, what, used, capacity = max(rows)
    return f"{what} binds: other jobs use {used:g} of {capacity:g}"


def hit(plan: Plan, broken: Broken, lost: Iterable[str]) -> bool:
    """The plan uses what is broken, or members that are lost."""
    links = links_of(plan)
    nodes = {n for link in links for n in link}
    return bool(nodes & broken.switches or links & broken.links or nodes & set(lost))


def fits(fabric: Fabric, plan: Plan, background: Loads) -> bool:
    """The plan's loads fit beside the background."""
    try:
        check_capacities(fabric, plan.job, plan.loads, background)
    except InvalidPlan:
        return False
    return True


def without_broken(fabric: Fabric, broken: Broken, members: Iterable[str]) -> Fabric:
    """The part of the fabric that works and holds all members. Raises RefusedError if they are cut apart."""
    if not broken.links and not broken.switches:
        return fabric
    wanted = tuple(members)
    graph: nx.Graph[str] = nx.Graph((k.a, k.b) for k in fabric.links if not broken.hits(k.a, k.b))
    graph.add_nodes_from(wanted)
    part = nx.node_connected_component(graph, wanted[0])
    for member in wanted:
        if member not in part:
            down = sorted(broken.switches) + sorted("-".join(sorted(k)) for k in broken.links)
            raise RefusedError(f"no working way leads from {wanted[0]} to {member}; down: {', '.join(down)}")

    def works(link: Link) -> bool:
        return link.a in part and link.b in part and not broken.hits(link.a, link.b)

    return fabric.part(
        (s for s in fabric.switches if s.name in part),
        (h for h in fabric.hosts if h.name in part),
        (k for k in fabric.links if works(k)),
    )


# ---- numbering -----------------------------------------------------------------------------------


def place(
    fabric: Fabric,
    wire: Wire,
    order: JobOrder,
    plan: Plan,
    jobs: Iterable[JobRecord],
    numbers: Numbers,
    after_epoch: int,
    reserved: Iterable[Placement] = (),
) -> Placement:
    """Give a plan its numbers beside all installed `jobs` (also the job's own older placement, beside
    which the new one is made before the old one is broken) and what is reserved for others. Raises RefusedError."""
    if order.file.transport is Transport.ROCE:
        _check_roce(fabric, wire, order.file.name, plan)
    placements = [*(p for j in jobs for p in j.placements), *reserved]
    pools = slot_pools(fabric, placements, numbers.epochs)
    trees: list[PlannedTree] = []
    quorum = check_quorum(fabric, order, plan)
    epoch = after_epoch
    room = min(TREES[s.chip] for s in fabric.switches)
    for number, tree in zip(_free_trees(room, placements, numbers.last_tree), plan.trees, strict=False):
        window = _window(fabric, wire, plan, tree, order.file.slots)
        if order.file.transport is Transport.ROCE and order.file.slots is None:
            window = max(window, _ROCE_WINDOW)
        size, ranges = _take(fabric, tree, pools, 2 * window, order.file.name)
        epoch = max([epoch, *(pools[s].epoch(r) for s, r in ranges.items())])
        bases = {s: r.base for s, r in ranges.items()}
        trees.append(PlannedTree(tree=number, slots=size, window=size // 2, bases=bases, quorum=quorum))
    if len(trees) < len(plan.trees):
        raise RefusedError(
            f"job '{order.file.name}': all {room} tree numbers are in use; wait for a job to end"
        )
    if epoch >= LAST_EPOCH:
        raise RefusedError(f"job '{order.file.name}' has used up its {LAST_EPOCH} epochs; submit it again")
    placement = Placement(plan=plan, trees=tuple(trees), epoch=epoch + 1)
    _check_entries(fabric, placement, placements)
    return placement


def _check_roce(fabric: Fabric, wire: Wire, name: str, plan: Plan) -> None:
    """Raises RefusedError if the switches of the plan do not speak RoCE or do not pass on what a leaf needs."""
    if wire.lanes not in ROCE_LANES:
        raise RefusedError(
            f"job '{name}': the controller runs programs of {wire.lanes} lanes; RoCE needs 256 lanes (a path MTU of "
            "1024 bytes) or 64 (256 bytes)"
        )
    if len(plan.trees) > ROCE_TREES:
        raise RefusedError(f"job '{name}': a RoCE job has at most {ROCE_TREES} trees; name another scheme")
    for tree in plan.trees:
        if fabric.is_host(tree.root):
            raise RefusedError(f"job '{name}': a RoCE job's trees cannot end in a parameter server yet")
        for node in {n for e in tree.edges for n in e.path if not fabric.is_host(n)}:
            chip = fabric.switch(node).chip
            if chip is not None:
                raise RefusedError(f"job '{name}': switch {node} is a {chip}; RoCE needs v1model programs")


def check_quorum(fabric: Fabric, order: JobOrder, plan: Plan) -> int:
    """How many contributions are enough, 0: all are wanted. Of fewer workers than the file names it cannot be more than
    there are. Raises RefusedError where a node of the plan has no room for it."""
    name, quorum = order.file.name, order.file.quorum
    if quorum is None:
        return 0
    for tree in plan.trees:
        for node in tree.nodes:
            chip = None if fabric.is_host(node) else fabric.switch(node).chip
            if chip is not None:
                raise RefusedError(
                    f"job '{name}' has a quorum, and switch {node} is a {chip.value}, whose program has no room for "
                    "one (docs/protocol.md, 3.7); leave 'quorum' out, or name a scheme that adds up elsewhere"
                )
        if not fabric.is_host(tree.root) and len(tree.edges) > SENDERS_OF_A_QUORUM:
            raise RefusedError(
                f"job '{name}' has a quorum and a tree of {len(tree.edges)} senders to switch {tree.root}; a switch as "
                f"its root takes {SENDERS_OF_A_QUORUM}, a parameter server any number"
            )
    workers = {w for tree in plan.trees for edge in tree.edges if fabric.is_host(w := edge.child)}
    return min(quorum, len(workers))


def slot_pools(
    fabric: Fabric, placements: Iterable[Placement], epochs: Mapping[str, Mapping[int, int]]
) -> dict[str, SlotPool]:
    taken: dict[str, list[Range]] = defaultdict(list)
    for placement in placements:
        for switch, ranges in ranges_of(placement).items():
            taken[switch].extend(ranges)
    return {s.name: SlotPool(s.name, s.slots, taken[s.name], epochs.get(s.name, {})) for s in fabric.switches}


def ranges_of(placement: Placement) -> dict[str, list[Range]]:
    """The slots of each switch that a placement holds."""
    ranges: dict[str, list[Range]] = defaultdict(list)
    for tree in placement.trees:
        for switch, base in tree.bases.items():
            ranges[switch].append(Range(base, max(tree.slots, BLOCK)))
    return ranges


def free_udp_port(jobs: Iterable[JobRecord], last: int) -> int:
    """The next free port after the last one that was handed out. Raises RefusedError."""
    taken = {j.udp_port for j in jobs if not j.state.over}
    first = last - UDP_PORTS.start + 1 if last else 0
    for i in range(len(UDP_PORTS)):
        port = UDP_PORTS[(first + i) % len(UDP_PORTS)]
        if port not in taken:
            return port
    raise RefusedError(f"all {len(UDP_PORTS)} job ports are in use; wait for a job to end")


def _free_trees(room: int, placements: Iterable[Placement], last: int) -> Iterable[int]:
    """Numbers go round, so that one is used again as late as possible."""
    taken = {t.tree for p in placements for t in p.trees}
    return (n for i in range(room) if (n := (last + i) % room + 1) not in taken)


def longest_delay_s(fabric: Fabric, tree: Tree) -> float:
    """Of the links from a sender to the root."""
    parents = {e.child: e for e in tree.edges}

    def delay(child: str) -> float:
        total = 0.0
        while child in parents:
            path = parents[child].path
            total += sum(fabric.link(a, b).delay_ms for a, b in pairwise(path))
            child = path[-1]
        return total

    return 1e-3 * max(delay(c) for c in parents)


def _window(fabric: Fabric, wire: Wire, plan: Plan, tree: Tree, asked: int | None) -> int:
    """W: what is under way at the tree's rate in one round trip, as a power of two."""
    if asked is not None:
        return asked // 2
    round_trip = 2 * longest_delay_s(fabric, tree) + wire.host_rtt_s
    packets = wire.bits_per_second(fabric, plan.rate * tree.share) * round_trip / wire.packet_bits
    wanted = 1 << max(0, math.ceil(math.log2(max(packets, 1.0))))
    return min(max(wanted, _LEAST_WINDOW), _MOST_WINDOW)


def _take(
    fabric: Fabric, tree: Tree, pools: Mapping[str, SlotPool], size: int, job: str
) -> tuple[int, dict[str, Range]]:
    """Ranges of one size on all nodes of a tree: the wanted size, or the largest that all of them still have."""
    nodes = [n for n in tree.nodes if not fabric.is_host(n)]
    least = 2 * _LEAST_WINDOW
    free = {n: pools[n].largest_free() for n in nodes}
    size = min([size, *free.values()])
    if size < least:
        tight = min(nodes, key=lambda n: free[n])
        raise RefusedError(
            f"job '{job}': switch {tight} has {pools[tight].in_use} of {pools[tight].slots} slots in use and none of "
            f"{least} in a row; a tree needs at least {least}; wait for a job to end or name another scheme"
        )
    try:
        return size, {n: pools[n].take(size) for n in nodes}
    except SlotsExhaustedError as error:  # the size was free on each, and no node occurs twice
        raise RefusedError(str(error)) from error


def _check_entries(fabric: Fabric, placement: Placement, others: Iterable[Placement]) -> None:
    """Every switch has room for the admission entries, and repeated results find their way."""
    used: Counter[str] = Counter()
    try:
        for held in (placement, *others):
            for planned, tree in zip(held.trees, held.plan.trees, strict=True):
                entities = tree_entities(fabric, planned, tree, held.epoch, UDP_PORTS.start)
                used.update(s for s, e in entities if e.key[0] == "admission")
    except UnroutableError as error:
        raise RefusedError(str(error)) from error
    for switch, count in used.items():
        room = ADMISSION_ENTRIES if fabric.switch(switch).chip is None else ADMISSION_ENTRIES_OF_CHIPS
        if count > room:
            raise RefusedError(f"switch {switch} would hold {count} admission entries; it has {room}")
