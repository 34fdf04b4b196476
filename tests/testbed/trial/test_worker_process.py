# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The record of a worker's process that the trial kills, before it wrote why it ended and after."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.testbed.trial.records import WorkerRecord
from tests.testbed.trial.trial import WorkerProcess


def process(out: Path, program: str, *, is_killed: bool) -> WorkerProcess:
    popen = subprocess.Popen([sys.executable, "-c", program])
    popen.wait()
    out.with_suffix(".calls").touch()
    return WorkerProcess(popen, out, is_newcomer=False, is_killed=is_killed)


DIES = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


def test_one_killed_before_it_wrote_why_it_ended_is_killed(tmp_path: Path) -> None:
    killed = process(tmp_path / "a.json", DIES, is_killed=True)
    assert killed.record("h1") == WorkerRecord("h1", (), False, is_killed=True)


def test_one_killed_after_it_wrote_why_it_ended_has_ended_so(tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    out.write_text('{"error": "JobFailedError", "text": "h2 left"}')
    killed = process(out, DIES, is_killed=True)
    assert killed.record("h1") == WorkerRecord("h1", (), False, error="JobFailedError", text="h2 left")


def test_one_that_dies_by_itself_has_crashed(tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    out.with_suffix(".log").write_text("waits\n")
    died = process(out, DIES, is_killed=False)
    assert died.record("h1") == WorkerRecord("h1", (), False, crash="exit code -9; waits")
