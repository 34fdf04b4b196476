# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""An upgrade of the controller, and the way back, while ranks of the version before run: no call fails, and no sum is
wrong. The version before is built from the history."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from netfold.controller.service.store_files import verify
from netfold.p4src.manifest import P4INFO_SUFFIX
from netfold.testbed import controller_process
from netfold.testbed.network.targets import installed_command
from netfold.testbed.processes import ProcessGroup
from netfold.testbed.testbed import Testbed
from netfold.testbed.torchrun import TORCH_PYTHON
from tests.history import REPOSITORY, tree_of
from tests.testbed.counting_ranks import RANK, files_of, python_ranks, stop_file, until_more_calls

BEFORE = "f11c8cddf999da4aa36327acd11a71e84516174d"
"""The last revision with the schema of the version before."""

JOB = "upgraded"
HOSTS = ("h1", "h2", "h5", "h6")
CALLS = 40
"""Calls under each controller."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="session")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tree_of(BEFORE, tmp_path_factory.mktemp("before"))


def _command_of(tree: Path) -> Path:
    """The command `netfold` of a tree."""
    script = tree / "netfold-before"
    start = "from netfold.cli import main; main()"
    script.write_text(
        f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(tree))} exec {shlex.quote(sys.executable)} -P -c '{start}' \"$@\"\n"
    )
    script.chmod(0o755)
    return script


def _program(tree: Path) -> list[bytes]:
    """The program that the tree's controller gives to switches."""
    compiled = tree / "p4src" / "compiled"
    return [(compiled / f"netfold-v1model-64{suffix}").read_bytes() for suffix in (P4INFO_SUFFIX, ".json")]


def _ranks(system: Testbed, kind: str, tree: Path, folder: Path) -> ProcessGroup:
    """Ranks of the tree's version."""
    if kind == "python":
        system.submit(JOB, None, HOSTS, scheme="switchml")
        return python_ranks(system, JOB, HOSTS, folder, prefix=["env", f"PYTHONPATH={tree}"])
    own, port = {"PYTHONPATH": str(tree)}, 29760
    files = files_of(folder, JOB)
    return system.torchrun(RANK, files, hosts=HOSTS, environment=own, port=port, result_option="--out")


@pytest.mark.parametrize("kind", ["python", "torch"])
def test_an_upgrade_and_the_way_back_fail_no_call(before, kind, tmp_path, monkeypatch):
    if kind == "torch" and not TORCH_PYTHON.exists():
        pytest.skip("SKIPPED: needs PyTorch in .venv-torch")
    old, new = str(_command_of(before)), installed_command("netfold")

    def start_next(system: Testbed, command: str) -> None:
        """Another version's controller takes the place of this one, as by `systemctl restart`."""
        monkeypatch.setattr(controller_process, "installed_command", lambda name: command)
        system.controller._end()
        system.start_controller()
        system.controller.wait_switches(60.0, system.controller.check)

    monkeypatch.setattr(controller_process, "installed_command", lambda name: old)
    with Testbed(target="softswitch", lanes=64, name="upgr", first_grpc_port=20040) as system:
        with _ranks(system, kind, before, tmp_path) as ranks:
            until_more_calls(tmp_path, [JOB], CALLS, system.check)
            [name] = system.jobs()
            epoch = system.jobs()[name].epoch
            for command in (new, old, new):
                start_next(system, command)
                until_more_calls(tmp_path, [JOB], CALLS, system.check)
                state = verify(system.directory / "controller.db")
                assert (state.schema, state.faults) == (7, ())
            job = system.jobs()[name]
            is_pushed = _program(before) != _program(REPOSITORY)
            assert (job.state, job.epoch > epoch) == ("running", is_pushed), (
                "a push of another program alone starts the job again"
            )
            assert len(job.connected) == len(HOSTS)
            stop_file(tmp_path).touch()
            results = ranks.wait(120.0, system.check)
        log = (system.directory / "controller.log").read_text()
    assert "Traceback" not in log, log
    assert len(results) == len(HOSTS)
    for result in results.values():
        assert result["wrong"] == []
        assert result["package"] == str(before), "the ranks are of the version before"
        assert result["calls"] >= 4 * CALLS
