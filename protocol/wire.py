# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The packet format of docs/reference/protocol.md, section 2, as numpy records: whole batches are built and
checked at once. Its numbers come from wire.yaml (constants.py).

Epoch and round are adjacent on the wire, so they are read and written as the one number that a slot holds: the tag.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from netfold.protocol.constants import (
    COUNT_MAX,
    EPOCH_MAX,
    HEADER_BYTES,
    HEADER_FIELDS,
    LANES_MAX,
    PORT_FIRST,
    PORT_LAST,
    ROUNDS,
    SLOTS_MAX,
    STICKY_FLAGS,
    VERSION,
    Flag,
    Kind,
    Verdict,
)
from netfold.protocol.target import LaneTarget

__all__ = [
    "ALL_FLAGS",
    "COUNT_MAX",
    "EPOCH_MAX",
    "FLAGS",
    "FRAME_OVERHEAD_BYTES",
    "FRAMING_BYTES",
    "HEADER_BYTES",
    "LANES_MAX",
    "LANE_MAX",
    "LANE_MIN",
    "NO_FLAGS",
    "PORT_FIRST",
    "PORT_LAST",
    "ROUNDS",
    "SLOTS_MAX",
    "VERSION",
    "Flag",
    "Kind",
    "LaneArray",
    "Packet",
    "Records",
    "Verdict",
    "WireError",
    "lanes_that_fit",
    "make_tag",
    "mtu_for",
    "packet",
    "packet_bytes",
    "split_tag",
    "wellformed",
]

_ETHERNET_BYTES = 14
FRAME_OVERHEAD_BYTES = _ETHERNET_BYTES + 20 + 8
"""Ethernet, IPv4, UDP: what comes before the header in a frame."""
FRAMING_BYTES = 8 + 4 + 12  # preamble, check sequence, gap: of a frame on a link, not counted by switches
LANE_MAX = np.int32(2**31 - 1)
LANE_MIN = np.int32(-(2**31))

Records: TypeAlias = NDArray[np.void]  # of dtype `packet(lanes)`
LaneArray: TypeAlias = NDArray[np.int32]

NO_FLAGS = Flag(0)
FLAGS = int(STICKY_FLAGS)
"""The flags that a slot keeps of its contributions."""
ALL_FLAGS = STICKY_FLAGS | Flag.QUORUM | Flag.SEAL | Flag.SLOT_REUSED | Flag.DATA


class WireError(ValueError):
    """Bytes that are no netfold packet, or a field out of its range; the message names the field."""


@cache
def packet(lanes: int) -> np.dtype[np.void]:
    """The record of one packet with `lanes` lanes (1 ... 512), header first, packed and big-endian."""
    if not 1 <= lanes <= LANES_MAX:
        raise WireError(f"lanes is {lanes}; a packet has 1 to {LANES_MAX}")
    return np.dtype([*HEADER_FIELDS, ("lane", ">i4", (lanes,))])


def packet_bytes(lanes: int) -> int:
    """UDP payload of a packet."""
    return HEADER_BYTES + 4 * lanes


def mtu_for(lanes: int) -> int:
    """Bytes of the IP packet: the least MTU of all links."""
    return FRAME_OVERHEAD_BYTES - _ETHERNET_BYTES + packet_bytes(lanes)


def lanes_that_fit(mtu: int) -> int:
    """Most lanes of a packet, 0 if not one."""
    return max(0, (mtu - mtu_for(0)) // 4)


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
    """One packet in Python's own types: for tests, tools and error messages, never the fast path. A short packet has a
    target and no lanes."""

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
    target: LaneTarget | None = None

    def pack(self) -> bytes:
        record = np.zeros(1, packet(len(self.lane) or 1))
        record["version_kind"] = VERSION << 4 | self.kind
        record["flags"] = self.flags
        record["tree"] = self.tree
        record["tag"] = make_tag(self.epoch, self.round)
        record["slot"] = self.slot
        record["child"] = self.child
        record["exponent"] = self.exponent
        record["reserved"] = self.count
        record["lanes"] = self.target.field if self.target else len(self.lane)
        record["lane"] = self.lane or (0,)
        return record.tobytes()[: packet_bytes(len(self.lane))]

    @classmethod
    def parse(cls, payload: bytes) -> Packet:
        """Raises WireError that names what is wrong."""
        if len(payload) < HEADER_BYTES:
            raise WireError(f"{len(payload)} bytes; the header alone has {HEADER_BYTES}")
        version, kind = payload[0] >> 4, payload[0] & 15
        field = int.from_bytes(payload[14:16], "big")
        target = LaneTarget.of_field(field)
        lanes = (len(payload) - HEADER_BYTES) // 4 if target else field
        if version != VERSION:
            raise WireError(f"version is {version}; this is version {VERSION}")
        if kind > Kind.RESET:
            raise WireError(f"kind is {kind}; the kinds are 0 to {int(Kind.RESET)}")
        if not (0 if target else 1) <= lanes <= LANES_MAX or len(payload) != packet_bytes(lanes):
            raise WireError(
                f"lanes is {lanes} in a packet of {len(payload)} bytes; lanes is (bytes - 16) / 4"
            )
        record = np.frombuffer(payload if lanes else payload + bytes(4), packet(lanes or 1))[0]
        epoch, round_ = split_tag(int(record["tag"]))
        flags = Flag(int(record["flags"]) & ALL_FLAGS)
        return cls(
            kind=Kind(kind),
            tree=int(record["tree"]),
            epoch=epoch,
            round=round_,
            slot=int(record["slot"]),
            child=int(record["child"]),
            lane=tuple(record["lane"].tolist())[:lanes],
            flags=flags,
            exponent=int(record["exponent"]),
            count=int(record["reserved"]) & COUNT_MAX if Flag.QUORUM in flags else 0,
            target=target,
        )
