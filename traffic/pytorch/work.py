# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What torch holds of a collective that is under way: a Work to wait for, and a Future for DistributedDataParallel."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist


class NetfoldWork(dist.Work):  # type: ignore[misc]
    """Done when `finish` was called. Waiting takes no processor and holds no lock of the interpreter's."""

    def __init__(self, tensors: Sequence[torch.Tensor], where: str) -> None:
        super().__init__()
        self._tensors = list(tensors)
        self._where = where
        self._error: Exception | None = None
        self._over = threading.Event()
        devices = {t.device for t in tensors if t.is_cuda}
        self._told: Any = torch.futures.Future(devices=list(devices))
        # A Python future's exception is a value to C++, which reads it as a tensor; what a callback raises is an error.
        self._future: Any = self._told.then(self._unwrap)

    def finish(self, error: Exception | None) -> None:
        """Once. On CUDA in the stream that the tensors were written in last."""
        if error is not None:
            self._error = dist.DistBackendError(f"netfold: {self._where}: {error}")
            self._error.__cause__ = error
        self._over.set()
        self._told.set_result(self._tensors)

    def _unwrap(self, told: Any) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return list(told.value())

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Raises DistBackendError: what the collective ended in, or the `timeout` (0: none of its own)."""
        seconds = timeout.total_seconds()
        if not self._over.wait(seconds if seconds > 0 else None):
            raise dist.DistBackendError(f"netfold: {self._where}: not done after {seconds:g} s")
        if self._error is not None:
            raise self._error
        self._told.wait()  # lets this thread's streams wait for the copies back to their devices
        return True

    def get_future(self) -> Any:
        return self._future

    def result(self) -> list[torch.Tensor]:
        return self._tensors

    def is_completed(self) -> bool:
        return self._over.is_set()

    def is_success(self) -> bool:
        return self._over.is_set() and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def synchronize(self) -> None:
        self.wait()
