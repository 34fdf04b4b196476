# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Operations on a pipeline take turns, and a long one does not keep the others waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from statistics import median

import pytest
from softswitch.errors import InvalidArgumentError
from softswitch.state.control_lock import ControlLock

TRIES = 5
WAIT_S = 0.05


def slices_before_a_waiting_operation() -> int:
    """Slices of a long operation from the moment on at which another one waits, as far as can be seen from outside: it
    had WAIT_S for the way to the lock."""
    lock, taken, slices = ControlLock(), threading.Event(), 0

    def take() -> None:
        with lock:
            taken.set()

    def pieces() -> Iterator[None]:
        nonlocal slices
        other.start()
        time.sleep(WAIT_S)
        while not taken.is_set():
            slices += 1
            yield

    other = threading.Thread(target=take)
    lock.run_in_slices(pieces())
    other.join(60)
    return slices


def test_a_waiting_operation_gets_the_lock_between_two_slices():
    """A thread without a turn takes the lock again before the waiting one wakes up, often hundreds of times. On a busy
    machine the other operation may come to the lock too late for a try; hence the median of some."""
    assert median(slices_before_a_waiting_operation() for _ in range(TRIES)) == 1


def test_an_operation_may_use_others_of_the_same_pipeline():
    lock = ControlLock()
    with lock, lock:
        pass
    taken = threading.Event()

    def take() -> None:
        with lock:
            taken.set()

    threading.Thread(target=take).start()
    assert taken.wait(30), "it is free again"


def test_a_closed_pipeline_refuses_operations_and_keeps_no_lock():
    lock = ControlLock()
    with lock.mutex:
        lock.closed = True
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="the pipeline is closed"), lock:
            pass
