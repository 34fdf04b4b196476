# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The packet level against what the testbed measured, within 10 %; the measured rates are in testbed_measured.json."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.simulator.testbed_model import rates

MEASURED = json.loads((Path(__file__).parent / "testbed_measured.json").read_text())["rows"]
WITHIN = 0.1
ONE_JOB = [row for row in MEASURED if len(row["mbps"]) == 1]
TWO_JOBS = [row for row in MEASURED if len(row["mbps"]) == 2]


def times(row: dict[str, Any], mbps: list[float]) -> list[float]:
    """Returns times of an all-reduce, in units of what a byte takes."""
    return [row["size"] / rate for rate in mbps]


def name_of(row: dict[str, Any]) -> str:
    return f"{row['fabric']}-{row['scale']}-{row['scheme']}"


@pytest.mark.parametrize("row", ONE_JOB, ids=name_of)
def test_one_job(row: dict[str, Any]):
    assert times(row, rates(row)) == pytest.approx(times(row, row["mbps"]), rel=WITHIN)


@pytest.mark.parametrize("row", TWO_JOBS, ids=name_of)
def test_two_jobs(row: dict[str, Any]):
    assert times(row, rates(row)) == pytest.approx(times(row, row["mbps"]), rel=WITHIN)


@pytest.mark.long
@pytest.mark.root
@pytest.mark.parametrize(("fabric", "scheme"), [("grid-fig1", "atp"), ("inart-fig1", "inart")])
def test_measured_anew(fabric: str, scheme: str):
    row = next(r for r in MEASURED if (r["fabric"], r["scheme"]) == (fabric, scheme))
    netfold = [sys.executable, "-c", "from netfold.cli import main; main()"]
    command = [*netfold, "measure", "plans", fabric, "--json"]
    options = ["--schemes", scheme, "--scale", str(row["scale"]), "--size", str(row["size"])]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    anew = times(row, [r["measured_mbps"] for r in rows])
    assert times(row, rates(row)) == pytest.approx(anew, rel=WITHIN)
