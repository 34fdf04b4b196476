# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Serializes control operations on one pipeline; long ones yield to others."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from softswitch.errors import InvalidArgumentError

P = ParamSpec("P")
R = TypeVar("R")


class FairMutex:
    """A reentrant mutex (`with`). A thread holds the turnstile until it owns the mutex, so the thread that releases the
    mutex and takes it again queues behind a waiting one."""

    def __init__(self) -> None:
        self._turnstile = threading.Lock()
        self._mutex = threading.Lock()
        self._owner = 0  # identity of a thread; only that thread writes its own
        self._depth = 0

    def __enter__(self) -> None:
        thread = threading.get_ident()
        if self._owner != thread:
            with self._turnstile:
                self._mutex.acquire()
            self._owner = thread
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = 0
            self._mutex.release()


class ControlLock:
    """A lock (`with`) for one operation; raises InvalidArgumentError if the pipeline is closed."""

    def __init__(self) -> None:
        self.mutex = FairMutex()
        self.closed = False

    def __enter__(self) -> None:
        self.mutex.__enter__()
        if self.closed:
            self.mutex.__exit__()
            raise InvalidArgumentError("the pipeline is closed")

    def __exit__(self, *_: object) -> None:
        self.mutex.__exit__()

    def run_in_slices(self, pieces: Iterator[None]) -> None:
        """Releases the lock at each yield: a waiting thread gets it then."""
        while True:
            with self:
                if next(pieces, pieces) is pieces:
                    return


class HasControlLock(Protocol):
    @property
    def control_lock(self) -> ControlLock: ...


S = TypeVar("S", bound=HasControlLock)


def serialized(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Decorator: the method runs under the control lock."""

    @functools.wraps(method)
    def wrapper(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.control_lock:
            return method(self, *args, **kwargs)

    return wrapper
