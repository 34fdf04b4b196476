# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from netfold.protocol.wire import Flag, Kind, Packet, Verdict
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.packets import transport
from netfold.traffic.packets.transport import TransportError
from netfold.traffic.server.server import ParameterServer
from tests.traffic.serving import serving

SERVER, PORT = "127.55.0.9", 61660
ONE, TWO, STRANGER = "127.55.0.1", "127.55.0.2", "127.55.0.3"
PART = TreeAssignment(7, 1.0, 4, 2, 0, SERVER, (10, 20), ((ONE,), (TWO, "127.55.0.4")))
IP_RECVTOS = 13  # not in Python's socket module
OPTIONS = {"threads": 1}
ASSIGNMENT = Assignment("t", 3, PORT, 4, 0, 2, (PART,))


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"], autouse=True)
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPTIONS, "threads", request.param)


@contextmanager
def running(part: TreeAssignment = PART) -> Iterator[tuple[ParameterServer, socket.socket, socket.socket]]:
    with ExitStack() as stack:
        socks = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2)]
        server = stack.enter_context(
            serving(ParameterServer(replace(ASSIGNMENT, trees=(part,)), SERVER, **OPTIONS))
        )
        for number, sock in enumerate(socks):
            sock.bind((f"127.55.0.{number + 1}", PORT))
            sock.connect((SERVER, PORT))
            sock.settimeout(10)
        yield server, *socks


def assert_counts(server: ParameterServer, expected: dict[str, int]) -> None:
    """Within 10 s: each thread counts what it reads, and counters have no event."""
    deadline = time.monotonic() + 10
    while server.counts() != expected and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.counts() == expected


def gradient(child: int, lane: int, **changes: object) -> Packet:
    return replace(Packet(Kind.GRADIENT, 7, 3, 0, 1, child, (lane,) * 4), **changes)


def test_the_sum_goes_to_the_sender_that_completed_it_and_again_on_request():
    with running() as (_, one, two):
        one.send(gradient(10, 5, flags=Flag.CONGESTION, exponent=3).pack())
        two.send(gradient(20, 7, exponent=9).pack())
        result = Packet.parse(two.recv(2000))
        assert (result.kind, result.tree, result.epoch, result.slot, result.lane) == (
            Kind.RESULT,
            7,
            3,
            1,
            (12,) * 4,
        )
        assert (result.flags, result.exponent) == (Flag.CONGESTION, 9)
        one.send(gradient(10, 5).pack())
        assert Packet.parse(one.recv(2000)).lane == (12,) * 4


def test_a_congestion_mark_of_the_way_counts_and_what_is_sent_can_be_marked():
    with running() as (_, one, two):
        one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 3)  # as a switch would mark it
        one.send(gradient(10, 5).pack())
        two.setsockopt(socket.IPPROTO_IP, IP_RECVTOS, 1)
        two.send(gradient(20, 7).pack())
        payload, control, _, _ = two.recvmsg(2000, 100)
        assert Packet.parse(payload).flags == Flag.CONGESTION
        assert control[0][2][0] & 3 == 2


@pytest.mark.parametrize(("said", "answered"), [(0x80 | 0x40 | 2, 0x80 | 0x40 | 2), (0x7F, 0)])
def test_what_roce_said_in_the_completing_packet_goes_back_with_the_sum(said: int, answered: int):
    """docs/reference/roce.md, section 4: the leaf makes a SEND of it again."""
    with running() as (_, one, two):
        one.send(gradient(10, 5).pack())
        completing = bytearray(gradient(20, 7).pack())
        completing[13] = said
        for _ in range(2):  # and when it is asked for again
            two.send(completing)
            assert two.recv(2000)[13] == answered


@pytest.mark.parametrize(
    ("payload", "verdict"),
    [
        (b"x" * 32, Verdict.MALFORMED),
        (b"", Verdict.MALFORMED),
        (gradient(10, 1).pack() + b"0", Verdict.MALFORMED),
        (gradient(10, 1, kind=Kind.RESULT).pack(), Verdict.MALFORMED),
        (replace(gradient(10, 1), lane=(1,) * 5).pack(), Verdict.MALFORMED),
        (gradient(11, 1).pack(), Verdict.UNADMITTED),
        (gradient(10, 1, tree=8).pack(), Verdict.UNADMITTED),
        (gradient(10, 1, epoch=2).pack(), Verdict.STALE_EPOCH),
        (gradient(10, 1, slot=4).pack(), Verdict.BAD_SLOT),
    ],
)
def test_what_is_not_the_trees_changes_no_slot_and_counts_once(payload, verdict):
    with running() as (server, one, two):
        one.send(payload)
        for sock, child in ((one, 10), (two, 20)):
            sock.send(gradient(child, 2).pack())
        assert Packet.parse(two.recv(2000)).lane == (4,) * 4
        assert_counts(server, {verdict.name.lower(): 1, "accumulated": 1, "result_sent": 1})


@pytest.mark.parametrize(
    ("address", "port", "child"),
    [
        (STRANGER, PORT, 10),  # another host's
        (ONE, PORT, 20),  # another worker's
        (ONE, PORT + 1, 10),  # another process of the worker's own host
        (ONE, 5555, 10),
    ],
)
def test_a_contribution_counts_only_from_its_child_s_address_and_the_job_s_port(address, port, child):
    with running() as (server, one, two), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
        forger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if (address, port) == (ONE, PORT):
            forger.close()
            one.send(gradient(child, 1000).pack())
        else:
            forger.bind((address, port))
            forger.sendto(gradient(child, 1000).pack(), (SERVER, PORT))
        for sock, own in ((one, 10), (two, 20)):
            sock.send(gradient(own, 2).pack())
        assert Packet.parse(two.recv(2000)).lane == (4,) * 4
        assert_counts(server, {"unadmitted": 1, "accumulated": 1, "result_sent": 1})


def test_a_sum_may_come_from_any_worker_below_the_node_that_made_it():
    with running() as (_, one, _), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.55.0.4", PORT))
        other.settimeout(10)
        one.send(gradient(10, 1).pack())
        other.sendto(gradient(20, 2).pack(), (SERVER, PORT))
        assert Packet.parse(other.recv(2000)).lane == (3,) * 4


def test_without_sources_any_address_counts():
    with running(replace(PART, sources=())) as (_, one, two):
        two.send(gradient(10, 1).pack())
        one.send(gradient(20, 2).pack())
        assert Packet.parse(one.recv(2000)).lane == (3,) * 4


def test_a_new_epoch_starts_with_empty_slots():
    with running() as (server, one, two):
        one.send(gradient(10, 5).pack())
        two.send(gradient(20, 5).pack())
        two.recv(2000)
        server.assign(replace(ASSIGNMENT, epoch=4))
        two.settimeout(0.05)
        for _ in range(200):  # until the server has taken the new epoch over, the packet is of another one
            two.send(gradient(20, 1, epoch=4).pack())
            one.send(gradient(10, 1, epoch=4).pack())
            try:
                assert Packet.parse(two.recv(2000)).lane == (2,) * 4
            except TimeoutError:
                continue
            break
        else:
            pytest.fail("no result in the new epoch")


def test_an_assignment_of_the_same_epoch_keeps_the_slots():
    """Members hear of it when a worker leaves; another one may lack the last sum then."""
    with running() as (server, one, two):
        one.send(gradient(10, 5).pack())
        two.send(gradient(20, 7).pack())
        assert Packet.parse(two.recv(2000)).lane == (12,) * 4
        server.assign(ASSIGNMENT)
        for slot in range(2, 4):  # threads have taken the assignment by then
            one.send(gradient(10, 1, slot=slot).pack())
            two.send(gradient(20, 1, slot=slot).pack())
            two.recv(2000)
        one.send(gradient(10, 5).pack())
        assert Packet.parse(one.recv(2000)).lane == (12,) * 4


def test_a_port_that_is_taken_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setattr(transport, "_FREED_WITHIN_S", 0.2)
    with (
        running(),
        pytest.raises(TransportError, match=f"no UDP socket at {SERVER}:{PORT}: Address already in use"),
    ):
        ParameterServer(ASSIGNMENT, SERVER, **OPTIONS)
