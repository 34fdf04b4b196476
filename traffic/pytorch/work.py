# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A collective in flight, as torch sees it: a Work to wait for, and a Future for DistributedDataParallel."""

from __future__ import annotations

import functools
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.torch_version import TorchVersion

_LOWEST_VERSION = (2, 6)
if TorchVersion(torch.__version__) < _LOWEST_VERSION:
    raise ImportError(f"netfold needs PyTorch 2.6 or newer; this is {torch.__version__}")


def without_dynamo(method: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps torch.compile from tracing a method of torch's C++ classes, whose attributes it cannot see. Imports
    Dynamo only if the program has."""
    disabled: list[Callable[..., Any]] = []

    @functools.wraps(method)
    def call(*arguments: Any, **keywords: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return method(*arguments, **keywords)
        if not disabled:
            disabled.append(torch.compiler.disable(method))
        return disabled[0](*arguments, **keywords)

    call._torchdynamo_disable = True  # type: ignore[attr-defined]  # Dynamo does not inline it
    return call


class CallbackThreads:
    """Runs each task on an idle thread, or on a new one: a callback of a Future may wait for another collective, whose
    Future then needs another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle = 0  # threads without a task
        self._tasks: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()

    def run(self, task: Callable[[], object]) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
                self._tasks.put(task)
                return
        threading.Thread(target=self._loop, args=(task,), name="netfold callbacks", daemon=True).start()

    def _loop(self, task: Callable[[], object]) -> None:
        while True:
            task()
            with self._lock:
                self._idle += 1
            task = self._tasks.get()


CALLBACKS = CallbackThreads()


class NetfoldWork(dist.Work):  # type: ignore[misc]
    """Done after `finish`, of which the first counts. Waiting sleeps inside `waiting()`, without the interpreter's
    lock. `theirs`: the work of Gloo whose Future finishes this one."""

    def __init__(
        self,
        tensors: Sequence[torch.Tensor],
        where: str,
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
        theirs: Any = None,
    ) -> None:
        super().__init__()
        self._theirs = theirs
        self._waiting = waiting
        self._tensors = list(tensors)
        self._where = where
        self._error: Exception | None = None
        self._done = threading.Event()
        self._is_finishing = False
        self._lock = threading.Lock()  # of the four around it
        self._devices = list({t.device for t in tensors if t.is_cuda})
        self._result: Any = None  # of `_future`
        self._future: Any = None
        if self._devices:
            self._make_future()

    def _make_future(self) -> None:
        self._result = torch.futures.Future(devices=self._devices)
        # `set_exception` of a Python Future sets a value that C++ reads as a tensor; an exception of a callback is an
        # error.
        self._future = self._result.then(self._unwrap)

    def finish(self, error: Exception | None, copy_back: Callable[[], None] | None = None) -> None:
        """On CUDA to be called in the stream that wrote the tensors last. `copy_back` writes the result to the
        program's tensors, if there is one; its errors are the collective's."""
        with self._lock:
            if self._is_finishing:
                return
            self._is_finishing = True
        if error is None and copy_back is not None:
            try:
                with torch.inference_mode():  # the program's tensors may be inference tensors
                    copy_back()
            except Exception as failed:
                error = failed
        if error is not None:
            self._error = dist.DistBackendError(f"netfold: {self._where}: {error}")
            self._error.__cause__ = error
        with self._lock:
            self._done.set()
            result = self._result
        if result is not None:
            stream = torch.cuda.current_stream(self._devices[0]) if self._devices else None
            CALLBACKS.run(lambda: self._set_result(result, stream))

    def finish_as(self, future: Any) -> None:
        """Finishes as a Future of torch, which is done."""
        try:
            tensors = future.value()
        except Exception as error:
            self.finish(error)
        else:
            self.finish(None, lambda: self._tensors.extend(tensors))

    def _set_result(self, result: Any, stream: Any) -> None:
        if stream is None:
            result.set_result(self._tensors)
            return
        with torch.cuda.stream(stream):
            result.set_result(self._tensors)

    def _unwrap(self, result: Any) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return list(result.value())

    @without_dynamo
    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Raises DistBackendError: the error of the collective, or that `timeout` passed (0: waits for the
        collective, which ends at its own deadline)."""
        seconds = timeout.total_seconds()
        with self._waiting():
            is_done = self._done.wait(seconds if seconds > 0 else None)
        if not is_done:
            raise dist.DistBackendError(f"netfold: {self._where}: timeout after {seconds:g} s")
        if self._error is not None:
            raise self._error
        if self._theirs is not None:
            self._theirs.wait()  # its thread writes to PyTorch's profiler after its Future is done
        if self._devices:
            self._result.wait()  # makes this thread's streams wait for the copies to the devices
        return True

    def get_future(self) -> Any:
        with self._lock:
            if self._future is None:
                self._make_future()
                if self._done.is_set():
                    self._result.set_result(self._tensors)
        return self._future

    def result(self) -> list[torch.Tensor]:
        return self._tensors

    def is_completed(self) -> bool:
        return self._done.is_set()

    def is_success(self) -> bool:
        return self._done.is_set() and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def synchronize(self) -> None:
        self.wait()
