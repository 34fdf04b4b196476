# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines the contents of a switch as frozen values: table entries, multicast groups, members and groups of ECMP sets.

Names are those of p4src without the control (`admission`, `forward`), as the P4Info of each target has other prefixes.
All values are plain integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

import finsy as fy

Field = int | tuple[int, int]
"""The value of a match: an exact value; (value, mask) of a ternary field, or (value, prefix length) of an LPM field."""


_ROUTES = "ipv4_routes"


class UnknownEntityError(Exception):
    """A switch has an entity that this controller never writes."""


@dataclass(frozen=True)
class Action:
    """An action with its parameters, sorted by name."""

    name: str
    args: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v}' for k, v in self.args)})"


def action(name: str, **args: int) -> Action:
    return Action(name, tuple(sorted(args.items())))


@dataclass(frozen=True)
class TableEntry:
    """An entry: `match` sorted by field, wildcards left out. Several `actions` are an ECMP set of equal
    weights."""

    table: str
    match: tuple[tuple[str, Field], ...]
    actions: tuple[Action, ...]
    priority: int = 0

    @property
    def key(self) -> Key:
        return (self.table, self.match, self.priority)

    def __str__(self) -> str:
        match = ", ".join(f"{k}={_shown(v)}" for k, v in self.match)
        return f"{self.table}[{match}] -> {' | '.join(map(str, self.actions))}"


def entry(table: str, match: dict[str, Field], *actions: Action, priority: int = 0) -> TableEntry:
    """A table entry in its canonical form."""
    chosen = actions if len(actions) == 1 else tuple(sorted(actions, key=lambda a: (a.name, a.args)))
    return TableEntry(table, tuple(sorted(match.items())), chosen, priority)


@dataclass(frozen=True)
class MulticastGroup:
    """A multicast group (P4Runtime's packet replication engine): `ports` sorted, one copy each."""

    group: int
    ports: tuple[int, ...]

    @property
    def key(self) -> Key:
        return ("multicast", (("group", self.group),), 0)

    def __str__(self) -> str:
        return f"multicast[{self.group}] -> {', '.join(map(str, self.ports))}"


@dataclass(frozen=True)
class SelectorMember:
    """A member of the action profile of `ipv4_routes`: one next hop. Entries refer to it by the action `by_member`."""

    member: int
    action: Action

    @property
    def key(self) -> Key:
        return ("member", (("member", self.member),), 0)

    def __str__(self) -> str:
        return f"member[{self.member}] -> {self.action}"


@dataclass(frozen=True)
class SelectorGroup:
    """An ECMP set: members of equal weights, sorted. Entries refer to it by the action `by_group`."""

    group: int
    members: tuple[int, ...]

    @property
    def key(self) -> Key:
        return ("group", (("group", self.group),), 0)

    def __str__(self) -> str:
        return f"group[{self.group}] -> {', '.join(map(str, self.members))}"


Key = tuple[str, tuple[tuple[str, Field], ...], int]
Entity = TableEntry | MulticastGroup | SelectorMember | SelectorGroup
Encoded = fy.P4TableEntry | fy.P4MulticastGroupEntry | fy.P4ActionProfileMember | fy.P4ActionProfileGroup
Contents = dict[Key, Entity]


def add(contents: Contents, entity: Entity) -> None:
    """Add an entity. Raises ValueError if another entity has the same key: a switch can have only one."""
    if contents.setdefault(entity.key, entity) != entity:
        raise ValueError(f"two entries for one key: {entity} and {contents[entity.key]}")


class Codec:
    """Converts to and from the entities of finsy, by the names of one P4Info."""

    def __init__(self, schema: fy.P4Schema) -> None:
        self._tables = {_bare(t.alias): t.alias for t in schema.tables if not t.is_const}
        self._actions = {
            (_bare(t.alias), _bare(a.alias)): a.alias
            for t in schema.tables
            if not t.is_const
            for a in t.actions
        }
        profiles = (t.action_profile for t in schema.tables if _bare(t.alias) == _ROUTES)
        self._profile = next((p for p in profiles if p is not None), None)

    def encode(self, entity: Entity) -> Encoded:
        """Raises ValueError for a table that the program does not have."""
        if isinstance(entity, MulticastGroup):
            return fy.P4MulticastGroupEntry(entity.group, replicas=entity.ports)
        if isinstance(entity, SelectorMember):
            call = self._call(_ROUTES, entity.action)
            return fy.P4ActionProfileMember(self._profile_name(), member_id=entity.member, action=call)
        if isinstance(entity, SelectorGroup):
            members = [fy.P4Member(m, weight=1) for m in entity.members]
            return fy.P4ActionProfileGroup(
                self._profile_name(), group_id=entity.group, max_size=self._group_size(), members=members
            )
        if entity.table not in self._tables:
            raise ValueError(
                f"the switch's program has no table '{entity.table}': compile it from the sources of this version "
                "(docs/how-to/tofino.md#2-build-the-program)"
            )
        return fy.P4TableEntry(
            self._tables[entity.table],
            match=fy.Match(entity.match),
            action=self._indirect(entity)
            if entity.table == _ROUTES
            else self._call(entity.table, entity.actions[0]),
            priority=entity.priority,
        )

    def reads(self, *, one_shot: bool) -> list[fy.p4entity.P4Entity]:
        """Reads that return the whole contents of a switch; without `one_shot` sets they include members and groups."""
        kinds: list[fy.p4entity.P4Entity] = [fy.P4TableEntry(), fy.P4MulticastGroupEntry()]
        if not one_shot:
            name = self._profile_name()
            kinds += [fy.P4ActionProfileMember(name), fy.P4ActionProfileGroup(name)]
        return kinds

    def _call(self, table: str, chosen: Action) -> fy.P4TableAction:
        return fy.Action(self._actions[table, chosen.name], **dict(chosen.args))

    def _indirect(self, route: TableEntry) -> fy.P4IndirectAction:
        args = dict(route.actions[0].args)
        if route.actions[0].name == "by_member":
            return fy.P4IndirectAction(member_id=args["member"])
        if route.actions[0].name == "by_group":
            return fy.P4IndirectAction(group_id=args["group"])
        return fy.P4IndirectAction([(1, self._call(_ROUTES, a)) for a in route.actions])

    def _profile_name(self) -> str:
        if self._profile is None:
            raise UnknownEntityError(f"the program's table {_ROUTES} has no action profile")
        return self._profile.alias

    def _group_size(self) -> int:
        """Maximum members of a group: the limit of the program, or else all members."""
        assert self._profile is not None
        return self._profile.max_group_size or self._profile.size

    def decode(self, held: object) -> Entity | None:
        """Decode an entity; None for an entity of the program itself: a constant entry or a default action."""
        if isinstance(held, fy.P4MulticastGroupEntry):
            ports = tuple(sorted(int(r if isinstance(r, int) else r[0]) for r in held.replicas))  # type: ignore[index]
            return MulticastGroup(held.multicast_group_id, ports)
        if isinstance(held, fy.P4ActionProfileMember):
            if held.action is None:
                raise UnknownEntityError(f"{held!r}")
            return SelectorMember(held.member_id, _decoded_action(held.action))
        if isinstance(held, fy.P4ActionProfileGroup):
            return SelectorGroup(held.group_id, tuple(sorted(m.member_id for m in held.members or ())))
        if not isinstance(held, fy.P4TableEntry):
            raise UnknownEntityError(f"{held!r}")
        if held.is_const or held.is_default_action or _bare(held.table_id) not in self._tables:
            return None
        match = {name: _plain(value) for name, value in (held.match or {}).items()}
        return entry(_bare(held.table_id), match, *_decoded_actions(held), priority=held.priority)


def _decoded_actions(held: fy.P4TableEntry) -> list[Action]:
    if isinstance(held.action, fy.P4TableAction):
        return [_decoded_action(held.action)]
    if isinstance(held.action, fy.P4IndirectAction):
        if held.action.action_set is not None:
            return [_decoded_action(a) for _, a in held.action.action_set]
        if held.action.member_id is not None:
            return [action("by_member", member=held.action.member_id)]
        if held.action.group_id is not None:
            return [action("by_group", group=held.action.group_id)]
    raise UnknownEntityError(f"{held!r}")


def _decoded_action(held: fy.P4TableAction) -> Action:
    return action(_bare(held.name), **{name: int(value) for name, value in held.args.items()})


def _plain(value: Any) -> Field:
    """The number in what finsy makes of a value: an address where the P4Info has `@format`."""
    if isinstance(value, IPv4Network):
        return int(value.network_address), value.prefixlen
    return value if isinstance(value, tuple) else int(value)


def _bare(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _shown(field: Field) -> str:
    return str(field) if isinstance(field, int) else f"{field[0]:#x}/{field[1]:#x}"
