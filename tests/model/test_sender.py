# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers with windows that differ and change never claim a slot that is still needed, nor wait for each other for
good (docs/reference/protocol.md, section 5.1)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from netfold.traffic.congestion import Congestion
from tests.model.checker import bounds
from tests.model.network import Violation
from tests.model.sender import Rules, Sender, check_progress, explore
from tests.traffic.cores import LANES, Core, assignment, place_of

SMALL = [Rules(2, 4, 6), Rules(2, 8, 6), Rules(3, 4, 4), Rules(1, 8, 9)]
LARGE = [Rules(2, 8, 8), Rules(3, 4, 5)]


@pytest.mark.parametrize("rules", bounds(SMALL, LARGE), ids=str)
def test_any_windows_finish_and_claim_no_slot_too_early(rules: Rules, record_property: Callable[..., None]):
    graph = explore(rules)
    assert check_progress(rules, graph) == (rules.slots // 2) ** rules.workers
    record_property("states", len(graph))
    record_property("steps", sum(map(len, graph.values())))


@pytest.mark.parametrize("rules", bounds(SMALL[:3]), ids=str)
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
    """A worker whose window changes with losses and marks sends just the chunks that the rules allow. The rules are
    those of a stream: the main one's channels are all but one in eight, or the only one."""
    random = Random(seed)
    channels = slots // 2
    rules = Rules(1, 2 * max(1, channels - max(1, channels // 8)), 4 * slots)
    alone = slots == 2  # one stream: the resume chunk is its first
    core = Core(Congestion.ATP)
    core.assign(assignment(slots=slots))
    core.submit(np.zeros((rules.chunks - 1 - alone) * LANES, np.int32))  # behind an opening chunk
    sender, now, packets = Sender(0, 0, 0), 0.0, {}
    core.process(now)
    if not alone:
        ((_, resume),) = core.send(now)
        assert place_of(resume, slots) == -1
        core.receive(b"\x11" + resume[1:], now)
    while sender.received != (1 << rules.chunks) - 1:
        now += 1e-7  # not long enough for anything to be sent again
        assert now < 4e-4
        core.process(now)
        window = core.report().window
        begun = 1 if alone and not sender.received else rules.chunks
        allowed = []
        while (
            (chunk := rules.ready(sender)) is not None
            and chunk < begun
            and rules.need(sender, chunk) <= window
        ):
            sender = sender._replace(sent=sender.sent | 1 << chunk)
            allowed.append(chunk)
        went = {place_of(payload, slots): payload for _, payload in core.send(now)}
        assert list(went) == allowed
        packets |= went
        for chunk in range(rules.chunks):
            under_way = (sender.sent & ~sender.received) >> chunk & 1
            if under_way and random.random() < 0.4:  # of one worker, the sum is what it sent
                core.receive(bytes([0x11]) + packets[chunk][1:], now, marked=random.random() < 0.2)
                sender = sender._replace(received=sender.received | 1 << chunk)
