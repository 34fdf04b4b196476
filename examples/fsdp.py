# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""FSDP2 on four hosts: each has a quarter of the weights, and collectives go through the switches.

Run `python examples/fsdp.py`. It needs PyTorch, and starts itself by torchrun in each host.
"""

import os
from pathlib import Path

STEPS = 5


def train() -> None:
    """A rank. Nothing but the name of the backend is netfold's."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("netfold")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    inputs = torch.randn(64, 32, generator=torch.Generator().manual_seed(dist.get_rank()))
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), (inputs.sum(1) > 0).long())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    own = sum(p.to_local().numel() for p in model.parameters())
    print(
        f"rank {dist.get_rank()}: {own} of {sum(p.numel() for p in model.parameters())} weights, "
        f"loss {losses[0]:.2f} to {losses[-1]:.2f}",
        flush=True,
    )
    dist.destroy_process_group()


def main() -> None:
    from netfold.testbed import Testbed, run_isolated

    run_isolated()
    hosts = ["h1", "h2", "h5", "h6"]
    with Testbed("leaf-spine-2x2") as testbed, testbed.torchrun(Path(__file__), hosts=hosts) as group:
        group.wait(300)
        for host in hosts:
            print(*(line for line in group.output(host).splitlines() if line.startswith("rank")))


if __name__ == "__main__":
    train() if "RANK" in os.environ else main()
