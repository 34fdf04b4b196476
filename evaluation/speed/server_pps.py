# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packets that a parameter server receives and answers in a second of processor time, on the loopback, and in a second
with one thread and several.

python -m netfold.evaluation.speed.server_pps [--lanes 64,256] [--threads 1,2] [--seconds 3]
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import socket
import statistics
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Annotated

import typer
from rich.table import Table

from netfold.evaluation.core.command import Integers, integers, run_command
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.speed.host_pps import CLIENT, PORT, SERVER, all_reduce, assignment
from netfold.protocol.wire import Kind, Packet, packet_bytes
from netfold.testbed.errors import RunError
from netfold.traffic.membership.assignment import TreeAssignment
from netfold.traffic.packets.transport import Address, UdpEndpoint
from netfold.traffic.server.server import ParameterServer

READY_TIMEOUT_S, END_TIMEOUT_S, DRAIN_TIMEOUT_S = 60, 600, 5
RUN, SLOTS, FILLS = 16, 512, 15
UDP_SEGMENT = 103  # not in Python's socket module


@dataclass(frozen=True)
class ServerRow(Row):
    """`packets_s`: chunks that a worker completes. `packets_cpu_s`: gradients that the server receives, and as many
    results that it sends, per second of its processor time. `drained_s`: gradients that wait in its sockets, received
    and answered, per second, while no sender takes processor time. `over_one`: of the first number of threads."""

    lanes: int
    threads: int
    packets_s: float
    packets_cpu_s: float
    drained_s: float
    over_one: float


COLUMNS = (
    Column[ServerRow]("lanes", lambda r: r.lanes),
    Column[ServerRow]("threads", lambda r: r.threads),
    Column[ServerRow]("packets/s", lambda r: r.packets_s, ",.0f"),
    Column[ServerRow]("per CPU second", lambda r: r.packets_cpu_s, ",.0f"),
    Column[ServerRow]("drained/s", lambda r: r.drained_s, ",.0f"),
    Column[ServerRow]("over one thread", lambda r: r.over_one, ".2f"),
)


@dataclass(frozen=True)
class ServerPps(Experiment[ServerRow]):
    """Packets of a parameter server in a second of processor time. A worker in another process reduces arrays over
    it. `drained/s`: the sockets are filled before it starts, so that all cores are its own."""

    name = "bench-server-pps"
    lanes: Annotated[Integers, integers("Lanes of a packet.")] = Integers((32, 64, 256))
    threads: Annotated[Integers, integers("Threads of the server.")] = Integers((1, 2))
    seconds: Annotated[float, typer.Option(help="Duration for each row.")] = 2.0

    def rows(self, notify: Notify) -> Iterator[ServerRow]:
        for lanes in self.lanes:
            drained = drain(lanes, self.threads)
            for threads in self.threads:
                notify(f"{lanes} lanes, {threads} threads")
                packets_s, packets_cpu_s = measure(lanes, threads, self.seconds)
                over = drained[threads] / drained[self.threads[0]]
                yield ServerRow(lanes, threads, packets_s, packets_cpu_s, drained[threads], over)

    def tables(self, rows: Sequence[ServerRow]) -> Iterable[Table]:
        return [table("A parameter server on the loopback", COLUMNS, rows)]


def measure(lanes: int, threads: int, seconds: float) -> tuple[float, float]:
    """Chunks a second of a worker, and packets a second of the server's processor time."""
    context = multiprocessing.get_context("spawn")
    ready, ended = context.Event(), context.Event()
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=serve, args=(lanes, threads, ready, ended, there), daemon=True)
    process.start()
    try:
        ready.wait(READY_TIMEOUT_S)
        packets, wall, _ = all_reduce(lanes, seconds)
        ended.set()
        received, cpu = here.recv()
    finally:
        process.join(30)
    return packets / wall, received / cpu


def serve(lanes: int, threads: int, ready: Event, ended: Event, answer: Connection) -> None:
    """Sends the number of packets and the processor time between `ready` and `ended`."""
    server = ParameterServer(assignment(lanes, (0,)), SERVER, [Address(CLIENT, PORT)], threads=threads)
    serving = threading.Thread(target=server.serve)
    serving.start()
    before = resource.getrusage(resource.RUSAGE_SELF)
    ready.set()
    ended.wait(END_TIMEOUT_S)
    after = resource.getrusage(resource.RUSAGE_SELF)
    server.stop()
    serving.join()
    server.close()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    answer.send((sum(server.counts().values()), cpu))


def drain(lanes: int, threads: Integers) -> dict[int, float]:
    """Packets a second, by the number of threads: medians of rounds in which all take turns. Raises RunError."""
    rates: dict[int, list[float]] = {count: [] for count in threads}
    for _ in range(FILLS):
        for count in threads:
            rate = drain_once(lanes, count)
            if rate is not None:
                rates[count].append(rate)
    if not all(rates.values()):
        raise RunError(f"the kernel lost packets of all {FILLS} rounds on the loopback")
    return {count: statistics.median(rates[count]) for count in threads}


def drain_once(lanes: int, threads: int) -> float | None:
    """Fills the sockets of a server that does not run yet, and times it. Its results go to a socket that is full. None:
    the kernel lost some of the packets, as on a busy machine."""
    tree = TreeAssignment(1, 1.0, SLOTS, SLOTS // 2, 0, SERVER, (0,))
    server = ParameterServer(
        replace(assignment(lanes, (0,)), trees=(tree,)), SERVER, [Address(CLIENT, PORT)], threads=threads
    )
    serving = threading.Thread(target=server.serve)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            sender.bind((CLIENT, PORT))
            sender.connect((SERVER, PORT))
            runs = runs_that_fit(lanes)
            for run in range(runs):
                sender.sendmsg(*as_run(lanes, run * RUN))
            start = time.perf_counter()
            serving.start()
            while int(server.verdicts.sum()) < runs * RUN:
                if time.perf_counter() - start > DRAIN_TIMEOUT_S:
                    return None
                time.sleep(1e-4)  # takes no core from the server
            return runs * RUN / (time.perf_counter() - start)
    finally:
        server.stop()
        serving.join()
        server.close()


def runs_that_fit(lanes: int) -> int:
    """In a server's socket, with what the kernel adds to them."""
    probe = UdpEndpoint(Address(SERVER, 0))
    with socket.socket(fileno=os.dup(probe.fileno())) as same:
        probe.close()
        buffer = same.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    return max(1, buffer // (2 * RUN * packet_bytes(lanes) + 4096))


def as_run(lanes: int, first: int) -> tuple[list[bytes], list[tuple[int, int, bytes]]]:
    """Chunks of consecutive slots, as one send of a worker, with its control data."""
    values = tuple(range(lanes))
    packets = [
        Packet(Kind.GRADIENT, 1, 1, chunk // SLOTS, chunk % SLOTS, 0, values).pack()
        for chunk in range(first, first + RUN)
    ]
    return packets, [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", len(packets[0])))]


if __name__ == "__main__":
    run_command(ServerPps)
