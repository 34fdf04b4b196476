# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""control.c: windows and timeouts."""

from __future__ import annotations

import ctypes
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.engine import NEVER
from netfold.traffic.engine.engine import Timing as CTiming
from netfold.traffic.engine.native import library
from netfold.traffic.membership.assignment import Timing

FLOOR, UNMARKED_FLOOR, INITIAL, ATP_CEILING = 4, 32, 4, 100
LATE = Timing().late


class Control(ctypes.Structure):
    """struct nf_window."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("limit", ctypes.c_int64),
        *((name, ctypes.c_double) for name in ("size", "alpha", "late", "delay")),
        *((name, ctypes.c_int64) for name in ("seen", "marked")),
        *((name, ctypes.c_int) for name in ("starting", "marks_ever", "marks_lately")),
    )

    @classmethod
    def start(cls, kind: Congestion, limit: int) -> Control:
        control = cls()
        library().nf_window_start(
            ctypes.byref(control), list(Congestion).index(kind), ctypes.c_int64(limit), ctypes.c_double(LATE)
        )
        return control

    @property
    def window(self) -> int:
        size = library().nf_window_size
        size.restype = ctypes.c_int64
        return int(size(ctypes.byref(self)))

    def on_results(self, count: int, marked: int, delay: float | None = None) -> None:
        late = NEVER if delay is None else delay
        library().nf_window_results(
            ctypes.byref(self), ctypes.c_int64(count), ctypes.c_int64(marked), ctypes.c_double(late)
        )

    def on_loss(self) -> None:
        library().nf_window_loss(ctypes.byref(self))


class Rtt(ctypes.Structure):
    """struct nf_rtt."""

    _fields_ = (
        *((name, ctypes.c_double) for name in ("smoothed", "least", "variation")),
        ("backoff", ctypes.c_int64),
    )

    def __init__(self) -> None:
        super().__init__()
        self._timing = CTiming(*astuple(Timing()))
        self._tell("start", ctypes.byref(self._timing))

    def _tell(self, what: str, *arguments: object) -> None:
        getattr(library(), f"nf_rtt_{what}")(ctypes.byref(self), *arguments)

    def sample(self, seconds: float) -> None:
        self._tell("sample", ctypes.byref(self._timing), ctypes.c_double(seconds))

    def progress(self) -> None:
        self._tell("progress")

    def expired(self) -> None:
        self._tell("expired", ctypes.byref(self._timing))

    @property
    def timeout(self) -> float:
        found = library().nf_rtt_timeout
        found.restype = ctypes.c_double
        return float(found(ctypes.byref(self), ctypes.byref(self._timing)))


def turn(control, marked=0):
    """One window of results."""
    count = control.window
    control.on_results(count, min(marked, count), 0.0)


@given(
    kind=st.sampled_from(list(Congestion)),
    limit=st.integers(1, 300),
    events=st.lists(
        st.one_of(
            st.just("loss"),
            st.tuples(st.integers(1, 50), st.integers(0, 50), st.none() | st.floats(0, 1)),
        ),
        max_size=80,
    ),
)
def test_the_window_stays_between_one_and_the_limit(kind, limit, events):
    control = Control.start(kind, limit)
    for event in events:
        if event == "loss":
            control.on_loss()
        else:
            control.on_results(event[0], min(event[:2]), event[2])
        assert 1 <= control.window <= limit


def test_dctcp_doubles_until_marked_then_follows_the_marked_part():
    control = Control.start(Congestion.PANAMA, 512)
    for _ in range(6):
        turn(control)
    assert control.window == 256
    for _ in range(40):
        turn(control)
    assert control.window == 512
    for _ in range(60):
        turn(control, marked=control.window // 10)
    light = control.window
    for _ in range(60):
        turn(control, marked=control.window)
    assert control.window < light < 512
    assert control.window == FLOOR
    turn(control)
    assert control.window == FLOOR + 1


def test_losses_where_nothing_marks_do_not_collapse_the_window():
    control = Control.start(Congestion.PANAMA, 512)
    for _ in range(100):
        turn(control)
        control.on_loss()
    assert control.window >= UNMARKED_FLOOR


def test_a_line_that_loses_some_does_not_keep_the_window_from_opening():
    control = Control.start(Congestion.PANAMA, 512)
    for _ in range(4):
        control.on_loss()
        turn(control)
    assert control.window >= UNMARKED_FLOOR


def slow_switch(control, chunks_s, windows=60, base=0.002):
    """A switch that marks nothing and keeps what it has no time for: gives the round trips, in seconds."""
    trips = []
    for _ in range(windows):
        trips.append(max(base, control.window / chunks_s))
        control.on_results(control.window, 0, trips[-1] - base)
    return trips


@pytest.mark.parametrize("chunks_s", [200, 1000, 3000])
def test_a_switch_that_marks_nothing_is_not_buried_in_packets(chunks_s):
    trips = slow_switch(Control.start(Congestion.PANAMA, 2048), chunks_s)
    assert max(trips[20:]) < 2 * LATE
    assert min(trips[20:]) > LATE / 4  # and kept busy


def test_chunks_that_were_sent_twice_do_not_open_the_window():
    control = Control.start(Congestion.PANAMA, 512)
    for _ in range(10):
        control.on_results(control.window, 0, None)
    assert control.window == INITIAL


def test_delay_says_nothing_where_queues_mark():
    control = Control.start(Congestion.PANAMA, 512)
    turn(control, marked=1)
    before = control.window
    slow_switch(control, 100, windows=5)
    assert control.window > before


def test_a_loss_long_after_the_last_mark_is_no_congestion():
    control = Control.start(Congestion.PANAMA, 512)
    for _ in range(5):
        turn(control)
    turn(control, marked=5)
    for _ in range(3):
        turn(control)
    before = control.window
    control.on_loss()
    assert control.window == before
    turn(control, marked=1)
    before = control.window
    control.on_loss()
    assert control.window == before // 2


def test_atp_halves_once_in_a_marked_window():
    control = Control.start(Congestion.ATP, 1000)
    for _ in range(200):
        turn(control)
    assert control.window == ATP_CEILING
    control.on_results(50, 50)
    control.on_results(50, 50)
    assert control.window == 50


def test_the_fixed_window_is_fixed():
    control = Control.start(Congestion.FIXED, 77)
    control.on_loss()
    control.on_results(9, 9)
    assert control.window == 77


def test_the_timeout_follows_rfc_6298_within_its_bounds():
    rtt = Rtt()
    assert rtt.timeout == Timing().first_timeout
    rtt.sample(0.1)
    assert rtt.timeout == pytest.approx(0.1 + 4 * 0.05)
    rtt.sample(0.2)  # RTTVAR = 3/4 * 0.05 + 1/4 * 0.1, SRTT = 7/8 * 0.1 + 1/8 * 0.2
    assert rtt.timeout == pytest.approx(0.1125 + 4 * 0.0625)
    for _ in range(200):
        rtt.sample(0.0001)
    steady = 0.0001 + Timing().least_variance
    assert rtt.timeout == pytest.approx(steady)
    for _ in range(20):
        rtt.expired()
    assert rtt.timeout == Timing().longest_timeout
    rtt.progress()
    assert rtt.timeout == pytest.approx(steady)
    rtt.sample(0.0001)
    assert rtt.timeout == pytest.approx(steady)
