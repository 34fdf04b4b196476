# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/ that train with PyTorch. They start networks by netfold's own Python, and ranks by that of
PyTorch."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

PYTHON = Path(".venv/bin/python")
pytestmark = [
    pytest.mark.root,
    pytest.mark.mininet,
    pytest.mark.skipif(not PYTHON.exists(), reason="SKIPPED: needs netfold's own environment: make setup"),
    pytest.mark.timeout(1800),
]


def run(*words: object) -> str:
    done = subprocess.run(
        [PYTHON, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=1500,
        env={**os.environ, "NETFOLD_NAME": "exam"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_fsdp():
    """Each rank has a quarter of the weights, and learns."""
    rows = re.findall(
        r"rank (\d): (\d+) of (\d+) weights, loss ([\d.]+) to ([\d.]+)", run("examples/fsdp.py")
    )
    assert [int(row[0]) for row in rows] == [0, 1, 2, 3]
    assert sum(int(row[1]) for row in rows) == int(rows[0][2])
    assert all(float(row[4]) < float(row[3]) for row in rows)


def test_ddp_over_netfold_and_gloo(tmp_path: Path):
    output = run("-m", "examples.ddp", "--fabric", "single", "--epochs", 1, "--out", tmp_path)
    reports = json.loads((tmp_path / "train.json").read_text())
    assert set(reports) == {"netfold", "half", "gloo"}
    assert all(report["identical"] for report in reports.values())
    assert all(len(report["loss"]) == len(report["step_ms"]) for report in reports.values())
    assert re.search(r"a step over netfold takes \d+\.\d+ of Gloo's time", output)
