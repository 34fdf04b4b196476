# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job of the stateful test: what its workers contribute, and what they know of the sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from netfold.protocol.constants import TARGET_NONE
from netfold.protocol.target import LaneTarget
from netfold.protocol.wire import LANE_MAX, LANE_MIN, Flag
from tests.dataplane.layout import TreeShape
from tests.quorum_oracle import QuorumPool
from tests.slot_oracle import SlotPool

Words = NDArray[np.int32]
Lanes = tuple[int, ...] | None  # None: the worker does not want them
Result = tuple[Flag, int, Lanes, int]  # overflow or not, exponent, lanes, contributions


@dataclass
class Worker:
    """A host's knowledge of a tree: the epoch it is in and the results it has."""

    host: int
    epoch: int
    received: dict[int, Result] = field(default_factory=dict)
    slot_reused: bool = False


@dataclass
class Server:
    """A parameter server as root of a tree."""

    pool: SlotPool | QuorumPool
    epoch: int


@dataclass
class Job:
    """A tree and its members. `chunks` is what an epoch of it adds up; `results` what the workers agreed on,
    `sums` what all of them contribute."""

    shape: TreeShape
    epoch: int
    window: int
    chunks: int
    lanes: int
    workers: list[Worker]
    server: Server | None
    results: dict[tuple[int, int, bool], Result] = field(default_factory=dict)  # with lanes, and without
    sums: dict[tuple[int, int], tuple[int, NDArray[np.int64]]] = field(default_factory=dict)

    def target(self, epoch: int, chunk: int) -> LaneTarget | None:
        """Returns the target of a chunk at all workers: none, or a scatter's, a gather's, a closing chunk's, or one for
        all."""
        if not self.shape.targets:
            return None
        made = np.random.default_rng([self.shape.tree, epoch, chunk])
        owner = int(made.integers(len(self.workers))) if made.random() < 0.8 else TARGET_NONE
        return None if made.random() < 0.2 else LaneTarget(owner, all_but=bool(made.integers(2)))

    def is_short(self, child: int, epoch: int, chunk: int) -> bool:
        """The owner of a scatter keeps its lanes, that of a gather alone has some. Some workers do it otherwise."""
        target = self.target(epoch, chunk)
        if target is None or target == LaneTarget(TARGET_NONE):
            return target is not None
        is_odd = np.random.default_rng([epoch, child, chunk]).random() < 0.2
        return (target.all_but != (child == target.owner)) != is_odd

    def contribution(self, child: int, epoch: int, chunk: int) -> tuple[int, Words]:
        """Exponent and lanes: small numbers, and in some chunks numbers at the limits. Of a short packet zeros."""
        made = np.random.default_rng([self.shape.tree, epoch, child, chunk])
        lanes = made.integers(-1000, 1000, self.lanes)
        if chunk % 3 == 2:
            lanes[made.integers(self.lanes)] = made.choice([LANE_MIN, LANE_MIN + 1, LANE_MAX - 1, LANE_MAX])
        if self.is_short(child, epoch, chunk):
            lanes[:] = 0
        return int(made.integers(256)), lanes.astype(np.int32)

    def is_sum(self, epoch: int, chunk: int, result: Result) -> bool:
        """Whether the lanes are the sum of all workers, or of as many as the packet says and the quorum wants; the
        exponent the largest of theirs."""
        flags, exponent, lanes, count = result
        all_workers = range(len(self.workers))
        if self.shape.quorum is None:
            if (epoch, chunk) not in self.sums:
                self.sums[epoch, chunk] = self.exact(epoch, chunk, all_workers)
            return count == 0 and self._fits(flags, exponent, lanes, *self.sums[epoch, chunk])
        return count >= self.shape.quorum and any(
            self._fits(flags, exponent, lanes, *self.exact(epoch, chunk, some))
            for some in combinations(all_workers, count)
        )

    def _fits(self, flags: Flag, exponent: int, lanes: Lanes, wanted: int, total: NDArray[np.int64]) -> bool:
        is_unknown = Flag.OVERFLOW in flags or lanes is None
        return exponent == wanted and (is_unknown or lanes == tuple(total.tolist()))

    def exact(self, epoch: int, chunk: int, workers: Iterable[int]) -> tuple[int, NDArray[np.int64]]:
        parts = [self.contribution(child, epoch, chunk) for child in workers]
        return max(e for e, _ in parts), np.sum([lanes.astype(np.int64) for _, lanes in parts], axis=0)

    def in_window(self, worker: Worker) -> list[int]:
        """The chunks that a worker may send now (docs/reference/protocol.md, section 7)."""
        return [
            chunk
            for chunk in range(0 if worker.slot_reused else self.chunks)
            if chunk not in worker.received
            and (chunk < self.window or chunk - self.window in worker.received)
        ]

    @property
    def done(self) -> bool:
        return all(
            w.epoch == self.epoch and (w.slot_reused or len(w.received) == self.chunks) for w in self.workers
        )
