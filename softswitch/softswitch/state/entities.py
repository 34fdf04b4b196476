# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The values that control operations take and return. All are frozen. Byte strings are big-endian; on the
way in any length is taken as long as the value fits the field (P4Runtime's canonical form too), on the way
out they are canonical: the fewest bytes that hold the value, at least one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


class MatchKind(Enum):
    """Comparison of a key field."""

    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    RANGE = "range"
    OPTIONAL = "optional"


@dataclass(frozen=True)
class Exact:
    """Equality. Also the form of a present `optional` field."""

    value: bytes


@dataclass(frozen=True)
class Lpm:
    """The first `prefix_len` bits of `value`, 0..width; bits beyond the prefix must be zero."""

    value: bytes
    prefix_len: int


@dataclass(frozen=True)
class Ternary:
    """`key & mask == value`; bits of value outside the mask must be zero."""

    value: bytes
    mask: bytes


@dataclass(frozen=True)
class Range:
    """`low <= key <= high`, unsigned, both ends included."""

    low: bytes
    high: bytes


Match = Exact | Lpm | Ternary | Range


@dataclass(frozen=True)
class ActionCall:
    """An action by its full P4 name and its parameters by name, in any order, complete."""

    name: str
    params: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class MemberRef:
    """A member of the table's action profile."""

    member_id: int


@dataclass(frozen=True)
class GroupRef:
    """A group of the table's action selector."""

    group_id: int


@dataclass(frozen=True)
class WeightedAction:
    """One action of a one-shot action set; weight >= 1. While the port `watch_port` (empty = none) is down or
    absent, the action is not selected."""

    action: ActionCall
    weight: int = 1
    watch_port: bytes = b""


@dataclass(frozen=True)
class ActionSet:
    """P4Runtime's one-shot programming of an action selector: the group is created and deleted with the entry."""

    actions: Sequence[WeightedAction]


TableAction = ActionCall | MemberRef | GroupRef | ActionSet


@dataclass(frozen=True)
class TableEntry:
    """One entry. `match` names key fields as P4Info does; a field left out is a wildcard, allowed for lpm,
    ternary, range and optional. `priority` > 0 for tables with a ternary, range or optional key, and there
    the larger wins; 0 otherwise. `idle_timeout_ns` 0 = never. `metadata` is kept and read back."""

    match: Mapping[str, Match]
    action: TableAction
    priority: int = 0
    idle_timeout_ns: int = 0
    metadata: bytes = b""
    is_const: bool = False


@dataclass(frozen=True)
class Member:
    """An action profile member."""

    member_id: int
    action: ActionCall


@dataclass(frozen=True)
class GroupMember:
    """A member within a group; a weight w counts w times in the selection. `watch_port` as in WeightedAction."""

    member_id: int
    weight: int = 1
    watch_port: bytes = b""


@dataclass(frozen=True)
class Group:
    """An action selector's group. `max_size` 0 = the profile's bound."""

    group_id: int
    members: Sequence[GroupMember]
    max_size: int = 0


@dataclass(frozen=True)
class CounterData:
    """Packets and bytes of a counter. The one that its type does not count reads as it was written (0 at start)."""

    packets: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class MeterConfig:
    """RFC 2698 two-rate three-color. Rates in bytes (or packets) per second, bursts in bytes (or packets)."""

    cir: int
    cburst: int
    pir: int
    pburst: int


@dataclass(frozen=True)
class Replica:
    """One copy: out of `port`, with `egress_rid` = `instance`."""

    port: int
    instance: int = 0


@dataclass(frozen=True)
class CloneSession:
    """Destination of the clones of a session. `packet_length` > 0 cuts the clone to that many bytes;
    `class_of_service` is kept only."""

    session_id: int
    replicas: Sequence[Replica]
    class_of_service: int = 0
    packet_length: int = 0


@dataclass(frozen=True)
class DigestEvent:
    """One digest() call: the fields in the order of the P4 struct."""

    name: str
    fields: tuple[bytes, ...]
    time_ns: int


@dataclass(frozen=True)
class IdleEvent:
    """An entry whose idle timeout expired; one event per timeout, and the entry stays."""

    table: str
    entry: TableEntry
    time_ns: int


Event = DigestEvent | IdleEvent


@dataclass(frozen=True)
class FieldInfo:
    """A key field or an action parameter."""

    name: str
    width: int
    kind: MatchKind = MatchKind.EXACT


@dataclass(frozen=True)
class ActionInfo:
    """An action as the control plane sees it."""

    name: str
    params: tuple[FieldInfo, ...]


@dataclass(frozen=True)
class TableInfo:
    """A table as the control plane sees it."""

    name: str
    keys: tuple[FieldInfo, ...]
    actions: tuple[str, ...]
    size: int
    profile: str | None
    has_counter: bool
    has_meter: bool
    needs_priority: bool
    const_entries: bool
    const_default: bool


@dataclass(frozen=True)
class ArrayInfo:
    """A counter, meter or register array (`width` in bits, registers only)."""

    name: str
    size: int
    width: int = 0
    signed: bool = False
