# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The library is compiled for the MPI libraries of PyPI, which are newer than Debian's, and works with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mpi.launcher import WHEELS, Mpi, launcher

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("mpi", WHEELS, ids=lambda mpi: mpi.name)
def test_wheels_give_what_mpi_promises(mpi: Mpi, tmp_path: Path):
    if not mpi.is_installed:
        pytest.skip("needs PyPI's MPI libraries in .venv-mpi: make .venv-mpi/.ready")
    hosts = ["h1", "h1", "h2", "h3"]
    with launcher(hosts, tmp_path) as programs:
        done = programs.run(mpi, hosts, mpi.compile("collectives.c", tmp_path))
        assert (done.returncode, done.stdout) == (0, "good\n"), done.stdout + done.stderr
        assert len(programs.fabric.controller.jobs) == 1
