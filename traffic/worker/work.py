# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What a flow carries: chunks to send, and where their sums go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.packets.wire import Words

Chunks = NDArray[np.int64]


@dataclass(frozen=True)
class Filled:
    """What k chunks carry: lanes (k, L) int32, exponents and flags (k,) uint8."""

    lanes: Words
    exponents: NDArray[np.uint8]
    flags: NDArray[np.uint8] | None = None


class Work(Protocol):
    """`count` chunks, numbered from 0, to be summed up over all workers."""

    count: int

    def fill(self, chunks: Chunks) -> Filled:
        """What to send for these chunks. Asked once for each; chunk c only after `take` of chunk c - A/2."""

    def take(
        self, chunks: Chunks, lanes: Words, exponents: NDArray[np.uint8], flags: NDArray[np.uint8]
    ) -> None:
        """The sums of these chunks. Given once for each."""


@dataclass(frozen=True)
class Span:
    """A work as memory: rows [first, last) of float32 or int32 `input` (n, L), and of the flat `output` for
    their sums, where the last row may be cut. By row: the `own` and the `agreed` exponent of floats, and which sums of
    integers, or floats that are not all finite, have to be asked for again (`overflowed`). Lanes of floats stay within
    2^`sum_bits`, and their sums are divided by `divisor`; None: integers.

    `impossible` makes the error for a float sum that is marked as overflowed, which the scale rules out."""

    input: NDArray[Any]
    output: NDArray[Any]
    own: NDArray[np.uint8]
    agreed: NDArray[np.uint8]
    overflowed: NDArray[np.bool_]
    first: int
    last: int
    sum_bits: int | None
    divisor: int
    impossible: Callable[[], Exception]


@runtime_checkable
class FlatWork(Work, Protocol):
    """A work whose `fill` and `take` do nothing but what a span says: chunk c is row `first + c`. Whoever
    carries it may move the elements itself."""

    def span(self) -> Span | None:
        """None if this one is not that simple."""
