# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks what a job requires of switches: what its features and its numerics need of programs, and room for the entries
of its trees, those that admit packets and those of owners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from weakref import ref

from netfold.controller.features.registry import FEATURES, features_in
from netfold.controller.jobs.file import ResolvedJob
from netfold.controller.jobs.records import AllocatedTree, JobRecord, Placement
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.planning.plan import Plan, Tree
from netfold.controller.switches.tree_entities import UnroutableError, tree_entities
from netfold.controller.switches.tree_feature import InstalledTree
from netfold.p4src.manifest import lanes_with
from netfold.protocol.lane_bits import MAX_QUARTER_WORKERS, PAIR_BITS, kept_bits
from netfold.protocol.target import Targets
from netfold.topologies.fabric import Fabric

MIN_HALF_BITS = {"half": 4, "auto": 1}
"""Minimum bits of a value that the scheme half has to keep (protocol/lane_bits.py), by the job's numerics. `auto` is
half for float16 and bfloat16 alone."""

MAX_ENTRIES, MAX_ENTRIES_OF_CHIPS = 8192, 4096
"""Sizes of the admission tables: p4src/common/sizes.p4, p4src/tna/arch.p4."""

MAX_OWNERS = 8192
"""Size of the table of owners: p4src/v1model/arch.p4."""

Place = tuple[str, str]
"""A switch and the name of a table."""


def check_requirements(
    fabric: Fabric,
    packet_model: PacketModel,
    resolved: ResolvedJob,
    plan: Plan,
    installed: Iterable[JobRecord] = (),
) -> None:
    """Check all requirements of a job next to the `installed` ones. Raises RefusedError."""
    for feature in features_in(resolved.file):
        for refusal in feature.refusals(fabric, packet_model.lanes, resolved, plan, installed):
            raise RefusedError(refusal)
    check_floats(fabric, packet_model, resolved, plan)
    check_half(resolved)
    check_quarter(resolved)


def check_floats(fabric: Fabric, packet_model: PacketModel, resolved: ResolvedJob, plan: Plan) -> None:
    """float32 needs programs that add floats at all nodes, and at others that a feature names."""
    if not resolved.file.numerics.floats:
        return
    name, known = resolved.file.name, " or ".join(map(str, lanes_with("floats")))
    nodes = {n for tree in plan.trees for n in tree.nodes}
    for feature in features_in(resolved.file):
        nodes |= {n for tree in plan.trees for n in feature.numerics_nodes(tree)}
    for node in sorted(n for n in nodes if not fabric.is_host(n)):
        program = fabric.switch(node).runs(packet_model.lanes)
        if program.floats:
            continue
        if program.chip is not None:
            raise RefusedError(
                f"job '{name}': numerics are float32, and switch {node} is a {program.chip}, whose program adds whole "
                "numbers (docs/reference/tofino.md); say block, or name a scheme that adds up elsewhere"
            )
        raise RefusedError(
            f"job '{name}': numerics are float32, and switch {node} runs a program of {program.lanes} lanes, which "
            f"adds whole numbers; start the controller with --lanes {known}, or say block"
        )


def check_half(resolved: ResolvedJob) -> None:
    """Two values in a lane lose the bits that the sum of all workers needs; enough bits must remain."""
    workers, mode = len(resolved.workers), resolved.file.numerics.mode
    if mode not in MIN_HALF_BITS or kept_bits(workers, half=True) >= MIN_HALF_BITS[mode]:
        return
    value = "value" if mode == "half" else "float16 or bfloat16"
    raise RefusedError(
        f"job '{resolved.file.name}': numerics '{mode}' keep {max(kept_bits(workers, half=True), 0)} bits of a {value} "
        f"with {workers} workers; expected at most {1 << (PAIR_BITS - MIN_HALF_BITS[mode])} workers, which keep "
        f"{MIN_HALF_BITS[mode]}, or block, which keeps {kept_bits(workers)}"
    )


def check_quarter(resolved: ResolvedJob) -> None:
    """Each worker rounds to the eight bits of the sum, so the error grows with the workers."""
    workers = len(resolved.workers)
    if resolved.file.numerics.mode == "quarter" and workers > MAX_QUARTER_WORKERS:
        raise RefusedError(
            f"job '{resolved.file.name}': numerics 'quarter' are for at most {MAX_QUARTER_WORKERS} workers, and it has "
            f"{workers}: every worker adds a rounding to eight bits; expected half or block"
        )


class AdmissionEntries:
    """Entries that each tree takes at each switch, computed once while the tree is alive."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._known: dict[tuple[int, Targets], tuple[ref[Tree], Counter[Place]]] = {}
        """Entries by identity of the tree, with and without targets: its hash takes time in proportion to its edges."""

    def check(self, new: Placement, others: Iterable[Placement]) -> None:
        """Raises RefusedError if a switch has no room for the entries of `new` in addition to those of `others`, or if
        the resent results of a tree have no path."""
        used: Counter[Place] = Counter()
        try:
            for placement in (new, *others):
                for numbers, tree in zip(placement.trees, placement.plan.trees, strict=True):
                    used.update(self._of(numbers, tree))
        except UnroutableError as error:
            raise RefusedError(str(error)) from error
        for (switch, table), count in used.items():
            most = self._room(switch, table)
            if count > most:
                what = "admission" if table == "admission" else "owner"
                raise RefusedError(f"switch {switch} would hold {count} {what} entries; it has {most}")

    def _room(self, switch: str, table: str) -> int:
        if table == "owners":
            return MAX_OWNERS
        return MAX_ENTRIES if self._fabric.switch(switch).chip is None else MAX_ENTRIES_OF_CHIPS

    def _of(self, numbers: AllocatedTree, tree: Tree) -> Counter[Place]:
        """The entries that a tree takes at each switch. Raises UnroutableError."""
        key = id(tree), numbers.targets
        if key not in self._known:
            self._known[key] = ref(tree, lambda _: self._known.pop(key)), self._count(numbers, tree)
        return self._known[key][1]

    def _count(self, numbers: AllocatedTree, tree: Tree) -> Counter[Place]:
        entities = tree_entities(InstalledTree(self._fabric, numbers, tree, epoch=1, udp_port=0), FEATURES)
        tables = ((switch, str(entity.key[0])) for switch, entity in entities)
        return Counter(place for place in tables if place[1] in ("admission", "owners"))
