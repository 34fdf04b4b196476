# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of one pipeline: stores the written entries for reads; the core stores their words."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from softswitch.build import capi
from softswitch.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from softswitch.state.encode import (
    EncodedKey,
    KeySlot,
    const_match,
    encode_key,
    meter_words,
    split,
)
from softswitch.state.entities import (
    ActionCall,
    ActionSet,
    CounterData,
    FieldInfo,
    GroupRef,
    Match,
    MatchKind,
    MemberRef,
    MeterConfig,
    TableAction,
    TableEntry,
    TableInfo,
)
from softswitch.state.profiles import Actions, Choice, Profile, check

ENTRIES_MAX = 1 << 20
"""Most entries of one table, whatever size it declares."""
KINDS = {"valid": "exact"}


@dataclass
class Shadow:
    """An entry as it was written, and its number in the core."""

    handle: int
    entry: TableEntry
    anonymous: tuple[int, list[int]] | None = None  # group and members of a one-shot action set
    meter: MeterConfig | None = None


@dataclass
class Table:
    """One table. Methods raise the control errors and leave everything as it was when they do."""

    core: ctypes.CDLL
    handle: int
    index: int
    layout: Mapping[str, Any]
    actions: Actions
    profile: Profile | None
    entries: dict[EncodedKey, Shadow] = field(default_factory=dict)
    by_handle: dict[int, EncodedKey] = field(default_factory=dict)
    default: TableAction | None = None
    default_meter: MeterConfig | None = None
    default_anonymous: tuple[int, list[int]] | None = None

    def __post_init__(self) -> None:
        self.name: str = self.layout["name"]
        self.slots = [
            KeySlot(FieldInfo(name, width, MatchKind(KINDS.get(kind, kind))), tuple(place) if place else None)
            for name, width, kind, place in self.layout["keys"]
        ]
        if self.profile is not None:
            self.profile.allowed = sorted({*self.profile.allowed, *self.layout["actions"]})
        self.restore_default()
        for e in self.layout["entries"]:
            self._insert_const(e)

    @property
    def info(self) -> TableInfo:
        names = tuple(dict.fromkeys(self.actions.infos[i].name for i in self.layout["actions"]))
        return TableInfo(
            self.name,
            tuple(s.info for s in self.slots),
            names,
            self.layout["size"],
            self.profile.name if self.profile is not None else None,
            self.layout["counter"],
            self.layout["meter"],
            self.layout["match_type"] in ("ternary", "range"),
            self.layout["const_entries"],
            self.layout["const_default"] or self.layout["constant"],
        )

    def key(self, match: Mapping[str, Match], priority: int) -> EncodedKey:
        return encode_key(
            self.name, self.slots, self.layout["words"], match, priority, self.layout["match_type"]
        )

    def shadow(self, match: Mapping[str, Match], priority: int) -> Shadow:
        key = self.key(match, priority)
        if key not in self.entries:
            raise NotFoundError(f"table {self.name} has no entry {describe(match)} with priority {priority}")
        return self.entries[key]

    # ---- actions of entries ----

    def _spec(self, action: TableAction) -> tuple[capi.ActionSpec, tuple[int, list[int]] | None]:
        """The core's form of an action; for a one-shot set also the slots it took."""
        if self.profile is None:
            if not isinstance(action, ActionCall):
                raise InvalidArgumentError(f"table {self.name} has no action profile: expected an action")
            index, data = self.actions.spec(action, self.layout["actions"], f"table {self.name}")
            return capi.action_spec(capi.ACTION, index, data), None
        if isinstance(action, MemberRef):
            return capi.action_spec(capi.MEMBER, self.profile.member(action.member_id)[0]), None
        if isinstance(action, GroupRef):
            if not self.layout["selector"]:
                raise InvalidArgumentError(
                    f"table {self.name} takes no groups: its profile is not a selector"
                )
            return capi.action_spec(capi.GROUP, self.profile.group(action.group_id)[0]), None
        if isinstance(action, ActionSet):
            return self._one_shot(self.profile, action)
        raise InvalidArgumentError(
            f"table {self.name} has an action profile: expected a member, a group or an action set"
        )

    def _one_shot(self, profile: Profile, action: ActionSet) -> tuple[capi.ActionSpec, tuple[int, list[int]]]:
        if not self.layout["selector"]:
            raise InvalidArgumentError(
                f"table {self.name} takes no action sets: its profile is not a selector"
            )
        choices: list[Choice] = []
        with ExitStack() as undo:
            for a in action.actions:
                if a.weight < 1:
                    raise InvalidArgumentError(
                        f"table {self.name}: weight {a.weight} in an action set; at least 1"
                    )
                choices.append(Choice(profile.take_member(a.action), a.weight, a.watch_port))
                undo.callback(profile.drop_member, choices[-1].slot)
            group = profile.take_group(choices)
            undo.pop_all()
        return capi.action_spec(capi.GROUP, group), (group, [c.slot for c in choices])

    def _check(self, result: int, anonymous: tuple[int, list[int]] | None) -> None:
        """Raises for a result of the core, when what was to hold the one-shot set has not come about."""
        if result < 0:
            self._release_anonymous(anonymous)
            check(result, f"table {self.name}")

    def _release(self, shadow: Shadow) -> None:
        """Gives back what the entry's action held."""
        if self.profile is None:
            return
        self.profile.use(shadow.entry.action, -1)
        self._release_anonymous(shadow.anonymous)

    def _release_anonymous(self, anonymous: tuple[int, list[int]] | None) -> None:
        if self.profile is not None and anonymous is not None:
            self.profile.drop_group(anonymous[0])
            for slot in anonymous[1]:
                self.profile.drop_member(slot)

    # ---- entries ----

    def insert(self, entry: TableEntry) -> None:
        self._writable()
        key = self.key(entry.match, entry.priority)
        if key in self.entries:
            raise AlreadyExistsError(
                f"table {self.name} has an entry {describe(entry.match)} with priority {entry.priority} already"
            )
        size = min(self.layout["size"], ENTRIES_MAX)
        if len(self.entries) >= size:
            raise ResourceExhaustedError(f"table {self.name} is full: {size} entries")
        self._add(key, entry)

    def _add(self, key: EncodedKey, entry: TableEntry, priority: int | None = None) -> None:
        spec, anonymous = self._spec(entry.action)
        handle = self.core.ss_entry_add(
            self.handle,
            self.index,
            capi.words(key.key),
            capi.words(key.mask),
            key.priority if priority is None else priority,
            capi.words(key.ranges),
            ctypes.byref(spec),
            entry.idle_timeout_ns,
        )
        self._check(handle, anonymous)
        self.entries[key] = Shadow(handle, entry, anonymous)
        self.by_handle[handle] = key
        if self.profile is not None:
            self.profile.use(entry.action, 1)

    def modify(self, entry: TableEntry) -> None:
        self._writable()
        shadow = self.shadow(entry.match, entry.priority)
        spec, anonymous = self._spec(entry.action)
        result = self.core.ss_entry_set(
            self.handle, self.index, shadow.handle, ctypes.byref(spec), entry.idle_timeout_ns
        )
        self._check(result, anonymous)
        if self.profile is not None:
            self.profile.use(entry.action, 1)
        self._release(shadow)
        shadow.entry, shadow.anonymous = entry, anonymous

    def delete(self, match: Mapping[str, Match], priority: int) -> None:
        self._writable()
        shadow = self.shadow(match, priority)
        check(self.core.ss_entry_del(self.handle, self.index, shadow.handle), f"table {self.name}")
        key = self.by_handle.pop(shadow.handle)
        del self.entries[key]
        self._release(shadow)

    def all(self) -> Iterator[TableEntry]:
        return iter([s.entry for s in self.entries.values()])

    def _writable(self) -> None:
        if self.layout["const_entries"]:
            raise PermissionDeniedError(f"table {self.name} has const entries")

    def _insert_const(self, e: Mapping[str, Any]) -> None:
        """BMv2's priorities fall: the core's larger-wins order is turned around here."""
        match = const_match(self.slots, e["keys"])
        call = self.actions.call(e["action"], e["data"])
        needs = self.layout["match_type"] in ("ternary", "range")
        top = max(x["priority"] for x in self.layout["entries"])
        priority = top - e["priority"] + 1 if needs else 0
        key = self.key(match, priority)
        if key not in self.entries:
            self._add(key, TableEntry(match, call, priority, is_const=True))

    # ---- the default entry ----

    def set_default(self, action: TableAction | None) -> None:
        layout = self.layout
        if layout["const_default"] or layout["constant"]:
            raise PermissionDeniedError(f"table {self.name} has a const default action")
        if action is None:
            self.restore_default()
            return
        if layout["const_action"] and isinstance(action, ActionCall) and layout["default"]:
            wanted = self.actions.infos[layout["default"][0]].name
            if action.name != wanted:
                raise PermissionDeniedError(f"table {self.name} has the const default action {wanted}")
        if self.profile is not None and isinstance(action, ActionCall):
            index, data = self.actions.spec(action, layout["actions"], f"table {self.name}")
            spec, anonymous = capi.action_spec(capi.ACTION, index, data), None
        else:
            spec, anonymous = self._spec(action)
        self._check(self.core.ss_default_set(self.handle, self.index, ctypes.byref(spec)), anonymous)
        self._default_is(action, anonymous)

    def _default_is(self, action: TableAction | None, anonymous: tuple[int, list[int]] | None) -> None:
        if self.profile is not None:
            if action is not None:
                self.profile.use(action, 1)
            if self.default is not None:
                self.profile.use(self.default, -1)
            self._release_anonymous(self.default_anonymous)
        self.default, self.default_anonymous = action, anonymous

    def restore_default(self) -> None:
        """The default action of the program."""
        default = self.layout["default"]
        if default is None:
            self.core.ss_default_set(self.handle, self.index, None)
            self._default_is(None, None)
            return
        index, values = default
        data: list[int] = []
        for p, v in zip(self.actions.infos[index].params, values, strict=True):
            data += split(v & ((1 << p.width) - 1), p.width)
        spec = capi.action_spec(capi.ACTION, index, data)
        check(self.core.ss_default_set(self.handle, self.index, ctypes.byref(spec)), f"table {self.name}")
        self._default_is(self.actions.call(index, values), None)

    # ---- what an entry counts and measures; match None means the default entry ----

    def idle_ns(self, match: Mapping[str, Match], priority: int) -> int:
        idle = capi.words([0])
        handle = self.shadow(match, priority).handle
        check(self.core.ss_entry_idle(self.handle, self.index, handle, idle), self.name)
        return int(idle[0])

    def read_counter(self, match: Mapping[str, Match] | None, priority: int) -> CounterData:
        c = capi.Counter()
        self._counter_io(match, priority, c, write=0)
        return CounterData(c.packets, c.bytes)

    def write_counter(self, match: Mapping[str, Match] | None, data: CounterData, priority: int) -> None:
        self._counter_io(match, priority, capi.Counter(data.packets, data.bytes), write=1)

    def _counter_io(
        self, match: Mapping[str, Match] | None, priority: int, c: capi.Counter, write: int
    ) -> None:
        if not self.layout["counter"]:
            raise InvalidArgumentError(f"table {self.name} has no direct counter")
        handle = self._handle_of(match, priority)
        check(self.core.ss_entry_counter(self.handle, self.index, handle, ctypes.byref(c), write), self.name)

    def read_meter(self, match: Mapping[str, Match] | None, priority: int) -> MeterConfig | None:
        self._metered()
        return self.default_meter if match is None else self.shadow(match, priority).meter

    def write_meter(
        self, match: Mapping[str, Match] | None, config: MeterConfig | None, priority: int
    ) -> None:
        self._metered()
        handle, words = self._handle_of(match, priority), meter_words(config, self.name)
        check(self.core.ss_entry_meter(self.handle, self.index, handle, words), self.name)
        if match is None:
            self.default_meter = config
        else:
            self.shadow(match, priority).meter = config

    def _metered(self) -> None:
        if not self.layout["meter"]:
            raise InvalidArgumentError(f"table {self.name} has no direct meter")

    def _handle_of(self, match: Mapping[str, Match] | None, priority: int) -> int:
        return capi.NONE if match is None else self.shadow(match, priority).handle


def describe(match: Mapping[str, Match]) -> str:
    return "{" + ", ".join(f"{k}: {v}" for k, v in match.items()) + "}"
