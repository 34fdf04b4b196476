# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""torchft's manager, with its own lighthouse, drives process groups of netfold: a replica dies, and one comes back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")
pytest.importorskip("torchft", reason="SKIPPED: torchft is not installed (make test-frameworks)")

from tests.torch.world import Fabric  # noqa: E402

pytestmark = pytest.mark.timeout(600)

PROGRAM = """
import json, os, sys, time
from datetime import timedelta
import torch, torchft
from torch import nn
from torch.distributed import TCPStore
import netfold
from netfold.traffic.pytorch.fault_tolerance import ProcessGroupNetfold

number, dies_at, lighthouse = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
torch.manual_seed(number)
model = nn.Linear(40, 50)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
limit = timedelta(seconds=20)
manager = torchft.Manager(
    pg=ProcessGroupNetfold(limit, netfold.TorchOptions(lease_ms=3000)), min_replica_size=2, timeout=limit,
    state_dict=lambda: {"model": model.state_dict(), "optimizer": optimizer.state_dict()},
    load_state_dict=lambda s: (model.load_state_dict(s["model"]), optimizer.load_state_dict(s["optimizer"])),
    replica_id=f"replica{number}", lighthouse_addr=lighthouse, hostname="127.0.0.1",
    store_addr="127.0.0.1", store_port=store.port, rank=0, world_size=1,
)
model_of_all = torchft.DistributedDataParallel(manager, model)
optimizer_of_all = torchft.Optimizer(manager, optimizer)
should_commit, committed = manager.should_commit, []
manager.should_commit = lambda *a, **k: committed.append(should_commit(*a, **k)) or committed[-1]
together = 0  # steps in turn in which three replicas took part: the same number at all of them
while together < 8:
    time.sleep(0.05)
    if together and 0 <= dies_at <= manager.current_step():  # one that starts late skips steps as it heals
        os._exit(9)
    optimizer_of_all.zero_grad()
    inputs = torch.randn(8, 40, generator=torch.Generator().manual_seed(manager.current_step() * 3 + number))
    model_of_all(inputs).square().mean().backward()
    optimizer_of_all.step()
    together = together + 1 if manager.num_participants() == 3 else 0
    weights = [p.detach().double().sum().item() for p in model.parameters()]
    line = {"step": manager.current_step(), "replicas": manager.num_participants(), "weights": weights}
    line["committed"] = committed[-1]
    os.write(1, (json.dumps(line) + "\\n").encode())
manager.shutdown(wait=False)
os._exit(0)
"""


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    found = Fabric(["h1", "h2", "h3"], tmp_path)
    yield found
    found.close()


class Replica:
    def __init__(self, folder: Path, fabric: Fabric, number: int, dies_at: int, lighthouse: str) -> None:
        script = folder / "replica.py"
        script.write_text(PROGRAM)
        own = {**fabric.environment, "NETFOLD_HOST": f"h{number + 1}", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, script, number, dies_at, lighthouse]
        self._errors = (folder / f"errors{number}-{dies_at}").open("w+")
        self.process = subprocess.Popen(
            list(map(str, command)), env={**os.environ, **own}, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )  # fmt: skip

    def wait_for_step(self, step: int) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if json.loads(line)["step"] >= step:
                return
        raise AssertionError(f"it ended before step {step}: {self.errors()}")

    def lines(self) -> list[dict[str, Any]]:
        """The rest of what it prints."""
        output, _ = self.process.communicate(timeout=300)
        return [json.loads(line) for line in output.splitlines()]

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-3000:]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self._errors.close()


def test_a_replica_dies_and_another_takes_its_place(tmp_path: Path, fabric: Fabric):
    from torchft.coordination import LighthouseServer  # noqa: PLC0415

    lighthouse = LighthouseServer(
        bind="127.0.0.1:0", min_replicas=2, join_timeout_ms=3000, heartbeat_timeout_ms=2000
    )
    where = lighthouse.address()
    replicas = [Replica(tmp_path, fabric, number, 5 if number == 2 else -1, where) for number in range(3)]
    try:
        replicas[2].process.wait(300)
        assert replicas[2].process.returncode == 9, replicas[2].errors()
        replicas[0].wait_for_step(10)
        replicas.append(Replica(tmp_path, fabric, 2, -1, where))
        found = [replicas[number].lines() for number in (0, 1, 3)]
        for number in (0, 1, 3):
            assert replicas[number].process.returncode == 0, replicas[number].errors()
    finally:
        for replica in replicas:
            replica.close()
        lighthouse.shutdown()
    at_the_end = [lines[-1] for lines in found]
    assert at_the_end == [at_the_end[0]] * 3
    assert at_the_end[0]["replicas"] == 3
    # A replica that starts late takes the others' state in a step that is not committed: one of two takes part then.
    assert {line["replicas"] for line in found[1] if line["committed"]} == {2, 3}
    jobs = [set(job["workers"]) for job in fabric.controller.jobs]
    assert {"h1", "h2"} in jobs
    assert jobs[-1] == {"h1", "h2", "h3"}
