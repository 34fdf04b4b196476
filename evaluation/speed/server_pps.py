# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packets that a parameter server receives and answers in a second of processor time, on the loopback.

python -m netfold.evaluation.speed.server_pps [--lanes 64,256] [--threads 1,2] [--seconds 3]
"""

from __future__ import annotations

import multiprocessing
import resource
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Annotated

import typer
from rich.table import Table

from netfold.evaluation.core.command import Integers, integers, run_command
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.speed.host_pps import CLIENT, PORT, SERVER, all_reduce, assignment
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer

READY_TIMEOUT_S, END_TIMEOUT_S = 60, 600


@dataclass(frozen=True)
class ServerRow(Row):
    """`packets_s`: chunks that a worker completes. `packets_cpu_s`: gradients that the server receives, and as many
    results that it sends, per second of its processor time."""

    lanes: int
    threads: int
    packets_s: float
    packets_cpu_s: float


COLUMNS = (
    Column[ServerRow]("lanes", lambda r: r.lanes),
    Column[ServerRow]("threads", lambda r: r.threads),
    Column[ServerRow]("packets/s", lambda r: r.packets_s, ",.0f"),
    Column[ServerRow]("per CPU second", lambda r: r.packets_cpu_s, ",.0f"),
)


@dataclass(frozen=True)
class ServerPps(Experiment[ServerRow]):
    """Packets of a parameter server in a second of processor time. A worker in another process reduces arrays over
    it."""

    name = "bench-server-pps"
    lanes: Annotated[Integers, integers("Lanes of a packet.")] = Integers((32, 64, 256))
    threads: Annotated[Integers, integers("Threads of the server.")] = Integers((1, 2))
    seconds: Annotated[float, typer.Option(help="Duration for each row.")] = 2.0

    def rows(self, notify: Notify) -> Iterator[ServerRow]:
        for lanes in self.lanes:
            for threads in self.threads:
                notify(f"{lanes} lanes, {threads} threads")
                yield ServerRow(lanes, threads, *measure(lanes, threads, self.seconds))

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


if __name__ == "__main__":
    run_command(ServerPps)
