# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA tensors on their way through the network: into pinned memory on a side stream, and back. Not run anywhere yet:
docs/pytorch.md says so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from netfold.traffic.numerics import ReduceOp
from netfold.traffic.pytorch.call import Call
from netfold.traffic.pytorch.work import NetfoldWork


class Staging:
    """A side stream for each device, and pinned memory that is used again: all copies are made on the side stream, so
    one that takes a buffer anew comes after those that still read it."""

    def __init__(self) -> None:
        self._streams: dict[torch.device, Any] = {}
        self._free: list[torch.Tensor] = []
        self._books = threading.Lock()

    def call(
        self,
        flat: torch.Tensor,
        op: ReduceOp,
        deadline: float,
        work: NetfoldWork,
        back: Callable[[], None] | None,
    ) -> Call:
        """The call of a CUDA tensor: `ready` when its copy has arrived; when it is done, the sums go back, and
        `work` is finished in the stream that copies them."""
        stream = self._stream(flat.device)
        pinned = self._pinned(flat.numel() * flat.element_size())
        host = pinned[: flat.numel() * flat.element_size()].view(flat.dtype)
        stream.wait_stream(torch.cuda.current_stream(flat.device))
        with torch.cuda.stream(stream):
            host.copy_(flat, non_blocking=True)
            arrived = torch.cuda.Event(blocking=True)  # waiting for it takes no processor
            arrived.record(stream)
        flat.record_stream(stream)

        def done(error: Exception | None) -> None:
            with torch.cuda.stream(stream):
                if error is None:
                    flat.copy_(host, non_blocking=True)
                    if back is not None:
                        back()
                work.finish(error)
            with self._books:
                self._free.append(pinned)

        return Call(host, op, deadline, done, arrived.synchronize)

    def _stream(self, device: torch.device) -> Any:
        with self._books:
            if device not in self._streams:
                self._streams[device] = torch.cuda.Stream(device)
            return self._streams[device]

    def _pinned(self, nbytes: int) -> torch.Tensor:
        """The smallest free buffer that is large enough, or a new one, of bytes."""
        with self._books:
            fitting = sorted((b for b in self._free if b.numel() >= nbytes), key=torch.Tensor.numel)
            if fitting:
                self._free = [b for b in self._free if b is not fitting[0]]
                return fitting[0]
        return torch.empty(max(1 << 16, 1 << (nbytes - 1).bit_length()), dtype=torch.uint8, pin_memory=True)
