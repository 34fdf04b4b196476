# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Twenty runs in each environment, each ended by a signal in its middle: no process, namespace, mount or file stays.

A whole run comes first. It compiles, as the first one of a user does, so that the others reach their middle soon."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.testbed.environment_runs import DEADLINE_S, MARKS, SMALL, finish, home_of, may_run, start
from tests.testbed.environments import Environment

STARTS = 20
SEED = 26
LINES = 6
"""Lines of progress that a run prints: its network, its switches, its controller, its two workloads."""
ENDING = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
LEAVE_S = 120.0
"""A run on a busy machine has to clean up first."""
GONE_OR_CLOSED = (FileNotFoundError, ProcessLookupError, PermissionError)
"""A process that has ended; the machine's first one, which is closed to root of a container."""
MARK = "NETFOLD_TEST_RUN"
"""A variable that all processes of a run inherit."""

pytestmark = [*MARKS, pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Runs inherit ignored signals: SIGINT in a shell's background, SIGHUP below nohup."""
    handlers: dict[signal.Signals, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def processes_with(mark: str) -> dict[int, str]:
    """Their commands."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except GONE_OR_CLOSED:
            continue
    return found


def namespaces_of(pids: list[int] | None = None) -> set[str]:
    """Those of these processes, or of all, such as net:[4026531840]."""
    names = set()
    folders = [Path(f"/proc/{p}") for p in pids] if pids is not None else Path("/proc").glob("[0-9]*")
    for folder in folders:
        try:
            names |= {str(entry.readlink()) for entry in (folder / "ns").iterdir()}
        except GONE_OR_CLOSED:
            continue
    return {name.replace("_for_children", "") for name in names}


def wait_until_none_is_used(names: set[str]) -> set[str]:
    """Processes that end have namespaces still when their environment is gone; the namespaces that stay."""
    deadline = time.monotonic() + LEAVE_S
    while (left := names & namespaces_of()) and time.monotonic() < deadline:
        time.sleep(0.05)  # the kernel does not report it
    return left


def mounts() -> list[str]:
    return Path("/proc/self/mountinfo").read_text().splitlines()


def end(process: subprocess.Popen[str], mark: str, line: int, number: signal.Signals) -> set[str]:
    """Signals a run after so many lines of its output; the namespaces that it had until then."""
    assert process.stdout is not None
    for _ in range(line):
        if not process.stdout.readline():
            break
    running = list(processes_with(mark))
    assert running or line == 0 or process.poll() is not None, "no process is known by its mark"
    used = namespaces_of(running)
    process.send_signal(number)
    reader = threading.Thread(target=finish, args=(process,))
    reader.start()
    reader.join(LEAVE_S)
    assert not reader.is_alive(), f"{number.name} after line {line} did not end it"
    return used


def wait_until_none_is_left(mark: str) -> dict[int, str]:
    """Orphans of a killed run clean up by themselves; the processes that stay."""
    deadline = time.monotonic() + LEAVE_S
    while (left := processes_with(mark)) and time.monotonic() < deadline:
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(min(left))
            select.select([descriptor], [], [], deadline - time.monotonic())
            os.close(descriptor)
    return left


def own_variables(environment: Environment, home: Path, mark: str) -> dict[str, str]:
    """Those of a run: the mark of its processes; its temporary files and compiled programs are in its home."""
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    os.chown(temporary, environment.uid, environment.uid)
    return {MARK: mark, "TMPDIR": str(temporary), "SOFTSWITCH_CACHE": str(home / ".cache/softswitch")}


def start_small(environment: Environment, home: Path, mark: str) -> subprocess.Popen[str]:
    return start(environment, home, "run", *SMALL, variables=own_variables(environment, home, mark))


def files_of(home: Path) -> set[str]:
    """All but logs, which are kept, and the lock of the network's name."""
    found = {str(p.relative_to(home)) for p in home.rglob("*")}
    return {p for p in found if "logs" not in p.split("/")} - {"run/nf", "run/nf/lock"}


def wait_for_compiler(process: subprocess.Popen[str], mark: str, source: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not any("cc1" in c and source in c for c in processes_with(mark).values()):
        assert process.poll() is None, finish(process).stderr
        assert time.monotonic() < deadline, f"{source} is not compiled"
        time.sleep(0.05)  # the kernel does not report processes of others


@pytest.mark.parametrize("source", ["softswitch/core/", "program.c"], ids=["core", "program"])
@pytest.mark.parametrize("number", ENDING, ids=lambda n: n.name)
@pytest.mark.parametrize("environment", [Environment.USER, Environment.SEALED])
def test_a_first_run_that_is_killed_while_it_compiles_leaves_no_part_of_that(
    environment: Environment, number: signal.Signals, source: str
) -> None:
    may_run(environment)
    mark = uuid.uuid4().hex
    with home_of(environment) as home:
        process = start_small(environment, home, mark)
        wait_for_compiler(process, mark, source)
        end(process, mark, 0, number)
        assert wait_until_none_is_left(mark) == {}
        left = {p for p in files_of(home) if not p.startswith(("run", "out"))}
        whole = (".cache/softswitch/core-", ".cache/softswitch/engine-")
        assert {p for p in left if not p.startswith(whole)} == {
            "pair.yaml",
            "tmp",
            ".cache",
            ".cache/softswitch",
        }


@pytest.mark.parametrize(
    "environment", [Environment.ROOT, Environment.USER, Environment.CONTAINER, Environment.SEALED]
)
def test_nothing_is_left_of_runs_that_are_killed(environment: Environment) -> None:
    may_run(environment)
    choice = random.Random(f"{SEED} {environment}")
    with home_of(environment) as home:
        whole = finish(start_small(environment, home, uuid.uuid4().hex))
        assert whole.returncode == 0, whole.stdout + whole.stderr
        standing, files = namespaces_of([os.getpid()]), files_of(home)
        for turn in range(STARTS):
            number, line = ENDING[turn % len(ENDING)], choice.randrange(LINES)
            what = f"turn {turn}: {number.name} after line {line}"
            mark = uuid.uuid4().hex
            process = start_small(environment, home, mark)
            used = end(process, mark, line, number) - standing
            assert wait_until_none_is_left(mark) == {}, what
            assert wait_until_none_is_used(used) == set(), what
            pinned = [m for m in mounts() if str(home) in m or any(name in m for name in used)]
            assert pinned == [], what
            assert files_of(home) <= files, what
