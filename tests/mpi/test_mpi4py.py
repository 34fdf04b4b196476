# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""mpi4py's own test suite, on four hosts with Debian's Open MPI: what passes without netfold passes with it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mpi.hosts import Hosts, running_hosts
from tests.mpi.launcher import ENVIRONMENTS, FOLDER, Mpi

pytestmark = [pytest.mark.mpi, pytest.mark.root, pytest.mark.long, pytest.mark.timeout(7200)]

OPEN_MPI = Mpi("openmpi")
PYTHON = ENVIRONMENTS / "mpi4py" / "bin" / "python"
SUITE = ENVIRONMENTS / "mpi4py" / "sources" / "test"
RANK = FOLDER / "mpi4py_rank.py"
EXCLUDED = FOLDER / "mpi4py_excluded.txt"
RANKS = 4
TIMEOUT_S = 3000.0
JOB = "mpi4py"
PATIENCE = ("--switch-restart-timeout", "600", "--rpc-timeout", "60")
"""Options of the controller. Waiting ranks of Open MPI spin, which keeps switches and agents from answering."""
ENVIRONMENT = {"MPI4PY_LIBMPI": "libmpi.so.40", "NETFOLD_JOB": JOB, "NETFOLD_LEASE_MS": "120000"}


@dataclass(frozen=True)
class Outcomes:
    """Tests by their names: those that some rank has begun, and of these those that have passed, or been skipped, at
    all ranks. `ended`: all ranks have ended as they do after their last test."""

    begun: frozenset[str]
    good: frozenset[str]
    passed: frozenset[str]
    ended: bool
    printed: str

    @property
    def failed(self) -> list[str]:
        return sorted(self.begun - self.good)


def excluded() -> list[str]:
    lines = EXCLUDED.read_text().splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def run_suite(hosts: Hosts, folder: Path, tests: Sequence[str] = (), *, uses_netfold: bool) -> Outcomes:
    """These tests; none: all but the excluded ones."""
    folder.mkdir()
    skips = [word for name in excluded() for word in ("-x", name)]
    words = [PYTHON, RANK, SUITE, folder, *skips, *tests]
    try:
        done = hosts.run(
            OPEN_MPI,
            *words,
            ranks=RANKS,
            uses_netfold=uses_netfold,
            environment=ENVIRONMENT,
            folder=folder,
            timeout_s=TIMEOUT_S,
        )
        ended, printed = done.returncode in (0, 1), done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        ended, printed = False, f"{error}"
    return outcomes_of([(folder / str(rank)).read_text() for rank in range(RANKS)], ended, printed)


def outcomes_of(ranks: Sequence[str], ended: bool, printed: str) -> Outcomes:
    begun: set[str] = set()
    good: list[set[str]] = []
    passed: list[set[str]] = []
    for text in ranks:
        rows = [line.split() for line in text.splitlines()]
        begun |= {row[0] for row in rows}
        good.append({row[0] for row in rows if row[1:2] in (["passed"], ["skipped"])})
        passed.append({row[0] for row in rows if row[1:2] == ["passed"]})
    return Outcomes(
        frozenset(begun),
        frozenset(set.intersection(*good)),
        frozenset(set.intersection(*passed)),
        ended,
        printed,
    )


def test_mpi4pys_suite_passes_with_netfold_what_it_passes_without(tmp_path: Path):
    if not OPEN_MPI.is_installed or not SUITE.is_dir():
        pytest.skip("needs Debian's Open MPI, and mpi4py with its tests: make test-mpi4py installs them")
    with running_hosts(tmp_path, controller=PATIENCE) as hosts:
        through = run_suite(hosts, tmp_path / "netfold", uses_netfold=True)
        assert through.ended, f"{through.failed} did not end:\n{through.printed}"
        assert len(through.passed) > 1500, (
            f"only {len(through.passed)} of {len(through.begun)} tests have passed"
        )
        assert hosts.chunks_of(JOB) > 1000
        if through.failed:
            plain = run_suite(hosts, tmp_path / "plain", through.failed, uses_netfold=False)
            assert plain.ended, f"{plain.failed} did not end without netfold:\n{plain.printed}"
            assert plain.begun == set(through.failed)
            broken = plain.passed & set(through.failed)
            assert not broken, f"{sorted(broken)} fail with netfold alone:\n{through.printed}"
