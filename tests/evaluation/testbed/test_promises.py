# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Promises of docs/explanation/dynamics.md about fairness, balance and arrivals, at the packet level: the same in every
run."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netfold.cli import build
from netfold.evaluation.testbed import shared_link, tcp_sink
from netfold.evaluation.testbed.arrivals import arrivals
from netfold.evaluation.testbed.balance import balanced
from netfold.evaluation.testbed.fairness import hosts, shares, short_flows
from netfold.evaluation.testbed.fairness.mininet import QUICK, measured
from netfold.simulator.scenario import TcpVariant
from netfold.traffic.congestion import Congestion

JOB = shared_link.EndlessJob()
FAIR = 0.9
CASES = [(t, n) for t in TcpVariant for n in (1, 2, 4)]


def is_fair(found: shares.SharesRow) -> None:
    assert found.jain >= FAIR
    assert found.min_share >= 0.5
    assert sum(found.shares) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "flows"), [(t, n) for t, n in CASES if n != 2])
def test_a_job_and_tcp_flows_share_a_link(transport: TcpVariant, flows: int):
    is_fair(shares.simulated(shared_link.TESTBED, transport, flows, [JOB]))


@pytest.mark.long
@pytest.mark.parametrize("link", [shared_link.TESTBED, shared_link.DATA_CENTER], ids=lambda w: w.name)
@pytest.mark.parametrize(("transport", "flows"), CASES)
def test_they_share_it_whenever_the_flows_begin(
    link: shared_link.SharedLink, transport: TcpVariant, flows: int
):
    for seed in range(1, 9):
        is_fair(shares.simulated(link, transport, flows, [JOB], seed))


def test_two_jobs_share_a_link():
    other = shared_link.EndlessJob(workers=("w3", "w4"))
    found = shares.simulated(shared_link.shortened(shared_link.TESTBED), TcpVariant.RENO, 0, [JOB, other])
    is_fair(found)


def test_a_job_of_several_trees_is_one_claim():
    """All of them over the link that is shared."""
    job = shared_link.EndlessJob(trees=2)
    found = shares.simulated(shared_link.TESTBED, TcpVariant.DCTCP, 1, [job])
    assert found.jain >= FAIR


@pytest.mark.parametrize("transport", [TcpVariant.CUBIC, TcpVariant.CUBIC_ECN])
def test_short_flows_wait_little_beside_a_job(transport: TcpVariant):
    idle, beside, fixed = (
        short_flows.simulated(shared_link.TESTBED, transport, job)
        for job in (None, JOB, shared_link.EndlessJob(Congestion.FIXED))
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
        assert found.resent_part < 0.005
        assert found.seconds <= 1.05 * found.together_s
        assert found.rate_part > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("command", ["balance", "arrivals", "fairness"])
def test_the_quick_forms_write_json_and_a_plot(command: str, tmp_path: Path):
    options = ["--quick", "--json", "--out", str(tmp_path / "new")]
    result = CliRunner().invoke(build("measure"), ["measure", command, *options])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["experiment"] == f"measure-{command}"
    assert json.loads((tmp_path / "new" / f"measure-{command}.json").read_text()) == document
    assert (tmp_path / "new" / f"measure-{command}.png").stat().st_size > 1000


def test_the_hosts_program_times_short_flows(capsys: pytest.CaptureFixture[str]):
    thread = threading.Thread(target=tcp_sink.main, args=(["127.0.0.1", "17101"],), daemon=True)
    thread.start()
    deadline = time.monotonic() + 10
    while not capsys.readouterr().out and time.monotonic() < deadline:
        time.sleep(0.01)
    # without CAP_NET_ADMIN only some congestion controls may be chosen
    control, *_ = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    hosts.main(["short", "127.0.0.1", "17101", control, "1000", "50", "0.2"])
    found = json.loads(capsys.readouterr().out)
    assert found["unfinished"] == 0
    assert found["seconds"]


@pytest.mark.long
@pytest.mark.root
def test_a_job_and_tcp_flows_share_a_link_of_a_running_network():
    rows = list(measured(50.0, 8.0, QUICK, lambda _: None))
    found = [r for r in rows if isinstance(r, shares.SharesRow)]
    short = [r for r in rows if isinstance(r, short_flows.ShortFlowsRow)]
    assert min(s.jain for s in found if "uplink" not in s.against) > 0.8
    assert min(sum(s.shares) for s in found) > 0.7
    p99 = {s.beside: s.p99_ms for s in short if s.transport == "cubic"}
    assert p99["panama"] < p99["fixed"]
