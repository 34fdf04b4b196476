# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of the benchmark, started by torchrun: training steps over each transport in turn."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_api import ReduceScatter
from torch.distributed.rendezvous import rendezvous
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

import netfold
from netfold.testbed.processor_load import processor_seconds
from netfold.traffic.pytorch.gradients import compress_gradients
from netfold.traffic.pytorch.prefetch import prefetch_parameters

_FSDP_HOOKS = (None, "quarter", "ring")

_BATCH, _CLASSES, _INPUTS = 8, 10, 64


@dataclass(frozen=True)
class TrainingTransport:
    """`hook`: names the communication hook of DistributedDataParallel, or the reduce-scatter of FSDP2; None: theirs."""

    backend: str
    numerics: str | None = None
    hook: str | None = None


TRANSPORTS = {
    "gloo": TrainingTransport("gloo"),
    "ring": TrainingTransport("gloo", hook="ring"),
    "gloo-fp16": TrainingTransport("gloo", hook="fp16"),
    "gloo-powersgd4": TrainingTransport("gloo", hook="powersgd4"),
    "netfold": TrainingTransport("netfold", "block"),
    "netfold-half": TrainingTransport("netfold", "half"),
    "netfold-quarter": TrainingTransport("netfold", "quarter", "quarter"),
}


def model_of(parameters: int, layers: int) -> nn.Sequential:
    """A perceptron of about `parameters` parameters in `layers` square layers, between one for inputs and one for
    classes. Communication of one layer overlaps with that of others, and with backward."""
    torch.manual_seed(1)
    width = round((parameters / layers) ** 0.5)
    sizes = [_INPUTS, *[width] * (layers + 1)]
    hidden = [part for size, after in pairwise(sizes) for part in (nn.Linear(size, after), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(width, _CLASSES))


def fits(hook: str | None, parallelism: str) -> bool:
    """Whether this kind of training has the hook. Gloo's all-reduce is a ring without one."""
    return hook != "ring" if parallelism == "ddp" else hook in _FSDP_HOOKS


def distributed(
    model: nn.Sequential, parallelism: str, bucket_mb: float | None, hook: str | None
) -> nn.Module:
    """`ddp`: replicated, `bucket_mb` None is PyTorch's default. `fsdp`: every linear layer is sharded on its own;
    with `fsdp-prefetch` its parameters are gathered beside other collectives.

    PowerSGD has one bucket: its hook starts a bucket's second and third reduction when the one before is done, so those
    of several buckets start in another order at each rank, and Gloo pairs calls by their order.
    """
    if parallelism == "ddp":
        if hook == "powersgd4":
            bucket_mb = 1.0 + sum(p.numel() * p.element_size() for p in model.parameters()) / (1 << 20)
        replicated = DistributedDataParallel(model, bucket_cap_mb=bucket_mb)
        if hook == "quarter":
            compress_gradients(replicated)
        elif hook == "fp16":
            replicated.register_comm_hook(None, default_hooks.fp16_compress_hook)
        elif hook == "powersgd4":
            state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
            replicated.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        return replicated
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    sharded: nn.Module = fully_shard(model, mesh=mesh)
    if parallelism == "fsdp-prefetch":
        prefetch_parameters(sharded)
    if hook == "quarter":
        compress_gradients(sharded)
    elif hook == "ring":
        for module in sharded.modules():
            if isinstance(module, FSDPModule):
                module.set_custom_reduce_scatter(RingReduceScatter())
    return sharded


def learnable_batch(seed: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels that a linear teacher gives."""
    teacher = torch.randn(_INPUTS, _CLASSES, generator=torch.Generator().manual_seed(11))
    inputs = torch.randn(size, _INPUTS, generator=torch.Generator().manual_seed(seed))
    return inputs, (inputs @ teacher).argmax(1)


def loss_after(model: nn.Module, rank: int, ranks: int, count: int) -> float:
    """Return the loss on inputs that training has not seen, after `count` steps of SGD."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(count):
        inputs, labels = learnable_batch(1 + step * ranks + rank, _BATCH)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    inputs, labels = learnable_batch(0, 1000)
    with torch.no_grad():
        return float(nn.functional.cross_entropy(model(inputs), labels))


def training_step(model: nn.Module, rank: int) -> Callable[[], None]:
    """A step of SGD on a batch of the rank's own."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(rank)
    inputs = torch.randn(_BATCH, _INPUTS, generator=generator)
    labels = torch.randint(0, _CLASSES, (_BATCH,), generator=generator)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step


def parameter_sums(model: nn.Module) -> list[float]:
    wholes = (p.full_tensor() if isinstance(p, DTensor) else p for p in model.parameters())
    return [float(whole.detach().double().sum()) for whole in wholes]


def sent_and_received() -> int:
    """Bytes on this host's interfaces, both directions."""
    folders = [f / "statistics" for f in Path("/sys/class/net").iterdir() if f.name != "lo"]
    return sum(int((f / name).read_text()) for f in folders for name in ("tx_bytes", "rx_bytes"))


def steps(step: Callable[[], None], count: int) -> list[float]:
    """Milliseconds of each step, without two for warm-up."""
    times = []
    for _ in range(count + 2):
        started = time.perf_counter()
        step()
        times.append((time.perf_counter() - started) * 1e3)
    return times[2:]


def measure(
    transport: str,
    parameters: int,
    layers: int,
    count: int,
    parallelism: str,
    bucket_mb: float | None,
    equal_s: float,
    timeout: float,
    switches: Sequence[int] = (),
) -> dict[str, Any]:
    how = TRANSPORTS[transport]
    options = None if how.numerics is None else netfold.TorchOptions(numerics=how.numerics)
    limit = timedelta(seconds=timeout)
    # Groups in turn need keys of their own in torchrun's store: a group would read its predecessor's addresses.
    store, rank, size = next(rendezvous("env://", timeout=limit))
    own = dist.PrefixStore(f"{parallelism}-{transport}-{parameters}", store)
    dist.init_process_group(
        how.backend, store=own, rank=rank, world_size=size, timeout=limit, pg_options=options
    )
    computing = statistics.median(steps(training_step(model_of(parameters, layers), rank), 5))
    model = distributed(model_of(parameters, layers), parallelism, bucket_mb, how.hook)
    step = training_step(model, rank)
    dist.barrier()
    own, of_switches, before = time.process_time(), processor_seconds(switches), sent_and_received()
    times = steps(step, count)
    moved = (sent_and_received() - before) / (count + 2)
    own = (time.process_time() - own) / (count + 2)
    of_switches = (processor_seconds(switches) - of_switches) / (count + 2)
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, (times, computing, moved, parameter_sums(model), own))
    slowest = [max(of) for of in zip(*(f[0] for f in found), strict=True)]
    p50 = statistics.median(slowest)
    equal_steps = min(2000, int(equal_s * 1e3 / p50))
    learner = distributed(model_of(parameters, layers), parallelism, bucket_mb, how.hook)
    loss = loss_after(learner, rank, size, equal_steps)
    dist.barrier()
    dist.destroy_process_group()
    return {
        "parallelism": parallelism,
        "transport": transport,
        "workers": len(found),
        "parameters": sum(p.numel() for p in model.parameters()),
        "step_ms_p50": round(p50, 2),
        "step_ms_p90": round(sorted(slowest)[int(0.9 * (len(slowest) - 1))], 2),
        "compute_ms": round(max(f[1] for f in found), 2),
        "exposed_ms": round(p50 - max(f[1] for f in found), 2),
        "bytes_per_worker": round(max(f[2] for f in found)),
        "worker_processor_s": round(sum(f[4] for f in found), 3),
        "switch_processor_s": round(of_switches, 3),
        "steps": count,
        "equal_s": equal_s,
        "equal_steps": equal_steps,
        "loss": round(loss, 4),
        "identical": all(f[3] == found[0][3] for f in found),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--transports", nargs="+", default=list(TRANSPORTS))
    parser.add_argument("--parameters", type=int, nargs="+", required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--steps", type=int, nargs="+", required=True)
    parser.add_argument("--parallelism", nargs="+", default=["ddp"])
    parser.add_argument("--bucket-mb", type=float)
    parser.add_argument("--equal-s", type=float, default=0.0)
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--switches", type=int, nargs="*", default=[])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows, part = [], options.out.with_suffix(".part")
    for parameters, count in zip(options.parameters, options.steps, strict=True):
        for parallelism, transport in product(options.parallelism, options.transports):
            if not fits(TRANSPORTS[transport].hook, parallelism):
                continue
            rows.append(
                measure(
                    transport,
                    parameters,
                    options.layers,
                    count,
                    parallelism,
                    options.bucket_mb,
                    options.equal_s,
                    options.timeout,
                    options.switches,
                )
            )
            part.write_text(json.dumps({"rows": rows}))  # readers see the old or the new file, never a part
            part.replace(options.out)


if __name__ == "__main__":
    main()


class RingReduceScatter(ReduceScatter):  # type: ignore[misc]
    """FSDP2's reduce-scatter in n - 1 steps: in each a rank passes a block on, and adds the one that it gets.

    For `set_custom_reduce_scatter`. Sums and averages only.
    """

    def allocate(
        self, size: Sequence[int | torch.SymInt], *, dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        op: dist.ReduceOp | dist.ReduceOp.RedOpType,
        async_op: bool = False,
    ) -> None:
        """Changes `input_tensor`. Raises ValueError for another operation."""
        if op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            raise ValueError(f"the ring adds and averages; got {op}")
        rank, size = group.rank(), group.size()
        blocks = input_tensor.chunk(size)
        got = torch.empty_like(output_tensor)
        for step in range(1, size):
            sending = dist.isend(blocks[(rank - step) % size], group=group, group_dst=(rank + 1) % size)
            receiving = dist.irecv(got, group=group, group_src=(rank - 1) % size)
            for work in (receiving, sending):
                if work is not None:
                    work.wait()
            blocks[(rank - step - 1) % size].add_(got)
        output_tensor.copy_(blocks[rank])
        if op == dist.ReduceOp.AVG:
            output_tensor.div_(size)
