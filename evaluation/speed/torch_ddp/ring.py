# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The reduce-scatter of a ring over Gloo's messages: a peer that moves as few bytes as hosts can.

Gloo's own reduce-scatter moves more than a ring. Its all-gather is a ring already, so FSDP2 over Gloo with this class
is FSDP2 over rings.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch.distributed.fsdp._fully_shard._fsdp_api import ReduceScatter


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
