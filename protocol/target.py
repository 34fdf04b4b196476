# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The target of a packet says which workers want the lanes of its sum (docs/reference/protocol.md, section 2.1)."""

from __future__ import annotations

from typing import NamedTuple

from netfold.protocol.constants import TARGET_ALL_BUT, TARGET_NOBODY, TARGETED


class Target(NamedTuple):
    """`owner`: a worker's rank, or TARGET_NOBODY. It alone wants lanes or, with `all_but`, all others do."""

    owner: int
    all_but: bool = False

    @property
    def field(self) -> int:
        """What the header's field `lanes` holds in a targeted packet."""
        return TARGETED | (TARGET_ALL_BUT if self.all_but else 0) | self.owner

    @classmethod
    def of_field(cls, lanes: int) -> Target | None:
        """Returns None if the field holds the number of lanes."""
        if not lanes & TARGETED:
            return None
        return cls(lanes & TARGET_NOBODY, bool(lanes & TARGET_ALL_BUT))

    def wants(self, rank: int) -> bool:
        return (rank == self.owner) != self.all_but
