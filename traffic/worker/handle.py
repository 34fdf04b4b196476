# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What `Worker.submit` gives: a call that is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import Future, TimeoutError
from typing import Any

from numpy.typing import NDArray

from netfold.traffic.worker.outcome import Contributors


class Handle:
    """A call under way. May be waited for from any thread, or awaited (asyncio)."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self._contributors: Contributors | None = None
        self._future: Future[NDArray[Any]] = Future()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the call is done; waits for that, at most so many seconds."""
        try:
            self._future.exception(timeout)
        except TimeoutError:
            return False
        return True

    def done(self) -> bool:
        return self._future.done()

    def result(self, timeout: float | None = None) -> NDArray[Any]:
        """The array, reduced in place. Raises what `Worker.all_reduce` raises, and TimeoutError if the call is not done
        after so many seconds."""
        return self._future.result(timeout)

    def contributors(self, timeout: float | None = None) -> Contributors | None:
        """How many workers are in the result, which averages divide by; None where the job has no quorum: all. Waits
        and raises as `result` does."""
        self._future.result(timeout)
        return self._contributors

    def add_done_callback(self, tell: Callable[[Handle], object]) -> None:
        """Calls `tell(self)` when the call is done, from a thread of the worker's, or at once if it is."""
        self._future.add_done_callback(lambda _: tell(self))

    def __await__(self) -> Generator[Any, None, NDArray[Any]]:
        return asyncio.wrap_future(self._future).__await__()

    def finish(self, error: Exception | None, contributors: Contributors | None = None) -> None:
        """For the worker: the call is over."""
        self._contributors = contributors
        if error is None:
            self._future.set_result(self._array)
        else:
            self._future.set_exception(error)
