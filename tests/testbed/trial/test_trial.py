# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Random jobs beside faults of all kinds, on real processes. A failure prints the steps; cli.py runs a seed again."""

from __future__ import annotations

import pytest

from netfold.testbed.testbed import Testbed
from tests.testbed.trial.drawing import trial_of
from tests.testbed.trial.trial import CONTROLLER, Trial

pytestmark = [pytest.mark.root, pytest.mark.mininet]


KINDS = {"submit", "cancel", "kill_worker", "start_worker", "kill_switch", "start_switch"}
KINDS |= {"cut_link", "mend_link", "kill_controller", "start_controller"}
EVERY_KIND_IN_HALF_A_MINUTE = 3132
"""A seed of all kinds of steps, links that fail silently and not, and all kinds of jobs."""


def try_all(seed: int, seconds: float) -> None:
    told: list[str] = []
    with Testbed(
        target="softswitch", lanes=64, name="trial", first_grpc_port=20160, controller_options=CONTROLLER
    ) as system:
        planned = trial_of(seed, seconds, system.fabric)
        assert {step.kind for step in planned} == KINDS
        outcome = Trial(system, told.append).run(planned)
    steps = "\n".join(told)
    assert not outcome.violations, "\n".join([*outcome.violations, str(outcome), f"seed {seed}", steps])
    assert outcome.sums > 0, f"no job got a sum: {outcome}\n{steps}"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_random_jobs_beside_faults_for_half_a_minute() -> None:
    try_all(EVERY_KIND_IN_HALF_A_MINUTE, seconds=30.0)


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("seed", "seconds"), [(1, 60.0), (2, 600.0)])
def test_random_jobs_beside_faults_for_minutes(seed: int, seconds: float) -> None:
    try_all(seed, seconds)
