# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Converts control-plane values to the words that generated code reads, with checks; and back."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from softswitch.build import capi
from softswitch.errors import InvalidArgumentError, NotFoundError
from softswitch.state import values
from softswitch.state.entities import (
    ActionCall,
    Exact,
    FieldInfo,
    Lpm,
    Match,
    MatchKind,
    MeterConfig,
    Range,
    Ternary,
)
from softswitch.translate.layout import words_of

MASK64 = (1 << 64) - 1


@dataclass(frozen=True)
class KeySlot:
    """A key field: its place in the key words, or None for a range field."""

    info: FieldInfo
    place: tuple[int, int, int] | None  # word, shift, words


@dataclass(frozen=True)
class EncodedKey:
    """A key ready for the core; hashable, so that it also identifies the entry."""

    key: tuple[int, ...]
    mask: tuple[int, ...]
    ranges: tuple[int, ...]
    priority: int


def ones(width: int) -> int:
    return (1 << width) - 1


def encode_key(
    table: str,
    slots: Sequence[KeySlot],
    words: int,
    match: Mapping[str, Match],
    priority: int,
    match_type: str,
) -> EncodedKey:
    """Raises InvalidArgumentError for an unknown, missing or malformed field, or a priority where none belongs."""
    names = {s.info.name for s in slots}
    for name in match:
        if name not in names:
            raise InvalidArgumentError(
                f"table {table} has no key field {name!r}; it has {', '.join(sorted(names)) or 'none'}"
            )
    key, mask, longest = [0] * words, [0] * words, 0
    ranges: list[int] = []
    for slot in slots:
        what = f"table {table}, key field {slot.info.name}"
        given = match.get(slot.info.name)
        if slot.place is None:
            ranges += _range(given, slot.info.width, what)
            continue
        value, bits, prefix = _value_and_mask(given, slot.info, what)
        longest = max(longest, prefix)
        word, shift, count = slot.place
        for i in range(count):
            key[word + i] |= ((value >> (64 * i)) & MASK64) << shift
            mask[word + i] |= ((bits >> (64 * i)) & MASK64) << shift
    return EncodedKey(tuple(key), tuple(mask), tuple(ranges), _priority(table, match_type, priority, longest))


def _priority(table: str, match_type: str, priority: int, longest: int) -> int:
    if match_type in ("ternary", "range"):
        if not 0 < priority < 1 << 31:
            raise InvalidArgumentError(
                f"table {table} needs a priority of 1..2147483647, larger wins; got {priority}"
            )
        return priority
    if priority:
        raise InvalidArgumentError(
            f"table {table} takes no priority (its keys are exact or lpm); got {priority}"
        )
    return longest


def _range(given: Match | None, width: int, what: str) -> tuple[int, int]:
    if given is None:
        return 0, ones(width)
    if isinstance(given, Exact):
        value = values.decode(given.value, width, what)
        return value, value
    if not isinstance(given, Range):
        raise InvalidArgumentError(f"{what}: expected a range, not {type(given).__name__}")
    low, high = values.decode(given.low, width, what), values.decode(given.high, width, what)
    if low > high:
        raise InvalidArgumentError(f"{what}: the range {low}..{high} is empty")
    return low, high


def _value_and_mask(given: Match | None, info: FieldInfo, what: str) -> tuple[int, int, int]:
    """Value, mask, and for lpm the prefix length."""
    full = ones(info.width)
    if given is None:
        if info.kind is MatchKind.EXACT:
            raise InvalidArgumentError(f"{what}: an exact field must be given")
        return 0, 0, 0
    if isinstance(given, Exact) and info.kind is not MatchKind.LPM:
        return values.decode(given.value, info.width, what), full, 0
    if isinstance(given, Lpm) and info.kind in (MatchKind.LPM, MatchKind.TERNARY):
        if not 0 <= given.prefix_len <= info.width:
            raise InvalidArgumentError(f"{what}: prefix length {given.prefix_len} is not in 0..{info.width}")
        bits = full ^ ones(info.width - given.prefix_len)
        value = values.decode(given.value, info.width, what)
        if value & ~bits:
            raise InvalidArgumentError(
                f"{what}: bits of {given.value.hex()} beyond the prefix of {given.prefix_len} must be zero"
            )
        return value, bits, given.prefix_len
    if isinstance(given, Ternary) and info.kind is MatchKind.TERNARY:
        value, bits = (
            values.decode(given.value, info.width, what),
            values.decode(given.mask, info.width, what),
        )
        if value & ~bits:
            raise InvalidArgumentError(
                f"{what}: bits of {given.value.hex()} outside the mask {given.mask.hex()} must be zero"
            )
        return value, bits, 0
    raise InvalidArgumentError(
        f"{what}: its match kind is {info.kind.value}, not {type(given).__name__.lower()}"
    )


def encode_action(call: ActionCall, params: Sequence[FieldInfo]) -> list[int]:
    """The words of action data. Raises InvalidArgumentError for a missing, unknown or oversized parameter."""
    wanted = {p.name for p in params}
    for name in call.params:
        if name not in wanted:
            raise InvalidArgumentError(
                f"action {call.name} has no parameter {name!r}; it has {', '.join(sorted(wanted)) or 'none'}"
            )
    out: list[int] = []
    for p in params:
        if p.name not in call.params:
            raise InvalidArgumentError(f"action {call.name} needs parameter {p.name!r} ({p.width} bits)")
        out += split(
            values.decode(call.params[p.name], p.width, f"action {call.name}, parameter {p.name}"), p.width
        )
    return out


def split(value: int, width: int) -> list[int]:
    return [(value >> (64 * i)) & MASK64 for i in range(words_of(width))]


def const_match(slots: Sequence[KeySlot], keys: Sequence[Sequence[int]]) -> dict[str, Match]:
    """A const entry of the JSON as P4Runtime would give it: wildcards left out."""
    out: dict[str, Match] = {}
    for slot, k in zip(slots, keys, strict=True):
        width, name, kind = slot.info.width, slot.info.name, slot.info.kind
        if kind is MatchKind.RANGE:
            if (k[0], k[1]) != (0, ones(width)):
                out[name] = Range(values.encode(k[0]), values.encode(k[1]))
        elif kind is MatchKind.LPM:
            if k[1]:
                bits = ones(width) ^ ones(width - k[1])
                out[name] = Lpm(values.encode(k[0] & bits), k[1])
        elif kind is MatchKind.TERNARY:
            if k[1]:
                out[name] = Ternary(values.encode(k[0] & k[1]), values.encode(k[1]))
        elif kind is MatchKind.EXACT or len(k) == 1:
            out[name] = Exact(values.encode(k[0]))
    return out


def meter_words(config: MeterConfig | None, what: str) -> ctypes.Array[ctypes.c_uint64] | None:
    """The core's form. RFC 2698 wants the peak rate and burst not below the committed ones."""
    if config is None:
        return None
    words = [config.cir, config.cburst, config.pir, config.pburst]
    if any(not 0 <= w < 1 << 63 for w in words):
        raise InvalidArgumentError(f"meter {what}: rates and bursts are in 0..2^63-1, not {config}")
    if config.pir < config.cir:
        raise InvalidArgumentError(f"meter {what}: pir {config.pir} is below cir {config.cir}")
    return capi.words(words)


def find(names: Mapping[str, Any], name: str, what: str) -> Any:
    """names[name], or NotFoundError."""
    if name not in names:
        raise NotFoundError(f"no {what} {name!r}; the program has {', '.join(sorted(names)) or 'none'}")
    return names[name]
