# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The simulation finds faults that are put into the controller."""

from __future__ import annotations

import pytest

from tests.simulation.mutant import misplaced, run_failing
from tests.simulation.mutants import MUTANTS

SEEDS = 2000
TIMEOUT_S = 3000


def test_each_mutant_changes_one_place():
    assert misplaced(MUTANTS) == []


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_mutant_is_found(mutant):
    """Its scenario, or seeds where it has none, find a violation, and not an error of the simulation itself."""
    where = ("--scenario", mutant.scenario) if mutant.scenario else ("--seeds", f"0:{SEEDS}")
    command = ("-m", "tests.simulation", "--lines", "0", *where, "--mutant", mutant.name)
    done = run_failing(*command, timeout_s=TIMEOUT_S)
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
