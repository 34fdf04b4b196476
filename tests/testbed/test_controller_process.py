# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller of a run as a process: it does not outlive the process that started it. A run reports its refusals and
late answers."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from netfold.testbed.controller_process import _rpc_errors
from netfold.testbed.errors import RunError, RunTimeoutError

HOLDER = """
import sys
from pathlib import Path
from netfold.testbed.controller_process import ControllerProcess
from netfold.testbed.network.spawner import Spawner

spawner = Spawner("a-test")
with ControllerProcess("single", Path(sys.argv[1]), 64, 1.0, 39559, spawner.popen) as service:
    print(service.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A socket's path has 107 bytes at most, and `tmp_path` has the test's name in it."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_the_controller_ends_with_its_run_even_by_sigkill(short_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(short_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        controller = os.pidfd_open(int(holder.stdout.readline()))
        try:
            holder.kill()
            assert select.select([controller], [], [], 20)[0], "it lives on"
        finally:
            os.close(controller)


class Answer(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


def test_a_late_answer_is_a_timeout_for_which_a_run_names_its_option():
    with pytest.raises(RunTimeoutError, match="deadline of this step"), _rpc_errors():
        raise Answer(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")


def test_a_refusal_has_the_reason_of_the_controller():
    with pytest.raises(RunError, match=r"^controller: there is no job 'x'$"), _rpc_errors():
        raise Answer(grpc.StatusCode.NOT_FOUND, "there is no job 'x'")
