# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The target of a packet says which workers want the lanes of its sum (docs/reference/protocol.md, section 2.1)."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from netfold.protocol.constants import TARGET_ALL_BUT, TARGET_NONE, TARGETED


class LaneTarget(NamedTuple):
    """`owner`: a worker's rank, or TARGET_NONE. It alone wants lanes or, with `all_but`, all others do."""

    owner: int
    all_but: bool = False

    @property
    def field(self) -> int:
        """The header's field `lanes` of a targeted packet."""
        return TARGETED | (TARGET_ALL_BUT if self.all_but else 0) | self.owner

    @classmethod
    def of_field(cls, lanes: int) -> LaneTarget | None:
        """Returns None if the field holds the number of lanes."""
        if not lanes & TARGETED:
            return None
        return cls(lanes & TARGET_NONE, bool(lanes & TARGET_ALL_BUT))

    def wants(self, rank: int) -> bool:
        return (rank == self.owner) != self.all_but


class Targets(IntEnum):
    """Whether packets of an epoch may be targeted (docs/reference/protocol.md, section 5.8): `enum nf_targets` of
    traffic/engine/transport/assignment.h. PAUSED: not in this epoch, but in others of the job."""

    OFF = 0
    PAUSED = 1
    ON = 2
