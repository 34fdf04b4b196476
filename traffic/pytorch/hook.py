# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A communication hook of DistributedDataParallel: NCCL or Gloo stays the backend, netfold reduces the gradients.

    model = DistributedDataParallel(model)
    model.register_comm_hook(HookState(netfold.join("my-job")), allreduce_hook)

One rank on each host. Every rank sees the same buckets in the same order.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from netfold.traffic.numerics import ReduceOp
from netfold.traffic.pytorch.in_network import submit_to_worker
from netfold.traffic.pytorch.staging import Staging
from netfold.traffic.pytorch.tensor_call import Gradient, TensorCall
from netfold.traffic.pytorch.work import NetfoldWork
from netfold.traffic.worker.worker import Worker


@dataclass
class HookState:
    """`worker` reduces the buckets. `timeout`: seconds for each bucket. `lossy`: the sums may be approximate, in a job
    with numerics quarter."""

    worker: Worker
    timeout: float = 60.0
    lossy: bool = False
    staging: Staging = field(default_factory=Staging)


# Without annotations: DDP compares them with torch's types, and here they would be strings.
def allreduce_hook(state, bucket):  # type: ignore[no-untyped-def]
    """Averages a `torch.distributed.GradBucket` over the workers in the sum, while the backward pass continues. NaN and
    infinities reach every worker, as loss scalers expect.

    Returns a `torch.futures.Future` of the flat gradient tensor. `backward` raises the errors of `Worker.all_reduce`.
    """
    gradient = bucket.buffer()
    work = NetfoldWork([gradient], "communication hook")
    deadline = time.monotonic() + state.timeout
    if gradient.is_cuda:
        call = state.staging.call(gradient, ReduceOp.AVERAGE, deadline, work, None)
        call.ready()
    else:
        call = TensorCall(gradient, ReduceOp.AVERAGE, deadline, work.finish)
    if state.lossy:
        call = replace(call, gradient=Gradient(follows_all=bucket.index() == 0))
    submit_to_worker(state.worker, call)
    return work.get_future().then(lambda future: future.value()[0])
