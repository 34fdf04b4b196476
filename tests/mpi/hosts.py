# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""MPI programs on hosts of a testbed: switches add up. Links carry Open MPI's own messages, too."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from netfold.testbed.testbed import Testbed
from tests.mpi.launcher import DEADLINE_S, Mpi

LANES = 64
RATE_MBPS = 400

OWN_MESSAGES = {"openmpi": {}, "mpich": {"UCX_TLS": "all"}}
"""MPICH's own messages take shared memory. Over UCX's TCP, ranks of MPICH 4.0.2 that share a processor can wait in
MPI_Finalize for ever, also without netfold (docs/reference/mpi.md)."""


@dataclass(frozen=True)
class Hosts:
    """Two leaves below a spine."""

    system: Testbed

    def run(
        self,
        mpi: Mpi,
        *program: object,
        ranks: int = 4,
        uses_netfold: bool = True,
        environment: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        folder: Path | None = None,
        timeout_s: float = DEADLINE_S,
    ) -> subprocess.CompletedProcess[str]:
        """`ranks` of the program, on the hosts in turn, with this working folder. Its collectives go through the
        switches, or, without netfold, over TCP."""
        yields = ("--mca", "mpi_yield_when_idle", "1") if mpi.name == "openmpi" else ()
        return self.system.mpirun(
            program,
            ranks,
            timeout_s=timeout_s,
            mpirun=mpi.command_named("mpirun"),
            uses_netfold=uses_netfold,
            options=(*yields, *options),
            environment={**OWN_MESSAGES[mpi.name], "NETFOLD_MPI_REQUIRED": "1", **(environment or {})},
            cwd=folder,
        )

    def chunks_of(self, job: str) -> int:
        """Chunks of a job that has ended: every host's worker has received so many results from the switches."""
        ended = self.system.controller.wait_ended(job, DEADLINE_S)
        return min(member.report.chunks for member in ended.members)


@contextmanager
def running_hosts(
    folder: Path,
    hosts: int = 4,
    *,
    name: str = "mpi",
    first_grpc_port: int = 9930,
    controller: Sequence[str] = (),
) -> Iterator[Hosts]:
    """`controller`: its options."""
    fabric = folder / "fabric.yaml"
    fabric.write_text(
        f"name: mpi\ngenerate:\n  leaf_spine: {{leaves: 2, spines: 1, hosts_per_leaf: {hosts // 2}, "
        f"parameter_servers: 0, rate: {RATE_MBPS}, fabric_rate: {2 * RATE_MBPS}}}\n"
    )
    with Testbed(
        str(fabric),
        target="softswitch",
        lanes=LANES,
        name=name,
        first_grpc_port=first_grpc_port,
        controller_options=controller,
    ) as system:
        yield Hosts(system)
