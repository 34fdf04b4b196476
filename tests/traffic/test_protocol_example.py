# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The second implementation of docs/reference/protocol.md, examples/protocol, beside the engine: both roots, both
workers, an inner node, loss, and the packets themselves."""

from __future__ import annotations

import itertools
import os
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from examples.protocol import node as second_node
from examples.protocol import worker as second_worker
from netfold.protocol.wire import Kind, Packet
from netfold.traffic.errors import CollectiveMismatchError
from netfold.traffic.errors import SumOverflowError as EngineOverflowError
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.membership.base import StaticMembership
from netfold.traffic.numerics import BlockFloat, Float32Sum, Scheme
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker
from tests.traffic.oracle_server import Faults, LossySocket
from tests.traffic.serving import serving

NETWORK = "127.79." + os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]
ROOT, INNER = f"{NETWORK}.254", f"{NETWORK}.253"
TREE, EPOCH, LANES, SLOTS = 7, 3, 16, 16
CHUNK = slice(2, 12)  # of a packet: tree, tag, slot, child
PORTS = itertools.cycle(range(61440, 61696))
Reduce = Callable[[NDArray[Any]], NDArray[Any]]


def host(rank: int) -> str:
    return f"{NETWORK}.{rank + 1}"


class RecordingSocket(LossySocket):
    """Keeps what it received, by tree, tag, slot and child."""

    def __init__(self, local: Address, faults: Faults, seed: int) -> None:
        super().__init__(local, faults, seed)
        self.received: dict[bytes, list[bytes]] = defaultdict(list)

    def recvfrom(self, size: int) -> tuple[bytes, tuple[str, int]]:
        """As of a socket; serve() of the second implementation reads by it."""
        found = self.receive()
        if found is None:
            raise BlockingIOError
        self.received[found[0][CHUNK]].append(found[0])
        return found

    def sendto(self, data: bytes, to: tuple[str, int]) -> None:
        self.send(data, to)


@contextmanager
def second_root(
    port: int, children: dict[int, str], receivers: list[str], faults: Faults | None = None
) -> Iterator[RecordingSocket]:
    """The second implementation's node as the root of the tree."""
    with _serving(
        port,
        ROOT,
        second_node.TreeEntry(
            TREE,
            EPOCH,
            SLOTS,
            LANES,
            {c: second_node.Child(i, (address, port)) for i, (c, address) in enumerate(children.items())},
            tuple((address, port) for address in receivers),
            ranks={(address, port): (rank,) for rank, address in enumerate(receivers)},
        ),
        faults,
    ) as link:
        yield link


@contextmanager
def _serving(
    port: int, address: str, entry: second_node.TreeEntry, faults: Faults | None = None
) -> Iterator[RecordingSocket]:
    link = RecordingSocket(Address(address, port), faults or Faults(), seed=5)
    stop, stopped = socket.socketpair()
    thread = threading.Thread(target=second_node.serve, args=(second_node.Node(entry), link, stopped))
    thread.start()
    try:
        yield link
    finally:
        stop.send(b"x")
        thread.join()
        link.close()
        stop.close()
        stopped.close()


def engine_root(
    port: int, children: dict[int, str], receivers: list[str], slots: int = SLOTS
) -> AbstractContextManager[ParameterServer]:
    part = TreeAssignment(
        TREE, 1.0, slots, slots // 2, 0, ROOT, tuple(children), tuple((a,) for a in children.values())
    )
    assignment = Assignment("t", EPOCH, port, LANES, 0, len(receivers), (part,))
    return serving(ParameterServer(assignment, ROOT, [Address(a, port) for a in receivers]))


@contextmanager
def engine_worker(
    port: int,
    rank: int,
    workers: int,
    scheme: Scheme | None = None,
    root: str = ROOT,
    slots: int = SLOTS,
) -> Iterator[Reduce]:
    part = TreeAssignment(TREE, 1.0, slots, slots // 2, rank, root)
    assignment = Assignment("t", EPOCH, port, LANES, rank, workers, (part,), numerics=scheme or BlockFloat())

    def reduce(array: NDArray[Any]) -> NDArray[Any]:
        copy = array.copy()
        worker.all_reduce(copy, 30.0)
        return copy

    with Worker(StaticMembership(assignment), host(rank)) as worker:
        yield reduce


@contextmanager
def example_worker(
    port: int, rank: int, workers: int, root: str = ROOT, slots: int = SLOTS
) -> Iterator[Reduce]:
    worker = second_worker.Worker(
        second_worker.Assignment(
            EPOCH, workers, LANES, TREE, slots, slots // 2, rank, rank, (host(rank), port), (root, port)
        )
    )
    try:
        yield worker.all_reduce
    finally:
        worker.close()


def together(workers: list[Reduce], arrays: list[NDArray[Any]]) -> list[NDArray[Any]]:
    with ThreadPoolExecutor(len(workers)) as pool:
        return list(pool.map(lambda pair: pair[0](pair[1]), zip(workers, arrays, strict=True)))


def calls_of_floats(workers: int) -> list[list[NDArray[np.float32]]]:
    """Calls of one size and of others, of like magnitudes, with jumps, zeros, NaN and infinities."""
    rng = np.random.default_rng(11)
    scales = [1.0, 2.0, 1.5, 0.7, 1.0, 1.1, 1e6, 1.0, 1e-9, 0.0, 1.0, 1.0, 3.0]
    calls = [[(rng.standard_normal(400) * s).astype(np.float32) for _ in range(workers)] for s in scales]
    calls[5][0][17], calls[7][1][3], calls[7][0][3] = np.nan, np.inf, -np.inf
    calls[8][1][399] = np.inf
    small = [
        [rng.standard_normal(n).astype(np.float32) for _ in range(workers)] for n in (1, 15, 16, 17, 150)
    ]
    return calls + small + calls[:3]


def assert_same_sums(results: list[NDArray[Any]], arrays: list[NDArray[Any]], tolerance: float) -> None:
    first = results[0]
    for other in results[1:]:
        np.testing.assert_array_equal(first.view(np.uint32), other.view(np.uint32))
    with np.errstate(invalid="ignore"):
        exact = np.sum([a.astype(np.float64) for a in arrays], axis=0)
    finite = np.isfinite(exact)
    np.testing.assert_array_equal(first[~finite].astype(np.float64), exact[~finite])
    largest = max((float(np.abs(a[np.isfinite(a)]).max(initial=0)) for a in arrays), default=0.0)
    np.testing.assert_allclose(first[finite], exact[finite], rtol=0, atol=tolerance * largest)


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_engine_workers_add_up_at_the_second_root(loss: float):
    port, hosts = next(PORTS), [host(0), host(1)]
    faults = Faults(loss=loss, duplicate=loss, delay=loss)
    with ExitStack() as stack:
        stack.enter_context(second_root(port, dict(enumerate(hosts)), hosts, faults))
        workers = [stack.enter_context(engine_worker(port, rank, 2)) for rank in range(2)]
        for arrays in calls_of_floats(2):
            assert_same_sums(together(workers, arrays), arrays, 2**-20)


def test_engine_workers_add_floats_at_the_second_root():
    port, hosts = next(PORTS), [host(0), host(1)]
    with ExitStack() as stack:
        stack.enter_context(second_root(port, dict(enumerate(hosts)), hosts))
        workers = [stack.enter_context(engine_worker(port, rank, 2, Float32Sum())) for rank in range(2)]
        for arrays in calls_of_floats(2):
            assert_same_sums(together(workers, arrays), arrays, 2**-23)


@pytest.mark.parametrize("slots", [2, 4, SLOTS, 64])
def test_a_second_worker_beside_the_engine_has_the_same_bits(slots: int):
    port, hosts = next(PORTS), [host(0), host(1), host(2)]
    with ExitStack() as stack:
        stack.enter_context(engine_root(port, dict(enumerate(hosts)), hosts, slots))
        workers = [
            stack.enter_context(engine_worker(port, 0, 3, slots=slots)),
            stack.enter_context(example_worker(port, 1, 3, slots=slots)),
            stack.enter_context(engine_worker(port, 2, 3, slots=slots)),
        ]
        for arrays in calls_of_floats(3):
            assert_same_sums(together(workers, arrays), arrays, 2**-19)


def test_rows_below_the_least_byte_go_once():
    """F8: where the prediction is the least byte, a far smaller row is not re-encoded."""
    port, hosts = next(PORTS), [host(0), host(1)]
    arrays = [np.full(LANES, 2.0**-121, np.float32), np.full(LANES, 2.0**-122, np.float32)]
    with ExitStack() as stack:
        link = stack.enter_context(second_root(port, dict(enumerate(hosts)), hosts))
        workers = [
            stack.enter_context(engine_worker(port, 0, 2)),
            stack.enter_context(example_worker(port, 1, 2)),
        ]
        for _ in range(8):
            for result in together(workers, arrays):
                np.testing.assert_array_equal(result, arrays[0] + arrays[1])
    assert len(link.received) == 2 * (1 + 8 * 2)  # the resume; of each call the opening and one row


@pytest.mark.slow
def test_a_call_that_closes_and_sums_of_integers():
    port, hosts = next(PORTS), [host(0), host(1)]
    rng = np.random.default_rng(3)
    small = [rng.integers(-1000, 1000, 100, dtype=np.int32) for _ in range(2)]
    rails = [np.array([2**31 - 1, 2**31 - 1, 5], np.int32), np.array([0, -7, 6], np.int32)]
    large = [np.full((2 << 18) + 5, rank + 1, np.int32) for rank in range(2)]
    with ExitStack() as stack:
        stack.enter_context(engine_root(port, dict(enumerate(hosts)), hosts))
        workers = [
            stack.enter_context(engine_worker(port, 0, 2)),
            stack.enter_context(example_worker(port, 1, 2)),
        ]
        for arrays in (small, rails, large, small):
            for result in together(workers, arrays):
                np.testing.assert_array_equal(result, arrays[0] + arrays[1])


def test_a_sum_that_does_not_fit_is_an_error_at_both_and_the_job_continues():
    port, hosts = next(PORTS), [host(0), host(1)]
    with ExitStack() as stack:
        stack.enter_context(engine_root(port, dict(enumerate(hosts)), hosts))
        engine = stack.enter_context(engine_worker(port, 0, 2))
        example = stack.enter_context(example_worker(port, 1, 2))
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(w, np.full(40, 2**30, np.int32)) for w in (engine, example)]
            assert isinstance(futures[0].exception(), EngineOverflowError)
            assert isinstance(futures[1].exception(), second_worker.SumOverflowError)
        ones = np.ones(3, np.int32)
        for result in together([engine, example], [ones, ones]):
            np.testing.assert_array_equal(result, 2 * ones)


def test_different_calls_are_an_error_at_both():
    port, hosts = next(PORTS), [host(0), host(1)]
    with ExitStack() as stack:
        stack.enter_context(engine_root(port, dict(enumerate(hosts)), hosts))
        engine = stack.enter_context(engine_worker(port, 0, 2))
        example = stack.enter_context(example_worker(port, 1, 2))
        with ThreadPoolExecutor(2) as pool:
            one = pool.submit(engine, np.ones(30, np.float32))
            other = pool.submit(example, np.ones(31, np.float32))
            assert isinstance(one.exception(), CollectiveMismatchError)
            assert isinstance(other.exception(), second_worker.MismatchError)


def test_a_second_inner_node_below_the_engine_s_root():
    port, hosts = next(PORTS), [host(0), host(1), host(2)]
    entry = second_node.TreeEntry(
        TREE,
        EPOCH,
        SLOTS,
        LANES,
        {rank: second_node.Child(rank, (hosts[rank], port)) for rank in (0, 1)},
        tuple((hosts[rank], port) for rank in (0, 1)),
        parent=(ROOT, port),
        own_child=9,
    )
    with ExitStack() as stack:
        stack.enter_context(engine_root(port, {9: INNER, 2: hosts[2]}, [INNER, hosts[2]]))
        stack.enter_context(_serving(port, INNER, entry, Faults(loss=0.02)))
        workers = [
            stack.enter_context(engine_worker(port, 0, 3, root=INNER)),
            stack.enter_context(example_worker(port, 1, 3, root=INNER)),
            stack.enter_context(engine_worker(port, 2, 3)),
        ]
        for arrays in calls_of_floats(3)[:6]:
            assert_same_sums(together(workers, arrays), arrays, 2**-19)


def test_a_retransmission_is_what_was_sent_before():
    port, hosts = next(PORTS), [host(0), host(1)]
    with ExitStack() as stack:
        link = stack.enter_context(second_root(port, dict(enumerate(hosts)), hosts, Faults(loss=0.1)))
        workers = [
            stack.enter_context(engine_worker(port, 0, 2)),
            stack.enter_context(example_worker(port, 1, 2)),
        ]
        for arrays in calls_of_floats(2)[:4]:
            together(workers, arrays)
    assert any(len(copies) > 1 for copies in link.received.values())
    assert all(len(set(copies)) == 1 for copies in link.received.values())
    assert {Packet.parse(copies[0]).kind for copies in link.received.values()} == {Kind.GRADIENT}
