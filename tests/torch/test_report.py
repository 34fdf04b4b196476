# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The report of why training is not faster, checked against steps whose shares are known."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402

from netfold.traffic.pytorch.report import (  # noqa: E402
    RankTimes,
    TrainingReport,
    summarize,
    write,
)
from netfold.traffic.pytorch.step_times import CallTime, StepTime, covered, step_time  # noqa: E402
from netfold.traffic.pytorch.tensor_call import NetworkUse  # noqa: E402
from tests.torch.world import free_port, world  # noqa: E402

NETWORK = NetworkUse(planned_mbps=100, link_mbps=100, packets=1000, retransmits=0)
STEP = StepTime(total=100, exposed=50, in_flight=70, first=20, calls=4, nbytes=1_000_000)


def report(*ranks: StepTime, network: NetworkUse = NETWORK) -> TrainingReport:
    found = [
        RankTimes(rank, (step,) * 10, {}, {}, network if rank == 0 else None)
        for rank, step in enumerate(ranks)
    ]
    return summarize("job1", len(ranks), found[::-1])


def test_seconds_in_overlapping_intervals_count_once():
    assert covered([(0, 2), (5, 6), (1, 3), (1, 1.5)]) == 4
    assert covered([]) == 0


def test_a_step_s_time_is_divided():
    """Computes from 10 to 13 beside the first call, waits for it from 13 to 14, and at the end for the second."""
    calls = [CallTime(11, 100, done=14), CallTime(15, 60, done=18)]
    step = step_time(10, 20, calls, [(13, 14)])
    assert step == StepTime(total=10_000, exposed=4_000, in_flight=6_000, first=3_000, calls=2, nbytes=160)


@pytest.mark.parametrize(
    ("ranks", "network", "verdict"),
    [
        ([replace(STEP, exposed=5)] * 2, NETWORK, "computing: 95% of a step; the network could win 5% at most"),
        ([STEP, replace(STEP, first=60), replace(STEP, first=60)], NETWORK, "rank 0 comes 40 ms late (100% of steps)"),
        ([STEP, STEP], replace(NETWORK, retransmits=50), "loss: 5% of packets are retransmitted"),
        ([STEP, STEP], replace(NETWORK, planned_mbps=50), "the plan gives 50 of 100 Mbit/s: other jobs and"),
        ([replace(STEP, nbytes=8192)] * 2, NETWORK, "round trips: 4 collectives of 2.0 KiB a step"),
        ([STEP, STEP], NETWORK, "the network: fewer bytes a step"),
    ],
)  # fmt: skip
def test_the_verdict_names_what_binds(ranks: list[StepTime], network: NetworkUse, verdict: str):
    found = report(*ranks, network=network)
    assert found.verdict.startswith(verdict)
    assert any(verdict in line for line in found.lines())


def test_the_report_has_what_no_communication_would_give_and_the_last_rank():
    late = replace(STEP, exposed=10, first=2)
    waiting = replace(STEP, first=42)
    lines = report(late, waiting, waiting).lines()
    assert "  computing                   50.0 ms   a step without any communication" in lines
    assert "  last to arrive          rank 0 in 100% of steps, 40.0 ms" in lines
    assert lines[-1] == "  binds                   rank 0 comes 40 ms late (100% of steps)"


def test_ranks_without_times_are_named_and_the_others_steps_are_compared_from_the_end():
    late = replace(STEP, first=5)
    found = summarize(
        "job1", 4, [RankTimes(0, (late, STEP, STEP), {}, {}, None), RankTimes(2, (STEP, STEP), {}, {}, None)]
    )  # fmt: skip
    assert (found.steps, found.missing, found.late_rank) == (2, (1, 3), -1)
    assert "  no times from           ranks 1, 3" in found.lines()


def test_a_program_without_steps_is_told_why_there_is_no_report(capsys: pytest.CaptureFixture[str]):
    write(summarize("job1", 1, [RankTimes(0, (), {}, {}, None)]), "1")
    assert capsys.readouterr().err.startswith("netfold: no step was measured")


def call_all_ways() -> None:
    dist.all_reduce(torch.ones(5000))
    dist.all_gather([torch.empty(50_000) for _ in range(2)], torch.ones(50_000))
    dist.all_reduce(torch.ones(4, dtype=torch.uint8))
    dist.all_reduce(torch.ones(50_000, dtype=torch.int32), dist.ReduceOp.MAX)
    dist.new_group([0])
    dist.destroy_process_group()


def test_the_report_says_which_way_each_kind_of_call_went_and_why(tmp_path: Path):
    environment = {"NETFOLD_REPORT": f"{tmp_path}/report.json", "MASTER_PORT": free_port()}
    with world(("h1", "h2"), tmp_path, environment) as (ranks, _):
        ranks.run(call_all_ways)
    found: dict[str, Any] = json.loads((tmp_path / "report.json").read_text())
    assert found["by_netfold"] == {"all-reduce": 1}
    assert found["by_gloo"] == {
        "all calls of 1 of 2 ranks (no NETFOLD_GROUP_RATE)": 1,
        "allgather (more than 64 KiB at all ranks together)": 1,
        "allreduce (MAX, more than 64 KiB at all ranks together)": 1,
        "allreduce (SUM of uint8)": 1,
    }


def train(compute_s: float, late_s: float, steps: int) -> None:
    """Steps that compute, with rank 1 late; large enough that they are no matter of round trips."""
    parameter = torch.nn.Parameter(torch.zeros(20_000))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    for _ in range(steps):
        time.sleep(compute_s + late_s * dist.get_rank())
        parameter.grad = torch.ones(20_000)
        dist.all_reduce(parameter.grad)
        optimizer.step()
    dist.destroy_process_group()


@pytest.mark.parametrize(
    ("compute_s", "late_s", "verdict"), [(1.0, 0.0, "computing: "), (0.01, 0.5, "rank 1 comes ")]
)
def test_rank_0_reports_when_the_group_ends(tmp_path: Path, compute_s: float, late_s: float, verdict: str):
    environment = {"NETFOLD_REPORT": f"{tmp_path}/report.json", "MASTER_PORT": free_port()}
    with world(("h1", "h2"), tmp_path, environment) as (ranks, _):
        ranks.run(train, compute_s, late_s, 5)
    found: dict[str, Any] = json.loads((tmp_path / "report.json").read_text())
    assert found["verdict"].startswith(verdict), found
    assert found["steps"] == 4
    assert found["missing"] == []
    assert found["network"]["packets"] > 0
