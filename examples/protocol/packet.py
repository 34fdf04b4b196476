# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The packet: section 2 of docs/reference/protocol.md. Rules are cited by their number."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

import numpy as np
from numpy.typing import NDArray

Lanes = NDArray[np.int32]

VERSION = 1
HEADER = struct.Struct("!BBHIHHBBH")
ROUND_BITS = 20
TARGETED, ALL_BUT, NO_OWNER = 0x8000, 0x4000, 0x3FFF


class Kind(IntEnum):
    GRADIENT = 0
    RESULT = 1


class Flag(IntFlag):
    OVERFLOW = 0x80
    CONGESTION = 0x40
    QUORUM = 0x20
    FLOATS = 0x04
    DATA = 0x02


NO_FLAGS = Flag(0)


@dataclass(frozen=True)
class Packet:
    """One chunk. `lanes`: int32 of shape (L,), also where they hold the bits of float32; of a short packet zeros.
    `target`: the field `lanes` of a targeted packet (2.1)."""

    kind: Kind
    tree: int
    tag: int
    slot: int
    child: int
    lanes: Lanes
    flags: Flag = NO_FLAGS
    exponent: int = 0
    target: int | None = None
    is_short: bool = False

    def pack(self) -> bytes:
        """W1."""
        head = HEADER.pack(
            VERSION << 4 | self.kind,
            self.flags,
            self.tree,
            self.tag,
            self.slot,
            self.child,
            self.exponent,
            0,
            len(self.lanes) if self.target is None else self.target,
        )
        return head if self.is_short else head + self.lanes.astype(">i4").tobytes()


def parse(datagram: bytes, lanes: int) -> Packet | None:
    """W8, W11: None if the datagram is malformed, or of a kind that this implementation leaves out."""
    if len(datagram) not in (HEADER.size, HEADER.size + 4 * lanes):
        return None
    version_kind, flags, tree, tag, slot, child, exponent, _, field = HEADER.unpack_from(datagram)
    if version_kind >> 4 != VERSION or version_kind & 15 not in (Kind.GRADIENT, Kind.RESULT):
        return None
    kind, is_short = Kind(version_kind & 15), len(datagram) == HEADER.size
    known = Flag(flags & (Flag.OVERFLOW | Flag.CONGESTION | Flag.FLOATS))
    if field & TARGETED:
        data_flag = Flag(flags & Flag.DATA)
        is_allowed = kind is Kind.RESULT or not data_flag if is_short else data_flag
        if flags & Flag.QUORUM or not is_allowed:
            return None
        known |= data_flag
    elif is_short or field != lanes:
        return None
    values = np.zeros(lanes, np.int32)
    if not is_short:
        values[:] = np.frombuffer(datagram, ">i4", offset=HEADER.size)
    target = field if field & TARGETED else None
    return Packet(kind, tree, tag, slot, child, values, known, exponent, target, is_short)


def target_of(owner: int, *, is_gather: bool) -> int:
    """C17."""
    return TARGETED | ALL_BUT * is_gather | owner


def wants_lanes(target: int | None, rank: int) -> bool:
    return target is None or (target & NO_OWNER == rank) != bool(target & ALL_BUT)


def tag_of(epoch: int, round_: int) -> int:
    return epoch << ROUND_BITS | round_
