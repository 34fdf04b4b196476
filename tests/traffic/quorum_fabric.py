# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Cores of a job with a quorum under one root, or under two inner nodes and a root, in virtual time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netfold.protocol.wire import Flag, Verdict
from tests.quorum_oracle import QuorumPool
from tests.traffic.cores import Fabric, becomes


@dataclass
class QuorumFabric(Fabric):
    late: int = 0
    slot_reused: int = 0

    def pool(self, slots: int, children: int, root: bool) -> QuorumPool:
        part = self.parts[0]
        below = len(self.parts) if root and self.levels else 0
        return QuorumPool(slots, part.lanes, children, root, part.quorum, below)

    def take(self, pool: QuorumPool, bit: int, record: np.ndarray) -> Verdict | None:
        row = record[0]
        done, count = pool.gradient(
            int(row["tag"]),
            int(row["slot"]),
            bit,
            int(row["flags"]),
            int(row["exponent"]),
            row["lane"],
            int(row["reserved"]),
        )
        self.late += done.verdict is Verdict.LATE
        self.slot_reused += done.verdict is Verdict.SLOT_REUSED
        if done.verdict is Verdict.SLOT_REUSED:
            record["flags"] = int(Flag.QUORUM | Flag.SLOT_REUSED)
        elif done.packet is not None:
            becomes(record, done.packet)
            record["reserved"] = count
        elif done.verdict is not Verdict.FORWARDED:
            return None
        return done.verdict
