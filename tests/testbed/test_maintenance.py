# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Twenty jobs leave a spine that is drained, and wait for a leaf that is held while it is away. No call fails, and no
sum is wrong."""

from __future__ import annotations

import json
import logging
import subprocess
import time
from contextlib import ExitStack
from itertools import cycle, islice, product

import pytest

from netfold.testbed.network.targets import installed_command
from netfold.testbed.testbed import Testbed
from netfold.topologies.generators import leaf_spine
from tests.testbed.counting_ranks import python_ranks, stop_file, until_more_calls
from tests.testbed.test_scenarios import until

PAIRS = islice(cycle(product(("h1", "h2", "h3", "h4"), ("h5", "h6", "h7", "h8"))), 20)
JOBS = {f"job{number}": hosts for number, hosts in enumerate(PAIRS)}
"""The workers of each, at both leaves."""
AWAY_S = 15.0
"""Seconds without the leaf. Jobs would fail after half of them if it were not held."""

log = logging.getLogger(__name__)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def _fabric(system: Testbed, *words: str) -> str:
    command = [installed_command("netfold"), "fabric", *words, "--controller", system.controller.address]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def _jobs_at(system: Testbed, switch: str) -> list[str]:
    """Names of the jobs that a withdrawn switch waits for."""
    status = json.loads(_fabric(system, "status", "--json"))
    (element,) = (e for e in status["elements"] if e["name"] == switch)
    return [job["name"] for job in element["jobs"]]


def test_twenty_jobs_leave_a_drained_spine_and_wait_for_a_held_leaf(tmp_path):
    with (
        Testbed(
            leaf_spine(2, 2, 4), target="softswitch", lanes=64, name="care", first_grpc_port=9750
        ) as system,
        ExitStack() as stack,
    ):
        groups = []
        for job, hosts in JOBS.items():
            system.submit(job, None, hosts, rate=4)
            groups.append(stack.enter_context(python_ranks(system, job, hosts, tmp_path)))
        until_more_calls(tmp_path, JOBS, 3, system.check)

        asked = time.monotonic()
        _fabric(system, "drain", "spine1", "--reason", "another line card")
        until(lambda: not _jobs_at(system, "spine1"), "spine without jobs", 300.0)
        log.info("%d jobs left spine1 in %.1f s", len(JOBS), time.monotonic() - asked)
        until_more_calls(tmp_path, JOBS, 3, system.check)
        _fabric(system, "undrain", "spine1")

        _fabric(system, "hold", "leaf1", "--for", "10m")
        system.kill("leaf1")
        time.sleep(AWAY_S)  # the absence itself
        system.restore("leaf1")
        until_more_calls(tmp_path, JOBS, 3, system.check)
        _fabric(system, "undrain", "leaf1")
        stop_file(tmp_path).touch()
        results = [r for g in groups for r in g.wait(300.0, system.check).values()]
    assert [r["wrong"] for r in results] == [[]] * 2 * len(JOBS)
    longest_s = max(r["longest_s"] for r in results)
    log.info("%d calls, the longest took %.1f s", sum(r["calls"] for r in results), longest_s)
