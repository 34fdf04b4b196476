# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The testbed as a library, with a network: all that its page promises, and that nothing is left however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

from netfold.testbed import Faults, NetworkError, RunError, Testbed
from netfold.testbed.network.state import RunDirectory, interfaces_of, processes_of
from netfold.topologies.fabric import Fabric
from tests.testbed.test_scenarios import until

pytestmark = [pytest.mark.root, pytest.mark.mininet]

NAME, PORT = "left", 9660
"""They are of testbeds that end in a test."""

SUM = ["--workload", "sizes", "--sizes", 1 << 16, "--iterations", 2]
RING = nx.cycle_graph(3)
"""Three switches, which take a host each."""


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    fabric = Fabric.from_graph(RING, hosts_per_switch=1)
    with Testbed(fabric, target="softswitch", lanes=64, name="lib", first_grpc_port=9640) as running:
        yield running


def hosts(testbed: Testbed) -> tuple[str, str, str]:
    first, second, third = testbed.workers
    return first, second, third


def test_a_graph_becomes_a_network_whose_hosts_reach_each_other(testbed: Testbed):
    first, second, _ = hosts(testbed)
    done = testbed.host(first).run(["ping", "-c1", "-W5", testbed.address(second)])
    assert done.returncode == 0, done.stdout


def test_programs_in_hosts_find_the_controller(testbed: Testbed):
    done = testbed.host(testbed.workers[0]).run(["printenv", "NETFOLD_CONTROLLER"])
    assert done.stdout.strip() == testbed.controller.address


def test_a_job_is_run_explained_and_seen_in_a_capture(testbed: Testbed):
    first = testbed.workers[0]
    link = f"{first}-{testbed.fabric.attachment(first)}"
    testbed.set_faults(link, Faults(loss=0.02))
    with testbed.capture(link) as capture:
        job = testbed.submit("sums", SUM, scheme="switchml")
        results = job.result()
    testbed.set_faults(link, None)
    assert set(results) == set(testbed.workers)
    assert sum(r["wrong_elements"] for r in results.values()) == 0
    assert job.status().state == "done"
    assert job.explain() == ["The job is done: every worker left."]
    assert any("Netfold" in packet for packet in capture.packets())


def test_a_job_without_workload_waits_for_members_and_can_be_canceled(testbed: Testbed):
    job = testbed.submit("own", scheme="switchml")
    assert (job.status().state, job.status().connected) == ("running", ())
    assert any("Not connected" in line for line in job.explain())
    assert job.cancel().state == "canceled"
    assert job.wait().reason


def test_a_refused_job_names_the_reason(testbed: Testbed):
    with pytest.raises(RunError, match="'h99' is no host"):
        testbed.submit("stranger", SUM, workers=["h99"])


def test_a_job_survives_a_cut_link_and_a_killed_switch(testbed: Testbed):
    job = testbed.submit("moved", [*SUM[:-1], 12], scheme="switchml", reroute="on")
    root = job.plan.trees[0].root
    link = next("-".join(e.path[1:]) for e in job.plan.trees[0].edges if len(e.path) == 3)  # of two switches
    testbed.fail(link)
    until(lambda: job.status().epoch > 1, "epoch without the link")
    testbed.restore(link)
    testbed.kill(root)
    testbed.restore(root)
    results = job.result()
    assert sum(r["wrong_elements"] for r in results.values()) == 0


@pytest.mark.parametrize("call", ["host", "kill", "fail", "capture"])
def test_an_unknown_element_is_named_with_those_there_are(testbed: Testbed, call: str):
    with pytest.raises(NetworkError, match=r"'h99' is no .* of this network; expected one of"):
        getattr(testbed, call)("h99")


def leftovers() -> list[str]:
    directory = RunDirectory(NAME)
    files = [p.name for p in directory.path.glob("*") if p.name not in ("lock", "logs")]
    return interfaces_of(NAME) + files


class Stopped(Exception):
    pass


def run_that_raises(runs: list[str]) -> None:
    with Testbed("single", target="softswitch", lanes=64, name=NAME, first_grpc_port=PORT) as testbed:
        runs.append(testbed.net.state().run)
        testbed.host("h1").popen(["sleep", "600"])
        testbed.submit("left", SUM)
        raise Stopped


@pytest.mark.slow
def test_an_exception_in_the_block_leaves_nothing():
    runs: list[str] = []
    with pytest.raises(Stopped):
        run_that_raises(runs)
    assert leftovers() == []
    assert list(processes_of(runs[0])) == []


INTERRUPTED = f"""
import sys
from netfold.testbed import Testbed
with Testbed("single", target="softswitch", lanes=64, name="{NAME}", first_grpc_port={PORT}) as testbed:
    testbed.host("h1").popen(["sleep", "600"])
    print(testbed.net.state().run, flush=True)
    testbed.submit("waiting").wait(600)
"""


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, -signal.SIGINT),
        pytest.param(signal.SIGTERM, 128 + signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_signal_leaves_nothing(number: signal.Signals, code: int, tmp_path: Path):
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        run = process.stdout.readline().strip()
        process.send_signal(number)
        assert process.wait(60) == code
    assert leftovers() == []
    assert list(processes_of(run)) == []
