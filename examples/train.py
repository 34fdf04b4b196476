# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A convolutional network learns handwritten digits with DistributedDataParallel. It is PyTorch's own example
(https://pytorch.org/tutorials/intermediate/ddp_tutorial.html) but for one word: the backend.

    torchrun --nnodes 2 --node-rank 0 --master-addr h1 examples/train.py --data digits.npz     # on h1
    torchrun --nnodes 2 --node-rank 1 --master-addr h1 examples/train.py --data digits.npz     # on h2
"""

import argparse
import hashlib
import json
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(options: argparse.Namespace) -> None:
    dist.init_process_group(options.backend)  # the word is "netfold"
    rank, size = dist.get_rank(), dist.get_world_size()
    data = {name: torch.from_numpy(array) for name, array in np.load(options.data).items()}
    images, digits = data["train"].view(-1, 1, 8, 8), data["train_digits"]

    torch.manual_seed(7)
    model = DistributedDataParallel(network(), bucket_cap_mb=0.25)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step_ms, losses = [], []
    for epoch in range(options.epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        for batch in order[: len(order) - len(order) % options.batch].split(options.batch):
            mine = batch[rank::size]
            started = time.perf_counter()
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[mine]), digits[mine])
            loss.backward()
            optimizer.step()
            step_ms.append((time.perf_counter() - started) * 1e3)
            losses.append(loss.item())
        if rank == 0:
            print(f"training epoch {epoch + 1}: loss {loss.item():.3f}", flush=True)

    with torch.no_grad():
        right = (model.module(data["test"].view(-1, 1, 8, 8)).argmax(1) == data["test_digits"]).float().mean()
    state = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    ranks = [None] * size
    dist.all_gather_object(ranks, (hashlib.sha256(state).hexdigest(), losses))
    digests, by_rank = zip(*ranks, strict=True)
    report = {
        "accuracy": float(right),
        "step_ms": [round(ms, 3) for ms in step_ms],
        "loss": [sum(step) / size for step in zip(*by_rank, strict=True)],
        "identical": len(set(digests)) == 1,
        "ranks": size,
    }
    report["parameters"] = sum(p.numel() for p in model.parameters())
    if options.out:
        options.out.write_text(json.dumps(report))
    dist.barrier()
    dist.destroy_process_group()


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 16, 256), nn.ReLU(), nn.Linear(256, 10),
    )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--data", type=Path, required=True, help="train, train_digits, test, test_digits; numpy"
    )
    parser.add_argument("--backend", default="netfold")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=128, help="of all ranks together")
    parser.add_argument("--out", type=Path, help="accuracy, and the time and loss of each step, JSON")
    main(parser.parse_args())
