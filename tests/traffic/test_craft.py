# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The socket of a packet made by hand, and the RESULT that is its own."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from netfold.protocol.wire import Kind, Packet
from netfold.traffic.packets.transport import TransportError
from netfold.traffic.workloads.craft import packet_socket, receive_result, shown_lanes

PORT = 61690
SENT = Packet(Kind.GRADIENT, 7, 1, 2, 3, 0, (40,) * 5)


def test_only_the_result_of_the_chunk_is_received():
    root = "127.44.0.61"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer, packet_socket(PORT, root) as sock:
        peer.bind((root, PORT))
        sock.send(SENT.pack())
        _, sender = peer.recvfrom(65535)
        result = replace(SENT, kind=Kind.RESULT, lane=(42,) * 5)
        for payload in (b"abc", SENT.pack(), replace(result, round=1).pack(), result.pack()):
            peer.sendto(payload, sender)
        assert receive_result(sock, SENT, 30.0) == result
        assert receive_result(sock, SENT, 0.01) is None


def test_a_root_without_a_process_and_a_port_in_use_are_named():
    with packet_socket(PORT, "127.44.0.62") as sock:
        sock.send(SENT.pack())
        with pytest.raises(TransportError, match=r"no process listens at 127\.44\.0\.62:61690"):
            receive_result(sock, SENT, 30.0)
        with (
            pytest.raises(TransportError, match="another `netfold host send`"),
            packet_socket(PORT, "127.44.0.62"),
        ):
            pass


def test_of_many_lanes_the_first_are_shown():
    assert shown_lanes((1, 2)) == "2 lanes [1, 2]"
    assert shown_lanes(tuple(range(9))) == "9 lanes [0, 1, 2, 3, ...]"
