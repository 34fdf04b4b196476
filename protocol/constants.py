# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
# generated from protocol/wire.yaml by `make wire`

"""The numbers of the wire."""

from enum import IntEnum, IntFlag

VERSION = 1
HEADER_BYTES = 16
PORT_FIRST, PORT_LAST = 61440, 61695
EPOCH_MAX = 4095
ROUNDS = 1048576
SLOTS_MAX = 65536
LANES_MAX = 512
TARGETED = 0x8000
TARGET_ALL_BUT = 0x4000
TARGET_NONE = 0x3FFF
COUNT_MAX = 127
"""Contributions that a sum with a quorum can count."""
HEADER_FIELDS = (
    ("version_kind", "u1"),
    ("flags", "u1"),
    ("tree", ">u2"),
    ("tag", ">u4"),
    ("slot", ">u2"),
    ("child", ">u2"),
    ("exponent", "u1"),
    ("reserved", "u1"),
    ("lanes", ">u2"),
)
"""Name and numpy type of each field, in wire order."""


class Kind(IntEnum):
    """Type of a packet; READ and RESET are management, the controller's only."""

    GRADIENT = 0
    RESULT = 1
    READ = 2
    RESET = 3


class Flag(IntFlag):
    """Bits of the header's flags."""

    OVERFLOW = 128
    CONGESTION = 64
    QUORUM = 32
    SEAL = 16
    SLOT_REUSED = 8
    FLOATS = 4
    DATA = 2


class Verdict(IntEnum):
    """A node's decision about a packet: index of the counter `verdicts`."""

    ACCUMULATED = 1
    RESULT_SENT = 2
    RESULT_RESENT = 3
    SUM_SENT = 4
    SUM_RESENT = 5
    FORWARDED = 6
    MULTICAST = 7
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
    SLOT_REUSED = 25

    @property
    def label(self) -> str:
        """Name in metrics and reports."""
        return self.name.lower()


STICKY_FLAGS = Flag.OVERFLOW | Flag.CONGESTION | Flag.FLOATS
"""The flags that a slot keeps of its contributions."""
