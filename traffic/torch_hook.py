# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""netfold under PyTorch's DistributedDataParallel, as a communication hook. torch is an optional extra.

    worker = Worker(Attending("controller.example:9600", "my-job", "h1"))  # certificate and token: docs/jobs.md
    model = DistributedDataParallel(model)
    model.register_comm_hook(HookState(worker), allreduce_hook)

Every rank sees the same buckets in the same order, which is what an all-reduce asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netfold.traffic.worker.worker import Worker


@dataclass
class HookState:
    """The worker that adds up, and the deadline of each bucket in seconds."""

    worker: Worker
    timeout: float = 60.0


# Without annotations, because DDP compares them with torch's own types: strings, which they are here, do not pass.
def allreduce_hook(state, bucket):  # type: ignore[no-untyped-def]
    """Averages a `torch.distributed.GradBucket` (float32 or float16 on the CPU, or copied there) over the workers
    whose gradients were added up. NaN and infinities reach every worker, as loss scalers expect.

    Gives a `torch.futures.Future` of the flat gradient tensor. What `Worker.all_reduce` raises comes out of
    the backward pass.
    """
    import torch  # noqa: PLC0415

    from netfold.traffic.numerics import ReduceOp  # noqa: PLC0415

    gradient = bucket.buffer()
    array = gradient.detach().cpu().contiguous()
    state.worker.all_reduce(array.numpy(), state.timeout, ReduceOp.AVERAGE)
    future: Any = torch.futures.Future()
    future.set_result(array.to(gradient.device))
    return future
