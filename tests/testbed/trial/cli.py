# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.testbed.trial --seed 7` runs a trial, in the namespaces of this process:

.venv/bin/python -m netfold.testbed.network.isolated .venv/bin/python -m tests.testbed.trial --seed 7
"""

from __future__ import annotations

import argparse

from netfold.testbed.testbed import Testbed
from tests.testbed.trial.drawing import trial_of
from tests.testbed.trial.trial import CONTROLLER, Trial


def main() -> int:
    """0: no violation, 1: a violation, 2: wrong options."""
    parser = argparse.ArgumentParser(prog="python -m tests.testbed.trial", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="in which jobs and faults begin")
    options = parser.parse_args()
    with Testbed(target="softswitch", lanes=64, name="trial", controller_options=CONTROLLER) as system:
        steps = trial_of(options.seed, options.seconds, system.fabric)
        outcome = Trial(system, lambda text: print(text, flush=True)).run(steps)
    print("\n".join([*outcome.violations, str(outcome)]))
    return int(bool(outcome.violations))
