# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The packet format of docs/protocol.md, section 2, as numpy records: whole batches are built and checked at
once. Constants of the wire have their source here; tests/golden/test_constants.py compares all who state them again.

Epoch and round lie side by side on the wire, so they are read and written as the one number that a slot
holds: the tag.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

VERSION = 1
HEADER_BYTES = 16
FRAME_OVERHEAD_BYTES = 14 + 20 + 8  # Ethernet, IPv4, UDP: what comes before the header in a frame
PORT_FIRST, PORT_LAST = 0xF000, 0xF0FF
EPOCH_MAX = (1 << 12) - 1
ROUNDS = 1 << 20  # in an epoch
SLOTS_MAX = 1 << 16
LANES_MAX = 256
LANE_MAX = np.int32(2**31 - 1)
LANE_MIN = np.int32(-(2**31))

Records: TypeAlias = NDArray[np.void]  # of dtype `packet(lanes)`
Words: TypeAlias = NDArray[np.int32]


class Kind(IntEnum):
    """What a packet is; READ and RESET are the controller's."""

    GRADIENT = 0
    RESULT = 1
    READ = 2
    RESET = 3


class Flag(IntFlag):
    """The three before the last are those of trees with a quorum (docs/protocol.md, section 3.7). FLOATS: the lanes are
    float32 (3.3)."""

    OVERFLOW = 0x80
    CONGESTION = 0x40
    QUORUM = 0x20
    SEAL = 0x10
    LAPPED = 0x08
    FLOATS = 0x04


NO_FLAGS = Flag(0)
FLAGS = int(Flag.OVERFLOW | Flag.CONGESTION | Flag.FLOATS)
"""What a slot keeps of its contributions' flags."""
ALL_FLAGS = FLAGS | Flag.QUORUM | Flag.SEAL | Flag.LAPPED
COUNT_MAX = 127
"""Contributions that a sum with a quorum can have: seven bits of the byte at offset 13."""


class Verdict(IntEnum):
    """What became of a packet; the numbers are those of the counter `verdicts` (docs/protocol.md, section
    4)."""

    ABSORBED = 1
    RESULT_SENT = 2
    RESULT_REPEATED = 3
    SUM_SENT = 4
    SUM_REPEATED = 5
    PASSED = 6
    RELAYED = 7
    SLOT_READ = 8
    SLOT_RESET = 9
    UNADMITTED = 16
    STALE_EPOCH = 17
    BAD_SLOT = 18
    STALE_CHUNK = 19
    DUPLICATE = 20
    MALFORMED = 21
    UNROUTED = 22
    EXPIRED = 23
    LATE = 24
    LAPPED = 25

    @property
    def label(self) -> str:
        """As metrics and reports have it."""
        return self.name.lower()


class WireError(ValueError):
    """Bytes that are no netfold packet, or a field out of its range; the message names the field."""


@cache
def packet(lanes: int) -> np.dtype[np.void]:
    """The record of one packet with `lanes` lanes (1 ... 256), header first, packed and big-endian."""
    if not 1 <= lanes <= LANES_MAX:
        raise WireError(f"lanes is {lanes}; a packet has 1 to {LANES_MAX}")
    return np.dtype(
        [
            ("version_kind", "u1"),
            ("flags", "u1"),
            ("tree", ">u2"),
            ("tag", ">u4"),
            ("slot", ">u2"),
            ("child", ">u2"),
            ("exponent", "u1"),
            ("reserved", "u1"),
            ("lanes", ">u2"),
            ("lane", ">i4", (lanes,)),
        ]
    )


def packet_bytes(lanes: int) -> int:
    """UDP payload of a packet."""
    return HEADER_BYTES + 4 * lanes


def make_tag(epoch: int, round_: int) -> int:
    """Epoch (0 ... 4095) and round (0 ... 2^20 - 1) as the 32-bit number that slots compare."""
    if not 0 <= epoch <= EPOCH_MAX:
        raise WireError(f"epoch is {epoch}; it must be 0 to {EPOCH_MAX}")
    if not 0 <= round_ < ROUNDS:
        raise WireError(f"round is {round_}; it must be 0 to {ROUNDS - 1}")
    return epoch << 20 | round_


def split_tag(tag: int) -> tuple[int, int]:
    """The epoch and the round of a tag."""
    return tag >> 20, tag & (ROUNDS - 1)


def wellformed(records: Records, sizes: NDArray[Any], lanes: int) -> NDArray[np.bool_]:
    """Which records a node takes: version 1, a known kind, the program's lanes, and exactly the bytes of a
    packet.

    `sizes` are the bytes received for each record. Shape of the answer: that of `records`.
    """
    first = records["version_kind"]
    good: NDArray[np.bool_] = (
        (sizes == packet_bytes(lanes))
        & (first >= VERSION << 4 | Kind.GRADIENT)
        & (first <= VERSION << 4 | Kind.RESET)
        & (records["lanes"] == lanes)
    )
    return good


@dataclass(frozen=True)
class Packet:
    """One packet in Python's own types: for tests, tools and error messages, never the fast path."""

    kind: Kind
    tree: int
    epoch: int
    round: int
    slot: int
    child: int
    lane: tuple[int, ...]
    flags: Flag = NO_FLAGS
    exponent: int = 0
    count: int = 0  # contributions, in a tree with a quorum

    def pack(self) -> bytes:
        record = np.zeros(1, packet(len(self.lane)))
        record["version_kind"] = VERSION << 4 | self.kind
        record["flags"] = self.flags
        record["tree"] = self.tree
        record["tag"] = make_tag(self.epoch, self.round)
        record["slot"] = self.slot
        record["child"] = self.child
        record["exponent"] = self.exponent
        record["reserved"] = self.count
        record["lanes"] = len(self.lane)
        record["lane"] = self.lane
        return record.tobytes()

    @classmethod
    def parse(cls, payload: bytes) -> Packet:
        """Raises WireError that names what is wrong."""
        if len(payload) < HEADER_BYTES:
            raise WireError(f"{len(payload)} bytes; the header alone has {HEADER_BYTES}")
        version, kind = payload[0] >> 4, payload[0] & 15
        lanes = int.from_bytes(payload[14:16], "big")
        if version != VERSION:
            raise WireError(f"version is {version}; this is version {VERSION}")
        if kind > Kind.RESET:
            raise WireError(f"kind is {kind}; the kinds are 0 to {int(Kind.RESET)}")
        if not 1 <= lanes <= LANES_MAX or len(payload) != packet_bytes(lanes):
            raise WireError(
                f"lanes is {lanes} in a packet of {len(payload)} bytes; lanes is (bytes - 16) / 4"
            )
        record = np.frombuffer(payload, packet(lanes))[0]
        epoch, round_ = split_tag(int(record["tag"]))
        flags = Flag(int(record["flags"]) & ALL_FLAGS)
        return cls(
            kind=Kind(kind),
            tree=int(record["tree"]),
            epoch=epoch,
            round=round_,
            slot=int(record["slot"]),
            child=int(record["child"]),
            lane=tuple(record["lane"].tolist()),
            flags=flags,
            exponent=int(record["exponent"]),
            count=int(record["reserved"]) & COUNT_MAX if Flag.QUORUM in flags else 0,
        )
