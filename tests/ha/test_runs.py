# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of three controllers and three members of etcd under random faults. cli.py runs a seed again, and more of
them."""

from __future__ import annotations

import shutil
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.ha.drawing import FaultKind, Victim, Way, faults_of
from tests.ha.run import Runs
from tests.ha.system import system
from tests.simulation.world import ViolationError

pytestmark = [
    pytest.mark.root,
    pytest.mark.mininet,
    pytest.mark.skipif(shutil.which("etcd") is None, reason="SKIPPED: needs etcd on PATH"),
]


async def _run(folder: Path, seeds: range) -> None:
    steps: list[str] = []
    async with system(folder) as made, aclosing(Runs(made, steps.append)) as runs:
        await runs.begin()
        for seed in seeds:
            steps.append(f"run {seed}")
            try:
                await runs.run(seed)
            except ViolationError as error:
                pytest.fail("\n".join([*steps[-10:], str(error)]))
        assert runs.checker.commits > len(seeds)


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_a_few_runs(tmp_path):
    await _run(tmp_path, range(4))


@pytest.mark.long
@pytest.mark.timeout(3000)
async def test_more_runs(tmp_path):
    await _run(tmp_path, range(100, 200))


def test_all_kinds_of_faults_are_drawn():
    faults = [fault for seed in range(200) for fault in faults_of(seed)]
    for drawn, kinds in (
        ({fault.kind for fault in faults}, FaultKind),
        ({fault.victim for fault in faults}, Victim),
        (
            {(fault.way, fault.all) for fault in faults if fault.kind is FaultKind.CUT},
            [(w, a) for w in Way for a in (True, False)],
        ),
    ):
        assert drawn == set(kinds)
    assert faults_of(7) == faults_of(7) != faults_of(8)
