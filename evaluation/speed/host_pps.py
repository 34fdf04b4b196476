# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packets that one worker process sends and receives a second, over a parameter server on the loopback.

python -m netfold.evaluation.speed.host_pps [--lanes 64] [--seconds 3]
"""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from netfold.evaluation.core.command import Integers, integers, run_command
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.protocol.wire import Kind, Packet, packet_bytes
from netfold.testbed.errors import RunError
from netfold.traffic.congestion import Congestion
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.membership.base import StaticMembership
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker

SERVER, CLIENT, PORT = "127.88.0.100", "127.88.0.1", 61690
SLOTS = 4096
WINDOW = 64
CHUNKS = 20_000
READY_TIMEOUT_S = 30

Sent = tuple[int, float, float]
"""Packets, seconds, seconds of processor time."""


@dataclass(frozen=True)
class SenderRow(Row):
    """`packets_s` counts gradients sent, each of which also came back as a result. `packets_cpu_s`: per second of the
    sender's processor time. `over_plain`: packets_s over those of the plain sender."""

    lanes: int
    packet_bytes: int
    sender: str
    packets_s: float
    packets_cpu_s: float
    over_plain: float


COLUMNS = (
    Column[SenderRow]("lanes", lambda r: r.lanes),
    Column[SenderRow]("sender", lambda r: r.sender, is_text=True),
    Column[SenderRow]("packets/s", lambda r: r.packets_s, ",.0f"),
    Column[SenderRow]("per CPU second", lambda r: r.packets_cpu_s, ",.0f"),
    Column[SenderRow]("over plain", lambda r: r.over_plain, ".1f"),
)


@dataclass(frozen=True)
class HostPps(Experiment[SenderRow]):
    """Packets of one worker process over a parameter server on the loopback.

    Two senders run one after the other, each in a process of its own, with the same packets. plain: one sendto and one
    recvfrom for each packet, packed and parsed in Python. netfold: Worker.all_reduce with quantizing, window, timers,
    results written back."""

    name = "bench-host-pps"
    lanes: Annotated[Integers, integers("Lanes of a packet.")] = Integers((32, 64, 256))
    seconds: Annotated[float, typer.Option(help="Duration for each sender.")] = 2.0

    def rows(self, notify: Notify) -> Iterator[SenderRow]:
        senders = {"plain": (reflect, send_plainly), "netfold": (serve, all_reduce)}
        for lanes in self.lanes:
            plain = 0.0
            for name, (peer, sender) in senders.items():
                notify(f"{lanes} lanes, {name}")
                packets, wall, cpu = in_processes(peer, sender, lanes, self.seconds)
                plain = plain or packets / wall
                rate = packets / wall
                yield SenderRow(lanes, packet_bytes(lanes), name, rate, packets / cpu, rate / plain)

    def tables(self, rows: Sequence[SenderRow]) -> Iterable[Table]:
        return [table("Packets of one worker process: sent, and as many received", COLUMNS, rows)]


def in_processes(
    peer: Callable[[int, Event], None], sender: Callable[[int, float], Sent], lanes: int, seconds: float
) -> Sent:
    """Runs peer and sender in two processes. Raises RunError."""
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    other = context.Process(target=peer, args=(lanes, ready), daemon=True)
    other.start()
    ready.wait(READY_TIMEOUT_S)
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=lambda: there.send(sender(lanes, seconds)), daemon=True)
    process.start()
    try:
        if not here.poll(seconds * 5 + 60):
            raise RunError(f"{sender.__name__} did not finish within {seconds * 5 + 60:g} s")
        found: Sent = here.recv()
    finally:
        process.kill()
        other.kill()
        process.join()
        other.join()
    return found


def serve(lanes: int, ready: Event) -> None:
    server = ParameterServer(assignment(lanes, (0,)), SERVER)
    ready.set()
    server.serve()


def reflect(lanes: int, ready: Event) -> None:
    """Sends every packet back as a result: the cheapest peer there can be."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((SERVER, PORT))
        sock.connect((CLIENT, PORT))
        ready.set()
        payload = bytearray(packet_bytes(lanes))
        while True:
            sock.recv_into(payload)
            payload[0] |= Kind.RESULT
            sock.send(payload)


def all_reduce(lanes: int, seconds: float) -> Sent:
    array = np.random.default_rng(1).standard_normal(lanes * CHUNKS, np.float32)
    with Worker(StaticMembership(assignment(lanes)), CLIENT, congestion=Congestion.FIXED) as worker:
        worker.all_reduce(array.copy())
        wall, cpu, calls = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - wall < seconds:
            worker.all_reduce(array)
            calls += 1
        return calls * CHUNKS, time.perf_counter() - wall, time.process_time() - cpu


def send_plainly(lanes: int, seconds: float) -> Sent:
    count = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((CLIENT, PORT))
        sock.settimeout(5)
        values = tuple(range(lanes))
        wall, cpu = time.perf_counter(), time.process_time()
        while time.perf_counter() - wall < seconds:
            for chunk in range(count, count + WINDOW):
                packet = Packet(Kind.GRADIENT, 1, 1, chunk // SLOTS, chunk % SLOTS, 0, values)
                sock.sendto(packet.pack(), (SERVER, PORT))
            for _ in range(WINDOW):
                Packet.parse(sock.recv(2048))
            count += WINDOW
        return count, time.perf_counter() - wall, time.process_time() - cpu


def assignment(lanes: int, children: tuple[int, ...] = ()) -> Assignment:
    tree = TreeAssignment(1, 1.0, SLOTS, SLOTS // 2, 0, SERVER, children)
    return Assignment("host_pps", 1, PORT, lanes, 0, 1, (tree,))


if __name__ == "__main__":
    run_command(HostPps)
