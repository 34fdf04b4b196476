# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ties the model of quorums to the code: `Rules.step` and `tests.quorum_oracle.QuorumPool` agree on every state that
senders at the edges of a bitmap's words, and all others one after the other, lead to."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass

import pytest

from netfold.protocol.wire import Flag, Verdict, make_tag
from tests.model.quorum import PROTOCOL, Does, Packet, Slot
from tests.quorum_oracle import QuorumPool

TAGS = (1, 2)
VERDICTS = {
    (True, Does.SENT): Verdict.RESULT_SENT,
    (True, Does.RESENT): Verdict.RESULT_RESENT,
    (True, Does.LATE): Verdict.LATE,
    (True, Does.SLOT_REUSED): Verdict.SLOT_REUSED,
    (False, Does.SENT): Verdict.SUM_SENT,
    (False, Does.RESENT): Verdict.SUM_RESENT,
    (False, Does.FORWARDED): Verdict.FORWARDED,
}
WAITING = {Verdict.ACCUMULATED, Verdict.DUPLICATE}


@dataclass(frozen=True)
class Node:
    """`own` children, and `below` them senders that a root knows; `groups` of senders' bits send one after the
    other; `least`: the quorum, 0 at an inner node."""

    own: int
    below: int
    groups: tuple[tuple[int, ...], ...]
    least: int

    @property
    def root(self) -> bool:
        return self.least > 0


def node(own: int, below: int, edges: tuple[int, ...], least: int) -> Node:
    others = tuple(bit for bit in range(own + below) if bit not in edges)
    return Node(own, below, (*((edge,) for edge in edges), *((others,) if others else ())), least)


NODES = {
    "3, 2 are enough": node(3, 0, (0, 1, 2), 2),
    "inner, 3": node(3, 0, (0, 1, 2), 0),
    "33, 32 are enough": node(33, 0, (31, 32), 32),
    "inner, 33": node(33, 0, (31, 32), 0),
    "32 and 32 below, 33 are enough": node(32, 32, (31, 32, 63), 33),
    "63 and 2 below, 64 are enough": node(63, 2, (62, 63, 64), 64),
    "inner, 64": node(64, 0, (31, 32, 63), 0),
    "127 of 256 bits, all are enough": node(126, 1, (63, 64, 126), 127),
}


@pytest.mark.parametrize("name", NODES)
def test_the_model_of_quorums_is_the_code(name: str):
    at = NODES[name]
    senders = at.own + at.below
    children = (1 << at.own) - 1
    start = QuorumPool(1, 1, at.own, at.root, at.least, at.below)
    waiting, known = [(Slot(), start)], {Slot()}
    seen: set[Does] = set()
    while waiting:
        slot, pool = waiting.pop()
        for tag, group, seal in itertools.product(TAGS, at.groups, (False, True)):
            after, held = slot, copy.deepcopy(pool)
            for bit in group:
                packet = Packet(tag, 1 << bit, 1, 1 + bit, seal)
                after, does = PROTOCOL.step(after, packet, children, at.least, at.root)
                flags = Flag.QUORUM | (Flag.SEAL if seal else Flag(0))
                outcome, count = held.gradient(make_tag(1, tag), 0, bit, flags, 0, [1 + bit], 1)
                seen.add(does)
                expected = VERDICTS.get((at.root, does))
                assert outcome.verdict is expected if expected else outcome.verdict in WAITING
                if outcome.packet is not None:
                    assert (int(outcome.packet.lanes[0]), count) == (after.total, after.count)
            state = held.pool.read(0)
            bitmap = sum(1 << bit for bit in state.seen)
            tags = [0, *(make_tag(1, t) for t in TAGS)]
            assert (tags.index(state.tag), bitmap, int(state.lanes[0])) == (
                after.tag,
                after.bitmap,
                after.total,
            )
            if after not in known:
                known.add(after)
                waiting.append((after, held))
    assert max(slot.bitmap for slot in known) == (1 << senders) - 1
    late = {Does.LATE, Does.SLOT_REUSED} if at.root and at.least < senders else set()
    assert seen >= {Does.NOTHING, Does.SENT, Does.RESENT, *late}
