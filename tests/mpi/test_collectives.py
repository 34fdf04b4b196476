# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Collectives of C programs, with the library preloaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mpi.launcher import Mpi, launcher

pytestmark = pytest.mark.mpi

LAYOUTS = {
    "a rank on each of four hosts": ["h1", "h2", "h3", "h4"],
    "five ranks on two hosts": ["h1", "h1", "h2", "h2", "h1"],
}


MODES: dict[str, tuple[list[str], dict[str, str]]] = {
    "communicators": ([], {}),
    "nonblocking": (["nonblocking"], {}),
    "ordered": ([], {"NETFOLD_MPI_ORDERED": "1"}),
}


@pytest.mark.parametrize("hosts", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("mode", MODES)
def test_collectives_give_what_mpi_promises(mpi: Mpi, mode: str, hosts: list[str], tmp_path: Path):
    arguments, environment = MODES[mode]
    with launcher(hosts, tmp_path) as programs:
        program = mpi.compile("collectives.c", tmp_path)
        done = programs.run(mpi, hosts, program, *arguments, environment=environment)
        assert (done.returncode, done.stdout) == (0, "good\n"), done.stdout + done.stderr
        assert len(programs.fabric.controller.jobs) == 1
