# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""netfold under DistributedDataParallel for those who keep NCCL or Gloo as their backend: a communication hook, which
carries the gradients and nothing else.

    model = DistributedDataParallel(model)
    model.register_comm_hook(HookState(netfold.join("my-job")), allreduce_hook)

Every rank sees the same buckets in the same order, which is what an all-reduce asks for. One rank on each host.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from netfold.traffic.numerics import ReduceOp
from netfold.traffic.pytorch.call import Call
from netfold.traffic.pytorch.network import start
from netfold.traffic.pytorch.staging import Staging
from netfold.traffic.pytorch.work import NetfoldWork
from netfold.traffic.worker.worker import Worker


@dataclass
class HookState:
    """The worker that adds up, and the deadline of each bucket in seconds."""

    worker: Worker
    timeout: float = 60.0
    staging: Staging = field(default_factory=Staging)


# Without annotations, because DDP compares them with torch's own types: strings, which they are here, do not pass.
def allreduce_hook(state, bucket):  # type: ignore[no-untyped-def]
    """Averages a `torch.distributed.GradBucket` over the workers whose gradients were added up, while the backward pass
    goes on. NaN and infinities reach every worker, as loss scalers expect.

    Gives a `torch.futures.Future` of the flat gradient tensor. What `Worker.all_reduce` raises comes out of backward.
    """
    gradient = bucket.buffer()
    work = NetfoldWork([gradient], "communication hook")
    deadline = time.monotonic() + state.timeout
    if gradient.is_cuda:
        call = state.staging.call(gradient, ReduceOp.AVERAGE, deadline, work, None)
        call.ready()
    else:
        call = Call(gradient, ReduceOp.AVERAGE, deadline, work.finish)
    start(state.worker, call)
    return work.get_future().then(lambda future: future.value()[0])
