# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Arguments of commands: numbers, addresses, names, match fields; and the display of values. Forms are those of
simple_switch_CLI (bmv2: tools/runtime_CLI.py)."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import Any, TypeVar

from softswitch.engine.engine import Engine
from softswitch.errors import SwitchError
from softswitch.state.entities import (
    ActionCall,
    ActionInfo,
    Exact,
    FieldInfo,
    GroupRef,
    Lpm,
    Match,
    MatchKind,
    MemberRef,
    Range,
    TableAction,
    Ternary,
)
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch

T = TypeVar("T")


class CommandError(SwitchError):
    """The command failed; the message names the argument."""


@dataclass
class Target:
    """The switch that commands act on."""

    switch: Switch
    engine: Engine
    _nodes: weakref.WeakKeyDictionary[Pipeline, Any] = field(default_factory=weakref.WeakKeyDictionary)

    def nodes_of(self, pipeline: Pipeline, make: Callable[[], T]) -> T:
        """State of commands for a program, for as long as it runs."""
        kept: T = self._nodes.setdefault(pipeline, make())
        return kept

    @property
    def pipeline(self) -> Pipeline:
        """The running program. Raises CommandError."""
        if self.switch.pipeline is None:
            raise CommandError("no program is running: a controller must push one first")
        return self.switch.pipeline


def number(text: str, what: str, largest: int = (1 << 64) - 1) -> int:
    """A number in decimal, or with 0x, 0o, 0b."""
    try:
        value = int(text, 0)
    except ValueError:
        raise CommandError(f"{what} {text!r} is not a number (hexadecimal numbers start with 0x)") from None
    if not 0 <= value <= largest:
        raise CommandError(f"{what} {text} is not in 0..{largest}")
    return value


def value(text: str, field: FieldInfo) -> bytes:
    """A field's value: a number, or an IPv4, MAC or IPv6 address where the width is that of one."""
    if field.width == 32 and "." in text:
        return _address(IPv4Address, text)
    if field.width == 128 and ":" in text:
        return _address(IPv6Address, text)
    if field.width == 48 and ":" in text:
        parts = text.split(":")
        if len(parts) != 6 or not all(
            len(p) in (1, 2) and set(p.lower()) <= set("0123456789abcdef") for p in parts
        ):
            raise CommandError(f"{field.name}: {text!r} is no MAC address")
        return bytes(int(p, 16) for p in parts)
    if text in ("true", "false"):
        return bytes([text == "true"])
    return number(text, field.name, (1 << field.width) - 1).to_bytes((field.width + 7) // 8, "big")


def _address(kind: type[IPv4Address | IPv6Address], text: str) -> bytes:
    try:
        return kind(text).packed
    except ValueError as error:
        raise CommandError(str(error)) from error


def match(text: str, field: FieldInfo) -> Match:
    """One match field: VALUE, VALUE/LENGTH, VALUE&&&MASK or LOW->HIGH."""
    kind = field.kind
    if kind is MatchKind.EXACT or (kind is MatchKind.OPTIONAL and "&&&" not in text):
        return Exact(value(text, field))
    separator = {MatchKind.LPM: "/", MatchKind.RANGE: "->"}.get(kind, "&&&")
    first, found, second = text.partition(separator)
    if not found:
        raise CommandError(
            f"{field.name} is matched as {kind.value}: write VALUE{separator}..., not {text!r}"
        )
    low = value(first, field)
    if kind is MatchKind.LPM:
        return _lpm(low, number(second, f"prefix length of {field.name}", field.width), field)
    high = value(second, field)
    if kind is MatchKind.RANGE:
        return Range(low, high)
    kept = int.from_bytes(low, "big") & int.from_bytes(high, "big")
    return Ternary(kept.to_bytes(len(high), "big"), high)


def _lpm(data: bytes, length: int, field: FieldInfo) -> Lpm:
    beyond = field.width - length
    kept = int.from_bytes(data, "big") >> beyond << beyond
    return Lpm(kept.to_bytes(len(data), "big"), length)


def is_wildcard(m: Match, field: FieldInfo) -> bool:
    """Does it match all? Such a field is left out of an entry."""
    match m:
        case Lpm(_, length):
            return length == 0
        case Ternary(_, mask):
            return not any(mask)
        case Range(low, high):
            full = (1 << field.width) - 1
            return int.from_bytes(low, "big") == 0 and int.from_bytes(high, "big") == full
    return False


def find(things: Mapping[str, T], name: str, kind: str) -> T:
    """Find one of `things` by its full name, or by an ending of it after a dot that no other one has."""
    if name in things:
        return things[name]
    ending = [thing for full, thing in things.items() if full.endswith("." + name)]
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise CommandError(
            f"{kind} {name!r} is ambiguous: {', '.join(n for n in things if n.endswith('.' + name))}"
        )
    known = ", ".join(sorted(things)) or "none"
    raise CommandError(f"there is no {kind} {name!r}; there are: {known}")


def call(action: ActionInfo, words: Sequence[str]) -> ActionCall:
    """An action with its parameters."""
    if len(words) != len(action.params):
        wanted = " ".join(f"<{p.name}>" for p in action.params) or "none"
        raise CommandError(
            f"action {action.name} takes {len(action.params)} parameters ({wanted}), not {len(words)}"
        )
    return ActionCall(action.name, {p.name: value(w, p) for p, w in zip(action.params, words, strict=True)})


def digits(data: bytes, width: int) -> str:
    """Hexadecimal, all bytes of the field."""
    return data.rjust((width + 7) // 8, b"\0").hex()


def shown(m: Match | None, field: FieldInfo) -> str:
    """A match field as table_dump shows it."""
    w, zero = field.width, b"\0"
    match m:
        case Exact(v):
            return f"EXACT     {digits(v, w)}"
        case Lpm(v, length):
            return f"LPM       {digits(v, w)}/{length}"
        case Ternary(v, mask):
            return f"TERNARY   {digits(v, w)} &&& {digits(mask, w)}"
        case Range(low, high):
            return f"RANGE     {digits(low, w)} -> {digits(high, w)}"
    if field.kind is MatchKind.LPM:
        return f"LPM       {digits(zero, w)}/0"
    if field.kind is MatchKind.RANGE:
        return f"RANGE     {digits(zero, w)} -> {((1 << w) - 1):0{(w + 7) // 8 * 2}x}"
    return f"TERNARY   {digits(zero, w)} &&& {digits(zero, w)}"


def shown_action(action: TableAction | None, pipeline: Pipeline) -> str:
    """Describe the action of an entry."""
    match action:
        case ActionCall(name, params):
            infos = pipeline.actions[name].params
            return f"Action entry: {name} - {', '.join(digits(params[p.name], p.width) for p in infos)}"
        case MemberRef(member):
            return f"Index: member({member})"
        case GroupRef(group):
            return f"Index: group({group})"
        case None:
            return "EMPTY"
    return "Action entry: an action set"


def listed(things: Iterable[object]) -> str:
    """One a line."""
    return "\n".join(str(thing) for thing in things)
