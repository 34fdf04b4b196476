# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Each test runs with each MPI library that is installed."""

from __future__ import annotations

import pytest

from tests.mpi.launcher import MPIS, Mpi


@pytest.fixture(params=MPIS, ids=lambda mpi: mpi.name)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    found: Mpi = request.param
    if not found.is_installed:
        pytest.skip(f"needs mpirun.{found.name} and mpicc.{found.name}: make test-mpi installs them")
    return found
