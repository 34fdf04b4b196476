# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Actions by name, and the members and groups of action profiles."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from softswitch.build import capi
from softswitch.errors import (
    AlreadyExistsError,
    InUseError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
)
from softswitch.state import values
from softswitch.state.encode import encode_action
from softswitch.state.entities import (
    ActionCall,
    ActionInfo,
    FieldInfo,
    Group,
    GroupRef,
    Member,
    MemberRef,
    TableAction,
)

WEIGHTS_MAX = 65536
"""Largest sum of the weights of one group: each counts as a place of its own."""


class Actions:
    """The program's actions: names to numbers within a table's own list."""

    def __init__(self, layout: Sequence[Mapping[str, Any]]) -> None:
        self.infos = [ActionInfo(a["name"], tuple(FieldInfo(n, w) for n, w in a["params"])) for a in layout]

    def spec(self, call: ActionCall, allowed: Sequence[int], where: str) -> tuple[int, list[int]]:
        """Number and words of an action that `where` may run. Raises InvalidArgumentError."""
        for index in allowed:
            if self.infos[index].name == call.name:
                return index, encode_action(call, self.infos[index].params)
        names = ", ".join(sorted({self.infos[i].name for i in allowed}))
        raise InvalidArgumentError(f"{where} has no action {call.name!r}; it has {names}")

    def call(self, index: int, data: Sequence[int]) -> ActionCall:
        """The other way, from one number a parameter."""
        info = self.infos[index]
        return ActionCall(
            info.name,
            {p.name: values.encode(v & ((1 << p.width) - 1)) for p, v in zip(info.params, data, strict=True)},
        )


@dataclass(frozen=True)
class Choice:
    """A place in a group: a member by its number in the core, its weight (>= 1), its watch port (empty = none)."""

    slot: int
    weight: int
    watch_port: bytes = b""


class Profile:
    """Members and groups of one action profile. `users` counts entries and groups that refer to each."""

    def __init__(
        self, core: ctypes.CDLL, handle: int, index: int, layout: Mapping[str, Any], actions: Actions
    ) -> None:
        self.core, self.handle, self.index = core, handle, index
        self.name, self.size, self.selector = layout["name"], layout["size"], layout["selector"]
        self.actions = actions
        self.allowed: list[int] = []
        self.members: dict[int, tuple[int, Member]] = {}
        self.groups: dict[int, tuple[int, Group]] = {}
        self.member_users: dict[int, int] = {}
        self.group_users: dict[int, int] = {}
        self.free_members: list[int] = []
        self.free_groups: list[int] = []
        self.next_member = self.next_group = 0

    # ---- slots of the core ----

    def take_member(self, call: ActionCall) -> int:
        action, data = self.actions.spec(call, self.allowed, f"profile {self.name}")
        if self.size and self.next_member - len(self.free_members) >= self.size:
            raise ResourceExhaustedError(f"profile {self.name} is full: {self.size} members")
        slot = self.free_members[-1] if self.free_members else self.next_member
        self._set_member(slot, action, data)
        if self.free_members:
            self.free_members.pop()
        else:
            self.next_member += 1
        return slot

    def _set_member(self, slot: int, action: int, data: Sequence[int]) -> None:
        spec = capi.action_spec(capi.ACTION, action, data)
        check(
            self.core.ss_member_set(self.handle, self.index, slot, ctypes.byref(spec)), f"profile {self.name}"
        )

    def drop_member(self, slot: int) -> None:
        self.core.ss_member_set(self.handle, self.index, slot, None)
        self.free_members.append(slot)

    def take_group(self, choices: Sequence[Choice]) -> int:
        slot = self.free_groups[-1] if self.free_groups else self.next_group
        self.set_group(slot, choices)
        if self.free_groups:
            self.free_groups.pop()
        else:
            self.next_group += 1
        return slot

    def set_group(self, slot: int, choices: Sequence[Choice]) -> None:
        """Selects each choice in proportion to its weight. Raises InvalidArgumentError, ResourceExhaustedError; changes
        nothing then."""
        what = f"profile {self.name}"
        total = sum(c.weight for c in choices)
        if total > WEIGHTS_MAX:
            raise ResourceExhaustedError(
                f"{what}: the weights of a group add up to {total}; at most {WEIGHTS_MAX}"
            )
        places = [(c.slot, watched(c.watch_port, what)) for c in choices for _ in range(c.weight)]
        array = ctypes.c_uint32 * max(1, total)
        members, watch = array(*(p[0] for p in places)), array(*(p[1] for p in places))
        check(self.core.ss_group_set(self.handle, self.index, slot, members, watch, total), what)

    def drop_group(self, slot: int) -> None:
        self.set_group(slot, [])
        self.free_groups.append(slot)

    # ---- members ----

    def member_insert(self, member: Member) -> None:
        if member.member_id in self.members:
            raise AlreadyExistsError(f"profile {self.name} has member {member.member_id} already")
        self.members[member.member_id] = (self.take_member(member.action), member)

    def member_modify(self, member: Member) -> None:
        slot, _ = self.member(member.member_id)
        self._set_member(slot, *self.actions.spec(member.action, self.allowed, f"profile {self.name}"))
        self.members[member.member_id] = (slot, member)

    def member_delete(self, member_id: int) -> None:
        slot, _ = self.member(member_id)
        if self.member_users.get(member_id):
            raise InUseError(
                f"profile {self.name}: member {member_id} is in use; delete the entries and groups first"
            )
        del self.members[member_id]
        self.drop_member(slot)

    def member(self, member_id: int) -> tuple[int, Member]:
        if member_id not in self.members:
            raise NotFoundError(f"profile {self.name} has no member {member_id}")
        return self.members[member_id]

    # ---- groups ----

    def _choices(self, group: Group) -> list[Choice]:
        """The members in order of their ids."""
        if not self.selector:
            raise InvalidArgumentError(f"profile {self.name} is not a selector: it has no groups")
        out: list[Choice] = []
        for m in sorted(group.members, key=lambda m: m.member_id):
            if m.weight < 1:
                raise InvalidArgumentError(
                    f"profile {self.name}: weight {m.weight} of member {m.member_id}; at least 1"
                )
            if m.member_id not in self.members:
                raise NotFoundError(f"profile {self.name} has no member {m.member_id}")
            out.append(Choice(self.members[m.member_id][0], m.weight, m.watch_port))
        if len({m.member_id for m in group.members}) != len(group.members):
            raise InvalidArgumentError(
                f"profile {self.name}: a member twice in group {group.group_id}; give it a weight instead"
            )
        total = sum(c.weight for c in out)
        if group.max_size and total > group.max_size:
            raise ResourceExhaustedError(
                f"profile {self.name}: group {group.group_id} holds {group.max_size}, not {total}"
            )
        return out

    def group_insert(self, group: Group) -> None:
        if group.group_id in self.groups:
            raise AlreadyExistsError(f"profile {self.name} has group {group.group_id} already")
        slot = self.take_group(self._choices(group))
        self.groups[group.group_id] = (slot, group)
        self._use_members(group, 1)

    def group_modify(self, group: Group) -> None:
        slot, old = self.group(group.group_id)
        self.set_group(slot, self._choices(group))
        self._use_members(group, 1)
        self._use_members(old, -1)
        self.groups[group.group_id] = (slot, group)

    def group_delete(self, group_id: int) -> None:
        slot, old = self.group(group_id)
        if self.group_users.get(group_id):
            raise InUseError(f"profile {self.name}: group {group_id} is in use; delete the entries first")
        del self.groups[group_id]
        self.drop_group(slot)
        self._use_members(old, -1)

    def group(self, group_id: int) -> tuple[int, Group]:
        if group_id not in self.groups:
            raise NotFoundError(f"profile {self.name} has no group {group_id}")
        return self.groups[group_id]

    def _use_members(self, group: Group, step: int) -> None:
        for m in group.members:
            self.member_users[m.member_id] = self.member_users.get(m.member_id, 0) + step

    # ---- use by entries ----

    def use(self, action: TableAction, step: int) -> None:
        if isinstance(action, MemberRef):
            self.member_users[action.member_id] = self.member_users.get(action.member_id, 0) + step
        elif isinstance(action, GroupRef):
            self.group_users[action.group_id] = self.group_users.get(action.group_id, 0) + step


def watched(watch_port: bytes, where: str) -> int:
    """The core's form of a watch port. Raises InvalidArgumentError."""
    if not watch_port:
        return capi.NONE
    port = int.from_bytes(watch_port, "big")
    if port > capi.PORT_MAX:
        raise InvalidArgumentError(
            f"{where}: there can be no watch port {port}; ports are 0..{capi.PORT_MAX}"
        )
    return port


def check(result: int, what: str) -> None:
    if result == capi.E_MEMORY:
        raise ResourceExhaustedError(f"{what}: out of memory")
    if result < 0:
        raise OutOfRangeError(f"{what}: out of range")
