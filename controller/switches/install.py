# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Orders the writes that turn a switch's contents into the desired ones, so that they never admit a packet too early.

New entries are written by phase: reservations of queue pairs, members and groups of ECMP sets, forwarding and
management, multicast groups, routes of trees, refusals, and last the entries that admit packets. Only then old entries
are deleted, in reverse order: admission first. So a job that moves is installed at its new place before it is removed
from the old one, and a switch whose writes are interrupted admits no packet that it cannot deliver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum

from netfold.controller.switches.entries import (
    Contents,
    Entity,
    MulticastGroup,
    SelectorGroup,
    SelectorMember,
)
from netfold.controller.switches.tables import is_management, is_refusal

MAX_BATCH = 200
"""Maximum updates in one WriteRequest. A server may reorder them (P4Runtime spec 12), so a request has one phase."""


class Phase(IntEnum):
    """When entities go into a switch."""

    RESERVATIONS = 0
    MEMBERS = 1
    SETS = 2
    FORWARDING = 3
    GROUPS = 4
    ROUTES = 5
    REFUSALS = 6
    ADMISSION = 7


_TABLE_PHASES = {
    "uplink": Phase.ROUTES,
    "downlink": Phase.ROUTES,
    "owners": Phase.ROUTES,
    "reserved_qps": Phase.RESERVATIONS,
    "roce_receivers": Phase.ROUTES,
    "connections": Phase.ADMISSION,
}
"""Phases of the tables whose entries all have the same one; a table that is not named has FORWARDING."""


class Op(Enum):
    INSERT = "insert"
    MODIFY = "modify"
    DELETE = "delete"


@dataclass(frozen=True)
class WriteBatch:
    """The updates of one WriteRequest."""

    op: Op
    entities: tuple[Entity, ...]


def phase_of(entity: Entity) -> Phase:
    if isinstance(entity, MulticastGroup):
        return Phase.GROUPS
    if isinstance(entity, SelectorMember):
        return Phase.MEMBERS
    if isinstance(entity, SelectorGroup):
        return Phase.SETS
    if entity.table == "admission" and not is_management(entity):
        return Phase.REFUSALS if is_refusal(entity) else Phase.ADMISSION
    return _TABLE_PHASES.get(entity.table, Phase.FORWARDING)


def write_batches(contents: Contents, desired: Contents) -> Iterator[WriteBatch]:
    """The writes that turn `contents` into `desired`; none if they are equal."""
    new = [e for k, e in desired.items() if k not in contents]
    changed = [e for k, e in desired.items() if k in contents and contents[k] != e]
    old = [e for k, e in contents.items() if k not in desired]
    for phase in Phase:
        yield from _batches(Op.INSERT, phase, new)
        yield from _batches(Op.MODIFY, phase, changed)
    for phase in reversed(Phase):
        yield from _batches(Op.DELETE, phase, old)


def count_differences(contents: Contents, desired: Contents) -> int:
    """The number of entries that differ."""
    if contents == desired:  # usual: an audit compares all entries of all switches
        return 0
    return sum(contents.get(k) != desired.get(k) for k in contents.keys() | desired.keys())


def apply(contents: Contents, batch: WriteBatch) -> None:
    """Change `contents` as a batch that succeeded changed the switch."""
    for entity in batch.entities:
        if batch.op is Op.DELETE:
            contents.pop(entity.key, None)
        else:
            contents[entity.key] = entity


def _batches(op: Op, phase: Phase, entities: list[Entity]) -> Iterator[WriteBatch]:
    chosen = [e for e in entities if phase_of(e) is phase]
    for first in range(0, len(chosen), MAX_BATCH):
        yield WriteBatch(op, tuple(chosen[first : first + MAX_BATCH]))
