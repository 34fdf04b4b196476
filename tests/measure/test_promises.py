# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What docs/dynamics.md promises of fairness, balance and arrivals, at the packet level: the same in every run."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netfold.cli.main import build
from netfold.measure import tcp_sink, worlds
from netfold.measure.arrivals.experiment import arrivals
from netfold.measure.balance.experiment import balanced
from netfold.measure.fairness import hosts, shares, short_flows
from netfold.measure.fairness.testbed import QUICK, measured
from netfold.simulator.scenario import Transport
from netfold.traffic.congestion import Congestion

JOB = worlds.Training()
FAIR = 0.9
CASES = [(t, n) for t in Transport for n in (1, 2, 4)]


def is_fair(found: shares.Shares) -> None:
    assert found.jain >= FAIR
    assert found.least >= 0.5
    assert sum(found.shares) > 0.9


@pytest.mark.parametrize(("transport", "flows"), [(t, n) for t, n in CASES if n != 2])
def test_a_job_and_tcp_flows_share_a_link(transport: Transport, flows: int):
    is_fair(shares.simulated(worlds.TESTBED, transport, flows, [JOB]))


@pytest.mark.long
@pytest.mark.parametrize("world", [worlds.TESTBED, worlds.DATA_CENTER], ids=lambda w: w.name)
@pytest.mark.parametrize(("transport", "flows"), CASES)
def test_they_share_it_whenever_the_flows_begin(world: worlds.World, transport: Transport, flows: int):
    for seed in range(1, 9):
        is_fair(shares.simulated(world, transport, flows, [JOB], seed))


def test_two_jobs_share_a_link():
    other = worlds.Training(workers=("w3", "w4"))
    found = shares.simulated(worlds.quick(worlds.TESTBED), Transport.RENO, 0, [JOB, other])
    is_fair(found)


def test_a_job_of_several_trees_is_one_claim():
    """All of them over the link that is shared."""
    job = worlds.Training(trees=2)
    found = shares.simulated(worlds.TESTBED, Transport.DCTCP, 1, [job])
    assert found.jain >= FAIR


@pytest.mark.parametrize("transport", [Transport.CUBIC, Transport.CUBIC_ECN])
def test_short_flows_wait_little_beside_a_job(transport: Transport):
    idle, beside, fixed = (
        short_flows.simulated(worlds.TESTBED, transport, job)
        for job in (None, JOB, worlds.Training(Congestion.FIXED))
    )
    assert beside.unfinished == 0
    assert beside.p99_ms <= 2 * idle.p99_ms
    assert beside.p99_ms <= fixed.p99_ms / 3


@pytest.mark.parametrize(("megabytes", "speed"), [(16, 1.0), (16, 0.5), (16, 0.25), (4, 1.0), (4, 0.5)])
def test_a_call_lasts_as_long_as_all_trees_together_need(megabytes: int, speed: float):
    assert balanced(megabytes * 1_000_000, speed).of_ideal < 1.2


@pytest.mark.long
def test_a_large_call_over_a_tree_that_is_half_blocked():
    found = balanced(400_000_000, 0.5)
    assert found.of_ideal < 1.05
    assert found.unbalanced_s > 1.7 * found.ideal_s


@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_workers_that_come_late_cost_nothing_while_they_wait(spread: float):
    """Neither to the first call nor to later ones."""
    for found in arrivals(spread, 1_000_000, 3):
        assert found.again_part < 0.005
        assert found.seconds <= 1.05 * found.together_s
        assert found.rate_part > 0.9


@pytest.mark.parametrize("command", ["balance", "arrivals", "fairness"])
def test_the_quick_forms_write_figures_and_a_picture(command: str, tmp_path: Path):
    options = ["--quick", "--json", "-", "--picture", str(tmp_path / "p.png")]
    result = CliRunner().invoke(build("measure"), ["measure", command, *options])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)
    assert (tmp_path / "p.png").stat().st_size > 1000


def test_the_hosts_program_times_short_flows(capsys: pytest.CaptureFixture[str]):
    thread = threading.Thread(target=tcp_sink.main, args=(["127.0.0.1", "17101"],), daemon=True)
    thread.start()
    deadline = time.monotonic() + 10
    while not capsys.readouterr().out and time.monotonic() < deadline:
        time.sleep(0.01)
    hosts.main(["short", "127.0.0.1", "17101", "cubic", "1000", "50", "0.2"])
    found = json.loads(capsys.readouterr().out)
    assert found["unfinished"] == 0
    assert found["seconds"]


@pytest.mark.long
@pytest.mark.root
def test_a_job_and_tcp_flows_share_a_link_of_a_running_network():
    found, short = measured(8.0, QUICK, lambda _: None)
    assert min(s.jain for s in found if "uplink" not in s.against) > 0.8
    assert min(sum(s.shares) for s in found) > 0.7
    p99 = {s.beside: s.p99_ms for s in short if s.transport == "cubic"}
    assert p99["panama"] < p99["fixed"]
