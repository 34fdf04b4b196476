# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The simulation finds faults that are put into the controller."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.mutants import MUTANTS

SEEDS = 2000
TIMEOUT_S = 3000


def test_each_mutant_changes_one_place():
    counts = {m.name: m.path.read_text().count(m.old) for m in MUTANTS}
    assert [name for name, count in counts.items() if count != 1] == []


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_mutant_is_found(mutant):
    """By its scenario, or by seeds where it names none."""
    where = ("--scenario", mutant.scenario) if mutant.scenario else ("--seeds", f"0:{SEEDS}")
    _assert_found(*where, "--mutant", mutant.name)


def _assert_found(*options: str) -> None:
    """By a violation, and not by an error of the simulation itself."""
    command = [sys.executable, "-m", "tests.simulation", "--lines", "0", *options]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
