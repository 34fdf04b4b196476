# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The peers in Python that the other tests send and receive with."""

from __future__ import annotations

import socket

import numpy as np
import pytest

from netfold.traffic.packets.transport import Address
from netfold.traffic.packets.wire import packet_bytes
from tests.traffic.batches import BATCH, BatchEndpoint, Inbox, Rows, Waiter

LANES, PORT = 4, 61650
A, B = Address("127.33.0.1", PORT), Address("127.33.0.2", PORT)


@pytest.fixture
def pair():
    ends = BatchEndpoint(A, B), BatchEndpoint(B, A, ecn=True)
    yield ends
    for end in ends:
        end.close()


def receive(endpoint: BatchEndpoint, inbox: Inbox, at_least: int = 1) -> int:
    """Loopback delivers at once, but the kernel may need a moment on a busy machine."""
    waiter = Waiter((endpoint,))
    try:
        waiter.wait(10)
        count = endpoint.receive(inbox)
        assert count >= at_least
        return count
    finally:
        waiter.close()


def test_rows_go_in_the_order_in_which_they_are_pointed_at(pair):
    out, inbox = Rows(8, LANES), Inbox(8, LANES)
    out.records["slot"] = np.arange(8)
    out.records["lane"][:, 0] = -np.arange(8)
    out.point(np.array([5, 2, 7]))
    assert pair[0].send(out, 3) == 3
    assert receive(pair[1], inbox) == 3
    assert inbox.records["slot"][:3].tolist() == [5, 2, 7]
    assert inbox.records["lane"][:3, 0].tolist() == [-5, -2, -7]
    assert inbox.sizes(3).tolist() == [packet_bytes(LANES)] * 3


def test_datagrams_of_another_size_show_it(pair):
    inbox = Inbox(4, LANES)
    short, long = b"x" * 3, b"y" * 1000
    sender = pair[0]._socket
    for payload in (short, b"", long, b"z" * packet_bytes(LANES)):
        sender.send(payload)
    assert receive(pair[1], inbox) == 4
    assert inbox.sizes(4).tolist() == [3, 0, packet_bytes(LANES) + 1, packet_bytes(LANES)]


def test_an_inbox_is_good_for_many_batches(pair):
    out, inbox = Rows(BATCH, LANES), Inbox(BATCH, LANES, ecn=True)
    for turn in range(5):
        out.records["slot"] = np.arange(BATCH) + turn
        assert pair[0].send(out, BATCH) == BATCH
        got = 0
        while got < BATCH:
            count = receive(pair[1], inbox)
            assert inbox.records["slot"][:count].tolist() == list(range(turn + got, turn + got + count))
            got += count
    assert pair[1].receive(inbox) == 0


def test_the_congestion_mark_is_read_and_ect_is_sent(pair):
    out, inbox = Rows(4, LANES), Inbox(4, LANES, ecn=True)
    pair[0].send(out, 1)
    pair[0]._socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 3)  # as a switch would mark it
    pair[0].send(out, 1)
    got: list[bool] = []
    while len(got) < 2:
        got += inbox.congested(receive(pair[1], inbox)).tolist()
    assert got == [False, True]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        plain.setsockopt(socket.IPPROTO_IP, 13, 1)
        plain.bind(("127.33.0.3", PORT))
        other = BatchEndpoint(Address("127.33.0.1", PORT + 1), Address("127.33.0.3", PORT))
        other.send(out, 1)
        plain.settimeout(10)
        _, control, _, _ = plain.recvmsg(100, 100)
        assert control[0][2][0] & 3 == 2
        other.close()


def test_names_are_where_packets_came_from_and_may_go_to():
    server, client = BatchEndpoint(Address("127.33.0.9", PORT)), BatchEndpoint(A, Address("127.33.0.9", PORT))
    out, inbox = Rows(4, LANES), Inbox(4, LANES)
    client.send(out, 2)
    count = receive(server, inbox)
    assert (inbox.names(count) == A.name()).all()
    back = Rows(4, LANES)
    back.address(inbox.names(count))
    server.send(back, count)
    assert receive(client, inbox) >= 1
    for end in (server, client):
        end.close()


def test_a_peer_that_does_not_listen_is_a_loss_not_an_error(pair):
    lonely = BatchEndpoint(Address("127.33.0.5", PORT), Address("127.33.0.6", PORT))
    out, inbox = Rows(4, LANES), Inbox(4, LANES)
    for _ in range(5):
        assert lonely.send(out, 4) == 4
        assert lonely.receive(inbox) == 0
    lonely.close()
