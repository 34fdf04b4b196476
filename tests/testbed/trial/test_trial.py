# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Random jobs beside faults of all kinds, on real processes. A failure prints the steps; cli.py runs a seed again."""

from __future__ import annotations

import pytest

from netfold.testbed.deployment import Deployment, Setup
from tests.testbed.trial.drawing import trial_of
from tests.testbed.trial.trial import CONTROLLER, Trial

pytestmark = [pytest.mark.root, pytest.mark.mininet]


def try_all(seed: int, seconds: float) -> None:
    told: list[str] = []
    setup = Setup(target="softswitch", lanes=64, name="trial", first_grpc_port=9880, controller=CONTROLLER)
    with Deployment(setup) as system:
        outcome = Trial(system, told.append).run(trial_of(seed, seconds, system.fabric))
    steps = "\n".join(told)
    assert not outcome.violations, "\n".join([*outcome.violations, str(outcome), f"seed {seed}", steps])
    assert outcome.sums > 0, f"no job got a sum: {outcome}\n{steps}"


@pytest.mark.timeout(1200)
def test_random_jobs_beside_faults_for_a_minute() -> None:
    try_all(seed=1, seconds=60.0)


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_random_jobs_beside_faults_for_ten_minutes() -> None:
    try_all(seed=2, seconds=600.0)
