# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Collectives of programs in C and Fortran, with the library preloaded."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from pathlib import Path

import pytest

from netfold.traffic.mpi.recipe import build
from tests.mpi.hosts import running_hosts
from tests.mpi.launcher import DEADLINE_S, WHEELS, Mpi, launcher

pytestmark = pytest.mark.mpi

LAYOUTS = {
    "a rank on each of four hosts": ["h1", "h2", "h3", "h4"],
    "five ranks on two hosts": ["h1", "h1", "h2", "h2", "h1"],
    "six ranks on four hosts": ["h1", "h2", "h1", "h3", "h4", "h2"],
}


ROUNDS = 40
MODES = {
    "default": {},
    "ordered": {"NETFOLD_MPI_ORDERED": "1"},
    "long sums of floats": {"NETFOLD_NUMERICS": "block"},
    "without targets": {"NETFOLD_NUMERICS": "block"},
}


@pytest.mark.parametrize("hosts", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("mode", MODES)
def test_collectives_give_what_mpi_promises(mpi: Mpi, mode: str, hosts: list[str], tmp_path: Path):
    with launcher(hosts, tmp_path) as programs:
        programs.fabric.controller.has_targets = mode != "without targets"
        program = mpi.compile("collectives.c", tmp_path)
        done = programs.run(mpi, hosts, program, environment=MODES[mode])
        assert (done.returncode, done.stdout) == (0, "good\n"), done.stdout + done.stderr
        assert len(programs.fabric.controller.jobs) == 1


@pytest.mark.parametrize("mpi", WHEELS, ids=lambda mpi: mpi.name)
def test_wheels_give_what_mpi_promises(mpi: Mpi, tmp_path: Path):
    """The library is compiled for the MPI libraries of PyPI, which are newer than Debian's."""
    if not mpi.is_installed:
        pytest.skip("needs PyPI's MPI libraries in .venv-mpi: make .venv-mpi/.ready")
    test_collectives_give_what_mpi_promises(mpi, "default", ["h1", "h1", "h2", "h3"], tmp_path)


@pytest.mark.root
def test_switches_give_the_collectives_what_mpi_promises(mpi: Mpi, tmp_path: Path):
    """In the hosts of a testbed, with real packets."""
    with running_hosts(tmp_path) as found:
        done = found.run(mpi, mpi.compile("collectives.c", tmp_path), ranks=6)
        assert (done.returncode, done.stdout) == (0, "good\n"), done.stdout + done.stderr


@pytest.mark.parametrize("hosts", [["h1", "h2", "h3", "h1"], ["h1", "h2", "h3", "h4"]], ids=["three", "four"])
@pytest.mark.parametrize("mode", ["netfold", "plain"])
def test_calls_of_several_communicators_may_come_in_crossed_orders(
    mpi: Mpi, mode: str, hosts: list[str], tmp_path: Path
):
    """The MPI library alone shows that the program is right. The third argument of the program is the number of ranks
    in a communicator that has the first rank of every host, but with three hosts not all ranks. Calls have blocks of
    several sizes, some of them empty."""
    environment = {"NETFOLD_MPI": "0"} if mode == "plain" else {}
    seed = secrets.randbelow(1 << 30)
    with launcher(hosts, tmp_path) as programs:
        program = mpi.compile("orders.c", tmp_path)
        done = programs.run(mpi, hosts, program, seed, ROUNDS, len(set(hosts)), environment=environment)
        assert (done.returncode, done.stdout) == (0, "good\n"), f"seed {seed}: {done.stdout}{done.stderr}"
        assert len(programs.fabric.controller.jobs) == (mode == "netfold")


@pytest.mark.parametrize(
    ("hosts", "has_targets", "is_netfolds"),
    [
        (["h1", "h2", "h3", "h4"], True, True),
        (["h1", "h2", "h3", "h4"], False, False),
        (["h1", "h2", "h3", "h1"], True, False),
    ],
    ids=["four", "four without targets", "four ranks on three"],
)
def test_all_gathers_of_less_than_four_hosts_are_the_mpi_librarys(
    mpi: Mpi, hosts: list[str], has_targets: bool, is_netfolds: bool, tmp_path: Path
):
    gathers = 5
    with launcher(hosts, tmp_path) as programs:
        programs.fabric.controller.has_targets = has_targets
        done = programs.run(mpi, hosts, mpi.compile("gathers.c", tmp_path), gathers)
        assert (done.returncode, done.stdout) == (0, "good\n"), done.stdout + done.stderr
        assert set(programs.fabric.controller.calls.values()) == {gathers if is_netfolds else 0}


@pytest.mark.parametrize("numerics", ["auto", "float32", "integer"])
def test_sums_of_floats_are_as_right_as_the_mpi_librarys(mpi: Mpi, numerics: str, tmp_path: Path):
    hosts = ["h1", "h2", "h3", "h1"]
    seed = secrets.randbelow(1 << 30)
    with launcher(hosts, tmp_path) as programs:
        program = mpi.compile("magnitudes.c", tmp_path)
        done = programs.run(mpi, hosts, program, seed, environment={"NETFOLD_NUMERICS": numerics})
        assert (done.returncode, done.stdout) == (0, "good\n"), f"seed {seed}: {done.stdout}{done.stderr}"
        assert len(programs.fabric.controller.jobs) == 1


def test_broadcasts_take_any_memory_and_datatype(mpi: Mpi, tmp_path: Path):
    hosts = ["h1", "h2", "h2"]
    with launcher(hosts, tmp_path) as programs:
        done = programs.run(mpi, hosts, mpi.compile("broadcasts.c", tmp_path))
        assert (done.returncode, done.stdout) == (0, "good\n"), done.stdout + done.stderr
        assert len(programs.fabric.controller.jobs) == 1


@pytest.mark.long  # receivers write 2 GiB
def test_broadcasts_may_be_longer_than_31_bits_count(mpi: Mpi, tmp_path: Path):
    hosts = ["h1", "h2"]
    with launcher(hosts, tmp_path) as programs:
        done = programs.run(mpi, hosts, mpi.compile("broadcasts.c", tmp_path), "large")
        assert (done.returncode, done.stdout) == (0, "good\n"), done.stdout + done.stderr


def test_a_communicator_may_be_freed_while_a_call_on_it_is_in_flight(mpi: Mpi, tmp_path: Path):
    """With checks of each access to memory, in the library."""
    hosts = ["h1", "h2", "h2"]
    library = build(mpi.command_named("mpicc"), tmp_path, ("-fsanitize=address", "-g"))
    found = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    environment = {
        "NETFOLD_MPI_ORDERED": "1",
        "LD_PRELOAD": f"{Path(found.stdout.strip()).resolve()}:{library}",
        "ASAN_OPTIONS": "detect_leaks=0:exitcode=77",
    }
    with launcher(hosts, tmp_path) as programs:
        done = programs.run(mpi, hosts, mpi.compile("freed.c", tmp_path), environment=environment)
        assert (done.returncode, done.stdout) == (0, "good\n"), done.stdout + done.stderr


def test_fortran_reduces_through_the_network(mpi: Mpi, tmp_path: Path):
    """Open MPI's Fortran does not call the C functions that are preloaded."""
    if shutil.which(f"mpif90.{mpi.name}") is None or shutil.which("gfortran") is None:
        pytest.skip(f"needs mpif90.{mpi.name} and gfortran: make test-mpi installs them")
    if mpi.name == "mpich":
        pytest.skip("MPICH's module mpi_f08 calls its profiling interface: docs/reference/mpi.md")
    hosts = ["h1", "h2", "h3"]
    with launcher(hosts, tmp_path) as programs:
        program = mpi.compile("sum.f90", tmp_path)
        done = programs.run(mpi, hosts, program)
        assert (done.returncode, done.stdout) == (0, "good\n"), done.stdout + done.stderr
        mismatched = programs.run(mpi, hosts, program, "mismatch")
        assert "MPI_Allreduce: the ranks made different calls" in mismatched.stderr
