# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""RoCE at a leaf: SENDs of a job's connections are added up, and each worker gets its predecessor's packets with
the sum in them; all else on UDP port 4791 is other traffic, or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from netfold.controller.features.roce.tables import ROCE_SIDE
from netfold.protocol.wire import LANE_MAX, Kind, Packet, Verdict
from netfold.traffic import scapy_roce
from tests.dataplane.bench import Bench
from tests.dataplane.conftest import Fresh
from tests.dataplane.fixtures import EPOCH, SERVER, TREE, UPLINK
from tests.dataplane.frames import CE, ECT0, Ip, Netfold, gradient
from tests.dataplane.node import Child, Pass, TreeAt
from tests.dataplane.roce_fixtures import (
    FIRST_PSN,
    PEERS,
    PORTS,
    SLOTS,
    at_inner,
    at_root,
    sent,
    settings,
    successor,
)
from tests.dataplane.roce_frames import (
    ACKNOWLEDGE,
    CNP,
    FIRST,
    LAST,
    LAST_IMMEDIATE,
    LAST_INVALIDATE,
    MIDDLE,
    ONLY,
    ONLY_IMMEDIATE,
    READ_REQUEST,
    ROCE_PORT,
    SUMMANDS,
    WRITE_ONLY,
    Rc,
    acknowledgment,
    roce,
)
from tests.dataplane.router_oracle import with_checksum

PROGRAMS = (64, 256)


@pytest.fixture(params=PROGRAMS)
def leaf(request: pytest.FixtureRequest, target: str, fresh: Fresh) -> Bench:
    return fresh(target, request.param)


def one(leaf: Bench, value: int = 1, **fields: int) -> Rc:
    return Rc(lanes=[value] * leaf.lanes, **fields)


def received(frame: bytes) -> Ether:
    """Parse a frame by scapy. Its ICRC is what scapy computes."""
    packet = Ether(frame)
    assert packet[UDP].dport == ROCE_PORT
    found = packet[BTH].icrc
    again = packet.copy()
    again[BTH].icrc = None
    assert Ether(bytes(again))[BTH].icrc == found
    return packet


def lanes_of(packet: Ether) -> list[int]:
    return list(scapy_roce.lanes_of(packet) or ())


@pytest.mark.parametrize("workers", [2, 4])
def test_a_message_is_added_up_packet_by_packet_on_every_connection(leaf: Bench, workers: int):
    leaf.install(*settings(at_root(workers), workers))
    opcodes = [FIRST, MIDDLE, MIDDLE, LAST, ONLY]
    for chunk, opcode in enumerate(opcodes):
        last = opcode in (LAST, ONLY)
        for worker in PORTS[:workers]:
            lanes = [worker * (lane - 30) + chunk for lane in range(leaf.lanes)]
            packet = Rc(
                opcode, lanes=lanes, ack_request=last, solicited=opcode == ONLY, source_port=0xC000 + worker
            )
            results = leaf.send(worker, sent(worker, chunk, packet, workers))
            assert len(results) == (workers if worker == PORTS[workers - 1] else 0)
        for port, frame in results:
            packet = received(frame)
            before = PORTS[PORTS.index(port) - 1] if port != 1 else PORTS[workers - 1]
            assert (packet[IP].src, packet[IP].dst) == (PEERS[before].address, PEERS[port].address)
            assert (packet[IP].ttl, packet[IP].tos, packet[UDP].chksum) == (64, ECT0, 0)
            bth = packet[BTH]
            assert (bth.opcode, bth.ackreq, bth.solicited) == (opcode, last, opcode == ONLY)
            assert (bth.dqpn, bth.psn) == (PEERS[port].receiving, (FIRST_PSN[before] + chunk) % (1 << 24))
            total = sum(PORTS[:workers])
            assert lanes_of(packet) == [total * (lane - 30) + workers * chunk for lane in range(leaf.lanes)]
    leaf.check_counters(TREE)


def test_an_inner_leaf_sends_the_sum_up_and_what_was_said_with_it(leaf: Bench):
    leaf.install(*settings(at_inner()))
    leaf.send(1, sent(1, 3, one(leaf, 5, opcode=MIDDLE)))
    ((port, frame),) = leaf.send(2, sent(2, 3, one(leaf, 7, opcode=LAST, ack_request=True)))
    up = Packet.parse(frame[42:])
    assert (port, up.kind, up.child, up.slot, set(up.lane)) == (UPLINK, Kind.GRADIENT, 40, 3, {12})
    assert frame[42 + 13] == 0x80 | 0x40 | LAST
    header = Netfold(Kind.RESULT, TREE, EPOCH, 0, 3, 40, [99] * leaf.lanes, reserved=frame[42 + 13])
    results = leaf.send(UPLINK, gradient(header))
    assert [port for port, _ in results] == [1, 2]
    for _, frame in results:
        packet = received(frame)
        assert (packet[BTH].opcode, packet[BTH].ackreq, set(lanes_of(packet))) == (LAST, 1, {99})
    leaf.check_counters(TREE)


def test_a_node_above_carries_what_was_said(leaf: Bench):
    """It sees packets of the protocol alone, from leaves and from workers of the protocol's own form."""
    at = TreeAt(TREE, EPOCH, SLOTS, root=True, children=(Child(1, 40), Child(2, 41)), down=(1, 2))
    leaf.install(*[s for s in settings(at) if not hasattr(s, "child")])
    for said, expected in ((0x80 | 0x40 | LAST, 0x80 | 0x40 | LAST), (0x7F, 0)):
        round_ = int(said == 0x7F)
        for child in (40, 41):
            header = Netfold(
                tree=TREE, epoch=EPOCH, round=round_, child=child, lanes=[1] * leaf.lanes, reserved=said
            )
            results = leaf.send(child - 39, gradient(header))
        assert {frame[42 + 13] for _, frame in results} == {expected}


def test_a_leaf_on_the_way_passes_contributions_on_in_the_protocol_s_form(leaf: Bench):
    ways = tuple(Pass(ROCE_SIDE | port, port, UPLINK) for port in (1, 2))
    answers = tuple(Pass(SERVER, port, successor(port, 2).port) for port in (1, 2))
    at = TreeAt(TREE, EPOCH, SLOTS, passes=ways, answers=answers, results_from=UPLINK, down=(1, 2))
    leaf.install(*settings(at))
    for worker in (1, 2):
        ((port, frame),) = leaf.send(worker, sent(worker, SLOTS + 1, one(leaf, worker, opcode=FIRST)))
        packet = Packet.parse(frame[42:])
        assert (port, packet.child, packet.round, packet.slot, packet.lane[0]) == (
            UPLINK,
            worker,
            1,
            1,
            worker,
        )
    header = Netfold(Kind.RESULT, TREE, EPOCH, 1, 1, 1, [3] * leaf.lanes, reserved=0x80 | FIRST)
    for port, expected in ((UPLINK, [1, 2]), (SERVER, [2])):  # to all; to the successor of the one that asked
        results = leaf.send(port, gradient(header))
        assert [port for port, _ in results] == expected
        assert {received(frame)[BTH].opcode for _, frame in results} == {FIRST}


def test_a_packet_sent_again_brings_the_sum_to_the_successor_again(leaf: Bench):
    leaf.install(*settings(at_root(4), 4))
    frames = {worker: sent(worker, 0, one(leaf, worker), 4) for worker in PORTS}
    assert leaf.verdict_of(1, frames[1]) is Verdict.ACCUMULATED
    assert leaf.verdict_of(1, frames[1]) is Verdict.DUPLICATE
    for worker in PORTS[1:]:
        results = leaf.send(worker, frames[worker])
    for worker in PORTS:
        ((port, frame),) = leaf.send(worker, frames[worker])
        assert port == successor(worker, 4).port
        assert frame == dict(results)[port]
    assert leaf.verdict_of(2, frames[2]) is Verdict.RESULT_RESENT


def test_congestion_marks_survive_the_sum(leaf: Bench):
    leaf.install(*settings(at_root()))
    leaf.send(1, sent(1, 0, one(leaf), ecn=CE))
    results = leaf.send(2, sent(2, 0, one(leaf)))
    assert {received(frame)[IP].tos for _, frame in results} == {CE}


def test_a_sum_that_does_not_fit_has_its_lanes_at_the_limit(leaf: Bench):
    leaf.install(*settings(at_root()))
    leaf.send(1, sent(1, 0, one(leaf, int(LANE_MAX))))
    results = leaf.send(2, sent(2, 0, one(leaf, 5)))
    assert {value for _, frame in results for value in lanes_of(received(frame))} == {LANE_MAX}


def test_a_connection_carries_2_to_the_23_chunks_and_what_is_behind_them_is_of_before(leaf: Bench):
    leaf.install(*settings(at_root()))
    for chunk, verdict in (
        (0, Verdict.ACCUMULATED),
        (-1, Verdict.STALE_EPOCH),
        (-(1 << 22), Verdict.STALE_EPOCH),
        ((1 << 23) - 1, Verdict.ACCUMULATED),
        (1 << 23, Verdict.STALE_EPOCH),
    ):
        assert leaf.verdict_of(1, sent(1, chunk, one(leaf))) is verdict


WRONG = {
    "icrc": {"icrc": 0},
    "a lane less": {"payload": b""},
    "nothing in it": {"lanes": [], "payload": b""},
    "padding": {"pad": 1},
    "version": {"version": 1},
    "udp length": {"length": 100},
    "last with immediate data": {"opcode": LAST_IMMEDIATE},
    "only with immediate data": {"opcode": ONLY_IMMEDIATE},
    "last that invalidates a key": {"opcode": LAST_INVALIDATE},
    "only that invalidates a key": {"opcode": LAST_INVALIDATE + 1},
}


def test_a_send_that_cannot_be_added_up_is_malformed(leaf: Bench):
    leaf.install(*settings(at_root()))
    right = Rc(lanes=[1] * (leaf.lanes - 1), payload=bytes(4))
    for what, wrong in WRONG.items():
        assert leaf.verdict_of(1, sent(1, 0, replace(right, **wrong))) is Verdict.MALFORMED, what
    assert leaf.verdict_of(1, sent(1, 0, right)) is Verdict.ACCUMULATED


def test_the_icrc_covers_what_does_not_change_on_the_way(leaf: Bench):
    """Type of service, time to live, both checksums and the byte of FECN and BECN may change."""
    leaf.install(*settings(at_root()))
    changes = {15: True, 18: False, 22: True, 34: False, 40: True, 42: False, 43: False, 44: False, 46: True}
    changes |= dict.fromkeys((50, 51, 54, 200, 42 + 12 + 4 * leaf.lanes - 1, -4, -1), False)
    for chunk, (place, free) in enumerate(changes.items()):
        frame = bytearray(sent(1, chunk, one(leaf, opcode=SUMMANDS[chunk % 4])))
        frame[place] ^= 0x01 if place == 42 else 0x80  # one SEND into another
        frame = bytearray(with_checksum(bytes(frame)))
        assert leaf.verdict_of(1, bytes(frame)) is (Verdict.ACCUMULATED if free else Verdict.MALFORMED), place
    broken = bytearray(sent(1, 100, one(leaf)))
    broken[24] ^= 1
    assert leaf.verdict_of(1, bytes(broken)) is Verdict.MALFORMED


def test_acknowledgments_notifications_and_other_connections_pass_untouched(leaf: Bench):
    leaf.install(*settings(at_root()))
    back = Ip(src="10.0.0.2", dst="10.0.0.1")  # from worker 1's successor to the QP that it sends with
    own, foreign = PEERS[1].sending, 0x999
    frames = [
        acknowledgment(own, 7, back),
        acknowledgment(own, 7, back, syndrome=0x60),
        roce(Rc(CNP, own, payload=bytes(16), congestion=0x40), back),
        roce(one(leaf, qpn=foreign), back),
        roce(one(leaf, qpn=foreign, icrc=1), back),
        roce(Rc(READ_REQUEST, foreign, payload=bytes(16)), back),
    ]
    for frame in frames:
        ((port, out),) = leaf.send(2, frame)
        assert (port, out[22], out[26:]) == (1, frame[22] - 1, frame[26:])
    onwards = Ip(src="10.0.0.1", dst="10.0.0.2")
    for opcode in (
        WRITE_ONLY,
        READ_REQUEST,
        ACKNOWLEDGE,
        CNP,
    ):  # also on a connection whose SENDs are added up
        frame = roce(Rc(opcode, PEERS[2].receiving, payload=bytes(16)), onwards)
        assert [port for port, _ in leaf.send(1, frame)] == [2]
    for size in range(20):
        frame = roce(Rc(length=8 + size), onwards)[: 42 + size]
        leaf.send(3, frame)
    leaf.check_counters()


def test_a_worker_s_qps_hear_their_peers_alone(leaf: Bench):
    leaf.install(*settings(at_root()))
    receiving, sending = PEERS[2].receiving, PEERS[2].sending
    as_predecessor = Ip(src="10.0.0.1", dst="10.0.0.2")
    as_successor = as_predecessor  # of two workers each is both of the other
    for port in (3, UPLINK):
        for frame in (
            roce(one(leaf, qpn=receiving), as_predecessor),
            roce(Rc(WRITE_ONLY, receiving, payload=bytes(64)), as_predecessor),
            acknowledgment(receiving, 0, as_predecessor),
            acknowledgment(sending, 0, as_successor),
        ):
            assert leaf.verdict_of(port, frame) is Verdict.UNADMITTED
    assert (
        leaf.verdict_of(1, acknowledgment(sending, 0, Ip(src="10.0.0.3", dst="10.0.0.2")))
        is Verdict.UNADMITTED
    )
    assert [port for port, _ in leaf.send(1, acknowledgment(sending, 0, as_successor))] == [2]


def test_what_does_not_show_its_qp_does_not_reach_a_worker(leaf: Bench):
    leaf.install(*settings(at_root()))
    whole = one(leaf, qpn=PEERS[2].receiving)
    for fields in (
        {"options": bytes(4)},
        {"flags_and_offset": 0x2000},
    ):
        frame = roce(whole, Ip(src="10.0.0.1", dst="10.0.0.2", **fields))
        assert leaf.verdict_of(1, frame) is Verdict.MALFORMED
        elsewhere = roce(whole, Ip(src="10.0.0.1", dst="10.1.0.1", **fields))
        assert [port for port, _ in leaf.send(1, elsewhere)] == [UPLINK]
    assert leaf.verdict_of(1, roce(whole, Ip(src="10.0.0.1", dst="10.0.0.2"))[:100]) is Verdict.MALFORMED
    short = roce(Rc(length=12), Ip(src="10.0.0.1", dst="10.0.0.2"))
    assert leaf.verdict_of(1, short) is Verdict.MALFORMED


def test_no_socket_contributes_for_a_roce_worker(leaf: Bench):
    leaf.install(*settings(at_root()))
    header = Netfold(tree=TREE, epoch=EPOCH, child=1, lanes=[1] * leaf.lanes, reserved=0x80 | ONLY)
    assert leaf.verdict_of(1, gradient(header)) is Verdict.UNADMITTED


def test_a_result_that_says_nothing_of_roce_stays_one(leaf: Bench):
    leaf.install(*settings(at_inner()))
    for said in (0, ONLY, 0x80 | LAST_IMMEDIATE, 0x80 | ACKNOWLEDGE, 0x80 | 0x1F):
        header = Netfold(Kind.RESULT, TREE, EPOCH, child=1, lanes=[1] * leaf.lanes, reserved=said)
        results = leaf.send(UPLINK, gradient(header))
        assert [Packet.parse(frame[42:]).kind for _, frame in results] == [Kind.RESULT] * 2


def test_workers_of_both_forms_share_a_tree(leaf: Bench):
    at = replace(at_root(3), children=(*at_root(2).children, Child(3, 3)))
    leaf.install(*settings(at))
    header = Netfold(tree=TREE, epoch=EPOCH, child=3, lanes=[4] * leaf.lanes)
    leaf.send(3, gradient(header))
    leaf.send(1, sent(1, 0, one(leaf, 5)))
    first, second, third = leaf.send(2, sent(2, 0, one(leaf, 6)))
    assert set(lanes_of(received(first[1]))) == set(lanes_of(received(second[1]))) == {15}
    assert set(Packet.parse(third[1][42:]).lane) == {15}
