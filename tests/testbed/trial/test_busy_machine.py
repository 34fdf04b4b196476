# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""No job ends because the machine is too busy: jobs on real processes, beside many others that want the processors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from netfold.testbed.testbed import Testbed
from tests.simulation.scenario import Step
from tests.testbed.trial.drawing import TrialJob
from tests.testbed.trial.trial import Trial

pytestmark = [pytest.mark.root, pytest.mark.mininet, pytest.mark.long]

BURNERS = 40
ENDLESS = 1_000_000
"""Calls: the job is canceled before it makes so many."""
EVERY_S = 20.0
"""Between two short jobs: submission, installation and end are tried under load, too."""

_BURN = """
import ctypes, os, signal, sys, time
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        break
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    pass
"""


@contextmanager
def burning(processes: int, seconds: float) -> Iterator[None]:
    """So many processes compute. They end with this context, with this process, and after `seconds` at the latest."""
    command = [sys.executable, "-c", _BURN, str(processes), str(seconds)]
    burner = subprocess.Popen(command, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(burner.pid, signal.SIGKILL)
        burner.wait()


def steps_of(seconds: float) -> list[Step]:
    """Two jobs all the time, of which one goes on without lost workers, and short ones beside them."""
    long_jobs = [
        TrialJob("fixed", dict.fromkeys(("h1", "h2", "h3", "h4"), ENDLESS), "panama", 20, seed=1),
        TrialJob("elastic", dict.fromkeys(("h1", "h3"), ENDLESS), "switchml", 10, is_elastic=True, seed=2),
    ]
    steps = [Step(1.0 + i, "submit", (job,)) for i, job in enumerate(long_jobs)]
    for number in range(int((seconds - 2 * EVERY_S) // EVERY_S)):
        job = TrialJob(f"short{number}", dict.fromkeys(("h2", "h4"), 40), "panama", 10, seed=10 + number)
        steps.append(Step(EVERY_S * (number + 1), "submit", (job,)))
    return [*steps, *(Step(seconds, "cancel", (job.name,)) for job in long_jobs)]


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seconds", [float(os.environ.get("BUSY_SECONDS", "180"))])
def test_no_job_ends_because_the_machine_is_too_busy(seconds: float) -> None:
    told: list[str] = []
    with (
        Testbed(target="softswitch", lanes=64, name="busy", first_grpc_port=20140) as system,
        burning(BURNERS, seconds + 900.0),
    ):
        outcome = Trial(system, told.append).run(steps_of(seconds))
    text = "\n".join([str(outcome), f"load {os.getloadavg()}", *told])
    assert not outcome.violations, "\n".join([*outcome.violations, text])
    failed = {name: e.reason for name, e in outcome.endings.items() if e.state == "failed"}
    assert not failed, f"{failed}\n{text}"
    assert outcome.sums > 0, text
    sys.stdout.write(f"{text}\n")
