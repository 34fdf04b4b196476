# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A network must not outlive a signal: these turn signals into exceptions while it is up, and hold them back while it
is taken down.

The kernel gives a process's signal to any of its threads that takes it, and Python runs the handler in the main thread
whichever that was. So a thread's signal mask does not keep a handler from raising; another handler does.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DEFAULT = (signal.SIG_DFL, signal.default_int_handler)


class EndingSignals:
    """SIGINT raises KeyboardInterrupt, SIGTERM and SIGHUP SystemExit (128 + number), unless the program handles them
    itself; while the first of them is on its way out of the program, more change nothing. Only the main thread can say
    so; in others nothing changes."""

    def __init__(self) -> None:
        self._old: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _ENDING:
            if signal.getsignal(number) in _DEFAULT:
                self._old[number] = signal.signal(number, _leave)

    def restore(self) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old.clear()


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Signals that would break a clean-up off wait until it is done, and are handled then. Programs that it starts do
    not get them at all: Ctrl-C goes to all that the terminal has in the foreground."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers raise in the main thread only
        return
    came: dict[int, None] = {}
    old = {n: h for n in _ENDING if (h := signal.getsignal(n)) not in (None, signal.SIG_IGN)}
    for held in old:
        signal.signal(held, lambda n, _: came.setdefault(n))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in old.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


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
    if _leaving(sys.exception()):
        return
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def _leaving(error: BaseException | None) -> bool:
    """Does what runs now handle an exception that ends the program?"""
    while error is not None:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            return True
        error = error.__context__
    return False
