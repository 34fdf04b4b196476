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


class Kind(IntEnum):
    GRADIENT = 0
    RESULT = 1


class Flag(IntFlag):
    OVERFLOW = 0x80
    CONGESTION = 0x40
    FLOATS = 0x04


NO_FLAGS = Flag(0)


@dataclass(frozen=True)
class Packet:
    """One chunk. `lanes`: int32 of shape (L,), also where they hold the bits of float32."""

    kind: Kind
    tree: int
    tag: int
    slot: int
    child: int
    lanes: Lanes
    flags: Flag = NO_FLAGS
    exponent: int = 0

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
            len(self.lanes),
        )
        return head + self.lanes.astype(">i4").tobytes()


def parse(data: bytes, lanes: int) -> Packet | None:
    """W8: None if the datagram is malformed, or of a kind that this implementation leaves out."""
    if len(data) != HEADER.size + 4 * lanes:
        return None
    version_kind, flags, tree, tag, slot, child, exponent, _, count = HEADER.unpack_from(data)
    if version_kind >> 4 != VERSION or version_kind & 15 not in (Kind.GRADIENT, Kind.RESULT):
        return None
    if count != lanes:
        return None
    known = Flag(flags & (Flag.OVERFLOW | Flag.CONGESTION | Flag.FLOATS))
    values = np.frombuffer(data, ">i4", offset=HEADER.size).astype(np.int32)
    return Packet(Kind(version_kind & 15), tree, tag, slot, child, values, known, exponent)


def tag_of(epoch: int, round_: int) -> int:
    return epoch << ROUND_BITS | round_
