# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers with windows that differ and change never claim a slot that is still needed, nor wait for each other for
good (docs/protocol.md, section 5.1)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from netfold.traffic.membership.assignment import Assignment, TreePart
from netfold.traffic.packets.wire import packet
from netfold.traffic.worker.congestion import FixedWindow
from netfold.traffic.worker.flow import Flow, Pacer
from tests.model.network import Violation
from tests.model.sender import Rules, Sender, check_progress, explore
from tests.traffic.test_flow import LANES, Numbers, Outbox, feed, result

SMALL = [Rules(2, 4, 6), Rules(2, 8, 6), Rules(3, 4, 4), Rules(1, 8, 9)]
LARGE = [Rules(2, 8, 8), Rules(3, 4, 5)]


def prove(rules: Rules, record_property: Callable[..., None]) -> None:
    graph = explore(rules)
    assert check_progress(rules, graph) == (rules.slots // 2) ** rules.workers
    record_property("states", len(graph))
    record_property("steps", sum(map(len, graph.values())))


@pytest.mark.parametrize("rules", SMALL, ids=str)
def test_any_windows_finish_and_claim_no_slot_too_early(rules: Rules, record_property: Callable[..., None]):
    prove(rules, record_property)


@pytest.mark.long
@pytest.mark.parametrize("rules", LARGE, ids=str)
def test_any_windows_finish_at_larger_bounds(rules: Rules, record_property: Callable[..., None]):
    prove(rules, record_property)


@pytest.mark.parametrize("rules", SMALL[:3], ids=str)
def test_without_the_rule_for_lower_chunks_workers_wait_for_each_other(rules: Rules):
    rules = dataclasses.replace(rules, fill_holes=False)
    with pytest.raises(Violation, match="progress"):
        check_progress(rules, explore(rules))


class NoChannels(Rules):
    """Rule 1 left out: whatever is not sent may go."""

    def ready(self, sender):  # type: ignore[no-untyped-def]
        return next((chunk for chunk in range(self.chunks) if not sender.sent >> chunk & 1), None)


def test_without_channels_a_slot_is_claimed_too_early():
    with pytest.raises(Violation, match="window"):
        explore(NoChannels(2, 4, 6))


@pytest.mark.parametrize("slots", [2, 4, 8, 32])
@pytest.mark.parametrize("seed", range(15))
def test_the_rules_are_the_code(slots: int, seed: int):
    """A worker's flow under a window that changes at every turn sends just the chunks that the rules allow."""
    random = Random(seed)
    rules = Rules(1, slots, 4 * slots)
    control = FixedWindow(1)
    outbox = Outbox()
    part = TreePart(3, 1.0, slots, slots // 2, 0, "10.0.0.1")
    flow = Flow(Assignment("t", 1, 0xF000, LANES, 0, 1, (part,)), part, outbox, control, Pacer(0, 100, 0.0))
    flow.start(Numbers(0, rules.chunks))
    sender, turns = Sender(0, 0, 0), 0
    while not flow.done:
        control.window = random.randint(1, slots // 2)
        outbox.packets.clear()
        flow.pump(float(turns))
        allowed = []
        while (chunk := rules.ready(sender)) is not None and rules.need(sender, chunk) <= control.window:
            sender = sender._replace(sent=sender.sent | 1 << chunk)
            allowed.append(chunk)
        assert [_chunk(payload, slots) for payload in outbox.packets] == allowed
        for chunk in range(rules.chunks):
            under_way = (sender.sent & ~sender.received) >> chunk & 1
            if under_way and random.random() < 0.4:
                feed(flow, result(flow, chunk, slots), now=float(turns))
                sender = sender._replace(received=sender.received | 1 << chunk)
        turns += 1
        assert turns < 1000
    assert sender.received == (1 << rules.chunks) - 1


def _chunk(payload: bytes, slots: int) -> int:
    record = np.frombuffer(payload, packet(LANES))[0]
    return int(record["tag"] & 0xFFFFF) * slots + int(record["slot"])
