# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ray Train over netfold: TorchConfig(backend="netfold")."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")
pytest.importorskip("ray", reason="SKIPPED: ray is not installed (make test-frameworks)")

from tests.torch.world import Fabric  # noqa: E402

pytestmark = pytest.mark.timeout(900)

HOSTS = [f"h{n}" for n in range(1, 60)]
PROGRAM = '''
import json, os, sys
from pathlib import Path
import ray, ray.train, torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model

folder = Path(sys.argv[1])

def play_a_host():
    """Each process of Ray is a host of the fabric."""
    number = 1
    while True:
        try:
            (folder / f"host{number}").touch(exist_ok=False)
            break
        except FileExistsError:
            number += 1
    os.environ["NETFOLD_HOST"] = f"h{number}"

def train(config):
    import torch.distributed as dist
    from netfold.traffic.pytorch.collectives import collectives_of
    torch.manual_seed(dist.get_rank())
    model = prepare_model(torch.nn.Linear(50, 60))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        inputs = torch.randn(8, 50, generator=torch.Generator().manual_seed(2 * step + dist.get_rank()))
        model(inputs).square().mean().backward()
        optimizer.step()
    weights = [p.detach().double().sum().item() for p in model.parameters()]
    use = collectives_of(dist.group.WORLD).session._reducer.network_use()
    found = {"backend": dist.get_backend(), "packets": use.packets, "weights": weights}
    (folder / f"rank{dist.get_rank()}.json").write_text(json.dumps(found))

ray.init(num_cpus=3, include_dashboard=False, object_store_memory=100 << 20,
         runtime_env={"worker_process_setup_hook": play_a_host})
TorchTrainer(
    train, torch_config=TorchConfig(backend="netfold"), scaling_config=ScalingConfig(num_workers=2, use_gpu=False),
    run_config=RunConfig(storage_path=str(folder / "results")),
).fit()
ray.shutdown()
'''


def test_ray_train_s_workers_add_up_in_the_network(tmp_path: Path):
    fabric = Fabric(HOSTS, tmp_path)
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    environment = {
        **os.environ, **fabric.environment, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_TMPDIR": "/tmp", "PYTHONPATH": str(Path(__file__).parents[2]),
    }  # fmt: skip
    try:
        done = subprocess.run(
            [sys.executable, script, tmp_path],
            env=environment,
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )
    finally:
        fabric.close()
    assert done.returncode == 0, done.stderr[-4000:]
    ours, theirs = (json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1))
    assert ours["backend"] == "netfold"
    assert ours["weights"] == theirs["weights"]
    assert ours["packets"] > 0
    assert theirs["packets"] > 0
