# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Control operations on one pipeline, by any thread: one at a time, and a long one lets others have their turn."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from netfold.softswitch.errors import InvalidArgument

OTHERS_S = 0.0005
"""For threads that wait to take the lock between two pieces: who wants it again at once would get it."""

P = ParamSpec("P")
R = TypeVar("R")


class Turns:
    """Held (`with`) by an operation while it lasts; raises InvalidArgument when the pipeline is closed."""

    def __init__(self) -> None:
        self.mutex = threading.RLock()
        self.closed = False

    def __enter__(self) -> None:
        self.mutex.acquire()
        if self.closed:
            self.mutex.release()
            raise InvalidArgument("the pipeline is closed")

    def __exit__(self, *_: object) -> None:
        self.mutex.release()

    def in_pieces(self, pieces: Iterator[None]) -> None:
        """Others have their turn where it yields."""
        while True:
            with self:
                if next(pieces, pieces) is pieces:
                    return
            time.sleep(OTHERS_S)


class TakesTurns(Protocol):
    @property
    def turns(self) -> Turns: ...


S = TypeVar("S", bound=TakesTurns)


def one_at_a_time(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """The method is one control operation."""

    @functools.wraps(method)
    def wrapper(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.turns:
            return method(self, *args, **kwargs)

    return wrapper
