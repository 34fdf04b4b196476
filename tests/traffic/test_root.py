# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The parameter server's C code, packet by packet, against the slot machine in numpy; and workers that train by it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from ipaddress import IPv4Address

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.protocol.target import LaneTarget
from netfold.protocol.wire import Flag, Kind, Packet, Verdict, make_tag
from netfold.traffic.engine.native import library
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.membership.base import StaticMembership
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker
from tests.quorum_oracle import QuorumPool
from tests.slot_oracle import SlotPool
from tests.traffic.serving import serving

LANES, PORT, EPOCH = 5, 61671, 3
HOSTS = [f"10.0.0.{i}" for i in range(1, 5)]
SOURCES = ((HOSTS[0],), (HOSTS[1], HOSTS[2]), (HOSTS[3],))
MANY = tuple(range(100, 170))  # more than a word of the bitmap
TREES = {7: (4, (10, 20, 30), SOURCES), 8: (2, MANY, ())}


@dataclass(frozen=True)
class Sent:
    packet: Packet
    host: str
    port: int
    marked: bool
    cut: int


lane = st.tuples(*[st.sampled_from([-(2**31), -(2**31) + 1, -1, 0, 1, 2**30, 2**31 - 1])] * LANES)
plain = st.builds(
    Packet,
    kind=st.sampled_from([Kind.GRADIENT] * 9 + [Kind.RESULT]),
    tree=st.sampled_from([7, 7, 7, 8, 9]),
    epoch=st.sampled_from([EPOCH] * 9 + [2]),
    round=st.integers(0, 2),
    slot=st.sampled_from([0, 0, 1, 1, 3, 4]),
    child=st.sampled_from([10, 20, 30, 10, 20, 30, 100, 11]),
    lane=lane,
    flags=st.sampled_from([0, 0x40, 0x80, 0xC0, 0x04]),
    exponent=st.integers(0, 255),
)


def in_form(packet: Packet, form: str) -> Packet:
    """A packet to all, or a whole or short one for one worker; one in 20 of these is malformed."""
    if form == "to all":
        return packet
    target = LaneTarget(3, all_but=bool(packet.exponent & 1))
    is_whole = form == "whole"
    has_data = is_whole != (packet.exponent % 20 == 0)
    flags = packet.flags & ~Flag.DATA | (Flag.DATA if has_data else 0)
    return replace(packet, target=target, flags=flags, lane=packet.lane if is_whole else ())


packets = st.builds(in_form, plain, st.sampled_from(["to all", "to all", "whole", "short"]))
sent = st.builds(
    Sent,
    packets,
    st.sampled_from(["", "", "", *HOSTS]),
    st.sampled_from([PORT] * 9 + [PORT + 1]),
    st.booleans(),
    st.sampled_from([0] * 19 + [1]),
)


class Root:
    """struct nf_root without a socket. `quorum`: by tree how many children are its own, and how many are enough."""

    def __init__(self, trees=TREES, quorum: dict[int, tuple[int, int]] | None = None) -> None:
        self._code = library()
        self.verdicts = np.zeros(32, np.int64)
        self._root = self._code.nf_root_create(-1, -1, LANES, PORT, None, 0, self.verdicts.ctypes.data)
        address = ctypes.c_void_p
        self._code.nf_root_packet.argtypes = [
            address,
            address,
            ctypes.c_int64,
            ctypes.c_int,
            address,
            address,
        ]
        self._code.nf_root_start_epoch(self._root, EPOCH)
        for tree, (slots, children, sources) in trees.items():
            numbers = np.array(children, np.uint16)
            known = [sorted(int(IPv4Address(a)) for a in own) for own in sources] or [[] for _ in children]
            flat = np.array([a for own in known for a in own], np.uint32)
            starts = np.cumsum([0, *map(len, known)]).astype(np.int64)
            pointers = (numbers.ctypes.data, len(children), flat.ctypes.data, starts.ctypes.data)
            assert self._code.nf_root_add_tree(self._root, tree, slots, *pointers) == 0
        for tree, (own, least) in (quorum or {}).items():
            assert self._code.nf_root_set_quorum(self._root, tree, own, least) == 0

    def take(self, one: Sent) -> tuple[int, bytes]:
        data = one.packet.pack()
        raw = np.frombuffer(data, np.uint8).copy()
        name = Address(one.host, one.port).name()
        result = np.zeros(16 + 4 * LANES, np.uint8)
        pointers = (name.ctypes.data, result.ctypes.data)
        verdict = self._code.nf_root_packet(
            self._root, raw.ctypes.data, len(raw) - one.cut, one.marked, *pointers
        )
        return verdict, result.tobytes()

    def close(self) -> None:
        self._code.nf_root_destroy(self._root)


def expected(pools: dict[int, SlotPool], one: Sent) -> tuple[int, Packet | None]:
    packet = one.packet
    is_form_right = not packet.target or bool(packet.flags & Flag.DATA) == bool(packet.lane)
    if one.cut or packet.kind is not Kind.GRADIENT or not is_form_right:
        return Verdict.MALFORMED, None
    if packet.tree not in TREES or packet.child not in TREES[packet.tree][1] or one.port != PORT:
        return Verdict.UNADMITTED, None
    _, children, sources = TREES[packet.tree]
    bit = children.index(packet.child)
    if sources and one.host not in sources[bit]:
        return Verdict.UNADMITTED, None
    if packet.epoch != EPOCH:
        return Verdict.STALE_EPOCH, None
    flags = packet.flags | (0x40 if one.marked else 0)
    tag = make_tag(packet.epoch, packet.round)
    lanes = np.array(packet.lane, np.int32) if packet.lane else None
    outcome = pools[packet.tree].gradient(tag, packet.slot, bit, flags, packet.exponent, lanes)
    if outcome.packet is None:
        return outcome.verdict, None
    done = outcome.packet
    lane = () if packet.target and not done.flags & Flag.DATA else tuple(done.lanes.tolist())
    return outcome.verdict, replace(
        packet, kind=Kind.RESULT, lane=lane, flags=done.flags, exponent=done.exponent
    )


@settings(max_examples=100)
@given(st.lists(sent, max_size=60))
def test_every_packet_has_the_oracles_verdict_and_result(traffic):
    root = Root()
    pools = {
        tree: SlotPool(slots, LANES, len(children), True, targets=True)
        for tree, (slots, children, _) in TREES.items()
    }
    try:
        for one in traffic:
            if not one.host:  # the child's own
                own = dict(zip(TREES[7][1], SOURCES, strict=True)).get(one.packet.child, (HOSTS[0],))
                one = replace(one, host=own[-1])  # noqa: PLW2901
            verdict, answer = expected(pools, one)
            got, result = root.take(one)
            assert got == verdict
            if answer is not None:
                assert result[: len(answer.pack())] == answer.pack()
    finally:
        root.close()


@settings(max_examples=5)
@given(st.permutations(MANY), st.lists(st.integers(-(2**31), 2**31 - 1), min_size=70, max_size=70))
def test_a_sum_of_seventy_children_is_complete_with_the_last_one(order, values):
    root, pool = Root(), SlotPool(2, LANES, len(MANY), True)
    try:
        for child, value in zip(order, values, strict=True):
            packet = Packet(Kind.GRADIENT, 8, EPOCH, 0, 1, child, (value,) * LANES)
            verdict, answer = expected({8: pool}, Sent(packet, HOSTS[0], PORT, False, 0))
            assert root.take(Sent(packet, HOSTS[0], PORT, False, 0))[0] == verdict
        assert verdict == Verdict.RESULT_SENT
        again = Sent(packet, HOSTS[0], PORT, False, 0)
        got, result = root.take(again)
        assert (got, result) == (Verdict.RESULT_RESENT, answer.pack())
    finally:
        root.close()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_workers_all_reduce_through_it_and_each_receives_every_result(threads: int):
    hosts, server, workers = [f"127.56.0.{i + 1}" for i in range(3)], "127.56.0.9", 3

    def assignment(rank: int, children: tuple[int, ...] = ()) -> Assignment:
        tree = TreeAssignment(1, 1.0, 64, 32, rank, server, children)
        return Assignment("job", 1, PORT, 64, rank, workers, (tree,))

    root = ParameterServer(
        assignment(0, (0, 1, 2)), server, [Address(host, PORT) for host in hosts], None, threads
    )
    arrays = [
        np.random.default_rng(rank).standard_normal(50_000).astype(np.float32) for rank in range(workers)
    ]
    exact = np.sum(arrays, axis=0, dtype=np.float64)
    team = [Worker(StaticMembership(assignment(rank)), host) for rank, host in enumerate(hosts)]
    with serving(root):
        try:
            for handle in [worker.submit(array) for worker, array in zip(team, arrays, strict=True)]:
                handle.wait(60)
        finally:
            for worker in team:
                worker.close()
    assert arrays[0].tobytes() == arrays[1].tobytes() == arrays[2].tobytes()
    np.testing.assert_allclose(arrays[0], exact, atol=1e-5)
    assert set(root.counts()) <= {"accumulated", "result_sent", "result_resent", "duplicate", "stale_chunk"}


SLOTS, TREE = 4, 7
OWN, BELOW = (10, 20), (30, 40, 50)
"""The root's own children, of which 20 is an inner node, and the senders under that."""


@st.composite
def quorum_packets(draw) -> Packet:
    """Make a packet of the round a slot is in or near it: a worker's own, an inner node's sum, or a late one."""
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
