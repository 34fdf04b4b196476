# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of test_quarter_training.py, started by torchrun: trains the digits network with float32's numerics and with
quarter, over the same switches, and writes both losses."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import netfold
from netfold.traffic.pytorch.gradients import compress_gradients
from tests.torch.trained_models import loss_of, task

STEPS = 80


def train(numerics: str) -> float:
    dist.init_process_group("netfold", pg_options=netfold.TorchOptions(numerics=numerics))
    rank, size = dist.get_rank(), dist.get_world_size()
    of = task("digits")
    torch.manual_seed(3)
    model = DistributedDataParallel(of.model())
    if numerics == "quarter":
        compress_gradients(model)
    optimizer = of.optimizer(model)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, STEPS)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, of.batch(step * 64 + rank, of.global_batch // size)).backward()
        optimizer.step()
        schedule.step()
    with torch.inference_mode():
        loss = float(loss_of(model, of.evaluation))
    losses = [torch.zeros(1, dtype=torch.float64) for _ in range(size)]
    dist.all_gather(losses, torch.tensor([loss], dtype=torch.float64))
    assert len({float(one) for one in losses}) == 1, "all ranks have the same parameters"
    dist.destroy_process_group()
    return loss


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.write_text(json.dumps({numerics: train(numerics) for numerics in ("block", "quarter")}))


if __name__ == "__main__":
    main()
