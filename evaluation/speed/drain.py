# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packets a second of an aggregation node, with one thread and several, while no sender takes processor time; as root.

python -m netfold.evaluation.speed.drain [--nodes softswitch,ps] [--lanes 256,512] [--threads 1,2] [--rounds 5]
"""

from __future__ import annotations

import itertools
import os
import signal
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from netfold.evaluation.core.command import Integers, Words, expect, integers, run_command, words
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.core.progress import one_by_one
from netfold.evaluation.speed.drain_nodes import FilledNode, server, switch
from netfold.evaluation.speed.switch_pps import cpu_seconds, task_seconds
from netfold.testbed.errors import RunError

NODES: dict[str, Callable[[int, int], AbstractContextManager[FilledNode]]] = {
    "softswitch": switch,
    "ps": server,
}
STATE_TIMEOUT_S = 10.0
DRAINED_S = 0.1
"""More than the packets of a fill take with all cores."""


@dataclass(frozen=True)
class DrainRow(Row):
    """Medians of all fills. A packet is one that the node receives; it sends as many. `packets_s`: from the moment at
    which the node continues until its last result. `packets_cpu_s`: per second of its processor time. Ratios are to the
    first number of threads."""

    node: str
    lanes: int
    threads: int
    packets_s: float
    packets_cpu_s: float
    over_one: float
    cpu_over_one: float


COLUMNS = (
    Column[DrainRow]("node", lambda r: r.node, is_text=True),
    Column[DrainRow]("lanes", lambda r: r.lanes),
    Column[DrainRow]("threads", lambda r: r.threads),
    Column[DrainRow]("packets/s", lambda r: r.packets_s, ",.0f"),
    Column[DrainRow]("per CPU second", lambda r: r.packets_cpu_s, ",.0f"),
    Column[DrainRow]("over one thread", lambda r: r.over_one, ".2f"),
    Column[DrainRow]("CPU over one", lambda r: r.cpu_over_one, ".2f"),
)


@dataclass(frozen=True)
class Drain(Experiment[DrainRow]):
    """Packets a second of an aggregation node with one thread and several, while no sender takes processor time.

    The node is stopped (SIGSTOP) while runs of 16 packets from four workers fill its sockets, and then continues. Each
    of its threads has a core, and real-time priority. Its results go to hosts that do not read them. Numbers of
    threads take turns in each round."""

    name = "bench-drain"
    needs_namespaces = True
    nodes: Annotated[Words, words(f"Nodes, some of {', '.join(NODES)}.")] = Words(NODES)
    lanes: Annotated[Integers, integers("Lanes of a packet.")] = Integers((256,))
    threads: Annotated[Integers, integers("Threads of the node.")] = Integers((1, 2))
    rounds: Annotated[int, typer.Option(min=1, help="Rounds in which all numbers of threads take turns.")] = 5
    fills: Annotated[int, typer.Option(min=1, help="Fills in each of them.")] = 10

    def __post_init__(self) -> None:
        expect("--nodes", self.nodes, tuple(NODES))

    def rows(self, notify: Notify) -> Iterator[DrainRow]:
        """Raises RunError."""
        cases = [(name, lanes) for name in self.nodes for lanes in self.lanes]
        for name, lanes in one_by_one(cases, lambda case: f"{case[0]}, {case[1]} lanes", notify):
            rates: dict[int, list[tuple[float, float]]] = {count: [] for count in self.threads}
            for _ in range(self.rounds):
                for count in self.threads:
                    with NODES[name](lanes, count) as node:
                        give_cores(node, count)
                        rates[count] += [drain(node) for _ in range(self.fills)]
                        if node.lost():
                            raise RunError(f"the kernel lost packets of {name}, {lanes} lanes")
            found = {count: medians(pairs) for count, pairs in rates.items()}
            first = found[self.threads[0]]
            for count, (by_wall, by_cpu) in found.items():
                yield DrainRow(name, lanes, count, by_wall, by_cpu, by_wall / first[0], by_cpu / first[1])

    def tables(self, rows: Sequence[DrainRow]) -> Iterable[Table]:
        return [table("Filled sockets of an aggregation node, drained", COLUMNS, rows)]


def medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    walls, cpus = zip(*pairs, strict=True)
    return statistics.median(walls), statistics.median(cpus)


def drain(node: FilledNode) -> tuple[float, float]:
    """Packets a second, and a second of processor time, of one fill. Raises RunError."""
    os.kill(node.pid, signal.SIGSTOP)
    try:
        wait_until(node.pid, "T")
        packets = node.fill()
        before = cpu_seconds(node.pid)
        start = time.clock_gettime(time.CLOCK_REALTIME)
    finally:
        os.kill(node.pid, signal.SIGCONT)
    time.sleep(DRAINED_S)  # a look at the node would take processor time from it
    wait_until(node.pid, "S")
    used = cpu_seconds(node.pid) - before
    end = node.last_result()
    if end is None:
        raise RunError("the kernel lost packets of the last results")
    return packets / (end - start), packets / used


def give_cores(node: FilledNode, count: int) -> None:
    """The `count` threads that a fill keeps busiest get a core each, before other programs' threads."""
    tasks = list(Path(f"/proc/{node.pid}/task").iterdir())
    before = {task: task_seconds(task) for task in tasks}
    drain(node)
    tasks.sort(key=lambda task: before[task] - task_seconds(task))
    for task, core in zip(tasks[:count], itertools.cycle(sorted(os.sched_getaffinity(0))), strict=False):
        os.sched_setaffinity(int(task.name), {core})
        os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(1))


def wait_until(pid: int, wanted: str) -> None:
    """All threads of a process are in this state. Raises RunError."""
    end = time.monotonic() + STATE_TIMEOUT_S
    while any(state(task) != wanted for task in Path(f"/proc/{pid}/task").iterdir()):
        if time.monotonic() > end:
            raise RunError(f"process {pid} did not get into state {wanted} within {STATE_TIMEOUT_S:g} s")
        time.sleep(0.01)  # a process has no event for the states of its threads


def state(task: Path) -> str:
    """A letter, as in proc(5)."""
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


if __name__ == "__main__":
    run_command(Drain)
