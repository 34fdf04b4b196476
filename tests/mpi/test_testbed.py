# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""MPI programs in the hosts of a testbed: switches add up, with real packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mpi.hosts import running_hosts
from tests.mpi.launcher import Mpi

pytestmark = [pytest.mark.mpi, pytest.mark.root]


def test_switches_give_the_collectives_what_mpi_promises(mpi: Mpi, tmp_path: Path):
    with running_hosts(tmp_path) as found:
        program = mpi.compile("collectives.c", tmp_path)
        done = found.run(mpi, program, ranks=6)
        assert (done.returncode, done.stdout) == (0, "good\n"), done.stdout + done.stderr
