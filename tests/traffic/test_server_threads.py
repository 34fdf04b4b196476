# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server of several threads: the kernel's steering, packets that reach another thread, sums under load."""

from __future__ import annotations

import random
import selectors
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
import pytest

from netfold.protocol.wire import Kind, Packet
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.membership.base import StaticMembership
from netfold.traffic.packets.host_link import HostLink
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker
from tests.traffic.serving import serving

SERVER, PORT, LANES, SLOTS, TREE = "127.57.0.9", 61662, 4, 256, 7
HOSTS = ("127.57.0.1", "127.57.0.2")
RUN_SLOTS = 16  # NF_RUN_SLOTS of traffic/engine/io/udp_batch.h
UDP_SEGMENT = 103  # not in Python's socket module
CHILDREN = (10, 20)
PART = TreeAssignment(TREE, 1.0, SLOTS, SLOTS // 2, 0, SERVER, CHILDREN, ((HOSTS[0],), (HOSTS[1],)))
ASSIGNMENT = Assignment("t", 3, PORT, LANES, 0, 2, (PART,))


@contextmanager
def running(threads: int) -> Iterator[tuple[ParameterServer, list[socket.socket]]]:
    with ExitStack() as stack:
        socks = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in HOSTS]
        server = stack.enter_context(serving(ParameterServer(ASSIGNMENT, SERVER, threads=threads)))
        for host, sock in zip(HOSTS, socks, strict=True):
            sock.bind((host, PORT))
            sock.connect((SERVER, PORT))
            sock.settimeout(10)
        yield server, socks


def gradient(slot: int, child: int, value: int, **changes: object) -> Packet:
    return replace(Packet(Kind.GRADIENT, TREE, 3, 0, slot, child, (value,) * LANES), **changes)


def send_run(sock: socket.socket, packets: list[Packet]) -> None:
    """As one datagram of many, which stays whole on the loopback."""
    data = [packet.pack() for packet in packets]
    sock.sendmsg(data, [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", len(data[0])))])


@pytest.mark.parametrize("threads", [2, 3])
def test_the_kernel_steers_each_slot_to_its_own_thread(threads: int):
    with running(threads) as (server, (one, two)):
        for slot in range(SLOTS):
            one.send(gradient(slot, 10, slot).pack())
            two.send(gradient(slot, 20, 1).pack())
            assert Packet.parse(two.recv(2000)).lane == (slot + 1,) * LANES
    assert server.handed_over == 0
    own = Counter(slot // RUN_SLOTS % threads for slot in range(SLOTS))
    assert [int(shard.verdicts.sum()) for shard in server.shards] == [2 * own[i] for i in range(threads)]
    assert server.counts() == {"accumulated": SLOTS, "result_sent": SLOTS}


def test_a_run_of_several_threads_slots_is_handed_over_and_summed_once():
    """The run's middle may reach its thread before or after the other child's packets, which go to that thread at once:
    a result goes to the child that came last."""
    first, count = RUN_SLOTS // 2, 2 * RUN_SLOTS
    sums: dict[int, tuple[int, ...]] = {}
    with running(2) as (server, socks), selectors.DefaultSelector() as arrived:
        for sock in socks:
            arrived.register(sock, selectors.EVENT_READ)
        send_run(socks[0], [gradient(slot, 10, slot) for slot in range(first, first + count)])
        for slot in range(first, first + count):
            socks[1].send(gradient(slot, 20, 1).pack())
        while len(sums) < count:
            assert arrived.select(10), f"no results of {count - len(sums)} slots"
            sums |= results(arrived, 0)
    assert sums == {slot: (slot + 1,) * LANES for slot in range(first, first + count)}
    assert server.handed_over == RUN_SLOTS
    assert server.counts() == {"accumulated": count, "result_sent": count}


def test_a_run_of_a_worker_stays_with_one_thread():
    """Its sends end where a range of slots does, so that nothing has to be handed over."""
    tree = TreeAssignment(1, 1.0, SLOTS, SLOTS // 2, 0, SERVER, (0,))
    assignment = Assignment("t", 1, PORT, 64, 0, 1, (tree,))
    array = np.arange(200_000, dtype=np.float32)
    reply_to = [Address(HOSTS[0], PORT)]
    with (
        serving(ParameterServer(assignment, SERVER, reply_to, threads=2)) as server,
        Worker(
            StaticMembership(replace(assignment, trees=(replace(tree, children=()),))), HOSTS[0]
        ) as worker,
    ):
        worker.all_reduce(array)
    assert server.handed_over == 0
    assert min(int(shard.verdicts.sum()) for shard in server.shards) > 1000


@pytest.mark.parametrize("seed", range(3))
def test_random_runs_with_duplicates_and_old_rounds_give_every_slot_its_sum(seed: int):
    draw = random.Random(seed)
    with running(draw.choice([2, 3, 4])) as (server, socks), selectors.DefaultSelector() as arrived:
        for sock in socks:
            arrived.register(sock, selectors.EVENT_READ)
        for round_ in range(20):
            slots = draw.sample(range(SLOTS), 96)  # their results fit a socket's buffer
            values = {(child, slot): draw.randrange(1000) for child in CHILDREN for slot in slots}
            runs = [run for child in CHILDREN for run in random_runs(draw, child, round_, slots, values)]
            draw.shuffle(runs)
            sums: dict[int, tuple[int, ...]] = {}
            for run in runs:
                send_run(socks[CHILDREN.index(run[0].child)], run)
                while arrived.select(0):
                    sums |= results(arrived, round_)
            while len(sums) < len(slots):
                assert arrived.select(10), f"no results of {len(slots) - len(sums)} slots in round {round_}"
                sums |= results(arrived, round_)
            for slot, lanes in sums.items():
                assert lanes == (sum(values[child, slot] for child in CHILDREN),) * LANES
    assert server.handed_over > 0


def random_runs(
    draw: random.Random, child: int, round_: int, slots: list[int], values: dict[tuple[int, int], int]
) -> Iterator[list[Packet]]:
    """Each slot's packet at least once, in any order; some again, some of the round before."""
    left = [*slots, *draw.choices(slots, k=20)]
    draw.shuffle(left)
    while left:
        run = [
            gradient(slot, child, values[child, slot], round=round_) for slot in left[: draw.randrange(1, 20)]
        ]
        del left[: len(run)]
        if round_:
            run.append(gradient(draw.choice(slots), child, 5000, round=round_ - 1))
        yield run


def results(arrived: selectors.BaseSelector, round_: int) -> dict[int, tuple[int, ...]]:
    """Lanes by slot, of one packet of each socket that has some; later copies of older rounds are left out."""
    found = {}
    for key, _ in arrived.select(0):
        assert isinstance(key.fileobj, socket.socket)
        packet = Packet.parse(key.fileobj.recv(2000))
        if packet.round == round_:
            found[packet.slot] = packet.lane
    return found


def test_a_host_on_a_link_has_one_thread():
    link = HostLink(-1, HOSTS[0], "02:00:00:00:00:01", "02:00:00:00:00:02", 1e9)
    with pytest.raises(
        ValueError, match="threads is 2; it must be 1 where the host's network is a Unix socket"
    ):
        ParameterServer(ASSIGNMENT, link=link, threads=2)
