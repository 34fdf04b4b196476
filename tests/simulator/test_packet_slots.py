# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A node of the packet level gives the verdicts and the sums of the slot machine that the data plane's oracle runs."""

from __future__ import annotations

import numpy as np
import pytest

from netfold.simulator.packet.native import Trace, judge
from netfold.traffic.server.slots import SlotPool

EDGES = np.array([0, 1, -1, 2**31 - 1, -(2**31), 2**30, -(2**30)], np.int32)


def random_trace(rng: np.random.Generator, count: int, slots: int, children: int, lanes: int) -> Trace:
    """Rounds go on slowly, with old, far, doubled and misplaced packets, and lanes that meet the rails."""
    rounds = np.maximum(0, np.arange(count) // (slots * children) + rng.integers(-1, 2, count))
    return Trace(
        tags=(1 << 20 | rounds).astype(np.uint32),
        slots=rng.integers(0, slots + 1, count),
        bits=rng.integers(0, children, count),
        flags=rng.choice(np.array([0, 0x40, 0x80, 0xC0], np.uint8), count, p=[0.7, 0.1, 0.1, 0.1]),
        exponents=rng.integers(0, 256, count).astype(np.uint8),
        lanes=rng.choice(EDGES, (count, lanes)),
    )


@pytest.mark.parametrize(("slots", "children"), [(1, 1), (2, 2), (4, 3), (8, 32), (2, 70)])
@pytest.mark.parametrize("root", [True, False])
def test_the_same_trace_gives_the_same_verdicts_and_sums(slots: int, children: int, root: bool):
    rng = np.random.default_rng(slots * 100 + children)
    trace = random_trace(rng, 4000, slots, children, lanes=5)
    pool = SlotPool(slots, 5, children, root)
    expected = pool.gradients(trace.tags, trace.slots, trace.bits, trace.flags, trace.exponents, trace.lanes)
    verdicts, flags, exponents, sums = judge(trace, slots, children, root)
    assert verdicts.tolist() == expected.verdicts.tolist()
    assert set(verdicts.tolist()) > ({1, 19, 20} if children > 1 else {19})
    leaving = expected.source
    assert flags[leaving].tolist() == expected.flags.tolist()
    assert exponents[leaving].tolist() == expected.exponents.tolist()
    np.testing.assert_array_equal(sums[leaving], expected.lanes)
