# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What breaks ends in torch's usual error at all ranks that are left, within the group's timeout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402

from netfold.traffic.errors import JobFailed, TrafficError, UnknownHost  # noqa: E402
from netfold.traffic.pytorch.options import TorchOptions  # noqa: E402
from netfold.traffic.pytorch.places import agree  # noqa: E402
from tests.torch.world import Fabric, free_port, rank_environment, world  # noqa: E402


def add_up(times: int) -> None:
    for _ in range(times):
        dist.all_reduce(torch.ones(1000))


def train_once() -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2), init_sync=False)
    model(torch.ones(1, 4)).sum().backward()


def test_a_rank_that_dies_ends_the_others_calls(tmp_path: Path):
    with world(["h1", "h2", "h2"], tmp_path) as (ranks, _):
        ranks.run(add_up, 2)
        ranks.start(add_up, 1, ranks=[0, 1])
        ranks.processes[2].kill()
        lonely, beside = ranks.answers([0, 1])
        assert not lonely[0]
        assert lonely[1].startswith("DistBackendError: netfold: rank 0: all-reduce: job torch-")
        assert beside[1] == "DistBackendError: netfold: rank 1: all-reduce: rank 2 of this host is gone"
        ranks.start(add_up, 1, ranks=[0, 1])
        assert all("DistBackendError" in text for _, text in ranks.answers([0, 1]))


def test_a_network_that_is_gone_ends_backward_in_an_error(tmp_path: Path):
    with world(["h1", "h2"], tmp_path, timeout=8.0) as (ranks, fabric):
        ranks.run(add_up, 1)
        fabric.stop_root()
        fabric.stop_controller()
        ranks.start(train_once)
        for good, text in ranks.answers():
            assert not good
            assert "DistBackendError: netfold: rank" in text
            assert "the deadline passed" in text


def store_of(*others: str) -> dist.HashStore:
    """Where rank 1 and so on have told that they are at these hosts."""
    store = dist.HashStore()
    store.set_timeout(timedelta(seconds=30))
    for rank, host in enumerate(others, 1):
        store.set(f"spot{rank}", json.dumps({"machine": f"m{rank}", "addresses": [], "wanted": host}))
    return store


@pytest.fixture
def fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fabric = Fabric(["h1", "h2"], tmp_path)
    monkeypatch.setenv("NETFOLD_HOST", "h1")
    monkeypatch.setenv("NETFOLD_CONTROLLER", fabric.environment["NETFOLD_CONTROLLER"])
    yield fabric
    fabric.close()


def test_a_job_that_is_refused_is_refused_to_all_ranks(fabric: Fabric):
    fabric.controller.refuse = "link h1-leaf1 is full"
    store = store_of("h2")
    with pytest.raises(JobFailed, match="refused it: link h1-leaf1 is full"):
        agree(store, 0, 2, TorchOptions(), 30)
    with pytest.raises(TrafficError, match=r"rank 0 says: .*link h1-leaf1 is full"):
        agree(store, 1, 2, TorchOptions(), 30)


def test_a_host_that_the_controller_does_not_know(fabric: Fabric):
    with pytest.raises(UnknownHost, match="'h9' is no host"):
        agree(store_of("h9"), 0, 2, TorchOptions(), 30)


def test_machines_that_claim_one_host(fabric: Fabric):
    with pytest.raises(UnknownHost, match="all at host 'h1'"):
        agree(store_of("h1"), 0, 2, TorchOptions(), 30)


def test_the_job_is_what_options_and_environment_say(fabric: Fabric, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NETFOLD_NUMERICS", "half")
    monkeypatch.setenv("NETFOLD_PRIORITY", "7")
    plan = agree(store_of("h2"), 0, 2, TorchOptions.of({"job": "mine", "priority": 3}), 30)
    assert (plan.job, plan.names, plan.places) == ("mine", ("h1", "h2"), (0, 1))
    (job,) = fabric.controller.jobs
    assert job == {
        "name": "mine", "workers": ["h1", "h2"], "parameter_servers": 0, "numerics": {"mode": "half"}, "priority": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [({"jobs": 1}, "pg_options has 'jobs'; netfold knows job"), (3, "pg_options is a int")],
)
def test_options_that_nobody_knows(given: object, message: str):
    with pytest.raises(ValueError, match=message):
        TorchOptions.of(given)  # type: ignore[arg-type]


# Both ranks write to one pipe: only a line that is written at once stays whole.
PROGRAM = """
import os, torch, torch.distributed as dist
dist.init_process_group("netfold")
one = torch.ones(4)
dist.all_reduce(one)
os.write(1, f"sum {one.tolist()} {dist.get_backend()}\\n".encode())
dist.destroy_process_group()
"""


def test_torchrun_needs_nothing_but_the_name(tmp_path: Path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        str(script),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["sum [2.0, 2.0, 2.0, 2.0] netfold"] * 2


RAISING = """
import torch, torch.distributed as dist
dist.init_process_group("netfold")
if dist.get_rank() == 1:
    raise ValueError("of the program itself")
dist.all_reduce(torch.ones(4))
"""


def test_a_program_that_raises_ends_the_others_calls(tmp_path: Path, fabric: Fabric):
    script = tmp_path / "program.py"
    script.write_text(RAISING)
    processes, port = [], free_port()
    for rank, host in enumerate(["h1", "h2"]):
        own = rank_environment(rank, 2, host, port)
        command = [sys.executable, str(script)]
        processes.append(
            subprocess.Popen(command, env={**os.environ, **own}, stderr=subprocess.PIPE, text=True)
        )
    waiting, raising = (process.communicate(timeout=200)[1] for process in processes)
    assert "ValueError: of the program itself" in raising
    assert "DistBackendError: netfold: rank 0: all-reduce: job torch-" in waiting
    assert "canceled by an operator" in waiting
