# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The parameter server's C code under a quorum, packet by packet, against the slot machine in numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.protocol.wire import Flag, Kind, Packet, Verdict, make_tag
from tests.quorum_oracle import QuorumPool
from tests.traffic.test_root import EPOCH, HOSTS, LANES, PORT, Root, Sent, lane

SLOTS, TREE = 4, 7
OWN, BELOW = (10, 20), (30, 40, 50)
"""The root's own children, of which 20 is an inner node, and the senders under that."""


@st.composite
def quorum_packets(draw) -> Packet:
    """Of the round a slot is in or near it: a worker's own, an inner node's sum, or what came late to that."""
    child = draw(st.sampled_from(OWN + BELOW))
    return Packet(
        Kind.GRADIENT,
        TREE,
        EPOCH,
        draw(st.integers(0, 2)),
        draw(st.sampled_from([0, 0, 1, SLOTS])),
        child,
        draw(lane),
        draw(st.sampled_from([0, 0x40, 0x80])) | Flag.QUORUM | draw(st.sampled_from([0, int(Flag.SEAL)])),
        draw(st.integers(0, 255)),
        draw(st.integers(0, 3)) if child == 20 else draw(st.sampled_from([1, 1, 1, 0])),
    )


@settings(max_examples=60)
@given(st.lists(st.tuples(quorum_packets(), st.booleans()), max_size=60), st.integers(1, 5))
def test_every_packet_under_a_quorum_has_the_oracles_verdict_and_result(traffic, least):
    children = OWN + BELOW
    root = Root({TREE: (SLOTS, children, ())}, quorum={TREE: (len(OWN), least)})
    pool = QuorumPool(SLOTS, LANES, len(OWN), True, least, len(BELOW))
    try:
        for packet, marked in traffic:
            flags = packet.flags | (0x40 if marked else 0)
            tag = make_tag(packet.epoch, packet.round)
            lanes = np.array(packet.lane, np.int32)
            bit = children.index(packet.child)
            expected, count = pool.gradient(
                tag, packet.slot, bit, flags, packet.exponent, lanes, packet.count
            )
            got, answer = root.take(Sent(packet, HOSTS[0], PORT, marked, 0))
            assert got == expected.verdict
            if expected.verdict is Verdict.SLOT_REUSED:
                told = replace(packet, kind=Kind.RESULT, flags=Flag.QUORUM | Flag.SLOT_REUSED, count=0)
                assert answer == told.pack()
            elif expected.packet is not None:
                done = expected.packet
                told = replace(
                    packet,
                    kind=Kind.RESULT,
                    lane=tuple(done.lanes.tolist()),
                    flags=done.flags,
                    exponent=done.exponent,
                    count=count,
                )
                assert answer == told.pack()
    finally:
        root.close()
