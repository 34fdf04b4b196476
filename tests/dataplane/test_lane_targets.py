# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Short contributions, and results that are cut (docs/reference/protocol.md, sections 2.1 and 3.8). The bench compares
each frame with the oracle's."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from netfold.protocol.constants import TARGET_NONE
from netfold.protocol.target import LaneTarget
from netfold.protocol.wire import Flag, Kind, Packet
from tests.dataplane.bench import Bench
from tests.dataplane.fixtures import ROOT_ADDRESS, SETTINGS, TREE, UPLINK, inner, passing, root, sent
from tests.dataplane.frames import JOB_PORT, LANES, Ip, Netfold, gradient
from tests.dataplane.node import Owner, TreeAt

SCATTER, GATHER, EMPTY = LaneTarget(2), LaneTarget(2, all_but=True), LaneTarget(TARGET_NONE)
OWNERS = tuple(Owner(rank, rank) for rank in (1, 2, 3))


@pytest.fixture
def target(target: str) -> str:
    if target in ("tofino", "remote"):
        pytest.skip(f"{target} knows no targets")
    return target


def whole(worker: int, target: LaneTarget, value: int = 1, **fields: int) -> bytes:
    flags = fields.pop("flags", 0) | Flag.DATA
    return sent(worker, value, lane_count=target.field, flags=flags, **fields)


def short(worker: int, target: LaneTarget, padding: int = 2, **fields: int) -> bytes:
    """A header alone, behind which a card pads the frame."""
    return sent(worker, [], lane_count=target.field, **fields) + bytes(padding)


def packets(frames: list[tuple[int, bytes]]) -> dict[int, Packet]:
    return {port: Packet.parse(frame[42:]) for port, frame in frames}


def lanes_of(frames: list[tuple[int, bytes]]) -> dict[int, set[int]]:
    return {port: set(packet.lane) for port, packet in packets(frames).items()}


def test_a_scatter_s_lanes_go_to_the_owner_alone(bench: Bench):
    bench.install(*SETTINGS, replace(root(3), owners=OWNERS))
    assert bench.send(2, short(2, SCATTER)) == []  # it claims the slot
    assert bench.send(1, whole(1, SCATTER, 3)) == []
    assert lanes_of(bench.send(3, whole(3, SCATTER, 4))) == {1: set(), 2: {7}, 3: set()}
    assert lanes_of(bench.send(2, short(2, SCATTER))) == {2: {7}}
    assert lanes_of(bench.send(1, whole(1, SCATTER, 3))) == {1: {7}}  # a result that is sent again is not cut
    bench.check_counters()


def test_a_short_contribution_completes_a_sum_with_its_lanes(bench: Bench):
    bench.install(*SETTINGS, replace(root(3), owners=OWNERS))
    bench.send(
        1, whole(1, GATHER, 3)
    )  # untargeted workers do not differ here: rank 2 alone is whole in a gather
    bench.send(3, short(3, GATHER))
    result = bench.send(2, short(2, GATHER))
    assert lanes_of(result) == {1: {3}, 2: set(), 3: {3}}
    assert all(packet.target == GATHER and packet.flags == Flag.DATA for packet in packets(result).values())
    bench.check_counters()


def test_a_short_claim_clears_the_lanes_of_the_chunk_before(bench: Bench):
    bench.install(*SETTINGS, replace(root(2), owners=OWNERS))
    for worker in (1, 2):
        bench.send(worker, sent(worker, 2**30))
    bench.send(1, short(1, SCATTER, round=1))
    assert lanes_of(bench.send(2, whole(2, SCATTER, 5, round=1))) == {1: set(), 2: {5}}
    bench.send(1, short(1, EMPTY, round=2))
    result = bench.send(2, short(2, EMPTY, round=2))
    assert [(p.lane, p.flags) for p in packets(result).values()] == [((), 0), ((), 0)]
    bench.check_counters()


@pytest.mark.parametrize("target_of", [SCATTER, GATHER], ids=["scatter", "gather"])
@pytest.mark.parametrize(
    "owners",
    [(), (Owner(2, 2),), (Owner(2, 1, alone=False),)],
    ids=["no entry", "alone", "with others"],
)
def test_results_from_above_are_cut_by_port(bench: Bench, target_of: LaneTarget, owners: tuple[Owner, ...]):
    bench.install(*SETTINGS, replace(inner(3), owners=owners))
    found = lanes_of(bench.send(UPLINK, whole(1, target_of, 9, kind=Kind.RESULT)))
    port, alone = (owners[0].port, owners[0].alone) if owners else (0, False)
    if target_of is SCATTER:
        wanted = {p: {9} if p == port else set() for p in (1, 2, 3)}
    else:
        wanted = {p: set() if p == port and alone else {9} for p in (1, 2, 3)}
    assert found == wanted
    cut = short(1, target_of, kind=Kind.RESULT, flags=int(Flag.DATA))
    assert lanes_of(bench.send(UPLINK, cut)) == {1: set(), 2: set(), 3: set()}
    bench.check_counters()


def test_an_inner_node_s_sum_is_short_if_all_below_are(bench: Bench):
    bench.install(*SETTINGS, inner(2, child=40))
    bench.send(1, short(1, GATHER))
    up = packets(bench.send(2, short(2, GATHER)))[UPLINK]
    assert (up.kind, up.child, up.lane, up.target) == (Kind.GRADIENT, 40, (), GATHER)
    bench.send(1, short(1, SCATTER, round=1))
    assert set(packets(bench.send(2, whole(2, SCATTER, 5, round=1)))[UPLINK].lane) == {5}
    assert set(packets(bench.send(1, short(1, SCATTER, round=1)))[UPLINK].lane) == {5}
    bench.check_counters()


def test_a_switch_on_the_way_changes_no_form(bench: Bench):
    bench.install(*SETTINGS, passing(1, 2))
    for frame in (whole(1, SCATTER), short(1, SCATTER, padding=0)):
        ((port, out),) = bench.send(1, frame)
        assert (port, out[42:]) == (UPLINK, frame[42:])
    bench.check_counters()


@pytest.mark.parametrize("kind", [Kind.GRADIENT, Kind.RESULT, Kind.READ, Kind.RESET])
@pytest.mark.parametrize("has_data", [False, True])
@pytest.mark.parametrize("has_lanes", [False, True])
@pytest.mark.parametrize("flags", [0, int(Flag.QUORUM)])
@pytest.mark.parametrize("lanes", [SCATTER.field, LANES, 0, 0x7FFF])
def test_forms(bench: Bench, kind: Kind, has_data: bool, has_lanes: bool, flags: int, lanes: int):
    """The oracle says which of them are malformed."""
    bench.install(*SETTINGS, replace(root(1), owners=OWNERS), inner_at_uplink())
    flags |= int(Flag.DATA) if has_data else 0
    values = [3] * LANES if has_lanes else []
    for port in (1, UPLINK):
        header = Netfold(kind, TREE, 3, 0, 0, 1, values, flags, lane_count=lanes)
        bench.send(port, gradient(header, Ip(src="10.0.0.1", dst=ROOT_ADDRESS), port=JOB_PORT))
        bench.send(port, gradient(header, Ip(src="10.0.0.1", dst=ROOT_ADDRESS), port=JOB_PORT) + bytes(128))
    bench.check_counters()


def inner_at_uplink() -> TreeAt:
    return replace(inner(2), tree=TREE + 1, udp_port=JOB_PORT + 1)


@pytest.mark.parametrize("seed", range(4))
def test_random_chunks_of_all_kinds(bench: Bench, seed: int):
    rng = random.Random(seed)
    at = replace(root(3) if seed % 2 else inner(3), owners=OWNERS[: rng.randrange(4)])
    bench.install(*SETTINGS, at)
    kinds = [None, SCATTER, GATHER, EMPTY, LaneTarget(1), LaneTarget(3, all_but=True)]
    for _ in range(300):
        worker, chunk = rng.randrange(1, 4), rng.randrange(10)
        target = kinds[chunk % len(kinds)]
        fields = {"round": chunk // 4, "slot": chunk % 4, "exponent": rng.randrange(256)}
        value = rng.choice([1, -1, 2**31 - 1, -(2**31), rng.randrange(1000)])
        if target is None:
            frame = sent(worker, value, **fields)
        elif rng.random() < 0.5:
            frame = whole(worker, target, value, **fields)
        else:
            frame = short(worker, target, rng.choice([0, 2]), **fields)
        bench.send(worker, frame)
        if rng.random() < 0.1 and not at.root:
            bench.send(UPLINK, whole(worker, target or SCATTER, 5, kind=Kind.RESULT))
    bench.check_counters()
