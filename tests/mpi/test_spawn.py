# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that start other processes: those are the MPI library's, and so is a communicator with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mpi.launcher import Mpi, launcher

pytestmark = pytest.mark.mpi


def test_spawned_processes_and_communicators_with_them_are_the_mpi_librarys(mpi: Mpi, tmp_path: Path):
    if mpi.name == "mpich":
        pytest.skip("Debian's MPICH starts no other processes")
    with launcher(["h1", "h2", "h3"], tmp_path) as programs:
        # Open MPI connects a spawned process by TCP, and leaves out the only interface of a test's network namespace.
        loopback = {"OMPI_MCA_btl_tcp_if_include": "lo"}
        program = mpi.compile("spawn.c", tmp_path)
        done = programs.run(mpi, ["h1", "h2", "h3"], program, environment=loopback)
        assert (done.returncode, done.stdout) == (0, "good\n"), done.stdout + done.stderr
        assert len(programs.fabric.controller.jobs) == 1
