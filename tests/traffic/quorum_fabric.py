# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Cores of a job with a quorum under one root, or under two inner nodes and a root, in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from netfold.traffic.packets.wire import VERSION, Flag, Kind, Verdict
from netfold.traffic.server.quorum import QuorumPool
from tests.traffic.cores import Fabric


@dataclass
class QuorumFabric(Fabric):
    late: int = 0
    lapped: int = 0
    pools: dict[tuple[str, int, int], QuorumPool] = field(default_factory=dict)

    def assign(self, parts) -> None:
        self.parts = parts
        part = parts[0]
        self.levels = self.two_levels and len(parts) > 1
        self.half = (len(parts) + 1) // 2
        self.pools = {}
        for number, tree in enumerate(part.trees):
            if not self.levels:
                self.pools["root", number, 0] = QuorumPool(
                    tree.slots, part.lanes, len(parts), True, part.quorum
                )
                continue
            self.pools["root", number, 0] = QuorumPool(
                tree.slots, part.lanes, 2, True, part.quorum, len(parts)
            )
            for side, count in enumerate((self.half, len(parts) - self.half)):
                self.pools["node", number, side] = QuorumPool(tree.slots, part.lanes, count, False, 0)

    def _arrive(self, to: str, which: int, endpoint: int, record: np.ndarray) -> None:
        if self.rng.random() < self.loss:
            return
        if self.rng.random() < self.duplicate:
            self.flying.append((to, which, endpoint, record.copy()))
        if to == "worker":
            self.cores[which].receive(record.tobytes(), self.now, endpoint)
            self.cores[which].turn(self.now)
            return
        row = record[0]
        if int(row["tag"]) >> 20 != self.parts[0].epoch:
            return  # stale_epoch
        side = 0
        if to == "root" or not self.levels:
            pool, bit = self.pools["root", endpoint, 0], which
        else:
            side = int(which >= self.half)
            pool, bit = self.pools["node", endpoint, side], which - side * self.half
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
        self.lapped += done.verdict is Verdict.LAPPED
        if done.verdict is Verdict.PASSED:
            self.flying.append(("root", 2 + which, endpoint, record))
            return
        if done.verdict is Verdict.LAPPED:
            record["flags"] = int(Flag.QUORUM | Flag.LAPPED)
        elif done.packet is None:
            return
        else:
            record["lane"], record["exponent"] = done.packet.lanes, done.packet.exponent
            record["flags"], record["reserved"] = int(done.packet.flags), count
        if to == "node" and self.levels:
            self.flying.append(("root", side, endpoint, record))
            return
        record["version_kind"] = VERSION << 4 | Kind.RESULT
        for rank in self._asked(which, done.verdict):
            self.flying.append(("worker", rank, endpoint, record.copy()))

    def _asked(self, child: int, verdict: Verdict) -> range:
        everyone = range(len(self.parts))
        if verdict is Verdict.RESULT_SENT:
            return everyone
        if not self.levels:
            return range(child, child + 1)
        side = child if child < 2 else int(child - 2 >= self.half)
        return everyone[: self.half] if side == 0 else everyone[self.half :]
