# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Signals of a process that owns a network: they raise exceptions while it is up and are deferred during its clean-up.

The kernel delivers a signal to any thread that does not block it, and Python runs the handler in the main thread. A
thread's signal mask therefore does not prevent a handler from raising; replacing the handler does.
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

_TERMINATION = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DEFAULT = (signal.SIG_DFL, signal.default_int_handler)


class TerminationSignals:
    """SIGINT raises KeyboardInterrupt, SIGTERM and SIGHUP raise SystemExit (128 + number), unless the program has
    handlers of its own. Ignores further signals while the first exception propagates. Effective in the main thread
    only."""

    def __init__(self) -> None:
        self._old: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _TERMINATION:
            if signal.getsignal(number) in _DEFAULT:
                self._old[number] = signal.signal(number, _raise_exit)

    def restore(self) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old.clear()


@contextlib.contextmanager
def signals_deferred() -> Iterator[None]:
    """Defers signals during a clean-up and handles them at its end. Programs that the clean-up starts block them: the
    terminal sends Ctrl-C to the whole foreground process group."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread only
        return
    received: dict[int, None] = {}
    old = {n: h for n in _TERMINATION if (h := signal.getsignal(n)) not in (None, signal.SIG_IGN)}
    for deferrable in old:
        signal.signal(deferrable, lambda n, _: received.setdefault(n))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _TERMINATION)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in old.items():
            signal.signal(number, handler)
        for deferred in received:
            signal.raise_signal(deferred)


def wait_for_signal() -> NoReturn:
    """Wait in the main thread until a signal's handler raises.

    Not signal.pause(): a signal just before it, or delivered to another thread, would not end it."""
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


def _raise_exit(number: int, frame: FrameType | None) -> None:
    if _is_exiting(sys.exception()):
        return
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def _is_exiting(error: BaseException | None) -> bool:
    """True if the current code handles an exception that ends the program."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            return True
        error = error.__context__
    return False
