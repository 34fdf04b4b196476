# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Serializes control operations on one pipeline; long ones yield to others."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from softswitch.errors import InvalidArgumentError

YIELD_S = 0.0005
"""Pause between two slices: without it the running thread would reacquire the lock before a waiting one."""

P = ParamSpec("P")
R = TypeVar("R")


class ControlLock:
    """A lock (`with`) for one operation; raises InvalidArgumentError if the pipeline is closed."""

    def __init__(self) -> None:
        self.mutex = threading.RLock()
        self.closed = False

    def __enter__(self) -> None:
        self.mutex.acquire()
        if self.closed:
            self.mutex.release()
            raise InvalidArgumentError("the pipeline is closed")

    def __exit__(self, *_: object) -> None:
        self.mutex.release()

    def run_in_slices(self, pieces: Iterator[None]) -> None:
        """Releases the lock at each yield."""
        while True:
            with self:
                if next(pieces, pieces) is pieces:
                    return
            time.sleep(YIELD_S)  # a waiting thread gets the lock


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
