# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA tensors: copied to pinned memory on a side stream, reduced there, and copied back. Untested: no GPU was
available (docs/how-to/pytorch.md)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from netfold.traffic.numerics import ReduceOp
from netfold.traffic.pytorch.tensor_call import TensorCall
from netfold.traffic.pytorch.work import NetfoldWork


class Staging:
    """A side stream for each device, and a pool of pinned buffers. All copies run on the side stream, so a copy into a
    reused buffer follows the copies that still read it."""

    def __init__(self) -> None:
        self._streams: dict[torch.device, Any] = {}
        self._free: list[torch.Tensor] = []
        self._lock = threading.Lock()

    def call(
        self,
        flat: torch.Tensor,
        op: ReduceOp,
        deadline: float,
        work: NetfoldWork,
        back: Callable[[], None] | None,
    ) -> TensorCall:
        """The call of a CUDA tensor: `ready` waits for the copy to the host; `done` copies the result back and finishes
        `work` in the stream of that copy."""
        stream = self._stream(flat.device)
        pinned = self._pinned(flat.numel() * flat.element_size())
        host = pinned[: flat.numel() * flat.element_size()].view(flat.dtype)
        stream.wait_stream(torch.cuda.current_stream(flat.device))
        with torch.cuda.stream(stream):
            host.copy_(flat, non_blocking=True)
            arrived = torch.cuda.Event(blocking=True)  # `synchronize` sleeps
            arrived.record(stream)
        flat.record_stream(stream)

        def done(error: Exception | None) -> None:
            with torch.cuda.stream(stream):
                if error is None:
                    flat.copy_(host, non_blocking=True)
                work.finish(error, back)
            with self._lock:
                self._free.append(pinned)

        return TensorCall(host, op, deadline, done, arrived.synchronize)

    def _stream(self, device: torch.device) -> Any:
        with self._lock:
            if device not in self._streams:
                self._streams[device] = torch.cuda.Stream(device)
            return self._streams[device]

    def _pinned(self, nbytes: int) -> torch.Tensor:
        """The smallest free buffer of at least `nbytes`, or a new one."""
        with self._lock:
            fitting = sorted((b for b in self._free if b.numel() >= nbytes), key=torch.Tensor.numel)
            if fitting:
                self._free = [b for b in self._free if b is not fitting[0]]
                return fitting[0]
        return torch.empty(max(1 << 16, 1 << (nbytes - 1).bit_length()), dtype=torch.uint8, pin_memory=True)
