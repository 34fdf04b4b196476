# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Allocates tree ids, slots and an epoch to a plan, disjoint from those in use."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from netfold.controller.features.registry import features_in
from netfold.controller.features.targets.feature import TargetsDecision, decide_targets
from netfold.controller.jobs.file import ResolvedJob, TargetsOption
from netfold.controller.jobs.records import LAST_EPOCH, AllocatedTree, JobRecord, Placement
from netfold.controller.jobs.slot_allocator import BLOCK, Range, SlotAllocator, SlotsExhaustedError
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.switch_requirements import AdmissionEntries, check_requirements
from netfold.controller.lifecycle.tree_numbers import TreeNumbers
from netfold.controller.planning.plan import Plan, Tree
from netfold.protocol.listing import listing
from netfold.protocol.target import Targets
from netfold.topologies.fabric import Fabric, Switch

_MIN_WINDOW, _MAX_WINDOW = 8, 2048
GATHER_CHANNELS = 16
"""With fewer channels there is no stream for gathers (docs/reference/protocol.md, section 5.1)."""


@dataclass(frozen=True)
class AllocationState:
    """Where the search for free numbers starts: the last tree id that was handed out, and the epochs that blocks of
    slots have seen, by switch."""

    last_tree: int
    epochs: Mapping[str, Mapping[int, int]]


@dataclass(frozen=True)
class _Request:
    """The arguments of `allocate` that stay the same with and without targets."""

    fabric: Fabric
    packet_model: PacketModel
    resolved: ResolvedJob
    plan: Plan
    installed: list[JobRecord]
    reserved: list[Placement]
    numbers: AllocationState
    after_epoch: int


def allocate(
    fabric: Fabric,
    packet_model: PacketModel,
    resolved: ResolvedJob,
    plan: Plan,
    jobs: Iterable[JobRecord],
    numbers: AllocationState,
    after_epoch: int,
    reserved: Iterable[Placement] = (),
    entries: AdmissionEntries | None = None,
    slots_given_up: str = "",
    job: JobRecord | None = None,
) -> Placement:
    """Allocate tree ids and slots to a plan, disjoint from installed `jobs`, from `reserved` placements and from the
    job's own old placement (make before break). After the last epoch epochs start again at 1, because trees and slots
    are different ones. `entries`: None: no tree is counted yet. `slots_given_up`: the job whose slots count as free,
    while its trees and entries stay until the new ones are installed. `job`: the record of a job that members may have
    joined. Targets that are not required yield to a lack of slots or entries. Raises RefusedError."""
    request = _Request(fabric, packet_model, resolved, plan, list(jobs), list(reserved), numbers, after_epoch)
    check_requirements(fabric, packet_model, resolved, plan, request.installed)
    known = entries or AdmissionEntries(fabric)
    decision = decide_targets(fabric, packet_model.lanes, resolved, plan, job)
    if decision.targets is not Targets.ON and resolved.file.targets is TargetsOption.REQUIRED:
        raise RefusedError(
            f"job '{resolved.file.name}' requires targets: {decision.because}; or say `targets: auto`"
        )
    if decision.targets is Targets.ON and resolved.file.targets is TargetsOption.AUTO:
        try:
            return _allocate(request, decision, known, slots_given_up)
        except RefusedError as error:
            decision = TargetsDecision(Targets.PAUSED, str(error))
    return _allocate(request, decision, known, slots_given_up)


def _allocate(
    request: _Request, decision: TargetsDecision, entries: AdmissionEntries, slots_given_up: str
) -> Placement:
    """Allocate with or without targets. Raises RefusedError; also where optional targets would leave sums a
    smaller window."""
    fabric, resolved, plan, numbers = request.fabric, request.resolved, request.plan, request.numbers
    placements = [*(p for j in request.installed for p in j.placements), *request.reserved]
    holders = [p for j in request.installed if j.name != slots_given_up for p in j.placements]
    pools = slot_pools(fabric.switches, [*holders, *request.reserved], numbers.epochs)
    trees: list[AllocatedTree] = []
    quorum = min_contributions(fabric, resolved, plan)
    epoch = 0 if request.after_epoch == LAST_EPOCH else request.after_epoch
    tree_numbers = TreeNumbers(fabric, placements, numbers.last_tree)
    wanted = [_slots(request, tree, decision) for tree in plan.trees]
    may_be_less = decision.targets is not Targets.ON or resolved.file.targets is TargetsOption.REQUIRED
    remaining_trees: Counter[str] = Counter()
    for tree, slots in zip(plan.trees, wanted, strict=True):
        remaining_trees.update(dict.fromkeys(tree.nodes, slots))
    for tree, slots in zip(plan.trees, wanted, strict=True):
        number = tree_numbers.take(tree, resolved.file.name)
        remaining_trees.subtract(dict.fromkeys(tree.nodes, slots))
        try:
            size, ranges = _allocate_slots(fabric, tree, pools, slots, remaining_trees, resolved.file.name)
        except RefusedError as error:
            raise RefusedError(f"{error}{_sandboxes_at(tree.nodes, request.installed)}") from error
        if size < slots and not may_be_less:
            raise RefusedError(f"tree {number} would need {slots} slots for them, and there are {size}")
        epoch = max([epoch, *(pools[s].epoch(r) for s, r in ranges.items())])
        trees.append(
            AllocatedTree(
                tree=number,
                slots=size,
                window=_window_of(size, decision),
                bases={s: r.base for s, r in ranges.items()},
                quorum=quorum,
                targets=decision.targets,
            )
        )
    if epoch + 1 == request.after_epoch:
        raise RefusedError(f"job '{resolved.file.name}': the job epochs of all free slots are used up")
    because = decision.because
    placement = Placement(plan=plan, trees=tuple(trees), epoch=epoch + 1, no_targets_because=because)
    if not may_be_less:
        _check_room_to_move(request, placement, pools)
    entries.check(placement, placements)
    return placement


def _check_room_to_move(request: _Request, placement: Placement, pools: Mapping[str, SlotAllocator]) -> None:
    """Raises RefusedError where optional targets would take the slots that the job's sums need beside them: a job moves
    make before break."""
    own = (p for j in request.installed if j.name == request.resolved.file.name for p in j.placements)
    released: Counter[str] = sum(map(_slots_at, own), Counter())
    for switch, slots in _slots_at(placement).items():
        left, needed = pools[switch].slots - pools[switch].in_use + released[switch], slots // 2
        if left < needed:
            raise RefusedError(
                f"switch {switch} would have {left} slots left, and a move of the job needs {needed}"
            )


def _slots_at(placement: Placement) -> Counter[str]:
    """The number of slots that a placement holds at each switch."""
    return Counter({switch: sum(r.size for r in ranges) for switch, ranges in ranges_of(placement).items()})


def min_contributions(fabric: Fabric, resolved: ResolvedJob, plan: Plan) -> int:
    """Number of contributions that are enough to seal a sum, at most the workers of the plan; 0: all are needed."""
    workers = {e.child for tree in plan.trees for e in tree.edges if fabric.is_host(e.child)}
    found = (f.min_contributions(resolved.file, len(workers)) for f in features_in(resolved.file))
    return max(found, default=0)


def slot_pools(
    switches: Iterable[Switch], placements: Iterable[Placement], epochs: Mapping[str, Mapping[int, int]]
) -> dict[str, SlotAllocator]:
    """An allocator for each of `switches`, with the slots that `placements` hold taken."""
    taken: dict[str, list[Range]] = defaultdict(list)
    for placement in placements:
        for switch, ranges in ranges_of(placement).items():
            taken[switch].extend(ranges)
    return {s.name: SlotAllocator(s.name, s.slots, taken[s.name], epochs.get(s.name, {})) for s in switches}


def ranges_of(placement: Placement) -> dict[str, list[Range]]:
    """The slots of each switch that a placement holds."""
    ranges: dict[str, list[Range]] = defaultdict(list)
    for tree in placement.trees:
        for switch, base in tree.bases.items():
            ranges[switch].append(Range(base, max(tree.slots, BLOCK)))
    return ranges


def longest_delay_s(fabric: Fabric, tree: Tree) -> float:
    """The longest sum of link delays from a sender to the root, in seconds."""
    parents = {e.child: e for e in tree.edges}

    def delay(child: str) -> float:
        total = 0.0
        while child in parents:
            path = parents[child].path
            total += sum(fabric.link(a, b).delay_ms for a, b in pairwise(path))
            child = path[-1]
        return total

    return 1e-3 * max(delay(c) for c in parents)


def _slots(request: _Request, tree: Tree, decision: TargetsDecision) -> int:
    """The slots A of a tree: twice its window, and as many for the gather stream, if its file does not say."""
    if request.resolved.file.slots is not None:
        return request.resolved.file.slots
    window = _window(request.fabric, request.packet_model, request.resolved, request.plan, tree)
    return (4 if decision.targets is Targets.ON else 2) * window


def _window_of(slots: int, decision: TargetsDecision) -> int:
    """The window of each stream of data (docs/reference/protocol.md, section 5.1)."""
    has_gathers = decision.targets is Targets.ON and slots // 2 >= GATHER_CHANNELS
    return slots // 4 if has_gathers else slots // 2


def _window(fabric: Fabric, packet_model: PacketModel, resolved: ResolvedJob, plan: Plan, tree: Tree) -> int:
    """The window W: the chunks in flight at the rate of the tree in one round trip, as a power of two."""
    for feature in features_in(resolved.file):
        if (window := feature.window(fabric, plan, tree)) is not None:
            return window
    round_trip = 2 * longest_delay_s(fabric, tree) + packet_model.host_rtt_s
    packets = (
        packet_model.bits_per_second(fabric, plan.rate * tree.share) * round_trip / packet_model.packet_bits
    )
    wanted = 1 << max(0, math.ceil(math.log2(max(packets, 1.0))))
    return min(max(wanted, _MIN_WINDOW), _MAX_WINDOW)


def _allocate_slots(
    fabric: Fabric,
    tree: Tree,
    pools: Mapping[str, SlotAllocator],
    wanted: int,
    remaining_trees: Mapping[str, int],
    job: str,
) -> tuple[int, dict[str, Range]]:
    """Allocate ranges of one size at all switches of a tree: of the wanted size, or of the largest that each of them
    still has after a proportional share for the job's `remaining_trees`, which want that number of slots of a node."""
    nodes = [n for n in tree.nodes if not fabric.is_host(n)]
    least = 2 * _MIN_WINDOW
    free = {n: pools[n].largest_free() for n in nodes}
    size = min([wanted, *(_share(free[n], wanted, remaining_trees.get(n, 0)) for n in nodes)])
    if size < least:
        fullest = min(nodes, key=lambda n: free[n])
        raise RefusedError(
            f"job '{job}': switch {fullest} has {pools[fullest].in_use} of {pools[fullest].slots} slots in use and "
            f"none of {least} in a row; a tree needs at least {least}; wait for a job to end or name another scheme"
        )
    try:
        return size, {n: pools[n].take(size) for n in nodes}
    except SlotsExhaustedError as error:  # the size was free on each, and no node occurs twice
        raise RefusedError(str(error)) from error


def _sandboxes_at(nodes: Iterable[str], jobs: Iterable[JobRecord]) -> str:
    """An addition to a refusal if jobs that end by a command alone hold slots of these nodes."""
    places = set(nodes)
    found = [
        f"job '{j.name}'" for j in jobs if j.sandbox and any(places & {*ranges_of(p)} for p in j.placements)
    ]
    return f"; sandboxes end when they are canceled: {listing(found)}" if found else ""


def _share(free: int, wanted: int, remaining_trees: int) -> int:
    """The share of a free range whose size is a power of two: all of it, or the power of two that leaves the remaining
    trees a proportional part."""
    if wanted + remaining_trees <= free:
        return free
    part = free * wanted // (wanted + remaining_trees)
    return min(free, max(1 << max(0, part.bit_length() - 1), 2 * _MIN_WINDOW))
