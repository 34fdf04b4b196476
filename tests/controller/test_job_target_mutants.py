# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A rule of targets that the controller leaves out is found by a test of test_job_targets.py."""

from __future__ import annotations

import pytest

from tests.simulation.mutant import Mutant, misplaced, run_failing

TIMEOUT_S = 300
PROOFS = "tests/controller/test_job_targets.py"
RUN = f"""
import sys, pytest
from tests.controller.test_job_target_mutants import MUTANTS
from tests.simulation.mutant import apply
apply(MUTANTS[sys.argv[1]])
sys.exit(pytest.main(["{PROOFS}", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", ""]))
"""

RULES = ENTRIES = "features/targets/feature.py"
ALLOCATION, EPOCHS, MEMBERS = "lifecycle/allocation.py", "lifecycle/epochs.py", "lifecycle/members.py"
CHANGES = (
    ("the file's off is ignored", RULES, "if file.targets is TargetsOption.OFF:", "if False:"),
    ("a sandbox has targets", RULES, "if file.sandbox:", "if False:"),
    ("RoCE has targets", RULES, "if file.transport is Transport.ROCE:", "if False:"),
    ("a quorum has targets", RULES, "if file.quorum is not None:", "if False:"),
    ("an elastic job has targets", RULES, "file.on_worker_loss is OnWorkerLoss.CONTINUE", "False"),
    ("short packets have targets", RULES, "if lanes < MIN_LANES:", "if False:"),
    ("newcomers have targets", RULES, "if job.newcomers:", "if False:"),
    ("an old worker has targets", RULES, "if not m.supports_targets and not m.parameter_server]", "if False]"),
    ("an old server has targets", RULES, "if unaware:\n        return", "if False:\n        return"),
    ("an old switch has targets", RULES, "if not program.targets:", "if False:"),
    ("an old switch ends targets for good", RULES, "PAUSED, because)", "OFF, because)"),
    (
        "only nodes of a tree need targets",
        RULES,
        "for n in tree.touched if",
        "for n in tree.nodes if",
    ),
    (
        "targets that are required may be none",
        ALLOCATION, "is TargetsOption.REQUIRED:\n        raise", "is None:\n        raise",
    ),
    ("optional targets do not yield", ALLOCATION, "decision = TargetsDecision(Targets.PAUSED, str(error))", "raise"),
    ("optional targets shrink the window", ALLOCATION, "if size < slots and not may_be_less:", "if False:"),
    ("optional targets leave no room to move", ALLOCATION, "if left < needed:", "if False:"),
    ("gathers have no slots of their own", ALLOCATION, "(4 if decision.targets is Targets.ON else 2)", "2"),
    ("an owner's port leads to others, too", ENTRIES, "alone = len(workers) == 1", "alone = True"),
    ("owners are numbered as they come", ENTRIES, "ranks[worker], via", "len(workers) - 1, via"),
    ("an epoch keeps its targets", EPOCHS, "self._with_supported_targets(job).model", "job.placement.model"),
    (
        "an old member of a required job is admitted",
        MEMBERS, "if supports_targets or not self._requires", "if True or not self._requires",
    ),
    ("workers come to a job that requires targets", MEMBERS, "if self._requires_targets(name):", "if False:"),
)  # fmt: skip
MUTANTS = {name: Mutant(name, file, old, new) for name, file, old, new in CHANGES}


def test_each_mutant_changes_one_place():
    assert misplaced(MUTANTS.values()) == []


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
def test_a_rule_that_is_left_out_is_found(name: str):
    done = run_failing("-c", RUN, name, timeout_s=TIMEOUT_S)
    assert "1 failed" in done.stdout, done.stdout[-2000:]
