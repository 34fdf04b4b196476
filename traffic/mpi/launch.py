# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The command lines of MPI launchers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from netfold.protocol.connection import connection
from netfold.protocol.environment import Variable
from netfold.traffic.mpi.recipe import MpiBuildError, build, compiler_of

VERSION_TIMEOUT_S = 60.0
PASSED_ON = ("NETFOLD_", "XDG_RUNTIME_DIR")
"""Variables of the environment that ranks need: their names begin so."""


_INTERPRETER = (3).to_bytes(4, "little")
"""PT_INTERP, a program header's type."""


class StaticProgramError(Exception):
    """A program takes no library that is preloaded, but has to use the network."""


class Flavor(StrEnum):
    """Whose options a launcher takes."""

    OPEN_MPI = "Open MPI"
    HYDRA = "Hydra"


@dataclass(frozen=True)
class MpiProgram:
    """A program and its arguments, to be started as `ranks` processes on `hosts` (none: this machine).

    launcher     starts the launcher's helper on a host, in place of ssh: `launcher HOST COMMAND...`
    options      of the MPI launcher
    environment  of the ranks
    """

    command: Sequence[object]
    ranks: int
    hosts: Sequence[str] = ()
    launcher: str = ""
    options: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def flavor_of(mpirun: str) -> Flavor:
    """Raises MpiBuildError if the launcher is missing, or another one."""
    found = shutil.which(mpirun)
    if found is None:
        raise MpiBuildError(f"no {mpirun} on PATH: apt-get install openmpi-bin, or mpich")
    shown = subprocess.run(
        [found, "--version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False
    ).stdout
    if any(name in shown for name in ("Open MPI", "OpenRTE", "Open RTE")):
        return Flavor.OPEN_MPI
    if "HYDRA" in shown:
        return Flavor.HYDRA
    raise MpiBuildError(f"{found} is neither Open MPI's launcher nor MPICH's")


def refuse_static(program: str) -> None:
    """Prints that a program takes no preloaded library, if it is linked statically. Raises StaticProgramError instead
    if NETFOLD_MPI_REQUIRED is 1."""
    found = shutil.which(program)
    if found is None or not _is_static(Path(found)):
        return
    text = f"{found} is linked statically: no library can be preloaded. Link it with shared libraries"
    if os.environ.get(Variable.MPI_REQUIRED, "0") not in ("", "0"):
        raise StaticProgramError(text)
    sys.stderr.write(f"netfold: collectives are the MPI library's own: {text}\n")


def _is_static(program: Path) -> bool:
    """Whether it is an ELF file of 64 bits without a dynamic linker (PT_INTERP)."""
    data = program.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        return False
    table, size, count = (
        int.from_bytes(data[at : at + width], "little") for at, width in ((32, 8), (54, 2), (56, 2))
    )
    kinds = [data[at : at + 4] for at in range(table, table + size * count, size)]
    return _INTERPRETER not in kinds


def preload_environment(mpirun: str, library: Path | None = None) -> dict[str, str]:
    """The library, and what leads its agent to the controller. Raises MpiBuildError, ConnectError."""
    passed = {key: value for key, value in os.environ.items() if key.startswith(PASSED_ON)}
    chosen = library or build(compiler_of(mpirun))
    return {**passed, Variable.CONTROLLER: connection().address, "LD_PRELOAD": str(chosen)}


def command_line(mpirun: str, flavor: Flavor, program: MpiProgram) -> list[str]:
    """Ranks are placed on the hosts in turn."""
    words = [mpirun, *program.options]
    hosts = list(program.hosts)
    slots = -(-program.ranks // len(hosts)) if hosts else 0
    if flavor is Flavor.OPEN_MPI:
        words += (
            ["--host", ",".join(f"{host}:{slots}" for host in hosts), "--map-by", "node"] if hosts else []
        )
        words += ["--oversubscribe"]
        if program.launcher:
            words += ["--mca", "plm_rsh_agent", program.launcher, "--mca", "plm_rsh_no_tree_spawn", "1"]
        for key, value in program.environment.items():
            words += ["-x", f"{key}={value}"]
    else:
        words += ["-hosts", ",".join(hosts), "-ppn", "1"] if hosts else []
        words += ["-launcher", "ssh", "-launcher-exec", program.launcher] if program.launcher else []
        for key, value in program.environment.items():
            words += ["-genv", key, value]
    return [*words, "-n", str(program.ranks), *map(str, program.command)]
