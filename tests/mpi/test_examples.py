# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""examples/mpi.py, in C and with mpi4py where that is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mpi.launcher import ENVIRONMENTS, Mpi
from tests.testbed.test_examples import run

pytestmark = [pytest.mark.mpi, pytest.mark.root]

MPI4PY = ENVIRONMENTS / "mpi4py" / "bin" / "python"


@pytest.mark.parametrize("python", [None, MPI4PY], ids=["C", "mpi4py"])
def test_sums_go_through_the_switches(python: Path | None):
    if not Mpi("openmpi").is_installed:
        pytest.skip("needs mpirun.openmpi and mpicc.openmpi: make test-mpi installs them")
    if python is not None and not python.exists():
        pytest.skip(f"SKIPPED: needs {python}: make test-mpi4py installs it")
    output = run("mpi", *(["--mpi4py", python] if python else []))
    assert "C: the numbers of 8 ranks add up to 28\njob mpi-0 over h1, h2, h5, h6: done\n" in output
    if python:
        assert "mpi4py: the numbers of 8 ranks add up to 28\njob mpi-1 over h1, h2, h5, h6: done\n" in output
