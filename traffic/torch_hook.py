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
    from traffic.worker import Worker


@dataclass
class HookState:
    """The worker that adds up, and the deadline of each bucket in seconds."""

    worker: Worker
    timeout: float = 60.0


def allreduce_hook(state: HookState, bucket: Any) -> Any:
    """Averages a `torch.distributed.GradBucket` (float32 or float16 on the CPU, or copied there) over all
    workers.

    Gives a `torch.futures.Future` of the flat gradient tensor. Errors of `Worker.all_reduce` are set on
    the future, so that DDP's backward pass raises them.
    """
    import torch  # noqa: PLC0415

    future: Any = torch.futures.Future()
    gradient = bucket.buffer()
    try:
        array = gradient.detach().cpu().contiguous()
        state.worker.all_reduce(array.numpy(), state.timeout)
        array /= state.worker.workers
        future.set_result(array.to(gradient.device))
    except Exception as error:
        future.set_exception(error)
    return future
