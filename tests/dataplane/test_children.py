# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes of more than 32 children, with programs of wider bitmaps: all that a slot does, frame by frame beside the
oracle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest

from netfold.controller.switches.tables import CPU_PORT, MANAGEMENT_PORT
from netfold.p4src.tools.p4build import PROFILES
from netfold.protocol.wire import Flag, Kind, Packet, Verdict
from tests.dataplane.bench import Bench, Tally
from tests.dataplane.conftest import Devices, Fresh
from tests.dataplane.fixtures import EPOCH, SETTINGS, SLOTS, TREE, UPLINK
from tests.dataplane.frames import ECT0, Ip, Netfold, gradient
from tests.dataplane.node import MANAGED, Child, TreeAt
from tests.dataplane.test_isolation import SHAPES, besiege
from tests.dataplane.test_management import manage
from tests.dataplane.test_stateful import new_shape, new_world, window_and_chunks

LANES = 64
WORD = 32
WIDE = sorted(profile.children for profile in PROFILES if profile.children > WORD)
DOWN = (1, 2, 3)


@dataclass(frozen=True)
class Size:
    """A node of `children`, by a program whose bitmap has `bits`."""

    bits: int
    children: int

    def __str__(self) -> str:
        return f"{self.children} of {self.bits}"


SIZES = [Size(WIDE[0], WORD + 1), *(Size(bits, bits) for bits in WIDE)]


@pytest.fixture(params=SIZES, ids=str)
def size(request: pytest.FixtureRequest) -> Size:
    return request.param


@pytest.fixture
def bench(target: str, fresh: Fresh, size: Size) -> Bench:
    return fresh(target, LANES, children=size.bits)


def children(count: int) -> tuple[Child, ...]:
    return tuple(Child(DOWN[number % len(DOWN)], 1000 + number) for number in range(count))


def node(size: Size, *, is_root: bool = True) -> TreeAt:
    if is_root:
        return TreeAt(TREE, EPOCH, SLOTS, root=True, children=children(size.children), down=DOWN)
    up = (UPLINK, 40)
    return TreeAt(TREE, EPOCH, SLOTS, children=children(size.children), up=up, results_from=UPLINK, down=DOWN)


def frame(child: Child, value: int | list[int] = 1, **fields: int) -> bytes:
    """A gradient; all lanes `value`, or those."""
    lanes = [value] * LANES if isinstance(value, int) else value
    header = Netfold(**{"tree": TREE, "epoch": EPOCH, "child": child.number, "lanes": lanes, **fields})
    return gradient(header, Ip(src=f"10.0.0.{child.port}", ecn=ECT0))


def packet(data: bytes) -> Packet:
    return Packet.parse(data[42:])


def at_edges(at: TreeAt) -> list[Child]:
    """Children whose bits are the first or last of a word."""
    places = {0, len(at.children) - 1, *(p for w in range(32, 257, 32) for p in (w - 1, w))}
    return [at.children[place] for place in sorted(places) if place < len(at.children)]


@pytest.mark.parametrize("is_root", [True, False], ids=["root", "inner"])
def test_any_child_may_be_the_last_and_none_counts_twice(bench: Bench, size: Size, is_root: bool):
    at = node(size, is_root=is_root)
    bench.install(*SETTINGS, at)
    for round_, last in enumerate(at_edges(at)):
        others = [child for child in at.children if child != last]
        Random(round_).shuffle(others)
        for child in others:
            assert bench.send(child.port, frame(child, child.number, round=round_)) == []
        for child in (others[0], others[-1]):
            assert bench.verdict_of(child.port, frame(child, 7, round=round_)) is Verdict.DUPLICATE
        sums = bench.send(last.port, frame(last, last.number, round=round_))
        assert [port for port, _ in sums] == (list(DOWN) if is_root else [UPLINK])
        assert set(packet(sums[0][1]).lane) == {sum(child.number for child in at.children)}
        resent = Verdict.RESULT_RESENT if is_root else Verdict.SUM_RESENT
        assert bench.verdict_of(last.port, frame(last, -1, round=round_)) is resent
    bench.check_counters()


def test_a_read_shows_each_bit_and_a_reset_frees_the_slot(bench: Bench, size: Size):
    at = node(size)
    bench.install(*SETTINGS, at)
    expected = 0
    for child in at_edges(at):
        bench.send(child.port, frame(child, 1, round=9))
        expected |= 1 << at.children.index(child)
        bitmap, _ = manage(bench, Kind.READ, 0)
        assert bitmap == expected
    assert manage(bench, Kind.RESET, 0)[0] == expected
    first = at.children[-1]
    assert bench.verdict_of(first.port, frame(first, 1, round=0)) is Verdict.ACCUMULATED
    assert manage(bench, Kind.READ, 0)[0] == 1 << at.children.index(first)
    bench.check_counters()


def test_floats_are_added_once_a_child(bench: Bench, size: Size):
    at = node(size)
    bench.install(*SETTINGS, at)
    one = np.full(LANES, 0.5, np.float32).view(np.int32).tolist()
    sums = []
    for child in at.children:
        sums = bench.send(child.port, frame(child, one, flags=int(Flag.FLOATS)))
        if child in at_edges(at)[:-1]:
            assert bench.send(child.port, frame(child, one, flags=int(Flag.FLOATS))) == []
    total = np.array(packet(sums[0][1]).lane, np.int32).view(np.float32)
    assert set(total.tolist()) == {0.5 * size.children}


def test_a_quorum_seals_without_the_late_and_answers_each(bench: Bench, size: Size):
    at = replace(node(size), quorum=size.children // 4)
    bench.install(*SETTINGS, at)
    quorum = {"flags": int(Flag.QUORUM), "reserved": 1}
    in_time, late = at.children[-(size.children // 4) :], at.children[: -(size.children // 4)]
    for child in in_time[:-1]:
        assert bench.send(child.port, frame(child, 1, **quorum)) == []
    last = in_time[-1]
    sums = bench.send(last.port, frame(last, 1, **{**quorum, "flags": int(Flag.QUORUM | Flag.SEAL)}))
    assert {(packet(data).lane[0], packet(data).count) for _, data in sums} == {(len(in_time), len(in_time))}
    for child in (late[0], late[-1]):
        assert bench.verdict_of(child.port, frame(child, 1, **quorum)) is Verdict.LATE
    assert bench.verdict_of(last.port, frame(last, 1, **quorum)) is Verdict.RESULT_RESENT
    bench.check_counters()


def test_a_root_with_a_quorum_has_bits_for_senders_below_its_children(bench: Bench, size: Size):
    """The bits after those of its children."""
    own, below = children(size.children)[:2], children(size.children)[2:]
    at = replace(node(size), children=own, below=below, quorum=3)
    bench.install(*SETTINGS, at)
    seal = {"flags": int(Flag.QUORUM | Flag.SEAL), "reserved": 1}
    assert bench.verdict_of(own[0].port, frame(own[0], 1, **seal)) is Verdict.ACCUMULATED
    assert bench.verdict_of(below[-1].port, frame(below[-1], 2, **seal)) is Verdict.ACCUMULATED
    sums = bench.send(below[-2].port, frame(below[-2], 4, **seal))
    assert {(packet(data).lane[0], packet(data).count) for _, data in sums} == {(7, 3)}
    assert bench.verdict_of(own[1].port, frame(own[1], 1, **seal)) is Verdict.LATE


def send_any_packets(bench: Bench, at: TreeAt, count: int, *, floats: bool = True) -> None:
    random = Random(count)
    quorum = at.quorum is not None
    senders = at.children + at.below
    for step in range(count):
        child, slot = random.choice(senders), random.randrange(2)
        round_ = max(0, step // len(senders) - random.randrange(2))
        flags = Flag.QUORUM | (Flag.SEAL if random.random() < 0.02 else 0) if quorum else 0
        flags |= Flag.FLOATS if floats and round_ % 2 else 0
        value = random.choice([1, -1, 2**31 - 1, -(2**31), random.randrange(2**31)])
        exponent = random.randrange(256)
        fields = {"slot": slot, "round": round_, "flags": int(flags), "reserved": int(quorum)}
        bench.send(child.port, frame(child, [value] * bench.lanes, exponent=exponent, **fields))
        if random.random() < 0.05:
            kind = random.choice([Kind.READ, Kind.READ, Kind.RESET])
            header = Netfold(kind, MANAGED, 0, slot=slot, lanes=[0] * bench.lanes)
            bench.send(CPU_PORT, b"\0\0" + gradient(header, port=MANAGEMENT_PORT))
    bench.check_counters()


@pytest.mark.parametrize("quorum", [False, True], ids=["all", "quorum"])
@pytest.mark.parametrize("is_root", [True, False], ids=["root", "inner"])
def test_any_packets_in_any_order(bench: Bench, size: Size, is_root: bool, quorum: bool):
    """Losses, duplicates, stale chunks, seals, floats, READ and RESET: what the fault scenarios of jobs give a node. Of
    a root with a quorum the later half sends to inner nodes."""
    at = node(size, is_root=is_root)
    if quorum:
        at = replace(at, quorum=size.children // 4 if is_root else 0)
    if quorum and is_root:
        own = size.children // 2
        at = replace(at, children=at.children[:own], below=at.children[own:])
    bench.install(*SETTINGS, at)
    send_any_packets(bench, at, 4 * size.children)


SLOW = [pytest.param(size, marks=pytest.mark.long) for size in SIZES[1:]]
"""Some of the sizes take as many events as they have children."""


@pytest.mark.parametrize("size", [SIZES[0], *SLOW], ids=str)
def test_networks_with_a_wide_node_lose_nothing(target: str, size: Size, devices: Devices, tally: Tally):
    """Jobs end, their slots are reset or reused, epochs are raised, and frames are forged meanwhile."""
    for seed in range(2 if target == "softswitch" else 1):
        random = Random(seed)
        world = new_world(random, _fresh_benches(devices, target, size.bits, tally, 4), size.children)
        for step in range(6):
            for _ in range(4 * size.children):
                world.happen(random, loss=0.05, repeats=0.1)
                if random.random() < 0.05:
                    world.forge(random)
                    world.look(random)
            if step % 3 == 1:
                world.raise_epoch(random.choice(world.jobs), random)
            if step % 3 == 2:
                old = random.choice(world.jobs)
                shape = new_shape(random, world.fabric, 10 + step, old.shape.base, size.children)
                world.replace(old, shape, *window_and_chunks(random, shape), reset=step == 2)
        world.finish()
        world.check_counters()


@pytest.mark.parametrize("size", [SIZES[0], *SLOW], ids=str)
@pytest.mark.parametrize("switches", SHAPES, ids=SHAPES.values())
def test_an_attacker_of_any_child_number_changes_nothing_of_others(
    target: str, switches: int, size: Size, devices: Devices, tally: Tally
):
    frames = {"softswitch": 1000}.get(target, 100)
    benches = _fresh_benches(devices, target, size.bits, tally, switches)
    besiege(benches, LANES, size.children, frames, size.children)


def _fresh_benches(devices: Devices, target: str, bits: int, tally: Tally, count: int) -> list[Bench]:
    found = []
    for number in range(count):
        device = devices(target, LANES, number, bits)
        device.clear()
        found.append(Bench(device, LANES, tally, target))
    return found
