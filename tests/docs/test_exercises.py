# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The solutions of docs/tutorials/exercises.md do what the page says, and the skeletons do not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from netfold.p4src.tools import p4build
from netfold.protocol.environment import Variable
from netfold.testbed.network.targets import installed_command
from netfold.testbed.testbed import Testbed
from tests.house.imports import REPOSITORY

EXERCISES = REPOSITORY / "docs/tutorials/exercises"
SOLUTIONS = EXERCISES / "solutions"
VALUES = {"h1": 5, "h2": 7, "h5": 30}
PROGRAM = "netfold-v1model-64"


def output(*command: object, timeout_s: float = 300, **environment: str) -> str:
    done = subprocess.run(
        [*map(str, command)],
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env={**os.environ, "COLUMNS": "120", **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def apply_patch(patch: Path, folder: Path) -> None:
    """In a folder that is no repository's."""
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    subprocess.run(["git", "apply", str(patch)], check=True, cwd=folder, env=environment, timeout=60)


def command_of_host(system: Testbed, host: str, *command: object) -> str:
    """The output of a command in a host, which finds the network's controller."""
    outer = [installed_command("netfold"), "network", "exec", "--name", system.net.name, host, "--"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    controller = {str(Variable.CONTROLLER): system.controller.address, "PATH": path}
    return output(*outer, *command, **controller)


# ---- 1: a gradient, field by field ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def system() -> Iterator[Testbed]:
    with Testbed(target="softswitch", lanes=64, name="exone", first_grpc_port=9960) as running:
        running.submit("sandbox", workers=list(VALUES), scheme="panama", sandbox=True)
        yield running


@pytest.mark.root
@pytest.mark.mininet
@pytest.mark.slow
def test_a_gradient_made_field_by_field_is_added_up(system: Testbed):
    sums = [
        command_of_host(system, host, sys.executable, SOLUTIONS / "gradient.py", "sandbox", host, value)
        for host, value in VALUES.items()
    ]
    assert sums == ["no RESULT yet\n", "no RESULT yet\n", "RESULT of chunk 2: 42 in each lane\n"]


def test_the_skeleton_of_a_gradient_lacks_what_its_todos_name():
    skeleton, solution = (
        (folder / "gradient.py").read_text().splitlines() for folder in (EXERCISES, SOLUTIONS)
    )
    added = [line for line in solution if line not in skeleton]
    assert len([line for line in skeleton if "TODO" in line]) == 2
    assert len(added) == 6


# ---- 2: a counter in the P4 -----------------------------------------------------------------------------------------


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program with the solution's counter, compiled."""
    try:
        p4build.compiler_version()
    except p4build.P4BuildError as missing:
        pytest.skip(str(missing))
    shutil.copytree(REPOSITORY / "p4src", tmp_path / "p4src", ignore=shutil.ignore_patterns("compiled"))
    apply_patch(SOLUTIONS / "counter.patch", tmp_path)
    monkeypatch.setattr(p4build, "REPOSITORY", tmp_path)
    [profile] = [profile for profile in p4build.PROFILES if profile.key == PROGRAM]
    p4build.compile_all(tmp_path, [profile])
    return tmp_path


@pytest.mark.root
@pytest.mark.mininet
@pytest.mark.p4c
def test_a_switch_counts_what_comes_again(counting: Path):
    program = (
        "--p4info",
        str(counting / f"{PROGRAM}.p4info.txtpb"),
        "--program",
        str(counting / f"{PROGRAM}.json"),
    )
    with Testbed(
        target="softswitch", lanes=64, name="extwo", first_grpc_port=9970, controller_options=program
    ) as system:
        system.submit("sandbox", workers=list(VALUES), scheme="panama", sandbox=True)
        send = [installed_command("netfold"), "host", "send", "--job", "sandbox", "--host", "h1"]
        for _ in range(3):
            output(*send, "--name", "extwo", "--controller", system.controller.address)
        control = system.net.switches["leaf1"].control_socket
        done = subprocess.run(
            [installed_command("softswitch"), "cli", str(control)],
            input="counter_read SwitchIngress.came_again 0\n",
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert re.search(r"\b2 packets", done.stdout), done.stdout


# ---- 3: a planner ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("folder", "rate"), [(EXERCISES / "planner", "33.3333"), (SOLUTIONS, "100")])
def test_a_planner_stands_beside_netfold_s_own(folder: Path, rate: str, tmp_path: Path):
    shutil.copy(folder / "two_levels.py", tmp_path)
    metadata = tmp_path / "two_levels-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: two-levels\nVersion: 0.1\n")
    project = (EXERCISES / "planner/pyproject.toml").read_text()
    [entry] = re.findall(r"^two-levels = \"(.*)\"$", project, re.MULTILINE)
    (metadata / "entry_points.txt").write_text(f"[netfold.planners]\ntwo-levels = {entry}\n")
    plan = [installed_command("netfold"), "plan", "leaf-spine-4x2", "-s", "two-levels"]
    assert re.search(rf"two-levels │ +{rate} │", output(*plan, PYTHONPATH=str(tmp_path)))


# ---- 4: a congestion window -----------------------------------------------------------------------------------------


@pytest.fixture
def own_window(tmp_path: Path) -> Path:
    """A copy of the sources with the exercise's rule."""
    for folder in ("netfold", "protocol", "traffic"):
        shutil.copytree(
            REPOSITORY / folder,
            tmp_path / folder,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    apply_patch(EXERCISES / "window.patch", tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solution", "said"),
    [("", "own: 20% of the link, 0.0 chunks in the queue, 0 losses"), ("own.c", "own: 100% of the link")],
)
def test_a_window_of_one_s_own_runs_in_the_engine(own_window: Path, solution: str, said: str):
    if solution:
        shutil.copy(SOLUTIONS / solution, own_window / "traffic/engine/congestion")
    trial = [sys.executable, EXERCISES / "window_trial.py", "own"]
    printed = output(*trial, PYTHONPATH=str(own_window), XDG_CACHE_HOME=str(own_window / "cache"))
    assert printed.startswith(said)
    queue = re.search(r"([\d.]+) chunks", printed)
    assert queue is not None
    assert float(queue[1]) < 15
