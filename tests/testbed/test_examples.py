# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/ run, and print what their page says. Those with PyTorch, MPI and machines have their tests
in tests/torch, tests/mpi and tests/roce."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path("examples")
PARTS = {"__init__.py", "train.py", "mpi_sum.py"}
"""They are run by other programs."""


def run(name: str, *arguments: object, timeout_s: float = 280.0) -> str:
    """Return what the program prints."""
    command = [sys.executable, EXAMPLES / f"{name}.py", *map(str, arguments)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env={**os.environ, "NETFOLD_NAME": "exam"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_has_all_programs():
    page = (EXAMPLES / "README.md").read_text()
    named = set(re.findall(r"\]\((\w+\.(?:py|c))\)", page))
    assert named | PARTS >= {path.name for path in EXAMPLES.glob("*.*") if path.suffix in (".py", ".c")}
    assert all((EXAMPLES / name).is_file() for name in named)


def test_programs_are_short():
    long = {p.name: n for p in EXAMPLES.glob("*.py") if (n := len(p.read_text().splitlines())) > 75}
    assert set(long) <= {"ddp.py", "train.py"}, "train.py is PyTorch's own, and ddp.py draws a picture"


def test_own_planner():
    rates = dict(re.findall(r"([\w-]+): +([\d.]+)", run("own_planner")))
    assert float(rates["best-root"]) == 100.0 > float(rates["switchml"])


def test_sweep(tmp_path: Path):
    rows = dict(
        re.findall(
            r"^([\w-]+) +[\d. ]+ +([\d.]+) ms a step$",
            run("sweep", "--plot", tmp_path / "sweep.svg"),
            re.MULTILINE,
        )
    )
    assert float(rows["ideal"]) <= float(rows["panama"]) < float(rows["ring"])
    assert 0 < (tmp_path / "sweep.svg").stat().st_size < 60_000


@pytest.mark.root
@pytest.mark.mininet
@pytest.mark.slow
def test_failure():
    output = run("failure")
    assert re.search(r"ended in job epoch [2-9]\d*, 0 wrong elements", output), output
    accuracies = re.findall(r"0\.\d+", output)
    assert accuracies[-1] == accuracies[-2]


@pytest.mark.root
@pytest.mark.mininet
@pytest.mark.slow
def test_straggler():
    output = run("straggler")
    partial = re.search(r"^60 sums; (\d+) without h6", output, re.MULTILINE)
    assert partial, output
    assert int(partial[1]) > 0
    assert "each has all that contributed: True" in output


@pytest.mark.root
@pytest.mark.mininet
@pytest.mark.slow
def test_cross_traffic():
    assert re.search(r"alone: \d+ Mbit/s.*\nbeside: \d+ Mbit/s", run("cross_traffic"))


@pytest.mark.root
@pytest.mark.mininet
@pytest.mark.bmv2
@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("simple_switch_grpc") is None, reason="SKIPPED: needs simple_switch_grpc on PATH"
)
def test_bmv2():
    output = run("bmv2")
    assert "0% packet loss" in output
    assert output.count(", 0 wrong elements") == 3
