# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Signals while a network is up and while it is taken down: the first one ends the program, none cuts the clean-up."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from netfold.testbed.network.signals import TerminationSignals, signals_deferred

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def _usual_handlers() -> Iterator[None]:
    """The parent of the tests may ignore some of them."""
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    old = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in old.items():
        signal.signal(number, handler)


class Bystander:
    """Another thread, to which the kernel may give a process's signal just as well."""

    def __enter__(self) -> Bystander:
        self._leave = threading.Event()
        self._seen, told = os.pipe()
        os.set_blocking(told, False)
        self._old = signal.set_wakeup_fd(told)
        self._thread = threading.Thread(target=self._leave.wait)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave.set()
        self._thread.join()
        os.close(signal.set_wakeup_fd(self._old))
        os.close(self._seen)

    def take(self, number: signal.Signals) -> None:
        """Returns when the thread has it."""
        assert self._thread.ident is not None
        signal.pthread_kill(self._thread.ident, number)
        os.read(self._seen, 1)


@pytest.mark.parametrize("number", ENDING, ids=lambda n: n.name)
def test_a_signal_waits_until_the_clean_up_is_done_whichever_thread_has_it(number: signal.Signals) -> None:
    done: list[str] = []

    def clean_up(other: Bystander) -> None:
        with signals_deferred():
            for step in ("processes", "links", "files"):
                other.take(number)
                done.append(step)
        done.append("not reached: the signal comes before")

    signals = TerminationSignals()
    signals.install()
    try:
        with Bystander() as other, pytest.raises((KeyboardInterrupt, SystemExit)):
            clean_up(other)
        assert done == ["processes", "links", "files"]
    finally:
        signals.restore()
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)


def test_deferred_signals_are_deferred_in_the_inner_and_in_the_outer_block() -> None:
    done: list[str] = []

    def clean_up() -> None:
        with signals_deferred():
            with signals_deferred():
                signal.raise_signal(signal.SIGINT)
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        clean_up()
    assert done == ["inner", "outer"]


def test_what_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with signals_deferred():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_commands_of_the_clean_up_do_not_hear_the_terminal() -> None:
    """Ctrl-C goes to all processes in the foreground, `ip` in the middle of its work included."""
    with signals_deferred():
        assert set(ENDING) <= signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize("number", ENDING, ids=lambda n: n.name)
def test_while_one_signal_is_obeyed_another_changes_nothing(number: signal.Signals) -> None:
    done: list[str] = []

    def work() -> None:
        try:
            signal.raise_signal(number)
        finally:
            signal.raise_signal(number)
            done.append("cleaned up")

    signals = TerminationSignals()
    signals.install()
    try:
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            work()
        assert done == ["cleaned up"]
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            signal.raise_signal(number)  # the first was caught, so this one counts again
    finally:
        signals.restore()


def test_in_another_thread_they_leave_the_program_s_handlers_alone() -> None:
    def hold() -> None:
        signals = TerminationSignals()
        signals.install()
        with signals_deferred():
            seen.append(signal.getsignal(signal.SIGINT))
        signals.restore()

    seen: list[object] = []
    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
