# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A rank that has its sums made by the leader of its host, in memory that both share."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections import deque
from dataclasses import dataclass

from netfold.traffic.errors import AllReduceTimeout, TrafficError, WrongNumbers
from netfold.traffic.pytorch.call import Call
from netfold.traffic.pytorch.shared import Block, SiblingLost, Word


class LeaderRefused(TrafficError):
    """The leader of this host ended a call in an error, which the message repeats."""


class LeaderRefusedNumbers(LeaderRefused, WrongNumbers):
    """The same, and the ranks are still in step."""


@dataclass(frozen=True)
class _UnderWay:
    call: Call
    block: Block


class Member:
    """A `call.Carrier`. A thread takes the leader's words; the kernel wakes it by them, by a deadline, or by the first
    call after a pause."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._books = threading.Lock()
        self._free: list[Block] = []
        self._blocks = 0
        self._number = 0
        self._calls: deque[_UnderWay] = deque()
        self._lost: TrafficError | None = None
        self._wake = os.eventfd(0, os.EFD_CLOEXEC)
        self._closed = False
        self._thread = threading.Thread(target=self._listen, name="netfold leader's words", daemon=True)
        self._thread.start()

    def start(self, call: Call) -> None:
        elements, dtype = call.tensor.numel(), call.tensor.dtype
        with self._books:
            block, new = self._block(elements * dtype.itemsize)
        block.tensor(dtype, elements).copy_(call.tensor)
        with self._books:
            if self._lost is not None:
                raise self._lost
            number = self._number
            self._number += 1
            self._calls.append(_UnderWay(call, block))
        word = Word(number, call.op, dtype, block.number, elements, fd=block.fd if new else -1)
        os.eventfd_write(self._wake, 1)
        try:
            word.send(self._sock)
        except OSError as error:
            self._end(SiblingLost(f"the leader of this host is gone: {error}"))
        if new:
            block.forget_fd()

    def _block(self, nbytes: int) -> tuple[Block, bool]:
        """The smallest free one that is large enough, or a new one."""
        fitting = sorted((b for b in self._free if b.size >= nbytes), key=lambda b: b.size)
        if fitting:
            self._free.remove(fitting[0])
            return fitting[0], False
        self._blocks += 1
        return Block.create(self._blocks - 1, nbytes), True

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while not self._closed and self._lost is None:
            with self._books:
                first = self._calls[0].call if self._calls else None
            ready = dict(poll.poll(None if first is None else first.left() * 1000))
            if self._wake in ready:
                os.eventfd_read(self._wake)
            if self._sock.fileno() in ready:
                self._hear()
            elif first is not None and not ready and first.left() == 0:
                self._end(AllReduceTimeout("the leader of this host did not answer in time"))

    def _hear(self) -> None:
        try:
            word = Word.receive(self._sock)
        except OSError as error:
            self._end(SiblingLost(f"the leader of this host is gone: {error}"))
            return
        if word is None:
            self._end(SiblingLost("the leader of this host is gone"))
            return
        with self._books:
            under_way = self._calls.popleft()
        call, block = under_way.call, under_way.block
        if not word.error:
            call.tensor.copy_(block.tensor(word.dtype, word.elements))
        with self._books:
            self._free.append(block)
        refused = LeaderRefusedNumbers if word.in_step else LeaderRefused
        call.done(refused(word.error) if word.error else None)

    def _end(self, error: TrafficError) -> None:
        """There is no way on."""
        with self._books:
            self._lost = self._lost or error
            calls, self._calls = self._calls, deque()
        for under_way in calls:
            under_way.call.done(error)

    def give_up(self) -> None:
        """The leader, who waits for this rank's next numbers, hears at once that there will be none."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._closed = True
        os.eventfd_write(self._wake, 1)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._end(TrafficError("the process group is destroyed"))
        self._sock.close()
        os.close(self._wake)
