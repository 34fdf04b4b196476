# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Fortran programs: Open MPI's Fortran does not call the C functions that are preloaded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.mpi.launcher import Mpi, launcher

pytestmark = pytest.mark.mpi


def test_fortran_reduces_through_the_network(mpi: Mpi, tmp_path: Path):
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
