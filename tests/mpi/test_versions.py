# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks of two versions, which would make other calls of one: the MPI library makes all, and one rank prints why. The
older version is built from the history."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.history import WITHOUT_TARGETS, tree_of
from tests.mpi.launcher import DEADLINE_S, Mpi, launcher

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(600)]

HOSTS = ["h1", "h2", "h3", "h4"]
GOES_ON = {"NETFOLD_MPI_REQUIRED": "0"}
ARGUMENTS = (7, 20, len(HOSTS))
"""orders.c takes a seed, rounds, and the ranks of a communicator. In collectives.c Debian's MPICH fails by itself."""


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tree_of(WITHOUT_TARGETS, tmp_path_factory.mktemp("old"))


def library_of(tree: Path, mpi: Mpi) -> str:
    program = f"from netfold.traffic.mpi.recipe import build; print(build({mpi.command_named('mpicc')!r}))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
        env={**os.environ, "PYTHONPATH": str(tree)},
    )
    return done.stdout.strip()


@pytest.mark.parametrize("older", [("h1",), ("h3",), ("h2", "h3", "h4")], ids="-".join)
def test_ranks_of_two_versions_leave_all_calls_to_mpi(
    mpi: Mpi, old: Path, older: tuple[str, ...], tmp_path: Path
):
    """In the older one not all of the calls are netfold's that are now."""
    environment = {"LD_PRELOAD": library_of(old, mpi), "PYTHONPATH": str(old)}
    with launcher(HOSTS, tmp_path) as programs:
        program = mpi.compile("orders.c", tmp_path)
        of_hosts = dict.fromkeys(older, environment)
        done = programs.run(mpi, HOSTS, program, *ARGUMENTS, environment=GOES_ON, of_hosts=of_hosts)
        assert (done.returncode, done.stdout) == (0, "good\n"), done.stdout + done.stderr
        assert "collectives are the MPI library's own" in done.stderr
        assert "other ranks have an older netfold" in done.stderr
        assert programs.fabric.controller.jobs == []


def test_an_agent_of_another_version_than_its_library_leaves_all_calls_to_mpi(
    mpi: Mpi, old: Path, tmp_path: Path
):
    with launcher(HOSTS, tmp_path) as programs:
        programs.fabric.controller.has_targets = False
        program = mpi.compile("orders.c", tmp_path)
        of_hosts = {"h3": {"PYTHONPATH": str(old)}}
        done = programs.run(mpi, HOSTS, program, *ARGUMENTS, environment=GOES_ON, of_hosts=of_hosts)
        assert (done.returncode, done.stdout) == (0, "good\n"), done.stdout + done.stderr
        assert "collectives are the MPI library's own" in done.stderr
