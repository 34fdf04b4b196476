# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""MPI_Allreduce through switches, beside the MPI library's own algorithms over the same links, in the columns of
osu_allreduce. Needs root and an MPI library.

    python -m netfold.evaluation.speed.mpi [--mpi openmpi] [--hosts 8] [--sizes 8,64,512,4096,65536,1048576,4194304]
        [--algorithms 0,1,2,3,4,5,6] [--numerics auto,block]

Size, and mean, least and largest time of a call of the ranks, us. "of the best": the mean beside that of the
algorithm that is the fastest of the size."""

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

from netfold.evaluation.core.command import Integers, Lanes, expect, integers, run_command
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.protocol.environment import Variable
from netfold.testbed.errors import RunError
from netfold.testbed.testbed import Testbed
from netfold.topologies.generators import single_switch

SOURCE = Path(__file__).with_name("mpi_allreduce.c")
MPIS = ("openmpi", "mpich")
ALGORITHMS = {
    "openmpi": {
        0: "its choice",
        1: "linear",
        2: "nonoverlapping",
        3: "recursive doubling",
        4: "ring",
        5: "segmented ring",
        6: "Rabenseifner",
    },
    "mpich": {0: "its choice", 1: "recursive_doubling", 2: "reduce_scatter_allgather"},
}
"""Algorithms of an all-reduce. Open MPI numbers them (coll_tuned_allreduce_algorithm), MPICH names them."""
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


@dataclass(frozen=True)
class MpiAllreduce(Experiment[LatencyRow]):
    """MPI_Allreduce through switches, beside the MPI library's own algorithms. Needs root and an MPI library.

    One leaf; a rank in each host."""

    name = "bench-mpi"
    needs_namespaces = True
    mpi: Annotated[str, typer.Option(help="openmpi or mpich.")] = "openmpi"
    hosts: Annotated[int, typer.Option(min=2, help="Hosts with a rank each.")] = 8
    sizes: Annotated[Integers, integers("Bytes of floats.")] = Integers(
        (8, 64, 512, 4096, 32768, 262144, 1048576, 4194304, 16777216)
    )
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

    def rows(self, notify: Notify) -> Iterator[LatencyRow]:
        """Raises RunError, NetworkError, MpiBuildError."""
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "allreduce"
            subprocess.run([_wrapper(self.mpi), "-O2", "-w", "-o", program, SOURCE], check=True)
            fabric = single_switch(
                self.hosts, rate=self.rate_mbps, queue=self.queue, name=f"leaf-of-{self.hosts}"
            )
            with Testbed(fabric, target=self.target, lanes=self.lanes, on_step=notify) as system:
                for numerics in self.numerics.split(","):
                    environment: dict[str, str] = {Variable.MPI_REQUIRED: "1", Variable.NUMERICS: numerics}
                    yield from self._measure(
                        system, program, f"{NETFOLD}, {numerics}", 0, environment, notify
                    )
                for number in self.algorithms:
                    if number in ALGORITHMS[self.mpi]:
                        name = ALGORITHMS[self.mpi][number]
                        yield from self._measure(system, program, name, number, {}, notify)

    def tables(self, rows: Sequence[LatencyRow]) -> Iterable[Table]:
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
            yield table(f"{self.mpi}, {self.hosts} hosts: {algorithm}", columns, chosen)

    def _measure(
        self,
        system: Testbed,
        program: Path,
        name: str,
        algorithm: int,
        environment: Mapping[str, str],
        notify: Notify,
    ) -> Iterator[LatencyRow]:
        """`environment`: of ranks that use netfold; empty: they do not."""
        options, chosen = _choose(self.mpi, algorithm)
        done = system.mpirun(
            [program, self.seconds, *self.sizes],
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
            words = line.split()
            if len(words) == 5 and words[0].isdecimal():
                mean, least, largest = map(float, words[1:4])
                row = LatencyRow(
                    self.mpi, self.hosts, name, int(words[0]), mean, least, largest, int(words[4])
                )
                notify(f"{name}: {row.size} bytes: {row.mean_us:.0f} us")
                yield row


def _choose(mpi: str, algorithm: int) -> tuple[list[str], dict[str, str]]:
    """Options of the launcher, and environment of the ranks. More ranks than processors: waiting ranks yield."""
    if mpi == "openmpi":
        options = ["--mca", "mpi_yield_when_idle", "1"]
        if algorithm:
            options += ["--mca", "coll_tuned_use_dynamic_rules", "1"]
            options += ["--mca", "coll_tuned_allreduce_algorithm", str(algorithm)]
        return options, {}
    name = ALGORITHMS[mpi][algorithm] if algorithm else "auto"
    return [], {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": name}


def _wrapper(mpi: str) -> str:
    """Raises RunError."""
    found = shutil.which(f"mpicc.{mpi}")
    if found is None:
        raise RunError(f"no mpicc.{mpi} on PATH: apt-get install libopenmpi-dev, or libmpich-dev")
    return found


if __name__ == "__main__":
    run_command(MpiAllreduce)
