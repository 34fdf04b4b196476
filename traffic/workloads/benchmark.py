# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of a workload over any all-reduce, with what was measured as plain data for JSON."""

from __future__ import annotations

import hashlib
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from netfold.traffic import numerics
from netfold.traffic.numerics import FLOAT64, INTEGERS, Fixed, Float32Sum, PackedHalf, Scheme
from netfold.traffic.workloads import workloads
from netfold.traffic.workloads.workloads import AllReduce, Mlp

_MOST_CALLS = 200
_BLOCK_ELEMENTS = 1 << 14
_STAT = Path("/proc/stat")


def busy_processor_s() -> float:
    """Seconds of all processors in which they were not idle, since boot (proc(5))."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, _STAT.read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


@dataclass
class Timed:
    """An all-reduce with a stopwatch. `milliseconds` and `bytes` by call; `seconds`, `cpu_seconds` and `total_bytes` of
    all calls, forgotten ones as well; so `busy_seconds`, of all processors of the machine."""

    all_reduce: AllReduce
    milliseconds: list[float] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    cpu_seconds: float = 0.0
    total_bytes: int = 0
    seconds: float = 0.0
    busy_seconds: float = 0.0

    def __call__(self, array: NDArray[Any]) -> None:
        busy = busy_processor_s()
        started, cpu = time.perf_counter(), time.process_time()
        self.all_reduce(array)
        self.cpu_seconds += time.process_time() - cpu
        self.total_bytes += array.nbytes
        elapsed = time.perf_counter() - started
        self.seconds += elapsed
        self.milliseconds.append(elapsed * 1e3)
        self.bytes.append(array.nbytes)
        self.busy_seconds += busy_processor_s() - busy

    def forget(self) -> None:
        self.milliseconds.clear()
        self.bytes.clear()


@dataclass
class Result:
    """Figures that one member measured. Rates are in Mbit/s of array data; `algbw` is bytes / time, as in nccl-tests.
    `digest` is of the last result's bytes: equal at all workers (I3). `busy`: share of the machine's processors in
    all-reduces."""

    rank: int
    workers: int
    workload: str
    calls: int = 0
    elements: int = 0
    allreduce_ms_p50: float = 0.0
    allreduce_ms_p99: float = 0.0
    algbw_mbps: float = 0.0
    wrong_elements: int = 0
    checked_elements: int = 0
    digest: str = ""
    seconds: float = 0.0
    allreduce_seconds: float = 0.0
    cpu_seconds: float = 0.0
    allreduce_cpu_s_per_gib: float = 0.0
    busy: float = 0.0
    peak_rss_mib: float = 0.0
    accuracy: float | None = None
    reference_accuracy: float | None = None
    loss: float | None = None
    retransmits: int = 0
    probes: int = 0
    restarts: int = 0
    reencoded_chunks: int = 0
    socket_errors: int = 0
    sizes: list[dict[str, Any]] = field(default_factory=list)
    flows: list[dict[str, float]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class BenchmarkRun:
    """Measures one member's part. `all_reduce` sums in place over `workers`; `check` compares every call
    with the exact sum that the workload knows, which costs each worker the work of all."""

    def __init__(
        self,
        all_reduce: AllReduce,
        rank: int,
        workers: int,
        scheme: Scheme | None = None,
        check: bool = True,
        progress: Callable[[dict[str, Any]], None] = lambda report: None,
    ) -> None:
        self._timed = Timed(all_reduce)
        self._rank = rank
        self._workers = workers
        self._scheme = scheme
        self._check = check
        self._progress = progress
        self._wrong = 0
        self._checked = 0
        self._started = time.perf_counter()
        self._cpu = time.process_time()

    def digits(self, epochs: int, hidden: int) -> Result:
        """Trains the perceptron on the digits; gives accuracy and the single-machine reference's."""
        model = Mlp(hidden=hidden)
        audit = self._compare if self._check else None
        for last in workloads.train(self._timed, self._rank, self._workers, epochs, model=model, audit=audit):
            self._progress(
                {"epoch": last.epoch, "epochs": epochs, "loss": last.loss, "accuracy": last.accuracy}
            )
        result = self._result("digits", model.parameters)
        result.loss, result.accuracy = last.loss, last.accuracy
        result.reference_accuracy = workloads.reference(epochs, hidden).accuracy
        return result

    def model(self, name: str, scale: float, iterations: int) -> Result:
        """All-reduces the gradient tensors of a well-known model, so many times."""
        sizes = workloads.layer_sizes(name, scale)
        digest = np.zeros(0, np.float32)
        for iteration in range(iterations):
            tensors = workloads.synthetic_gradients(sizes, self._rank, iteration)
            others = [
                workloads.synthetic_gradients(sizes, rank, iteration)
                for rank in range(self._workers)
                if self._check
            ]
            for tensor in tensors:
                exact = [next(other) for other in others]
                self._timed(tensor)
                self._compare(tensor, exact)
                digest = tensor
            self._progress({"iteration": iteration + 1, "iterations": iterations})
        return self._result(f"{name} x {scale:g}", digest)

    def sizes(
        self, sizes: Sequence[int], iterations: int, warmup: int, dtype: str, volume: int = 1
    ) -> Result:
        """All-reduces arrays of so many bytes, each `iterations` times or more (`calls_of`) after `warmup` untimed
        ones."""
        rows, last = [], np.zeros(0)
        for size in sizes:
            calls = calls_of(size, iterations, volume)
            count = max(1, size // np.dtype(dtype).itemsize)
            self._timed.forget()
            wrong = self._wrong
            for iteration in range(warmup + calls):
                if iteration == warmup:
                    self._timed.forget()
                ranks = range(self._workers) if self._check else (self._rank,)
                arrays = {rank: made_up(count, dtype, rank, iteration) for rank in ranks}
                last = arrays[self._rank].copy()
                exact = list(arrays.values()) if self._check else []
                self._barrier()  # none is timed while it waits for others,
                self._timed(last)
                self._barrier()  # or while those that are ready check theirs, on the same processors
                self._compare(last, exact)
            rows.append(row(count, dtype, self._timed.milliseconds, self._workers, self._wrong - wrong))
            self._progress({"bytes": size, "of": list(sizes)})
        result = self._result("sizes", last)
        result.sizes = rows
        return result

    def _barrier(self) -> None:
        self._timed.all_reduce(np.ones(1, np.int32))

    def _compare(self, got: NDArray[Any], inputs: Sequence[NDArray[Any]]) -> None:
        if inputs:
            self._wrong += wrong_elements(got, inputs, self._scheme)
            self._checked += got.size

    def _result(self, workload: str, last: NDArray[Any]) -> Result:
        times = np.array(self._timed.milliseconds or [0.0])
        total = sum(self._timed.bytes)
        return Result(
            rank=self._rank,
            workers=self._workers,
            workload=workload,
            calls=len(self._timed.bytes),
            elements=last.size,
            allreduce_ms_p50=round(float(np.percentile(times, 50)), 3),
            allreduce_ms_p99=round(float(np.percentile(times, 99)), 3),
            algbw_mbps=round(total * 8e-3 / float(times.sum()), 3) if total else 0.0,
            wrong_elements=self._wrong,
            checked_elements=self._checked,
            digest=hashlib.sha256(last.tobytes()).hexdigest(),
            seconds=round(time.perf_counter() - self._started, 3),
            allreduce_seconds=round(self._timed.seconds, 6),
            allreduce_cpu_s_per_gib=round(
                self._timed.cpu_seconds * 2**30 / max(1, self._timed.total_bytes), 3
            ),
            busy=round(self._timed.busy_seconds / max(1e-9, self._timed.seconds) / (os.cpu_count() or 1), 3),
            cpu_seconds=round(time.process_time() - self._cpu, 3),
            peak_rss_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        )


def calls_of(size: int, least: int, volume: int) -> int:
    """How often an array of `size` bytes is reduced: until it makes `volume` bytes, in 200 calls at most, but `least`
    times. What a small call takes depends on when processors get to it; only the mean of many says something."""
    return max(least, min(_MOST_CALLS, volume // size))


def made_up(count: int, dtype: str, rank: int, iteration: int) -> NDArray[Any]:
    """Numbers that differ by rank and iteration: normal floats, or integers whose sums fit."""
    rng = np.random.default_rng((rank, iteration))
    if dtype.startswith("int"):
        return rng.integers(-(2**20), 2**20, count, dtype=dtype)
    return rng.standard_normal(count, np.float32).astype(dtype, copy=False)


def wrong_elements(got: NDArray[Any], inputs: Sequence[NDArray[Any]], scheme: Scheme | None) -> int:
    """How many elements are further from the exact sum of the inputs than section 6 of the protocol allows
    (floats), or differ from it at all (integers). With `scheme` None, and where nodes add floats, the allowance is that
    of n float additions instead."""
    if got.dtype in INTEGERS:
        return sum(int(np.count_nonzero(b.got != b.total(np.int64))) for b in _blocks(got, inputs))
    # The sum of the check is much finer than what is checked.
    wide = np.longdouble if got.dtype == FLOAT64 else np.float64
    precision = ml_dtypes.finfo(got.dtype)  # type: ignore[no-untyped-call]
    eps, smallest = float(precision.eps), float(precision.smallest_subnormal)
    bound = _allowance(got.dtype, inputs, scheme, eps)
    wrong = 0
    for block in _blocks(got, inputs):
        exact = block.total(wide)
        allowed = bound + smallest + eps * np.abs(exact)
        wrong += int(np.count_nonzero(~(np.abs(block.got.astype(wide) - exact) <= allowed)))
    return wrong


@dataclass(frozen=True)
class _Block:
    """A part of a result and of its inputs that fits into a processor's cache."""

    got: NDArray[Any]
    inputs: Sequence[NDArray[Any]]

    def total(self, dtype: Any) -> NDArray[Any]:
        total = self.inputs[0].astype(dtype)
        for part in self.inputs[1:]:
            total += part.astype(dtype)
        return total


def _blocks(got: NDArray[Any], inputs: Sequence[NDArray[Any]]) -> Iterator[_Block]:
    for start in range(0, got.size, _BLOCK_ELEMENTS):
        end = start + _BLOCK_ELEMENTS
        yield _Block(got[start:end], [part[start:end] for part in inputs])


def _allowance(
    dtype: np.dtype[Any], inputs: Sequence[NDArray[Any]], scheme: Scheme | None, eps: float
) -> float:
    """Absolute error that the numerics allow, before the result is rounded to its type."""
    largest = max(max(float(part.max()), -float(part.min())) for part in inputs)
    chosen = scheme and numerics.scheme_for(scheme, dtype)
    exponent = numerics.exponent_of(largest, dtype)
    if chosen is None or (isinstance(chosen, Float32Sum) and dtype != FLOAT64):
        return len(inputs) ** 2 * largest * eps
    if dtype == FLOAT64:
        return numerics.wide_error_bound(exponent, len(inputs))
    if isinstance(chosen, Fixed):
        return float(len(inputs) * 2.0 ** (-chosen.bits - 1))
    bound = numerics.error_bound(exponent, len(inputs), isinstance(chosen, PackedHalf))
    return bound * (1 if isinstance(chosen, PackedHalf) else 2**numerics.PREDICTION_BITS)


def row(count: int, dtype: str, milliseconds: Sequence[float], workers: int, wrong: int) -> dict[str, Any]:
    """One line in nccl-tests' columns: size (bytes), count, type, time (us, mean), algbw and busbw (GB/s),
    wrong."""
    nbytes = count * np.dtype(dtype).itemsize
    mean = float(np.mean(milliseconds))
    algbw = nbytes / (mean * 1e6)
    return {
        "size": nbytes,
        "count": count,
        "type": dtype,
        "redop": "sum",
        "time_us": round(mean * 1e3, 1),
        "time_us_min": round(min(milliseconds) * 1e3, 1),
        "algbw_gbs": round(algbw, 6),
        "busbw_gbs": round(algbw * 2 * (workers - 1) / workers, 6),
        "wrong": wrong,
    }
