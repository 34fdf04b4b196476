# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs that hang or are slow, through real switches: `job debug` names what a seed has chosen to hold them up."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netfold.testbed.network.faults import Faults
from netfold.testbed.processes import HostTask, ProcessGroup
from netfold.testbed.testbed import Testbed
from tests.testbed.test_scenarios import until

pytestmark = [pytest.mark.root, pytest.mark.mininet]

MEMBER = Path(__file__).with_name("hanging_member.py")
WORKERS = 6
CAUSES = {
    "idle": "rank never called",
    "stop": "process stopped",
    "kill": "process gone",
    "absent": "worker absent",
    "other": "rank calls another collective",
    "late": "slow",
    "lost": "link loses",
}


@pytest.fixture(scope="module")
def system() -> Iterator[Testbed]:
    with Testbed(target="softswitch", lanes=64, name="hang", first_grpc_port=20100) as running:
        yield running


def debug(system: Testbed, job: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "netfold", "job", "debug", job, "--json"]
    command += ["--controller", system.controller.address]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize("seed", [pytest.param(n, marks=pytest.mark.slow if n > 0 else ()) for n in range(7)])
def test_what_holds_a_job_up_is_named(system: Testbed, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    how = list(CAUSES)[seed % len(CAUSES)]
    hosts = sorted(draw.sample(system.workers, WORKERS))
    victim, at, elements = draw.choice(hosts), draw.randrange(3, 12), draw.randrange(100, 20_000)
    job = f"{how}-{seed}"
    system.submit(job, workers=hosts, lease_ms=30_000)

    def task(host: str) -> HostTask:
        options = ["--at", at, "--how", how] if host == victim else []
        command = [sys.executable, MEMBER, system.controller.address, job, host, elements]
        command += [tmp_path / f"{host}.reached", *options]
        return HostTask(host, command, tmp_path / f"{host}.json", has_result=False)

    leaf = system.fabric.attachment(victim)
    link = f"{victim}-{leaf}"
    started = [h for h in hosts if (how, h) != ("absent", victim)]
    with ProcessGroup(system.net, [task(h) for h in started]) as members:
        try:
            if how == "absent":
                until(
                    lambda: sum(m.connected for m in system.controller.job(job).members) == len(started), job
                )
            else:
                until((tmp_path / f"{victim}.reached").exists, "call in which the job hangs")
            if how == "kill":
                members.kill(victim)
            if how == "lost":
                system.set_faults(link, Faults(loss=1.0), toward=leaf)
            await_named(system, job, CAUSES[how], {victim, link})
        finally:
            system.set_faults(link, None)
    system.controller.cancel(job)


def await_named(system: Testbed, job: str, cause: str, elements: set[str]) -> None:
    """Wait until the finding has the cause and no other element: at first it may be of the time before the hang."""
    deadline = time.monotonic() + 60
    while True:
        document = debug(system, job)
        if document["cause"] == cause and document["elements"] and set(document["elements"]) <= elements:
            break
        assert time.monotonic() < deadline, (
            f"{elements} as {cause}: {document['finding']} {document['evidence']}"
        )
    (ranks,) = document["communicators"]
    assert ranks["size"] == WORKERS
