# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""From what a switch holds to what it should hold, in an order that never admits a packet too early.

New entries go in by phase: queue pairs that only a job may send to, members and groups of ECMP sets,
forwarding and management, multicast groups, routes of trees, refusals, and the entries that admit packets
last. Only then the old ones go, in reverse: what admits first. So a job that moves is made before it is
broken, and a switch that is left halfway admits nothing that it cannot deliver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum

from netfold.controller.switches import roce
from netfold.controller.switches.admission_table import is_management, is_refusal
from netfold.controller.switches.entries import (
    Contents,
    Entity,
    MulticastGroup,
    SelectorGroup,
    SelectorMember,
)

BATCH = 200
"""Updates in one WriteRequest. A server may reorder within one (P4Runtime spec 12), so phases never share it."""


class Phase(IntEnum):
    RESERVATIONS = 0
    MEMBERS = 1
    SETS = 2
    FORWARDING = 3
    GROUPS = 4
    ROUTES = 5
    REFUSALS = 6
    ADMISSION = 7


class Op(Enum):
    INSERT = "insert"
    MODIFY = "modify"
    DELETE = "delete"


@dataclass(frozen=True)
class Step:
    """One WriteRequest."""

    op: Op
    entities: tuple[Entity, ...]


def phase_of(entity: Entity) -> Phase:
    if isinstance(entity, MulticastGroup):
        return Phase.GROUPS
    if isinstance(entity, SelectorMember):
        return Phase.MEMBERS
    if isinstance(entity, SelectorGroup):
        return Phase.SETS
    if entity.table == roce.ENDS:
        return Phase.RESERVATIONS
    if entity.table in ("uplink", "downlink", roce.WORKERS):
        return Phase.ROUTES
    if entity.table == roce.CONNECTIONS:
        return Phase.ADMISSION
    if entity.table == "admission" and not is_management(entity):
        return Phase.REFUSALS if is_refusal(entity) else Phase.ADMISSION
    return Phase.FORWARDING


def steps(held: Contents, wanted: Contents) -> Iterator[Step]:
    """What turns `held` into `wanted`; nothing if they are equal."""
    new = [e for k, e in wanted.items() if k not in held]
    changed = [e for k, e in wanted.items() if k in held and held[k] != e]
    old = [e for k, e in held.items() if k not in wanted]
    for phase in Phase:
        yield from _batches(Op.INSERT, phase, new)
        yield from _batches(Op.MODIFY, phase, changed)
    for phase in reversed(Phase):
        yield from _batches(Op.DELETE, phase, old)


def differences(held: Contents, wanted: Contents) -> int:
    """How many entries differ."""
    return sum(held.get(k) != wanted.get(k) for k in held.keys() | wanted.keys())


def apply(held: Contents, step: Step) -> None:
    """What a switch holds after a step that succeeded."""
    for entity in step.entities:
        if step.op is Op.DELETE:
            held.pop(entity.key, None)
        else:
            held[entity.key] = entity


def _batches(op: Op, phase: Phase, entities: list[Entity]) -> Iterator[Step]:
    chosen = [e for e in entities if phase_of(e) is phase]
    for first in range(0, len(chosen), BATCH):
        yield Step(op, tuple(chosen[first : first + BATCH]))
