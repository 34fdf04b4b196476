# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A network must not outlive a signal: these turn signals into exceptions while it is up, and hold them back while it
is taken down."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class EndingSignals:
    """SIGTERM and SIGHUP raise SystemExit (128 + number), unless the program handles them itself. Only the main thread
    can say so; in others nothing changes."""

    def __init__(self) -> None:
        self._old: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._old[number] = signal.signal(number, _leave)

    def restore(self) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old.clear()


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Signals that would break a clean-up off wait until it is done."""
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *_ENDING})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def wait_for_signal() -> NoReturn:
    """Wait in the main thread until a signal's handler raises.

    Not signal.pause(): a signal that comes just before it, or that another thread takes, would not end it."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    old = signal.set_wakeup_fd(writer)
    try:
        while True:
            select.select([reader], [], [])
            os.read(reader, 64)
    finally:
        signal.set_wakeup_fd(old)
        os.close(reader)
        os.close(writer)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
