# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One all-reduce call: the gradient as chunks, and the works that its trees carry (docs/protocol.md, sections
5, 6).

The chunks of a call form one grid of N rows of L elements, whose last row is padded with zeros; each tree
carries a range of rows. The input is kept aside while results are written in place: a call can start again
at any time, and a call that fails leaves the array as it was.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.errors import CallMismatch, SumOverflow, WrongNumbers
from netfold.traffic.packets.wire import Flag, Words
from netfold.traffic.worker import quantize
from netfold.traffic.worker.quantize import NOT_FINITE, Exponents, Fixed, ReduceOp, Scheme, WholeNumbers
from netfold.traffic.worker.work import Chunks, Filled, Span, Work

DTYPES = (np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.int32))
_OVERFLOW = np.uint8(Flag.OVERFLOW)
_FINGERPRINT = 3  # lanes


def check_array(array: NDArray[Any]) -> None:
    """Raises TypeError or ValueError for an array that cannot be reduced in place."""
    if not isinstance(array, np.ndarray) or array.dtype not in DTYPES:
        kind = getattr(array, "dtype", type(array).__name__)
        raise TypeError(f"all_reduce takes a numpy array of float32, float16 or int32; this is {kind}")
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise ValueError("all_reduce writes in place: the array must be contiguous (C order) and writeable")


def check_numerics(array: NDArray[Any], scheme: Scheme, op: ReduceOp, job: str) -> None:
    """Raises WrongNumbers if the job does not do this with arrays of this dtype."""
    if op is ReduceOp.AVERAGE and array.dtype.kind != "f":
        raise WrongNumbers(
            f"an average of {array.dtype} is no {array.dtype}: all_reduce averages float32 and float16"
        )
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
        op: ReduceOp = ReduceOp.SUM,
    ) -> None:
        check_array(array)
        self.op = op
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
    def shares_exponents(self) -> bool:
        return self.is_float and not isinstance(self.scheme, Fixed)

    def divisor(self, workers: int) -> int:
        """What sums are divided by."""
        return workers if self.op is ReduceOp.AVERAGE else 1

    def fingerprint(self) -> NDArray[np.int32]:
        """Three numbers of 16 bits that differ (but for one case in 2^48) if the call, the size, the dtype, the
        operation or the scheme does. Sums over up to 32767 workers fit into a lane."""
        what = f"{self.number} {self._flat.size} {self._flat.dtype} {self.op} {self.scheme}"
        return np.frombuffer(hashlib.blake2b(what.encode(), digest_size=6).digest(), "<u2").astype(np.int32)

    def span(self, first: int, last: int, workers: int) -> Span | None:
        """Rows [first, last) as memory, for works that carry them as they are."""
        if self._flat.dtype == np.float16 or not self._flat.flags.aligned:
            return None
        return Span(
            self.input, self._flat, self.exponents, self.agreed, self.overflowed, first, last,
            quantize.SUM_BITS - quantize.headroom(workers) if self.is_float else None,
            self.divisor(workers),
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
            return FixedScale(self, first, last, self.scheme.bits, workers)
        return Blocks(self, first, last, channels, workers)

    def specials(self, first: int, last: int) -> Specials:
        """The chunks of [first, last) in which some worker has a NaN or an infinity, ascending: the same at all
        workers."""
        special = self.overflowed[first:last] & (self.agreed[first:last] == NOT_FINITE)
        return Specials(self, first + np.flatnonzero(special))

    def repeats(self, first: int, last: int, workers: int, specials: Specials) -> Work:
        """The chunks of [first, last) that overflowed or are special, once more, ascending: the same at all
        workers."""
        rows = first + np.flatnonzero(self.overflowed[first:last])
        return Repeats(self, rows, workers, specials) if self.is_float else Halves(self, rows)


@dataclass
class Opening:
    """One chunk: the largest exponent of a tree's first A/2 chunks if exponents are shared, and a check that all mean
    the same call."""

    gradient: Gradient
    first: int
    last: int
    workers: int
    count: int = 1

    def fill(self, chunks: Chunks) -> Filled:
        lanes = np.zeros((1, self.gradient.lanes), np.int32)
        lanes[0, :_FINGERPRINT] = self.gradient.fingerprint()
        largest = self.gradient.exponents[self.first : self.last].max(initial=0)
        return Filled(lanes, np.array([largest], np.uint8))

    def take(self, chunks: Chunks, lanes: Words, exponents: Exponents, flags: NDArray[np.uint8]) -> None:
        if (lanes[0, :_FINGERPRINT] != self.workers * self.gradient.fingerprint()).any():
            raise CallMismatch(
                f"call {self.gradient.number}: the workers call all_reduce with different sizes, dtypes, operations "
                "or schemes, or are not in the same call"
            )
        if self.gradient.shares_exponents:
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
        agreed = self.gradient.agreed[rows]
        values, special = self.gradient.input[rows], agreed == NOT_FINITE
        if special.any():
            values[special] = 0
        return Filled(
            quantize.quantize(values, quantize.shared_bits(agreed, self.workers)), self._next[chunks]
        )

    def take(self, chunks: Chunks, lanes: Words, exponents: Exponents, flags: NDArray[np.uint8]) -> None:
        if (flags & _OVERFLOW).any():
            raise _beyond_scale(self.gradient)
        rows = chunks + self.first
        agreed = self.gradient.agreed[rows]
        bits = quantize.shared_bits(agreed, self.workers)
        self.gradient.overflowed[rows] = agreed == NOT_FINITE
        self.gradient.write(rows, quantize.dequantize(lanes, bits, self.gradient.divisor(self.workers)))
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
    workers: int

    def __post_init__(self) -> None:
        self.count = self.last - self.first

    def fill(self, chunks: Chunks) -> Filled:
        rows = chunks + self.first
        bits = np.full(len(rows), self.bits, np.int32)
        lanes, cut = quantize.quantize_saturating(self.gradient.input[rows], bits)
        return Filled(lanes, self.gradient.exponents[rows], cut * _OVERFLOW)

    def take(self, chunks: Chunks, lanes: Words, exponents: Exponents, flags: NDArray[np.uint8]) -> None:
        rows = chunks + self.first
        bits = np.full(len(rows), self.bits, np.int32)
        self.gradient.agreed[rows] = exponents
        self.gradient.overflowed[rows] = (flags & _OVERFLOW != 0) | (exponents == NOT_FINITE)
        self.gradient.write(rows, quantize.dequantize(lanes, bits, self.gradient.divisor(self.workers)))


class Specials:
    """Chunks in which some worker has a NaN or an infinity: who has which, and the largest exponent of the finite
    rest, which goes with the repetition."""

    def __init__(self, gradient: Gradient, rows: Chunks) -> None:
        self.count = len(rows)
        self.rows = rows
        self.kinds: Words = np.zeros((len(rows), gradient.lanes), np.int32)
        self._gradient = gradient

    def fill(self, chunks: Chunks) -> Filled:
        values = self._gradient.input[self.rows[chunks]]
        return Filled(quantize.kinds(values), quantize.block_exponents(quantize.finite_part(values)))

    def take(self, chunks: Chunks, lanes: Words, exponents: Exponents, flags: NDArray[np.uint8]) -> None:
        self.kinds[chunks] = lanes
        self._gradient.agreed[self.rows[chunks]] = exponents


class Repeats:
    """Chunks that overflowed at the fixed scale, and the finite part of special ones, at the scale of their shared
    exponents, which cannot overflow."""

    def __init__(self, gradient: Gradient, rows: Chunks, workers: int, specials: Specials) -> None:
        self.count = len(rows)
        self._gradient = gradient
        self._rows = rows
        self._specials = specials
        self._divisor = gradient.divisor(workers)
        self._bits = quantize.shared_bits(gradient.agreed[rows], workers)

    def fill(self, chunks: Chunks) -> Filled:
        values = quantize.finite_part(self._gradient.input[self._rows[chunks]])
        return Filled(quantize.quantize(values, self._bits[chunks]), np.zeros(len(chunks), np.uint8))

    def take(self, chunks: Chunks, lanes: Words, exponents: Exponents, flags: NDArray[np.uint8]) -> None:
        if (flags & _OVERFLOW).any():
            raise _beyond_scale(self._gradient)
        rows, specials = self._rows[chunks], self._specials
        values = quantize.dequantize(lanes, self._bits[chunks], self._divisor)
        special = np.isin(rows, specials.rows)
        if special.any():
            sums = np.zeros_like(lanes)
            sums[special] = specials.kinds[np.searchsorted(specials.rows, rows[special])]
            quantize.overlay(values, sums)
        self._gradient.write(rows, values)


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
