# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Between the single writes of the controller, in every order that it may write in: whatever a job's workers send while
entries of an old and a new epoch, or of an old and a new job, are partly there, no result is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

import pytest

from netfold.controller.switches.entries import Contents, Entity, add
from netfold.controller.switches.install import Op, apply, write_batches
from netfold.protocol.wire import Kind, Packet
from tests.dataplane.bench import Bench
from tests.dataplane.fixtures import SETTINGS, SLOTS, TREE, inner, root, sent
from tests.dataplane.frames import NETFOLD_AT
from tests.dataplane.node import TreeAt

OLD, NEW = 3, 4
ROUNDS = 6
CHANGES = {
    "a new epoch": (root(2).at(OLD), root(2).at(NEW)),
    "a new epoch of an inner node": (inner(2).at(OLD), inner(2).at(NEW)),
    "one worker less": (root(3).at(OLD), root(2).at(NEW)),
    "another job in the same slots": (root(2).at(OLD), root(2, tree=TREE + 1).at(NEW)),
    "other slots": (root(2).at(OLD), root(2, base=SLOTS // 2).at(NEW)),
    "the first job": (None, root(2).at(NEW)),
    "the end of a job": (root(2).at(OLD), None),
}


def value(epoch: int, child: int, round_: int, slot: int) -> int:
    """Returns a worker's contribution: no two sums of different sets are alike."""
    return epoch * 1_000_000 + 100 ** (child - 1) * (1 + (7 * round_ + slot) % 90)


def contents(at: TreeAt | None) -> Contents:
    held: Contents = {}
    for entity in () if at is None else at.entities():
        add(held, entity)
    return held


def single_writes(held: Contents, wanted: Contents, random: Random) -> Iterator[tuple[Op, Entity]]:
    """One entity after the other. A server may reorder within a step."""
    for step in write_batches(dict(held), wanted):
        shuffled = list(step.entities)
        random.shuffle(shuffled)
        for entity in shuffled:
            yield step.op, entity


def check(trees: Iterable[TreeAt], left: list[tuple[int, bytes]]) -> int:
    """Sums that leave are those of all children of their tree in their epoch; gives how many left."""
    of = {(at.tree, at.epoch): [c.number for c in at.children] for at in trees}
    for _, frame in left:
        packet = Packet.parse(frame[NETFOLD_AT:])
        children = of[packet.tree, packet.epoch]
        exact = sum(value(packet.epoch, c, packet.round, packet.slot) for c in children)
        assert set(packet.lane) == {exact}, packet
    return len(left)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("change", CHANGES)
def test_no_result_is_wrong_between_two_writes(bench: Bench, change: str, seed: int):
    random = Random(seed)
    before, after = CHANGES[change]
    device, held = bench.device, contents(before)
    device.insert(entity for setting in SETTINGS for entity in setting.entities())
    device.insert(held.values())
    trees = [at for at in (before, after) if at is not None]
    results = 0

    def traffic() -> None:
        nonlocal results
        for _ in range(40):
            at = random.choice(trees)
            child = random.choice(at.children)
            round_, slot = random.randrange(ROUNDS), random.randrange(SLOTS)
            fields = {"tree": at.tree, "epoch": at.epoch, "round": round_, "slot": slot}
            frame = sent(child.number, value(at.epoch, child.number, round_, slot), **fields)
            results += check(trees, bench.inject(child.port, frame))
            forged = sent(child.number, 5, **fields, kind=Kind.RESULT)
            assert not bench.inject(child.port, forged)

    traffic()
    for op, entity in single_writes(held, contents(after), random):
        if op is not Op.INSERT:
            device.delete([held[entity.key]])
        if op is not Op.DELETE:
            device.insert([entity])
        traffic()
    assert results > 0


def test_the_steps_end_at_what_is_wanted():
    for before, after in CHANGES.values():
        held, wanted = contents(before), contents(after)
        for step in write_batches(dict(held), wanted):
            apply(held, step)
        assert held == wanted
