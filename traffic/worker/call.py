# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One all-reduce call: the gradient as chunks, and the works that its trees carry (docs/protocol.md, sections
5, 6).

The chunks of a call form one grid of N rows of L elements, whose last row is padded with zeros; each tree
carries a range of rows. The input is kept aside while results are written in place: a call can start again
at any time, and a call that fails leaves the array as it was.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.errors import CallMismatch, SumOverflow, WrongNumbers
from netfold.traffic.packets.wire import Flag, Words
from netfold.traffic.worker import quantize
from netfold.traffic.worker.quantize import Exponents, Fixed, Scheme, WholeNumbers
from netfold.traffic.worker.work import Chunks, Filled, Span, Work

DTYPES = (np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.int32))
_OVERFLOW = np.uint8(Flag.OVERFLOW)


def check_array(array: NDArray[Any]) -> None:
    """Raises TypeError or ValueError for an array that cannot be reduced in place."""
    if not isinstance(array, np.ndarray) or array.dtype not in DTYPES:
        kind = getattr(array, "dtype", type(array).__name__)
        raise TypeError(f"all_reduce takes a numpy array of float32, float16 or int32; this is {kind}")
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise ValueError("all_reduce writes in place: the array must be contiguous (C order) and writeable")


def check_numerics(array: NDArray[Any], scheme: Scheme, job: str) -> None:
    """Raises WrongNumbers if the job does not add arrays of this dtype."""
    if isinstance(scheme, WholeNumbers) and array.dtype.kind == "f":
        raise WrongNumbers(
            f"job {job} adds whole numbers (numerics: integer): all_reduce takes int32 there, this is {array.dtype}"
        )


class Gradient:
    """The input, the results and the scales of a call. `number` counts the calls of a worker; `buffer` is
    memory for the input, which is used again if it is large enough."""

    def __init__(
        self,
        number: int,
        array: NDArray[Any],
        lanes: int,
        scheme: Scheme,
        buffer: NDArray[np.uint8] | None = None,
    ) -> None:
        check_array(array)
        self.number = number
        self.lanes = lanes
        self.scheme = scheme
        self.is_float = array.dtype.kind == "f"
        self._flat = array.reshape(-1)
        self.chunks = -(-self._flat.size // lanes)
        self._full = self._flat.size // lanes
        self._rows = self._flat[: self._full * lanes].reshape(self._full, lanes)
        self._tail = self._flat[self._full * lanes :]
        nbytes = self.chunks * lanes * array.itemsize
        self.buffer = buffer if buffer is not None and len(buffer) >= nbytes else np.empty(nbytes, np.uint8)
        self.input: NDArray[Any] = self.buffer[:nbytes].view(array.dtype).reshape(self.chunks, lanes)
        kept = self.input.reshape(-1)
        kept[: self._flat.size] = self._flat
        kept[self._flat.size :] = 0
        self.exponents: Exponents = (
            quantize.block_exponents(self.input) if self.is_float else np.zeros(self.chunks, np.uint8)
        )
        self.agreed: Exponents = np.zeros(self.chunks, np.uint8)
        self.overflowed = np.zeros(self.chunks, np.bool_)

    @property
    def needs_opening(self) -> bool:
        return self.is_float and not isinstance(self.scheme, Fixed)

    def fingerprint(self) -> int:
        """16 bits that differ (most likely) if the call, the size, the dtype or the scheme does."""
        what = f"{self.number} {self._flat.size} {self._flat.dtype} {self.scheme}"
        return zlib.crc32(what.encode()) & 0xFFFF

    def span(self, first: int, last: int, workers: int) -> Span | None:
        """Rows [first, last) as memory, for works that carry them as they are."""
        if self._flat.dtype == np.float16 or not self._flat.flags.aligned:
            return None
        return Span(
            self.input, self._flat, self.exponents, self.agreed, self.overflowed, first, last,
            quantize.SUM_BITS - quantize.headroom(workers) if self.is_float else None,
            lambda: _beyond_scale(self),
        )  # fmt: skip

    def restart(self) -> None:
        self.overflowed[:] = False

    def restore(self) -> None:
        """Gives the array back its input."""
        self._flat[:] = self.input.reshape(-1)[: self._flat.size]

    def write(self, rows: Chunks, values: NDArray[Any]) -> None:
        """Writes results (k, L) in place."""
        if len(rows) and len(self._tail):
            last = np.flatnonzero(rows == self._full)
            if len(last):
                self._tail[:] = values[last[0], : len(self._tail)]
                inside = rows != self._full
                rows, values = rows[inside], values[inside]
        self._rows[rows] = values

    def works(self, first: int, last: int, channels: int, workers: int) -> Work:
        """The chunks [first, last) of this call, over a tree with so many channels (A/2)."""
        if not self.is_float:
            return Integers(self, first, last, workers)
        if isinstance(self.scheme, Fixed):
            return FixedScale(self, first, last, self.scheme.bits)
        return Blocks(self, first, last, channels, workers)

    def repeats(self, first: int, last: int, workers: int) -> Work:
        """The chunks of [first, last) that overflowed, once more, ascending: the same at all workers."""
        rows = first + np.flatnonzero(self.overflowed[first:last])
        return Repeats(self, rows, workers) if self.is_float else Halves(self, rows)


@dataclass
class Opening:
    """One chunk: the largest exponent of a tree's first A/2 chunks, and a check that all mean the same
    call."""

    gradient: Gradient
    first: int
    last: int
    workers: int
    count: int = 1

    def fill(self, chunks: Chunks) -> Filled:
        lanes = np.zeros((1, self.gradient.lanes), np.int32)
        lanes[0, 0] = self.gradient.fingerprint()
        largest = self.gradient.exponents[self.first : self.last].max(initial=0)
        return Filled(lanes, np.array([largest], np.uint8))

    def take(self, chunks: Chunks, lanes: Words, exponents: Exponents, flags: NDArray[np.uint8]) -> None:
        expected = self.workers * self.gradient.fingerprint()
        if lanes[0, 0] != expected:
            raise CallMismatch(
                f"call {self.gradient.number}: the workers call all_reduce with different sizes, "
                f"dtypes or schemes (check sum {lanes[0, 0]}, expected {expected})"
            )
        self.gradient.agreed[self.first : self.last] = exponents[0]


@dataclass
class Blocks:
    """Chunks with shared exponents: the result of a chunk brings the exponent of the next one of its
    channel."""

    gradient: Gradient
    first: int
    last: int
    channels: int
    workers: int

    def __post_init__(self) -> None:
        self.count = self.last - self.first
        own = self.gradient.exponents[self.first : self.last]
        self._next = np.zeros(self.count, np.uint8)
        self._next[: max(0, self.count - self.channels)] = own[self.channels :]

    def span(self) -> Span | None:
        return self.gradient.span(self.first, self.last, self.workers)

    def fill(self, chunks: Chunks) -> Filled:
        rows = chunks + self.first
        bits = quantize.shared_bits(self.gradient.agreed[rows], self.workers)
        return Filled(quantize.quantize(self.gradient.input[rows], bits), self._next[chunks])

    def take(self, chunks: Chunks, lanes: Words, exponents: Exponents, flags: NDArray[np.uint8]) -> None:
        if (flags & _OVERFLOW).any():
            raise _beyond_scale(self.gradient)
        rows = chunks + self.first
        bits = quantize.shared_bits(self.gradient.agreed[rows], self.workers)
        self.gradient.write(rows, quantize.dequantize(lanes, bits))
        following = rows + self.channels
        inside = following < self.last
        self.gradient.agreed[following[inside]] = exponents[inside]


@dataclass
class FixedScale:
    """Chunks at one scale. Their own exponents travel along, for the repetition of those that overflow."""

    gradient: Gradient
    first: int
    last: int
    bits: int

    def __post_init__(self) -> None:
        self.count = self.last - self.first

    def fill(self, chunks: Chunks) -> Filled:
        rows = chunks + self.first
        bits = np.full(len(rows), self.bits, np.int32)
        lanes, cut = quantize.quantize_saturating(self.gradient.input[rows], bits)
        return Filled(lanes, self.gradient.exponents[rows], cut * _OVERFLOW)

    def take(self, chunks: Chunks, lanes: Words, exponents: Exponents, flags: NDArray[np.uint8]) -> None:
        rows = chunks + self.first
        self.gradient.agreed[rows] = exponents
        self.gradient.overflowed[rows] = flags & _OVERFLOW != 0
        self.gradient.write(rows, quantize.dequantize(lanes, np.full(len(rows), self.bits, np.int32)))


@dataclass
class Repeats:
    """Chunks that overflowed at the fixed scale, at the scale of their shared exponents, which cannot
    overflow."""

    gradient: Gradient
    rows: Chunks
    workers: int

    def __post_init__(self) -> None:
        self.count = len(self.rows)
        self._bits = quantize.shared_bits(self.gradient.agreed[self.rows], self.workers)

    def fill(self, chunks: Chunks) -> Filled:
        lanes = quantize.quantize(self.gradient.input[self.rows[chunks]], self._bits[chunks])
        return Filled(lanes, np.zeros(len(chunks), np.uint8))

    def take(self, chunks: Chunks, lanes: Words, exponents: Exponents, flags: NDArray[np.uint8]) -> None:
        if (flags & _OVERFLOW).any():
            raise _beyond_scale(self.gradient)
        self.gradient.write(self.rows[chunks], quantize.dequantize(lanes, self._bits[chunks]))


@dataclass
class Integers:
    """int32 chunks as they are."""

    gradient: Gradient
    first: int
    last: int
    workers: int

    def __post_init__(self) -> None:
        self.count = self.last - self.first

    def span(self) -> Span | None:
        return self.gradient.span(self.first, self.last, self.workers)

    def fill(self, chunks: Chunks) -> Filled:
        return Filled(self.gradient.input[chunks + self.first], np.zeros(len(chunks), np.uint8))

    def take(self, chunks: Chunks, lanes: Words, exponents: Exponents, flags: NDArray[np.uint8]) -> None:
        rows = chunks + self.first
        self.gradient.overflowed[rows] = flags & _OVERFLOW != 0
        self.gradient.write(rows, lanes)


class Halves:
    """int32 chunks that overflowed, each as two chunks of 16 bits a lane: an exact sum in any case, which
    then fits into int32 (a sum that only touched the rails) or does not (`overflow` tells which element)."""

    def __init__(self, gradient: Gradient, rows: Chunks) -> None:
        self.count = 2 * len(rows)
        self.overflow: SumOverflow | None = None
        self._gradient = gradient
        self._rows = rows
        self._halves = quantize.split_halves(gradient.input[rows])
        self._missing = self.count

    def fill(self, chunks: Chunks) -> Filled:
        return Filled(self._halves[chunks], np.zeros(len(chunks), np.uint8))

    def take(self, chunks: Chunks, lanes: Words, exponents: Exponents, flags: NDArray[np.uint8]) -> None:
        self._halves[chunks] = lanes
        self._missing -= len(chunks)
        if self._missing == 0:
            self._finish()

    def _finish(self) -> None:
        sums = quantize.join_halves(self._halves)
        self._gradient.write(self._rows, sums.astype(np.int32))
        wrong = np.argwhere(sums != sums.astype(np.int32))
        if len(wrong):
            row, lane = wrong[0]
            index = int(self._rows[row]) * self._gradient.lanes + int(lane)
            self.overflow = SumOverflow(index, int(sums[row, lane]))


@dataclass
class Tally:
    """One chunk that counts votes: each worker adds 1 in one lane. `votes` (L,) is the result."""

    lanes: int
    vote: int
    count: int = 1

    def fill(self, chunks: Chunks) -> Filled:
        lanes = np.zeros((1, self.lanes), np.int32)
        lanes[0, self.vote] = 1
        return Filled(lanes, np.zeros(1, np.uint8))

    def take(self, chunks: Chunks, lanes: Words, exponents: Exponents, flags: NDArray[np.uint8]) -> None:
        self.votes = lanes[0]


def _beyond_scale(gradient: Gradient) -> CallMismatch:
    return CallMismatch(
        f"call {gradient.number}: a sum overflowed at a scale that leaves room for all workers; some "
        "member does not follow the protocol, or workers use different schemes"
    )
