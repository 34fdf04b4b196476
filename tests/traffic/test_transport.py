# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What workers and parameter servers want of their sockets."""

from __future__ import annotations

import numpy as np
import pytest

from netfold.traffic.errors import AllReduceTimeout
from netfold.traffic.membership.assignment import Assignment, TreePart
from netfold.traffic.membership.part import Alone, connect_udp
from netfold.traffic.packets.transport import Address, TransportError, UdpEndpoint
from netfold.traffic.worker.worker import Worker

PORT = 61650
A = Address("127.34.0.1", PORT)


def test_a_root_that_does_not_listen_is_silence_not_an_error():
    part = TreePart(7, 1.0, 8, 4, 0, "127.34.0.9")
    with (
        Worker(Alone(Assignment("t", 1, PORT, 4, 0, 1, (part,))), "127.34.0.5") as worker,
        pytest.raises(AllReduceTimeout, match="missing: tree 7"),
    ):
        worker.all_reduce(np.ones(8, np.float32), timeout=0.5)


@pytest.mark.parametrize(
    ("address", "what"),
    [
        (Address("127.34.0.1", 5000), "UDP port 5000 is no netfold port"),
        (Address("203.0.113.1", PORT), "no UDP socket at"),
    ],
)
def test_a_socket_that_cannot_be_had_is_named(address, what):
    with pytest.raises(TransportError, match=what):
        UdpEndpoint(address)


def test_a_process_takes_its_port_for_all_of_its_roots_and_nobody_else_gets_it():
    roots = [Address(f"127.34.1.{n}", PORT) for n in range(3)]
    ends = connect_udp(A, roots)
    try:
        with pytest.raises(TransportError, match="Address already in use"):
            connect_udp(A, roots[:1])
        with pytest.raises(TransportError, match="Address already in use"):
            connect_udp(Address("0.0.0.0", PORT), roots)
    finally:
        for end in ends:
            end.close()
    for end in connect_udp(A, roots):
        end.close()
