# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""RoCE workers whose floats are added as they lie in their memory (docs/reference/roce.md, section 4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from netfold.p4src.manifest import lanes_with
from netfold.protocol.wire import Flag, Packet
from tests.dataplane.bench import Bench
from tests.dataplane.conftest import Fresh
from tests.dataplane.fixtures import UPLINK
from tests.dataplane.node import TreeAt
from tests.dataplane.roce_fixtures import PORTS, at_inner, at_root, sent, settings
from tests.dataplane.roce_frames import ONLY, PAYLOAD_AT, Rc
from tests.dataplane.roce_node import RoceWorker
from tests.dataplane.test_floats import KINDS, Bits, added, random_bits

LANES, WORKERS = lanes_with("floats")[0], 3


def leaf(at: TreeAt, target: str, fresh: Fresh) -> Bench:
    bench = fresh(target, LANES)
    said = settings(at, WORKERS)
    bench.install(*(replace(s, floats=True) if isinstance(s, RoceWorker) else s for s in said))
    return bench


def in_memory(bits: Bits) -> Rc:
    """Lanes are packed big-endian; the bytes are those of a little-endian host."""
    return Rc(lanes=bits.byteswap().view(np.int32).tolist(), opcode=ONLY)


def floats_of(frame: bytes) -> Bits:
    return np.frombuffer(frame[PAYLOAD_AT : PAYLOAD_AT + 4 * LANES], "<u4")


@pytest.mark.parametrize("kind", KINDS)
def test_a_root_leaf_gives_each_worker_the_sum_as_it_lies_in_memory(kind: str, target: str, fresh: Fresh):
    bench = leaf(at_root(WORKERS), target, fresh)
    random = np.random.default_rng(4)
    for chunk in range(5):
        parts = [random_bits(random, kind) for _ in range(WORKERS)]
        for port, bits in zip(PORTS, parts, strict=False):
            left = bench.send(port, sent(port, chunk, in_memory(bits), WORKERS))
        assert len(left) == WORKERS
        for _, frame in left:
            np.testing.assert_array_equal(floats_of(frame), added(added(parts[0], parts[1]), parts[2]))
        ((_, again),) = bench.send(1, sent(1, chunk, in_memory(parts[0]), WORKERS))
        np.testing.assert_array_equal(floats_of(again), floats_of(left[0][1]))
    bench.check_counters()


def test_between_switches_floats_lie_as_in_any_packet(target: str, fresh: Fresh):
    bench = leaf(at_inner(WORKERS), target, fresh)
    values = np.linspace(-3, 7, LANES, dtype=np.float32)
    for port in PORTS[:WORKERS]:
        left = bench.send(port, sent(port, 0, in_memory(values.view(np.uint32)), WORKERS))
    ((port, frame),) = left
    up = Packet.parse(frame[42:])
    assert (port, up.flags) == (UPLINK, Flag.FLOATS)
    np.testing.assert_array_equal(np.array(up.lane, np.int32).view(np.float32), values + values + values)
