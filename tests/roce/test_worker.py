# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The RoCE worker under sanitizers, on a network without devices: sums, errors at all workers alike, epochs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from netfold.traffic.roce.recipe import FLAGS, HERE, SOURCES
from tests import c_programs

TESTS = Path(__file__).parent
SANITIZERS = {"memory": "address,undefined", "threads": "thread"}
SCENARIOS = (
    "integers",
    "floats",
    "quarter",
    "quarter-exact",
    "quarter-trees",
    "quarter-huge",
    "quarter-saturated",
    "quarter-infinity",
    "quarter-given",
    "float32",
    "given-float32",
    "raw-float32",
    "trees",
    "few",
    "none",
    "raw",
    "break",
    "given",
    "unheard",
    "broken-with-sums",
    "worn-out",
    "worn-out-in-a-call",
    "unsent",
    "unsent-without-agent",
    "late",
    "mismatch",
    "mismatch-once",
    "mismatch-and-fault",
    "over-in-a-call",
    "left",
    "left-before-it-was-given",
    "left-before-one-saw-what-it-was-given",
    "left-and-continued",
    "left-and-continued-before-it-was-given",
    "left-while-the-rest-computes",
    "infinity",
    "rail",
    "given-rail",
    "low-rail",
    "given-low-rail",
    "given-infinity",
)

TRIAL = ("roce_trial.c", "fake_controller.c", "fake_verbs.c")

pytestmark = pytest.mark.skipif(
    not Path("/usr/include/infiniband/verbs.h").exists(), reason="needs libibverbs-dev (its headers)"
)


@pytest.fixture(scope="module", params=["memory", pytest.param("threads", marks=pytest.mark.slow)])
def trial(request: pytest.FixtureRequest) -> Path:
    sources = [*(TESTS / name for name in TRIAL), *(HERE / name for name in SOURCES)]
    sanitize = [f"-fsanitize={SANITIZERS[request.param]}", "-fno-sanitize-recover=all", "-g"]
    sanitize += [f"-I{HERE}", f"-I{HERE.parent}"]
    return c_programs.program("roce_trial", sources, [*FLAGS, "-O1", *sanitize])  # -O2 compiles for longer


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(trial: Path, scenario: str, tmp_path: Path):
    done = subprocess.run(
        [trial, scenario, tmp_path], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
