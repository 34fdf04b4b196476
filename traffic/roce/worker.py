# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A RoCE worker for Python programs: worker.h's calls on numpy arrays, with the agent in the same process."""

from __future__ import annotations

import ctypes
import subprocess
import threading
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from netfold.protocol.connection import Connection
from netfold.traffic.engine.native import build, cache_folder
from netfold.traffic.errors import (
    AllReduceTimeoutError,
    CollectiveMismatchError,
    ConcurrentUseError,
    EngineUnavailableError,
    InvalidAssignmentError,
    JobFailedError,
    MembershipLostError,
    TrafficError,
    UnsupportedDtypeError,
    WorkersLeftError,
)
from netfold.traffic.numerics import ReduceOp
from netfold.traffic.roce import recipe
from netfold.traffic.roce.agent import start_agent

SOURCES = tuple(recipe.HERE / name for name in (*recipe.SOURCES, *recipe.HEADERS))
_DTYPES = {np.dtype(np.int32): 0, np.dtype(np.float32): 1}
_OPS = {ReduceOp.SUM: 0, ReduceOp.AVERAGE: 1}


class RdmaDeviceError(TrafficError, OSError):
    """The RDMA device failed, or there is no memory for it."""


class SumSaturatedError(TrafficError, OverflowError):
    """A sum of int32 is saturated. All workers raise it for the same call."""


_ERRORS: dict[int, type[TrafficError]] = {
    1: AllReduceTimeoutError,
    2: JobFailedError,
    3: MembershipLostError,
    4: RdmaDeviceError,
    5: InvalidAssignmentError,
    6: CollectiveMismatchError,
    7: SumSaturatedError,
    8: UnsupportedDtypeError,
    9: RdmaDeviceError,
}
"""By `nr_error` of worker.h."""

_LEFT = 10


class _Options(ctypes.Structure):
    _fields_ = (
        ("agent", ctypes.c_char_p),
        ("device", ctypes.c_char_p),
        ("timeout", ctypes.c_int),
        ("retries", ctypes.c_int),
        ("first_psn", ctypes.c_uint32),
        ("epoch_packets", ctypes.c_uint64),
    )


@cache
def library(path: Path | None = None) -> ctypes.CDLL:
    """The worker's code at `path`, or compiled for this machine. Raises EngineUnavailableError."""
    try:
        code = ctypes.CDLL(str(path or build(SOURCES, cache_folder(), recipe.SHARED_OPTIONS)))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise EngineUnavailableError(
            f"the RoCE worker cannot be compiled here (gcc, libibverbs-dev): {error}"
        ) from error
    pointer, number, real = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_double
    code.nr_join.argtypes = (ctypes.POINTER(pointer), ctypes.POINTER(_Options), real)
    code.nr_all_reduce.argtypes = (pointer, pointer, number, ctypes.c_int, ctypes.c_int, real)
    code.nr_all_reduce_gradient.argtypes = (pointer, pointer, number, ctypes.c_int, real)
    code.nr_error_message.argtypes, code.nr_error_message.restype = (pointer,), ctypes.c_char_p
    code.nr_left_hosts.argtypes, code.nr_left_hosts.restype = (pointer,), ctypes.c_char_p
    code.nr_leave.argtypes, code.nr_leave.restype = (pointer,), None
    for name in ("nr_rank", "nr_workers"):
        getattr(code, name).argtypes = (pointer,)
    return code


class RoceWorker:
    """One worker of a job with `transport: roce`, on a host with an RDMA device; a context manager. Joining waits until
    all workers have registered, at most `timeout` seconds.

    Raises AllReduceTimeoutError, JobFailedError, MembershipLostError, RdmaDeviceError, InvalidAssignmentError,
    EngineUnavailableError."""

    def __init__(
        self, where: Connection, job: str, host: str, timeout: float = 60.0, code: ctypes.CDLL | None = None
    ) -> None:
        self._code = code or library()
        self._worker = ctypes.c_void_p()
        self._using = threading.Lock()
        ours, self._agent = start_agent(where, job, host)
        with ours:
            options = _Options(agent=f"fd:{ours.fileno()}".encode())
            failed = self._code.nr_join(ctypes.byref(self._worker), ctypes.byref(options), timeout)
        try:
            self._check(failed)
        except TrafficError:
            self.close()
            raise
        self.rank = int(self._code.nr_rank(self._worker))

    @property
    def workers(self) -> int:
        """Workers whose arrays the last call added up; before the first call, those of the job."""
        with self._using:
            if not self._worker:
                raise MembershipLostError("the worker has left its job")
            return int(self._code.nr_workers(self._worker))

    def all_reduce(
        self, array: NDArray[Any], timeout: float = 60.0, op: ReduceOp = ReduceOp.SUM, *, lossy: bool = False
    ) -> None:
        """Replaces `array` (float32, or int32 in a job of `integer`; C order) by its sum or average over all workers,
        in place. `lossy`: it is a gradient of float32, whose sums may be approximate in a job of `quarter`. On an error
        the array is as before. Raises the errors of joining, CollectiveMismatchError, SumSaturatedError,
        UnsupportedDtypeError, WorkersLeftError and ConcurrentUseError."""
        if array.dtype not in _DTYPES or not array.flags.c_contiguous or not array.flags.writeable:
            raise UnsupportedDtypeError(
                "a RoCE worker takes float32 and int32 arrays that are writable and in C order"
            )
        if not self._using.acquire(blocking=False):
            raise ConcurrentUseError("another thread is in a call of this worker")
        try:
            if not self._worker:
                raise MembershipLostError("the worker has left its job")
            data = array.ctypes.data
            dtype, what = _DTYPES[array.dtype], _OPS[op]
            if lossy and array.dtype == np.float32:
                failed = self._code.nr_all_reduce_gradient(self._worker, data, array.size, what, timeout)
            else:
                failed = self._code.nr_all_reduce(self._worker, data, array.size, dtype, what, timeout)
            self._check(failed)
        finally:
            self._using.release()

    def close(self) -> None:
        """Leaves the job."""
        with self._using:
            worker, self._worker = self._worker, ctypes.c_void_p()
            if worker:
                self._code.nr_leave(worker)
        self._agent.join(5.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self, failed: int) -> None:
        if not failed:
            return
        message = self._code.nr_error_message(self._worker).decode(errors="replace")
        if failed == _LEFT:
            hosts = self._code.nr_left_hosts(self._worker).decode(errors="replace")
            raise WorkersLeftError(message, tuple(hosts.split(",")))
        raise _ERRORS[failed](message)
