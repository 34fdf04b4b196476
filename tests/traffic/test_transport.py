# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sockets of workers and parameter servers."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest

from netfold.traffic.errors import AllReduceTimeoutError
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.membership.base import StaticMembership
from netfold.traffic.packets import transport
from netfold.traffic.packets.job_port import EpochSockets, JobPort
from netfold.traffic.packets.transport import Address, TransportError, UdpEndpoint, check_mtu, drop_pending
from netfold.traffic.worker.worker import Worker

PORT = 61650
LOCAL = "127.34.0.1"
ROOTS = [Address(f"127.34.1.{n}", PORT) for n in range(3)]


def test_a_root_that_does_not_listen_is_a_timeout_that_counts_its_icmp_errors():
    part = TreeAssignment(7, 1.0, 8, 4, 0, "127.34.0.9")
    with (
        Worker(StaticMembership(Assignment("t", 1, PORT, 4, 0, 1, (part,))), "127.34.0.5") as worker,
        pytest.raises(AllReduceTimeoutError, match=r"missing: tree 7.*socket errors .*: [1-9]"),
    ):
        worker.all_reduce(np.ones(8, np.float32), timeout=0.5)


@pytest.mark.parametrize(
    ("address", "what"),
    [
        (Address(LOCAL, 5000), "UDP port 5000 is no netfold port"),
        (Address("203.0.113.1", PORT), "no UDP socket at"),
    ],
)
def test_a_socket_that_cannot_be_had_is_named(address, what):
    with pytest.raises(TransportError, match=what):
        UdpEndpoint(address)


def test_a_port_that_an_ended_job_is_about_to_free_is_awaited():
    earlier = UdpEndpoint(Address(LOCAL, PORT))
    ending = threading.Timer(0.2, earlier.close)
    ending.start()
    try:
        UdpEndpoint(Address(LOCAL, PORT)).close()
    finally:
        ending.join()


def test_a_process_takes_its_port_for_all_of_its_roots_and_no_other_process_gets_it(monkeypatch):
    monkeypatch.setattr(transport, "_FREED_WITHIN_S", 0.2)
    with held(LOCAL, ROOTS):
        for local in (LOCAL, "0.0.0.0"):
            with pytest.raises(TransportError, match="Address already in use"), held(local, ROOTS[:1]):
                pass
    with held(LOCAL, ROOTS):
        pass


@pytest.mark.parametrize("epochs", [0, 1, 2])
def test_its_port_is_the_workers_at_every_address_of_the_host(epochs: int):
    """A switch asks for the port alone: a process that had it at the address of a bridge could send as the worker."""
    port = JobPort("0.0.0.0", PORT)
    try:
        for _ in range(epochs):
            for end in port.connect(ROOTS):
                end.close()  # as the engine does before the next epoch
            assert bound(LOCAL, PORT) is None
        ends = port.connect(ROOTS)
        for address in (LOCAL, "127.34.0.77", "0.0.0.0", "::ffff:127.34.0.77"):
            for option in (None, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
                assert bound(address, PORT, option) is None, (address, option)
        for end in ends:
            end.close()
    finally:
        port.close()
    assert bound("127.34.0.77", PORT) is not None


def test_the_sockets_of_each_epoch_lie_on_the_held_port_and_another_port_frees_it():
    """The caller closes the descriptors of an epoch before the next."""
    roots, sockets = ["127.34.1.0", "127.34.1.1"], EpochSockets("0.0.0.0")
    try:
        for _ in range(2):
            ends = [socket.socket(fileno=end) for end in sockets.open(PORT, roots, 1040)]
            assert [end.getpeername() for end in ends] == [(root, PORT) for root in roots]
            for end in ends:
                end.close()
            assert bound(LOCAL, PORT) is None
        for end in sockets.open(PORT + 1, roots[:1], 1040):
            os.close(end)
        assert bound(LOCAL, PORT) is not None
        with pytest.raises(TransportError, match="exceeds the MTU"):
            sockets.open(PORT + 1, roots, 65536)
    finally:
        sockets.close()
    assert bound(LOCAL, PORT + 1) is not None


class Prying:
    """A root's address that is looked at when its socket is bound and not yet connected."""

    port = PORT

    def __init__(self, then: Callable[[], object]) -> None:
        self._then = then

    @property
    def host(self) -> str:
        self._then()
        return "127.34.1.1"


@pytest.mark.parametrize("local", [LOCAL, "0.0.0.0"])
def test_no_process_slips_in_while_the_sockets_are_made(local: str):
    taken = []
    peers = [Prying(lambda: taken.append(bound(LOCAL, PORT, socket.SO_REUSEADDR)))] * 3
    with held(local, peers):
        assert taken == [None] * 3


@pytest.mark.parametrize("local", [LOCAL, "0.0.0.0"])
def test_what_comes_before_a_socket_is_connected_is_forgotten(local: str):
    """From another port than the job's, which no switch stops."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:

        def send() -> None:
            for _ in range(3):
                other.sendto(b"a result", (LOCAL, PORT))

        with held(local, [Prying(send)] * 2) as ends:
            for end in ends:
                with socket.socket(fileno=end.detach()) as one, pytest.raises(BlockingIOError):
                    one.recv(100)


class FailingSocket(socket.socket):
    """Its receive queue is empty, and each `recv` reports an error, of which there are so many."""

    def __init__(self, number: int, times: int) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_DGRAM)
        self.setblocking(False)
        self._number, self.left = number, times

    def recv(self, size: int, flags: int = 0) -> bytes:
        if not self.left:
            return super().recv(size, flags)
        self.left -= 1
        raise OSError(self._number, os.strerror(self._number))


@pytest.mark.parametrize("number", [errno.ECONNREFUSED, errno.EPROTO, errno.EMSGSIZE, errno.ENOPROTOOPT])
def test_pending_icmp_errors_are_no_failure_of_a_new_socket(number: int):
    with FailingSocket(number, 100) as sock:
        drop_pending(sock)
        assert sock.left == 0


@pytest.mark.parametrize(
    ("number", "times"), [(errno.EBADF, 1), (errno.EINVAL, 1), (errno.ECONNREFUSED, 10**9)]
)
def test_a_socket_that_keeps_failing_is_given_up(number: int, times: int):
    with FailingSocket(number, times) as sock, pytest.raises(OSError, match=os.strerror(number)):
        drop_pending(sock)


@pytest.mark.timeout(60)
def test_a_flood_holds_no_new_socket_up():
    """Datagrams arrive faster than they are read: only those from before it was connected have to go."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.bind((LOCAL, 0))
        sock.connect(sock.getsockname())

        class Flooded(FailingSocket):
            def recv(self, size: int, flags: int = 0) -> bytes:
                sock.send(b"one more")
                return sock.recv(size, flags)

        with Flooded(0, 0) as flooded:
            drop_pending(flooded)


def test_a_packet_that_the_interface_does_not_take_is_named_before_it_is_sent():
    check_mtu(Address("127.0.0.1", PORT), 1040)
    with pytest.raises(TransportError, match=r"65564 bytes exceeds the MTU of .* to 127\.0\.0\.1"):
        check_mtu(Address("127.0.0.1", PORT), 65536)


@contextmanager
def held(local: str, peers: Sequence[object]) -> Iterator[Sequence[UdpEndpoint]]:
    port = JobPort(local, PORT)
    ends: Sequence[UdpEndpoint] = ()
    try:
        ends = port.connect(peers)
        yield ends
    finally:
        port.close()
        for end in ends:
            end.close()


def bound(address: str, port: int, option: int | None = None) -> tuple[str, int] | None:
    """Returns the address that another process gets; None if the port is taken."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as other:
        if option is not None:
            other.setsockopt(socket.SOL_SOCKET, option, 1)
        try:
            other.bind((address, port))
        except OSError:
            return None
        return address, port
