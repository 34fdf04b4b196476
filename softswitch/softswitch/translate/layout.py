# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packs keys and action data into 64-bit words: the contract of generated C and the control plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KeyField:
    """A field of a key: `width` bits at bit `shift` of word `word`, or `words` whole words when wider than 64."""

    name: str
    width: int
    word: int
    shift: int
    words: int = 1


def pack(fields: Sequence[tuple[str, int]]) -> list[KeyField]:
    """Lays out (name, width) in order; a field up to 64 bits never straddles words."""
    out = []
    word, used = -1, 64
    for name, width in fields:
        if width > 64:
            n = (width + 63) // 64
            out.append(KeyField(name, width, word + 1, 0, n))
            word, used = word + n, 64
            continue
        if used + width > 64:
            word, used = word + 1, 0
        out.append(KeyField(name, width, word, used))
        used += width
    return out


def words_of(width: int) -> int:
    """64-bit words that an action parameter of `width` bits takes (one bit more than the width, so that it
    is non-negative)."""
    return 1 if width <= 64 else (width + 64) // 64


@dataclass(frozen=True)
class Param:
    """An action parameter: `width` bits from 64-bit word `word` of the action data."""

    name: str
    width: int
    word: int


def params_of(action: Mapping[str, Any]) -> list[Param]:
    out, word = [], 0
    for p in action["runtime_data"]:
        out.append(Param(p["name"], int(p["bitwidth"]), word))
        word += words_of(int(p["bitwidth"]))
    return out
