# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A call of `Worker.submit`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import Future, TimeoutError
from typing import Any

from numpy.typing import NDArray

from netfold.traffic.worker.outcome import Contributors


class Handle:
    """A call in flight. Any thread may wait for it; asyncio code may await it."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self._contributors: Contributors | None = None
        self._future: Future[NDArray[Any]] = Future()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the call is done, at most `timeout` seconds; returns whether it is."""
        try:
            self._future.exception(timeout)
        except TimeoutError:
            return False
        return True

    def done(self) -> bool:
        return self._future.done()

    def result(self, timeout: float | None = None) -> NDArray[Any]:
        """Returns the array, reduced in place. Raises the errors of `Worker.all_reduce`, and TimeoutError if the
        call is not done after `timeout` seconds."""
        return self._future.result(timeout)

    def contributors(self, timeout: float | None = None) -> Contributors | None:
        """Returns the workers in the result, which averages divide by; None: all, as the job has no quorum. Waits
        and raises as `result` does."""
        self._future.result(timeout)
        return self._contributors

    def add_done_callback(self, callback: Callable[[Handle], object]) -> None:
        """Calls `callback(self)` when the call is done, from a thread of the worker; at once if it is done already."""
        self._future.add_done_callback(lambda _: callback(self))

    def __await__(self) -> Generator[Any, None, NDArray[Any]]:
        return asyncio.wrap_future(self._future).__await__()

    def finish(self, error: Exception | None, contributors: Contributors | None = None) -> None:
        """Ends the call. The worker calls it once."""
        self._contributors = contributors
        if error is None:
            self._future.set_result(self._array)
        else:
            self._future.set_exception(error)
