# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks that run counting_rank.py in the hosts of a job, and the calls that jobs have made up to now."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from netfold.testbed.network.network import Network
from netfold.testbed.processes import HostTask, ProcessGroup
from netfold.testbed.testbed import Testbed
from tests.testbed.test_scenarios import until

RANK = Path(__file__).with_name("counting_rank.py")
CALLS_S = 120.0


def progress_of(folder: Path, job: str) -> Path:
    return folder / f"{job}.progress"


def stop_file(folder: Path) -> Path:
    """When it is there, all ranks end."""
    return folder / "stop"


def files_of(folder: Path, job: str) -> list[object]:
    """Options of each rank."""
    return ["--progress", progress_of(folder, job), "--stop", stop_file(folder)]


def ranks_of(
    net: Network,
    controller: str,
    job: str,
    hosts: Sequence[str],
    folder: Path,
    *,
    prefix: Sequence[object] = (),
    prefixes: Mapping[str, Sequence[object]] | None = None,
) -> ProcessGroup:
    """Python workers of a job that was submitted. `controller`: its address. `prefix`: of the command of each; of some
    hosts another one, in `prefixes`."""
    tasks = []
    for number, host in enumerate(hosts):
        result = folder / f"{job}-{host}.json"
        member = ["--job", job, "--host", host, "--controller", controller]
        own = ["--ranks", len(hosts), "--number", number, "--out", result]
        own_prefix = (prefixes or {}).get(host, prefix)
        command = [*own_prefix, sys.executable, "-P", RANK, *files_of(folder, job), *member, *own]
        tasks.append(HostTask(host, command, result))
    return ProcessGroup(net, tasks)


def python_ranks(
    system: Testbed, job: str, hosts: Sequence[str], folder: Path, *, prefix: Sequence[object] = ()
) -> ProcessGroup:
    """Python workers of a job of the system's own controller."""
    return ranks_of(system.net, system.controller.address, job, hosts, folder, prefix=prefix)


def until_more_calls(folder: Path, jobs: Collection[str], more: int, check: Callable[[], None]) -> None:
    """Wait for more calls of each job."""

    def calls() -> list[int]:
        files = [progress_of(folder, job) for job in jobs]
        return [int(f.read_text()) if f.exists() else 0 for f in files]

    def have_more() -> bool:
        check()
        return all(now >= old + more for now, old in zip(calls(), before, strict=True))

    before = calls()
    until(have_more, f"{more} calls after {before} of {', '.join(jobs)}", CALLS_S)
