# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine's slot pool, as root and as inner node, beside the slot machine that the data plane's oracle runs."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from netfold.protocol.wire import VERSION, Kind, packet
from netfold.traffic.engine.native import library
from tests.slot_oracle import SlotPool

LANES = 5
EDGES = np.array([0, 1, -1, 2**31 - 1, -(2**31), 2**30, -(2**30)], np.int32)
SENT = {2, 3, 4, 5}


class Pool:
    """struct nf_slot_pool."""

    def __init__(self, slots: int, children: int, root: bool) -> None:
        self._code = library()
        self._pool = (ctypes.c_int64 * 32)()
        sizes = (ctypes.c_int64(n) for n in (slots, LANES, children))
        assert self._code.nf_slot_pool_init(self._pool, 0 if root else 1, *sizes) == 0

    def free(self) -> None:
        self._code.nf_slot_pool_free(self._pool)

    def accumulate(self, record: np.ndarray, child: int) -> tuple[int, np.void]:
        """The verdict, and what the packet has become."""
        memory = record.copy()
        at = ctypes.c_void_p(memory.ctypes.data)
        verdict = self._code.nf_slot_pool_accumulate(self._pool, ctypes.c_int64(child), at, 0, at)
        return int(verdict), memory[0]


def random_packets(
    rng: np.random.Generator, count: int, slots: int, children: int
) -> Iterator[tuple[np.ndarray, int]]:
    """Rounds advance slowly, with old, far, duplicate and misplaced packets, and lanes that saturate."""
    for number in range(count):
        record = np.zeros(1, packet(LANES))
        record["version_kind"], record["lanes"] = VERSION << 4 | Kind.GRADIENT, LANES
        record["tag"] = 1 << 20 | max(0, number // (slots * children) + int(rng.integers(-1, 2)))
        record["slot"] = rng.integers(0, slots + 1)
        record["flags"] = rng.choice([0, 0x40, 0x80, 0xC0], p=[0.7, 0.1, 0.1, 0.1])
        record["exponent"] = rng.integers(0, 256)
        record["lane"] = rng.choice(EDGES, LANES)
        yield record, int(rng.integers(0, children))


@pytest.mark.parametrize(
    ("slots", "children"), [(1, 1), (2, 2), (4, 3), (8, 32), (2, 33), (2, 64), (2, 70), (1, 256)]
)
@pytest.mark.parametrize("root", [True, False])
def test_the_same_packets_give_the_same_verdicts_and_sums(slots: int, children: int, root: bool):
    oracle, pool = SlotPool(slots, LANES, children, root), Pool(slots, children, root)
    verdicts = set()
    for record, child in random_packets(np.random.default_rng(slots * 100 + children), 4000, slots, children):
        row = record[0]
        columns = [int(row[name]) for name in ("tag", "slot", "flags", "exponent")]
        expected = oracle.gradient(*columns[:2], child, *columns[2:], row["lane"])
        verdict, sent = pool.accumulate(record, child)
        verdicts.add(verdict)
        assert verdict == expected.verdict
        assert (verdict in SENT) == (expected.packet is not None)
        if expected.packet is not None:
            assert sent["version_kind"] == VERSION << 4 | (Kind.RESULT if root else Kind.GRADIENT)
            assert (sent["flags"], sent["exponent"]) == (expected.packet.flags, expected.packet.exponent)
            np.testing.assert_array_equal(sent["lane"], expected.packet.lanes)
    pool.free()
    assert verdicts > ({1, 19, 20} if children > 1 else {19})
