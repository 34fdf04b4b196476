# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of the benchmark, started by torchrun: steps of DistributedDataParallel over each transport in turn."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

import netfold

TRANSPORTS = {"gloo": ("gloo", None), "netfold": ("netfold", "block"), "netfold-half": ("netfold", "half")}
_WIDTHS = {268_000: 447, 5_000_000: 1560}
_BATCH, _CLASSES, _INPUTS = 8, 10, 64


def model_of(parameters: int) -> nn.Module:
    """A perceptron of about `parameters` parameters in several layers, so that communication overlaps with backward."""
    torch.manual_seed(1)
    width = _WIDTHS.get(parameters) or round((parameters / 2) ** 0.5)
    return nn.Sequential(
        nn.Linear(_INPUTS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, width if parameters > 10**6 else 80), nn.ReLU(),
        nn.Linear(width if parameters > 10**6 else 80, _CLASSES),
    )  # fmt: skip


def sent_and_received() -> int:
    """Bytes on this host's interfaces, both directions."""
    folders = [f / "statistics" for f in Path("/sys/class/net").iterdir() if f.name != "lo"]
    return sum(int((f / name).read_text()) for f in folders for name in ("tx_bytes", "rx_bytes"))


def steps(step: Any, count: int) -> list[float]:
    """Milliseconds of each step, without two for warm-up."""
    times = []
    for _ in range(count + 2):
        started = time.perf_counter()
        step()
        times.append((time.perf_counter() - started) * 1e3)
    return times[2:]


def measure(
    transport: str, parameters: int, count: int, bucket_mb: float | None, timeout: float
) -> dict[str, Any]:
    """`bucket_mb` None: the default of DistributedDataParallel."""
    backend, numerics = TRANSPORTS[transport]
    options = None if numerics is None else netfold.TorchOptions(numerics=numerics)
    limit = timedelta(seconds=timeout)
    # Groups in turn need keys of their own in torchrun's store: a group would read its predecessor's addresses.
    store, rank, size = next(rendezvous("env://", timeout=limit))
    own = dist.PrefixStore(f"{transport}-{parameters}", store)
    dist.init_process_group(backend, store=own, rank=rank, world_size=size, timeout=limit, pg_options=options)
    model = DistributedDataParallel(model_of(parameters), bucket_cap_mb=bucket_mb)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(rank)
    inputs = torch.randn(_BATCH, _INPUTS, generator=generator)
    labels = torch.randint(0, _CLASSES, (_BATCH,), generator=generator)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    def alone() -> None:
        with model.no_sync():
            step()

    computing = statistics.median(steps(alone, 5))
    with torch.no_grad():  # undoes the steps without synchronization
        for parameter in model.parameters():
            dist.broadcast(parameter, 0)
    dist.barrier()
    before = sent_and_received()
    times = steps(step, count)
    moved = (sent_and_received() - before) / (count + 2)
    sums = torch.stack([p.detach().double().sum() for p in model.parameters()])
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, (times, computing, moved, sums.tolist()))
    dist.barrier()
    dist.destroy_process_group()
    slowest = [max(of) for of in zip(*(f[0] for f in found), strict=True)]
    p50 = statistics.median(slowest)
    return {
        "transport": transport,
        "workers": len(found),
        "parameters": sum(p.numel() for p in model.parameters()),
        "step_ms_p50": round(p50, 2),
        "step_ms_p90": round(sorted(slowest)[int(0.9 * (len(slowest) - 1))], 2),
        "compute_ms": round(max(f[1] for f in found), 2),
        "exposed_ms": round(p50 - max(f[1] for f in found), 2),
        "bytes_per_worker": round(max(f[2] for f in found)),
        "steps": count,
        "identical": all(f[3] == found[0][3] for f in found),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--transports", nargs="+", default=list(TRANSPORTS))
    parser.add_argument("--parameters", type=int, nargs="+", required=True)
    parser.add_argument("--steps", type=int, nargs="+", required=True)
    parser.add_argument("--bucket-mb", type=float)
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows, part = [], options.out.with_suffix(".part")
    for parameters, count in zip(options.parameters, options.steps, strict=True):
        for transport in options.transports:
            rows.append(measure(transport, parameters, count, options.bucket_mb, options.timeout))
            part.write_text(json.dumps({"rows": rows}))  # readers see the old or the new file, never a part
            part.replace(options.out)


if __name__ == "__main__":
    main()
