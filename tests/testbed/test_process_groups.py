# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of a group in which a process fails or is late: its own, and those of the other hosts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from netfold.testbed.errors import ProcessFailedError, RunTimeoutError
from netfold.testbed.network.network import Network
from netfold.testbed.processes import HostTask, ProcessGroup

HANG = "import sys, time; print(sys.argv[1], flush=True); open(sys.argv[2], 'w').close(); time.sleep(60)"
FAIL = "import sys; sys.exit(sys.argv[1])"
TORN = (
    "Traceback (most recent call last):\\n  File 'x'\\nConnectionError: h1 is away\\nRuntimeError: after it"
)


def group(folder: Path, programs: Mapping[str, tuple[str, str]]) -> ProcessGroup:
    """A process a host, of a program and its text. Returns when those that hang have written theirs."""
    host = SimpleNamespace(popen=subprocess.Popen)
    network = cast(Network, SimpleNamespace(hosts=dict.fromkeys(programs, host)))
    tasks = [
        HostTask(
            h,
            [sys.executable, "-c", program, text.replace("\\n", "\n"), str(folder / f"{h}.wrote")],
            folder / f"{h}.json",
        )
        for h, (program, text) in programs.items()
    ]
    started = ProcessGroup(network, tasks)
    for h, (program, _) in programs.items():
        while program == HANG and not (folder / f"{h}.wrote").exists():
            pass
    return started


def wait(processes: ProcessGroup, timeout_s: float) -> dict[str, Any]:
    with processes:
        return dict(processes.wait(timeout_s, lambda: None))


def test_a_failure_names_the_errors_of_the_other_hosts(tmp_path: Path) -> None:
    programs = {"h1": (FAIL, "netfold: no room"), "h2": (HANG, TORN), "h3": (HANG, "step 7 of 9")}
    with pytest.raises(ProcessFailedError) as failed:
        wait(group(tmp_path, programs), 30)
    own = "the process on host h1 ended with exit code 1: no room"
    assert str(failed.value) == f"{own}; h2: ConnectionError: h1 is away"


def test_a_failure_names_the_other_hosts_that_a_signal_killed(tmp_path: Path) -> None:
    programs = {"h1": (FAIL, "netfold: h2 left"), "h2": (HANG, "step 7 of 9"), "h3": (FAIL, "")}
    processes = group(tmp_path, programs)
    processes.kill("h2")
    with processes:
        outcomes = processes.outcomes(30)
        with pytest.raises(ProcessFailedError) as failed:
            processes.wait(30, lambda: None)
    assert {host: code for host, (code, _) in outcomes.items()} == {"h1": 1, "h2": -9, "h3": 1}
    own = "the process on host h1 ended with exit code 1: h2 left"
    others = "; h2 was killed by SIGKILL; h3 ended with exit code 1: its log is empty"
    assert str(failed.value) == f"{own}{others}"


def test_a_member_s_own_error_is_named_before_those_that_name_it(tmp_path: Path) -> None:
    """Workers that hear of a departure may end before the one that has left."""
    slow = "import sys, time; time.sleep(1); sys.exit(sys.argv[1])"
    programs = {
        "h1": (HANG, "step 7 of 9"),
        "h7": (slow, "netfold: the call took more than 60 s"),
        "h8": (FAIL, "netfold: h7 left the job after 3 calls"),
    }
    with pytest.raises(ProcessFailedError) as failed:
        wait(group(tmp_path, programs), 30)
    own = "the process on host h7 ended with exit code 1: the call took more than 60 s"
    assert str(failed.value) == f"{own}; h8: h7 left the job after 3 calls"


def test_a_departed_member_that_has_not_failed_is_no_cause(tmp_path: Path) -> None:
    programs = {"h7": ("", ""), "h8": (FAIL, "netfold: h7, h9 left the job after 3 calls")}
    with pytest.raises(ProcessFailedError, match="host h8 ended with exit code 1: h7, h9 left the job"):
        wait(group(tmp_path, programs), 30)


def test_a_timeout_names_the_errors_of_all_hosts(tmp_path: Path) -> None:
    programs = {"h1": (HANG, "step 7"), "h2": (HANG, "netfold: no controller answers at x yet")}
    with pytest.raises(RunTimeoutError) as late:
        wait(group(tmp_path, programs), 0.1)
    assert str(late.value) == "h1, h2 did not finish within 0 s; h2: no controller answers at x yet"


def test_errors_of_many_hosts_are_short(tmp_path: Path) -> None:
    programs = {f"h{n}": (HANG, f"ValueError: {n} " + "x" * 400) for n in range(1, 6)}
    programs["h6"] = (HANG, "OSError: 5 x")
    programs["h7"] = (HANG, "OSError: 5 x")
    processes = group(tmp_path, programs)
    with processes, pytest.raises(RunTimeoutError) as late:
        processes.outcomes(0.1)
    told = str(late.value)
    assert told.startswith("h1 did not end within 0 s; h1: ValueError: 1 xxx")
    assert told.endswith("...; errors of 4 more hosts")
    assert len(told) < 600
