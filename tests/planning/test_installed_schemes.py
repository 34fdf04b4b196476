# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A scheme of another package is taken by every command that takes a scheme."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCHEME = """
from dataclasses import replace
from netfold.controller.planning.panama import plan_panama

def plan_mine(task):
    return replace(plan_panama(task), algorithm=f"mine {task.job.options.get('depth', '')}")

def plan_broken(task):
    return 1 / 0

def plan_nothing(task):
    return None
"""
JOB = "name: j\nworkers: [h1, h2, h3]\nparameter_servers: 0\nscheme: mine\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Installed as pip would: a module and its metadata."""
    (tmp_path / "mine.py").write_text(SCHEME)
    info = tmp_path / "mine-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[netfold.planners]\nmine = mine:plan_mine\nlost = mine:plan_lost\nauto = mine:plan_mine\n"
        "broken = mine:plan_broken\nnothing = mine:plan_nothing\n"
    )
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def netfold(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(package)}
    start = "from netfold.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", start, *arguments],
        cwd=package, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_a_job_file_names_it_and_a_plan_is_made(package: Path):
    found = netfold(package, "plan", "leaf-spine-2x2", "job.yaml", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["algorithm"].startswith("mine")


def test_simulate_takes_it(package: Path):
    found = netfold(
        package, "simulate", "leaf-spine-2x2", "job.yaml", "-s", "mine", "-s", "planned", "--json"
    )
    assert found.returncode == 0, found.stderr


def test_one_that_cannot_be_loaded_is_an_error_of_the_job_that_names_it(package: Path):
    (package / "job.yaml").write_text(JOB.replace("mine", "lost"))
    found = netfold(package, "plan", "leaf-spine-2x2", "job.yaml")
    assert found.returncode == 3
    assert "scheme 'lost' (mine:plan_lost) cannot be loaded" in " ".join(found.stderr.split())


def test_one_that_fails_is_a_row_of_a_comparison(package: Path):
    found = netfold(package, "plan", "leaf-spine-2x2", "job.yaml", "--compare", "--json")
    assert found.returncode == 0, found.stderr
    rows = {row["scheme"]: row for row in json.loads(found.stdout)}
    assert "mine.py, line 9: ZeroDivisionError" in rows["broken"]["error"]
    assert "returned a NoneType, not a Plan" in rows["nothing"]["error"]
    assert rows["panama"]["rate"] > 0


@pytest.mark.slow
def test_one_of_netfolds_own_cannot_be_replaced(package: Path):
    (package / "job.yaml").write_text(JOB.replace("mine", "auto"))
    found = netfold(package, "plan", "leaf-spine-2x2", "job.yaml", "--json")
    assert not json.loads(found.stdout)["algorithm"].startswith("mine")
