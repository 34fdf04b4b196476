# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A rank whose calls the first rank of its host reduces, in memory that both share."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch

from netfold.traffic.errors import AllReduceTimeoutError, TrafficError
from netfold.traffic.pytorch.shared_memory import RankLostError, RankMessage, SharedBuffer
from netfold.traffic.pytorch.tensor_call import LeaderCallError, TensorCall


@dataclass(frozen=True)
class _InFlight:
    call: TensorCall
    buffer: SharedBuffer


class LocalRankReducer:
    """A `tensor_call.Reducer`. Writes in inference mode, as tensors may be inference tensors. A thread receives the
    messages of the host's first rank; it wakes up for them, for deadlines, and for the first call after a pause."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()  # of the seven below
        self._free: list[SharedBuffer] = []
        self._buffers = 0
        self._number = 0
        self._in_flight: deque[_InFlight] = deque()
        self._failure: TrafficError | None = None
        self._wake = os.eventfd(0, os.EFD_CLOEXEC)
        self._closed = False
        self._on_end: Callable[[Exception], None] | None = None
        self._thread = threading.Thread(target=self._receive_all, name="netfold host results", daemon=True)
        self._thread.start()

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def start(self, call: TensorCall) -> None:
        elements, dtype = call.tensor.numel(), call.tensor.dtype
        with self._lock:
            buffer, is_new = self._take_buffer(elements * dtype.itemsize)
        buffer.tensor(dtype, elements).copy_(call.tensor)
        with self._lock:
            if self._failure is not None:
                raise self._failure
            number = self._number
            self._number += 1
            self._in_flight.append(_InFlight(call, buffer))
        message = RankMessage(
            number, call.op, dtype, buffer.number, elements, call.context, fd=buffer.fd if is_new else -1
        )
        os.eventfd_write(self._wake, 1)
        try:
            message.send(self._sock)
        except OSError as error:
            self._fail(RankLostError(f"the first rank of this host is gone: {error}"))
        if is_new:
            buffer.close_fd()

    def _take_buffer(self, nbytes: int) -> tuple[SharedBuffer, bool]:
        """The smallest free buffer of at least `nbytes`, or a new one."""
        fitting = sorted((b for b in self._free if b.size >= nbytes), key=lambda b: b.size)
        if fitting:
            self._free.remove(fitting[0])
            return fitting[0], False
        self._buffers += 1
        return SharedBuffer.create(self._buffers - 1, nbytes), True

    def _receive_all(self) -> None:
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while not self._closed and self._failure is None:
            with self._lock:
                first = self._in_flight[0].call if self._in_flight else None
            ready = dict(poll.poll(None if first is None else first.remaining_s() * 1000))
            if self._wake in ready:
                os.eventfd_read(self._wake)
            if self._sock.fileno() in ready:
                self._receive()
            elif first is not None and not ready and first.remaining_s() == 0:
                self._fail(AllReduceTimeoutError("timeout: the first rank of this host sent no result"))

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def _receive(self) -> None:
        try:
            message = RankMessage.receive(self._sock)
        except OSError as error:
            self._fail(RankLostError(f"the first rank of this host is gone: {error}"))
            return
        if message is None:
            self._fail(RankLostError("the first rank of this host is gone"))
            return
        with self._lock:
            in_flight = self._in_flight.popleft()
        call, buffer = in_flight.call, in_flight.buffer
        if not message.error:
            call.tensor.copy_(buffer.tensor(message.dtype, message.elements))
        with self._lock:
            self._free.append(buffer)
        call.done(LeaderCallError(message.error, message.can_continue) if message.error else None)

    def _fail(self, error: TrafficError) -> None:
        """Ends all calls, and those that are started later."""
        with self._lock:
            self._failure = self._failure or error
            calls, self._in_flight = self._in_flight, deque()
            on_end = self._on_end
        for in_flight in calls:
            in_flight.call.done(error)
        if on_end is not None and not self._closed:
            on_end(error)

    def on_end(self, callback: Callable[[Exception], None]) -> None:
        with self._lock:
            self._on_end = callback
            failure = self._failure
        if failure is not None:
            callback(failure)

    def abort(self, cause: str) -> None:
        """Closes the connection, which ends the call that waits for this rank's input."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def network_use(self) -> None:
        return None

    def close(self) -> None:
        self._closed = True
        os.eventfd_write(self._wake, 1)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._fail(TrafficError("the process group is destroyed"))
        self._sock.close()
        os.close(self._wake)
