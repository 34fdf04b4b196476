# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs through real switches whose workers pause, go, come back and are added: which are in each sum, and that all have
the same bits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from netfold.testbed.network.targets import installed_command
from netfold.testbed.processes import HostTask, ProcessGroup
from netfold.testbed.submitted_job import Results
from netfold.testbed.testbed import Testbed
from tests.testbed.test_scenarios import losses, until

pytestmark = [pytest.mark.root, pytest.mark.mininet]

MEMBER = Path(__file__).with_name("reducing_member.py")
LATE_CALLS = 12


@pytest.fixture(scope="module")
def system() -> Iterator[Testbed]:
    """One network for all: each job has its own name and folder, and only its members die."""
    with Testbed(target="softswitch", lanes=64, name="mem", first_grpc_port=9780) as running:
        yield running


@dataclass(frozen=True)
class Job:
    system: Testbed
    name: str
    folder: Path

    @property
    def stop(self) -> Path:
        return self.folder / "stop"

    def task(self, host: str, *options: object) -> HostTask:
        out = self.folder / f"{host}.json"
        number = self.system.workers.index(host)
        command = [
            sys.executable,
            MEMBER,
            self.system.controller.address,
            self.name,
            host,
            number,
            out,
            self.stop,
        ]
        return HostTask(host, [*command, *options], out)

    def run(self, tasks: Sequence[HostTask]) -> Results:
        with ProcessGroup(self.system.net, tasks) as members:
            told = members.wait(100, self.system.check)
        self.system.controller.wait_ended(self.name, 30.0)
        return told

    def calls(self, host: str) -> list[dict[str, Any]]:
        """Returns the calls that the present process of a host's worker has had so far."""
        path = self.folder / f"{host}.progress"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]


def sums_of(system: Testbed, hosts: Sequence[str]) -> float:
    return float(sum(1 << system.workers.index(h) for h in hosts))


def contributors(row: dict[str, Any], value: float) -> int:
    """As bits, of an average: it is the sum of their powers of two over their number."""
    for count in range(row["least"], row["most"] + 1):
        bits = round(value * count)
        if abs(value * count - bits) < 1e-3 and bits.bit_count() == count:
            return bits
    raise AssertionError(f"{value} is no average of {row['least']} to {row['most']} workers")


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss", [pytest.param(0.0, marks=pytest.mark.slow), 0.01], ids=["no loss", "1 % loss"]
)
def test_no_worker_waits_for_one_that_pauses_and_all_have_the_same_averages(
    system: Testbed, tmp_path: Path, loss: float
) -> None:
    job = Job(system, "lossy" if loss else "lossless", tmp_path)
    workers = system.workers[:4]
    system.submit(
        job.name, workers=workers, scheme="panama", quorum=3, quorum_deadline="150ms", lease_ms=20000
    )
    pauses = ("--late-calls", LATE_CALLS, "--late", 0.7)
    with losses(system, loss):
        told = job.run(
            [job.task(h, "--op", "average", *(pauses if h == workers[3] else ())) for h in workers]
        )
    had = {h: job.calls(h) for h in workers}
    steady = [had[h] for h in workers if not told[h]["straggled"]]
    assert all(rows == steady[0] for rows in steady)
    digests = [row["digest"] for row in steady[0]]
    for rows in had.values():  # in the order of the others, without those that it was too late for
        at = 0
        for row in rows:
            at = digests.index(row["digest"], at)
        assert at == len(digests) - 1
    for row in steady[0]:
        assert row["least"] >= 3
        assert all(contributors(row, value) for value in row["values"])
    without = [row for row in steady[0] if row["least"] == row["most"] == 3]
    assert any(contributors(row, row["values"][0]) == 0b0111 for row in without)
    assert any(row["least"] == 4 for row in steady[0])
    assert told[workers[3]]["late"] + told[workers[3]]["straggled"] > 0


@pytest.mark.parametrize(
    "elastic", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["elastic", "fixed"]
)
@pytest.mark.parametrize(
    "scheme", ["switchml", pytest.param("none", marks=pytest.mark.slow)], ids=["switches", "parameter server"]
)
def test_a_worker_that_leaves_stops_no_other_workers_call(
    system: Testbed, tmp_path: Path, elastic: bool, scheme: str
) -> None:
    """The calls that it finished are sums of all. Later ones are sums of the others, or name it at once."""
    job = Job(system, f"{scheme}-{'elastic' if elastic else 'fixed'}", tmp_path)
    workers = system.workers[:3]
    loss = "continue" if elastic else "fail"
    system.submit(job.name, workers=workers, scheme=scheme, on_worker_loss=loss, lease_ms=20000)
    numbers = dict(zip(workers, (20, 20, 5), strict=True))
    told = job.run([job.task(h, "--calls", n) for h, n in numbers.items()])
    had = {h: [row["values"] for row in job.calls(h)] for h in workers}
    of_all, of_two = [sums_of(system, workers)], [sums_of(system, workers[:2])]
    assert had[workers[2]] == [of_all] * 5
    for host in workers[:2]:
        assert had[host] == [of_all] * 5 + [of_two] * (15 if elastic else 0)
        assert (f"{workers[2]} left the job after 5 calls" in told[host]["error"]) is not elastic


@pytest.mark.slow
def test_a_straggler_of_a_quorum_hears_that_the_others_have_left(system: Testbed, tmp_path: Path) -> None:
    """They do not wait for it, and its own calls end at once instead of at their deadline."""
    job = Job(system, "straggler", tmp_path)
    workers = system.workers[:4]
    *others, late = workers
    system.submit(
        job.name, workers=workers, scheme="panama", quorum=3, quorum_deadline="150ms", lease_ms=20000
    )
    options = dict.fromkeys(others, ("--calls", 6)) | {late: ("--late-calls", 3, "--late", 6.0)}
    told = job.run([job.task(h, *options[h]) for h in workers])
    had = {h: [row["digest"] for row in job.calls(h)] for h in workers}
    assert had[others[0]] == had[others[1]] == had[others[2]]
    assert len(had[others[0]]) == 6
    assert had[late] == had[others[0]][: len(had[late])]
    assert "left the job after 6 calls" in told[late]["error"]


@pytest.mark.slow
def test_workers_go_come_back_and_are_added_and_every_sum_is_of_its_members(
    system: Testbed, tmp_path: Path
) -> None:
    job = Job(system, "job", tmp_path)
    first, lost, added = system.workers[0], system.workers[2], system.workers[3]
    workers = system.workers[:3]
    system.submit(job.name, workers=workers, scheme="panama", on_worker_loss="continue", lease_ms=4000)

    def in_it(*hosts: str) -> None:
        """Until a call of exactly these was done."""
        wanted = [sums_of(system, hosts)]
        until(lambda: any(r["values"] == wanted for r in job.calls(first)[-20:]), f"sum of {hosts}")
        system.check()

    veterans = ProcessGroup(system.net, [job.task(h) for h in workers[:2]])
    with veterans, ProcessGroup(system.net, [job.task(lost)]) as leaves:
        in_it(*workers)
        leaves.kill(lost)
        in_it(*workers[:2])
        with ProcessGroup(system.net, [job.task(lost)]) as again:
            in_it(*workers)
            add = [installed_command("netfold"), "job", "add", job.name, added]
            subprocess.run(
                [*map(str, add), "--controller", system.controller.address], check=True, capture_output=True
            )
            with ProcessGroup(system.net, [job.task(added)]) as more:
                in_it(*workers, added)
                job.stop.touch()
                for group in (veterans, again, more):
                    group.wait(60, system.check)
    system.controller.wait_ended(job.name, 30.0)
    every = [job.calls(h) for h in workers[:2]]
    later = [job.calls(h) for h in (lost, added)]
    digests = [row["digest"] for row in every[0]]
    assert digests == [row["digest"] for row in every[1]]
    for rows in later:
        assert [row["digest"] for row in rows] == digests[-len(rows) :]
    assert all(len(row["values"]) == 1 for row in every[0]), "a sum of some chunks is of others"
