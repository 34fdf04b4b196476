# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Compares collectives of MPI through switches with the MPI library's own algorithms over the same links. The columns
are those of osu_allreduce. Needs root and an MPI library.

    python -m netfold.evaluation.speed.mpi [--mpi openmpi] [--hosts 8] [--sizes 8,64,512,4096,65536,1048576,4194304]
        [--collectives allreduce,reduce-scatter,allgather,bcast,barrier] [--algorithms 0,1,2,3,4,5,6]
        [--numerics auto,block]

Size, and mean, least and largest time of a call of the ranks, us. The size is that of the array which a reduce-scatter
divides and an all-gather makes. "of the best": the mean over that of the fastest algorithm of the size."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from netfold.evaluation.core.command import Integers, Lanes, Words, expect, integers, run_command, words
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.protocol.environment import Variable
from netfold.testbed.errors import RunError
from netfold.testbed.testbed import Testbed
from netfold.topologies.generators import single_switch

SOURCE = Path(__file__).with_name("mpi_collectives.c")
MPIS = ("openmpi", "mpich")
COLLECTIVES = {
    "allreduce": ("linear", "nonoverlapping", "recursive doubling", "ring", "segmented ring", "Rabenseifner"),
    "reduce-scatter": ("nonoverlapping", "recursive halving", "ring", "butterfly"),
    "allgather": ("linear", "bruck", "recursive doubling", "ring", "neighbor exchange"),
    "bcast": ("linear", "chain", "pipeline", "split binary", "binary", "binomial"),
    "barrier": ("linear", "double ring", "recursive doubling", "bruck"),
}
"""The collectives, and Open MPI's algorithms of each from number 1 on (coll_tuned_allreduce_algorithm)."""
ITS_CHOICE = "its choice"
MPICH = {"allreduce": ("recursive_doubling", "reduce_scatter_allgather")}
"""MPICH names its algorithms. Of other collectives its choice is measured alone."""
NETFOLD = "netfold"
TIMEOUT_S = 900.0


@dataclass(frozen=True)
class LatencyRow(Row):
    """A line of osu_allreduce, us. `algorithm`: NETFOLD and its numerics, or the MPI library's."""

    mpi: str
    hosts: int
    algorithm: str
    size: int
    mean_us: float
    least_us: float
    largest_us: float
    calls: int
    collective: str = "allreduce"


@dataclass(frozen=True)
class MpiCollectives(Experiment[LatencyRow]):
    """Compare collectives of MPI through switches with the MPI library's own algorithms. Needs root and an MPI library.

    One leaf; a rank in each host."""

    name = "bench-mpi"
    needs_namespaces = True
    mpi: Annotated[str, typer.Option(help="openmpi or mpich.")] = "openmpi"
    hosts: Annotated[int, typer.Option(min=2, help="Hosts with a rank each.")] = 8
    sizes: Annotated[Integers, integers("Bytes of floats.")] = Integers(
        (8, 64, 512, 4096, 32768, 262144, 1048576, 4194304, 16777216)
    )
    collectives: Annotated[Words, words("Collectives.")] = Words(("allreduce",))
    algorithms: Annotated[
        Integers, integers("Algorithms of the MPI library by its numbers; 0: its choice.")
    ] = Integers((0, 1, 2, 3, 4, 5, 6))
    numerics: Annotated[str, typer.Option(help="Numerics of netfold's job, separated by commas.")] = "auto"
    seconds: Annotated[float, typer.Option(help="To measure each size for.")] = 1.0
    rate_mbps: Annotated[float, typer.Option("--rate", help="Rate of each link, Mbit/s.")] = 100.0
    lanes: Lanes = 256
    target: Annotated[str, typer.Option(help="The switches: softswitch or bmv2.")] = "softswitch"
    queue: Annotated[int, typer.Option(help="Queue of each switch port, in packets.")] = 64

    def __post_init__(self) -> None:
        expect("--mpi", (self.mpi,), MPIS)
        expect("--collectives", self.collectives, tuple(COLLECTIVES))

    def rows(self, notify: Notify) -> Iterator[LatencyRow]:
        """Raises RunError, NetworkError, MpiBuildError."""
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "collectives"
            subprocess.run([_wrapper(self.mpi), "-O2", "-w", "-o", program, SOURCE], check=True)
            fabric = single_switch(
                self.hosts, rate=self.rate_mbps, queue=self.queue, name=f"leaf-of-{self.hosts}"
            )
            with Testbed(fabric, target=self.target, lanes=self.lanes, on_step=notify) as system:
                for collective in self.collectives:
                    yield from self._measure_all(system, program, collective, notify)

    def _measure_all(
        self, system: Testbed, program: Path, collective: str, notify: Notify
    ) -> Iterator[LatencyRow]:
        """Measures a collective by netfold, then by each algorithm of the MPI library."""
        for numerics in self.numerics.split(","):
            environment: dict[str, str] = {Variable.MPI_REQUIRED: "1", Variable.NUMERICS: numerics}
            name = f"{NETFOLD}, {numerics}"
            yield from self._measure(system, program, collective, name, 0, environment, notify)
        own = (COLLECTIVES if self.mpi == "openmpi" else MPICH).get(collective, ())
        for number, name in enumerate((ITS_CHOICE, *own)):
            if number in self.algorithms:
                yield from self._measure(system, program, collective, name, number, {}, notify)

    def tables(self, rows: Sequence[LatencyRow]) -> Iterable[Table]:
        for collective in dict.fromkeys(row.collective for row in rows):
            yield from self._tables_of([row for row in rows if row.collective == collective])

    def _tables_of(self, rows: Sequence[LatencyRow]) -> Iterator[Table]:
        best: dict[int, LatencyRow] = {}
        for row in rows:
            is_mpis = not row.algorithm.startswith(NETFOLD)
            if is_mpis and (row.size not in best or row.mean_us < best[row.size].mean_us):
                best[row.size] = row

        def of_best(row: LatencyRow) -> float | None:
            return row.mean_us / best[row.size].mean_us if row.size in best else None

        columns = (
            Column[LatencyRow]("# Size", lambda r: r.size),
            Column[LatencyRow]("Avg Latency(us)", lambda r: r.mean_us, ".2f"),
            Column[LatencyRow]("Min Latency(us)", lambda r: r.least_us, ".2f"),
            Column[LatencyRow]("Max Latency(us)", lambda r: r.largest_us, ".2f"),
            Column[LatencyRow]("Iterations", lambda r: r.calls),
            Column[LatencyRow]("of the best", of_best, ".2f"),
            Column[LatencyRow](
                "the best", lambda r: best[r.size].algorithm if r.size in best else "", is_text=True
            ),
        )
        for algorithm in dict.fromkeys(row.algorithm for row in rows):
            chosen = [row for row in rows if row.algorithm == algorithm]
            title = f"{self.mpi}, {self.hosts} hosts, {rows[0].collective}: {algorithm}"
            yield table(title, columns, chosen)

    def _measure(
        self,
        system: Testbed,
        program: Path,
        collective: str,
        name: str,
        algorithm: int,
        environment: Mapping[str, str],
        notify: Notify,
    ) -> Iterator[LatencyRow]:
        """`environment`: of ranks that use netfold; empty: they do not."""
        options, chosen = _choose(self.mpi, collective, algorithm)
        done = system.mpirun(
            [program, collective, self.seconds, *self.sizes],
            self.hosts,
            timeout_s=TIMEOUT_S,
            mpirun=f"mpirun.{self.mpi}",
            uses_netfold=bool(environment),
            options=options,
            environment={**chosen, **environment},
        )
        if done.returncode != 0:
            output = f"{done.stdout}{done.stderr}".strip()
            raise RunError(f"{name}: mpirun ended with {done.returncode}: {output[-500:]}")
        for line in done.stdout.splitlines():
            cells = line.split()
            if len(cells) == 5 and cells[0].isdecimal():
                mean, least, largest = map(float, cells[1:4])
                row = LatencyRow(
                    self.mpi, self.hosts, name, int(cells[0]), mean, least, largest, int(cells[4]), collective
                )
                notify(f"{collective}, {name}: {row.size} bytes: {row.mean_us:.0f} us")
                yield row


def _choose(mpi: str, collective: str, algorithm: int) -> tuple[list[str], dict[str, str]]:
    """Options of the launcher, and environment of the ranks. More ranks than processors: waiting ranks yield."""
    if mpi == "openmpi":
        options = ["--mca", "mpi_yield_when_idle", "1"]
        if algorithm:
            options += ["--mca", "coll_tuned_use_dynamic_rules", "1"]
            name = collective.replace("-", "_")
            options += ["--mca", f"coll_tuned_{name}_algorithm", str(algorithm)]
        return options, {}
    return [], {
        "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": MPICH[collective][algorithm - 1] if algorithm else "auto"
    }


def _wrapper(mpi: str) -> str:
    """Raises RunError."""
    found = shutil.which(f"mpicc.{mpi}")
    if found is None:
        raise RunError(f"no mpicc.{mpi} on PATH: apt-get install libopenmpi-dev, or libmpich-dev")
    return found


if __name__ == "__main__":
    run_command(MpiCollectives)
