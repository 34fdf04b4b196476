# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Processor time and memory of a flow-level simulation of one job on all servers of a k-ary fat-tree.

python -m netfold.evaluation.speed.simulator_size [--sizes 64]     (k = 64: 65,536 servers)
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from multiprocessing.connection import Connection
from typing import Annotated

from rich.table import Table

from netfold.evaluation.core.command import Integers, integers, run_command
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.core.progress import one_by_one
from netfold.simulator.flow.run import simulate
from netfold.simulator.scenario import Job, Scenario
from netfold.simulator.schemes.catalog import SchemeName, SchemeOptions, scheme_of
from netfold.simulator.workloads.models import model
from netfold.testbed.errors import RunError
from netfold.topologies.fabric import PROGRAM_CHILDREN
from netfold.topologies.generators import GBIT, fat_tree

SCHEMES = (SchemeName.PANAMA, SchemeName.RING)
ITERATIONS = 10


@dataclass(frozen=True)
class SimulatorSizeRow(Row):
    """Processor seconds to build the fabric, to plan, to simulate, and of the whole process."""

    k: int
    servers: int
    scheme: str
    fabric_s: float
    plan_s: float
    simulation_s: float
    process_s: float
    memory_gib: float


COLUMNS = (
    Column[SimulatorSizeRow]("servers", lambda r: r.servers, ","),
    Column[SimulatorSizeRow]("scheme", lambda r: r.scheme, is_text=True),
    Column[SimulatorSizeRow]("fabric, s", lambda r: r.fabric_s, ".1f"),
    Column[SimulatorSizeRow]("trees, s", lambda r: r.plan_s, ".1f"),
    Column[SimulatorSizeRow]("simulation, s", lambda r: r.simulation_s, ".1f"),
    Column[SimulatorSizeRow]("process, s", lambda r: r.process_s, ".1f"),
    Column[SimulatorSizeRow]("GiB", lambda r: r.memory_gib, ".2f"),
)


@dataclass(frozen=True)
class SimulatorSize(Experiment[SimulatorSizeRow]):
    """Processor time and memory of a simulation by the number of servers, each in a process of its own."""

    name = "bench-simulator-size"
    sizes: Annotated[Integers, integers("k of the fat-trees.")] = Integers((6, 16, 32, 64))

    @property
    def notes(self) -> Sequence[str]:
        beyond = [k for k in self.sizes if k > PROGRAM_CHILDREN]
        if not beyond:
            return ()
        return (
            f"Nodes have up to {max(beyond)} children here, and ordinary programs take {PROGRAM_CHILDREN}: what is "
            "measured is the simulator's size, not a job that a controller would install.",
        )

    def rows(self, notify: Notify) -> Iterator[SimulatorSizeRow]:
        """Raises RunError."""
        cases = list(product(self.sizes, SCHEMES))
        context = multiprocessing.get_context("spawn")
        for k, scheme in one_by_one(cases, lambda c: f"k = {c[0]}, {c[1]}", notify, lambda c: c[0] ** 3):
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=measure, args=(k, scheme, there))
            process.start()
            there.close()
            try:
                yield here.recv()
            except EOFError:
                process.join()
                raise RunError(f"k = {k}, {scheme}: the process ended with {process.exitcode}") from None
            process.join()

    def tables(self, rows: Sequence[SimulatorSizeRow]) -> Iterable[Table]:
        return [table("One job on all servers of a fat-tree, processor seconds", COLUMNS, rows)]


def measure(k: int, scheme: SchemeName, answer: Connection) -> None:
    """Sends a SimulatorSizeRow."""
    started = time.process_time()
    fabric = fat_tree(k, rate=100, unit=GBIT)
    hosts = tuple(h.name for h in fabric.hosts)
    built = time.process_time()
    options = SchemeOptions(max_children=k)
    planned_scheme = scheme_of(scheme, fabric, hosts, options)
    job = Job("j", hosts, model("resnet-50"), planned_scheme, iterations=ITERATIONS)
    planned = time.process_time()
    done = simulate(Scenario(fabric, (job,)))
    ended = time.process_time()
    assert len(done.jobs[0].iterations) == ITERATIONS
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    times = (built - started, planned - built, ended - planned, time.process_time())
    answer.send(SimulatorSizeRow(k, len(hosts), str(scheme), *times, memory))


if __name__ == "__main__":
    run_command(SimulatorSize)
