# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""P4Info, indexed: from the ids of the wire to the names of the program and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from finsy.proto import p4i, p4r, p4t

from softswitch.p4runtime.status import Code, StatusError, invalid
from softswitch.state.entities import MatchKind


class Named(Protocol):
    """Whatever has an id and a name."""

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


class Index(Generic[N]):
    """The objects of one kind, by id and by name."""

    def __init__(self, kind: str, items: Iterable[N]) -> None:
        self.kind = kind
        self._by_id: dict[int, N] = {}
        self._by_name: dict[str, N] = {}
        for item in items:
            if item.id in self._by_id or item.name in self._by_name:
                raise invalid(f"P4Info: {kind} {item.name!r} (id {item.id}) is there twice")
            self._by_id[item.id] = item
            self._by_name[item.name] = item

    def __getitem__(self, key: int) -> N:
        """Return an object by its id. Raises StatusError (INVALID_ARGUMENT) if there is none."""
        try:
            return self._by_id[key]
        except KeyError:
            known = ", ".join(f"{i} ({item.name})" for i, item in list(self._by_id.items())[:8]) or "none"
            raise invalid(f"the program has no {self.kind} with id {key}; it has: {known}") from None

    def named(self, name: str) -> N:
        """Return an object by its name. Raises KeyError if there is none."""
        return self._by_name[name]

    def select(self, key: int) -> list[N]:
        """The one with this id; all when the id is 0, the wildcard."""
        return list(self._by_id.values()) if key == 0 else [self[key]]

    @property
    def names(self) -> set[str]:
        return set(self._by_name)

    def __contains__(self, key: int) -> bool:
        return key in self._by_id

    def __len__(self) -> int:
        return len(self._by_id)


@dataclass(frozen=True)
class Field:
    """A match field or an action parameter."""

    id: int
    name: str
    width: int
    kind: MatchKind = MatchKind.EXACT


@dataclass(frozen=True)
class Action:
    id: int
    name: str
    params: Index[Field]


@dataclass(frozen=True)
class Profile:
    id: int
    name: str
    tables: tuple[int, ...]
    selector: bool
    size: int
    max_group_size: int
    weights_disallowed: bool


@dataclass(frozen=True)
class Table:
    id: int
    name: str
    fields: Index[Field]
    scopes: Mapping[int, int]
    """Scope (p4.config.v1.ActionRef.Scope) of each allowed action, by action id."""
    profile: Profile | None
    has_counter: bool
    meter_type: int | None
    """Type (p4.config.v1.MeterSpec.Type) of the direct meter; None without one."""
    idle_timeout: bool
    is_const: bool
    const_default: bool

    @property
    def needs_priority(self) -> bool:
        """Must entries have a priority? (specification, TableEntry)"""
        kinds = {field.kind for field in self.fields.select(0)}
        return bool(kinds & {MatchKind.TERNARY, MatchKind.RANGE, MatchKind.OPTIONAL})


@dataclass(frozen=True)
class Array:
    """A counter, a meter, a register or a digest; `type_spec` for the last two."""

    id: int
    name: str
    size: int = 0
    type_spec: p4t.P4DataTypeSpec | None = None
    meter_type: int = 0


@dataclass(frozen=True)
class ValueSet:
    id: int
    name: str
    fields: Index[Field]
    size: int


@dataclass(frozen=True)
class PacketHeader:
    """A controller header; its fields lie in the frame in the order given, most significant bit first."""

    fields: tuple[Field, ...]
    padding: frozenset[int]
    """Ids of the fields annotated @padding, which a controller need not give."""

    @property
    def width(self) -> int:
        return sum(field.width for field in self.fields)


WIDTH_MAX = 16384
"""Bits of a field, as in the programs (translate/model.py)."""
HEADER_MAX = 1024
"""Bytes of a controller header."""

_KINDS = {
    p4i.MatchField.EXACT: MatchKind.EXACT,
    p4i.MatchField.LPM: MatchKind.LPM,
    p4i.MatchField.TERNARY: MatchKind.TERNARY,
    p4i.MatchField.RANGE: MatchKind.RANGE,
    p4i.MatchField.OPTIONAL: MatchKind.OPTIONAL,
}
_NO_HEADER = PacketHeader((), frozenset())


class Schema:
    """Objects that a program offers to the controller. Raises StatusError (INVALID_ARGUMENT) for an unsound P4Info."""

    def __init__(self, info: p4i.P4Info) -> None:
        self.types = info.type_info
        self.actions = Index("action", [_action(a) for a in info.actions])
        self.profiles = Index("action profile", [_profile(p) for p in info.action_profiles])
        direct_counters = {c.preamble.id for c in info.direct_counters}
        direct_meters = {m.preamble.id: m.spec.type for m in info.direct_meters}
        self.tables = Index(
            "table", [_table(t, self.profiles, direct_counters, direct_meters) for t in info.tables]
        )
        self.counters = Index(
            "counter", [Array(c.preamble.id, c.preamble.name, c.size) for c in info.counters]
        )
        self.meters = Index(
            "meter",
            [Array(m.preamble.id, m.preamble.name, m.size, meter_type=m.spec.type) for m in info.meters],
        )
        self.registers = Index(
            "register", [Array(r.preamble.id, r.preamble.name, r.size, r.type_spec) for r in info.registers]
        )
        self.digests = Index(
            "digest", [Array(d.preamble.id, d.preamble.name, type_spec=d.type_spec) for d in info.digests]
        )
        self.value_sets = Index("value set", [_value_set(v) for v in info.value_sets])
        headers = {h.preamble.name: _packet_header(h) for h in info.controller_packet_metadata}
        self.packet_in = headers.get("packet_in", _NO_HEADER)
        self.packet_out = headers.get("packet_out", _NO_HEADER)


def _field(message: p4i.MatchField, what: str) -> Field:
    kind = _KINDS.get(message.match_type)
    if kind is None:
        raise invalid(f"P4Info: {what}: match type {message.match_type} of {message.name!r} is not supported")
    return Field(message.id, message.name, _width(message.bitwidth, f"{what}, {message.name}"), kind)


def _width(width: int, what: str) -> int:
    if width <= 0:
        raise invalid(f"P4Info: {what} has no bit width: translation to strings is not supported")
    if width > WIDTH_MAX:
        raise invalid(f"P4Info: {what} of {width} bits; at most {WIDTH_MAX}")
    return width


def _action(message: p4i.Action) -> Action:
    name = message.preamble.name
    params = [Field(p.id, p.name, _width(p.bitwidth, f"{name}, {p.name}")) for p in message.params]
    return Action(message.preamble.id, name, Index(f"parameter of action {name}", params))


def _profile(message: p4i.ActionProfile) -> Profile:
    return Profile(
        message.preamble.id,
        message.preamble.name,
        tuple(message.table_ids),
        message.with_selector,
        message.size,
        message.max_group_size,
        message.weights_disallowed,
    )


def _table(
    message: p4i.Table, profiles: Index[Profile], direct_counters: set[int], direct_meters: Mapping[int, int]
) -> Table:
    name = message.preamble.name
    direct = set(message.direct_resource_ids)
    return Table(
        id=message.preamble.id,
        name=name,
        fields=Index(
            f"key field of table {name}", [_field(f, f"table {name}") for f in message.match_fields]
        ),
        scopes={ref.id: ref.scope for ref in message.action_refs},
        profile=profiles[message.implementation_id] if message.implementation_id else None,
        has_counter=bool(direct & direct_counters),
        meter_type=next((kind for key, kind in direct_meters.items() if key in direct), None),
        idle_timeout=message.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL,
        is_const=message.is_const_table,
        const_default=message.const_default_action_id != 0,
    )


def _value_set(message: p4i.ValueSet) -> ValueSet:
    name = message.preamble.name
    fields = [_field(f, f"value set {name}") for f in message.match]
    return ValueSet(message.preamble.id, name, Index(f"field of value set {name}", fields), message.size)


def _packet_header(message: p4i.ControllerPacketMetadata) -> PacketHeader:
    name = message.preamble.name
    header = PacketHeader(
        tuple(Field(m.id, m.name, _width(m.bitwidth, f"{name}, {m.name}")) for m in message.metadata),
        frozenset(m.id for m in message.metadata if any(a.startswith("@padding") for a in m.annotations)),
    )
    if header.width > HEADER_MAX * 8:
        raise invalid(
            f"P4Info: the controller header {name} is {header.width} bits long; at most {HEADER_MAX} bytes"
        )
    if header.width % 8:
        raise invalid(f"P4Info: the controller header {name} is {header.width} bits long, not whole bytes")
    return header


def cells(index: p4r.Index | None, size: int, what: str) -> range:
    """The cells of an array that an optional index selects: all when it is None."""
    if index is None:
        return range(size)
    if index.index < 0:
        raise invalid(f"{what}: index {index.index} is negative")
    if index.index >= size:
        raise StatusError(Code.OUT_OF_RANGE, f"{what}: index {index.index} is beyond the last, {size - 1}")
    return range(index.index, index.index + 1)
