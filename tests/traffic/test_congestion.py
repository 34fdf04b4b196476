# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""traffic/engine/congestion: windows and timeouts."""

from __future__ import annotations

import ctypes
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netfold.protocol.congestion import Timing
from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.engine import NEVER, EngineTiming
from netfold.traffic.engine.native import HEADERS, library

FLOOR, UNMARKED_FLOOR, INITIAL, ATP_CEILING = 4, 32, 4, 100
LATE = Timing().delay_threshold
TRIP = 0.002


class AckSummary(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_ack_summary")


class WindowSettings(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_window_settings")


class Control(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_window")

    @classmethod
    def start(cls, kind: Congestion, limit: int) -> Control:
        control = cls()
        settings = WindowSettings(limit, LATE, 1.0)
        library().nf_window_init(ctypes.byref(control), list(Congestion).index(kind), ctypes.byref(settings))
        return control

    @property
    def window(self) -> int:
        size = library().nf_window_cwnd
        size.restype = ctypes.c_int64
        return int(size(ctypes.byref(self)))

    @property
    def contending_windows(self) -> int:
        return int(self.state.panama.contending_windows)

    def on_results(self, count: int, marked: int, delay: float | None = None) -> None:
        acks = AckSummary(count, marked, NEVER if delay is None else delay, TRIP)
        library().nf_window_on_acks(ctypes.byref(self), ctypes.byref(acks))

    def on_loss(self) -> None:
        library().nf_window_on_loss(ctypes.byref(self))


class Rtt(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_rtt")

    def __init__(self) -> None:
        super().__init__()
        self._timing = EngineTiming(*astuple(Timing()))
        self._call("init", ctypes.byref(self._timing))

    def _call(self, what: str, *arguments: object) -> None:
        getattr(library(), f"nf_rtt_{what}")(ctypes.byref(self), *arguments)

    def sample(self, seconds: float) -> None:
        self._call("sample", ctypes.byref(self._timing), ctypes.c_double(seconds))

    def reset_backoff(self) -> None:
        self._call("reset_backoff")

    def on_timeout(self) -> None:
        self._call("on_timeout", ctypes.byref(self._timing))

    @property
    def rto(self) -> float:
        found = library().nf_rtt_rto
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
        turn(control, marked=control.window - 1)
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


def test_random_losses_do_not_keep_the_window_from_opening():
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
def test_the_queue_of_a_switch_without_marks_stays_bounded(chunks_s):
    trips = slow_switch(Control.start(Congestion.PANAMA, 2048), chunks_s)
    assert max(trips[20:]) < 2 * LATE
    assert min(trips[20:]) > LATE / 4  # and kept busy


def test_ambiguous_rtts_do_not_open_the_window():
    control = Control.start(Congestion.PANAMA, 512)
    for _ in range(10):
        control.on_results(control.window, 0, None)
    assert control.window == INITIAL


def test_delay_is_no_signal_where_queues_mark():
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


def beside(control, theirs, pipe=50, marking=20, windows=400):
    """A queue that others keep `theirs(window)` chunks in: gives the window's sizes."""
    sizes = []
    for number in range(windows):
        queue = control.window + theirs(number) - pipe
        marked = control.window if queue > marking else 0
        control.on_results(control.window, marked, TRIP * max(0, queue) / pipe)
        sizes.append(control.window)
    return sizes


def test_it_contends_with_senders_that_fill_the_queue_despite_marks():
    control = Control.start(Congestion.PANAMA, 512)
    beside(control, lambda _: 0, windows=100)
    sizes = beside(control, lambda _: 100)
    assert max(sizes[100:]) > 4 * FLOOR
    before = control.window
    control.on_loss()
    assert control.window == pytest.approx(0.7 * before, abs=1)  # as CUBIC
    for _ in range(60):
        control.on_loss()
    assert control.window == FLOOR


def test_it_measures_the_depth_of_a_queue_that_was_filled_at_once():
    """Where marking begins it has seen by single results; since the others came no queue was ever less than deep."""
    control = Control.start(Congestion.PANAMA, 512)
    for _ in range(100):
        control.on_results(control.window // 2 + 1, 0, 0.2 * TRIP)
        control.on_results(1, 1, 0.4 * TRIP)
        control.on_results(control.window // 2, 0, 0.2 * TRIP)
    for _ in range(40):
        control.on_results(control.window, control.window, 1.5 * TRIP)
    assert control.contending_windows > 0


def test_it_does_not_contend_where_many_queues_are_marked_now_and_then():
    """A tree over many hosts' links, with short flows on each: all windows are marked, no queue stays full."""
    control = Control.start(Congestion.PANAMA, 512)
    for number in range(400):
        control.on_results(control.window, control.window, TRIP * (0.4 + 0.5 * (number % 7 == 0)))
    assert control.contending_windows == 0
    assert control.window == FLOOR


def test_it_stops_contending_when_the_other_senders_have_stopped():
    control = Control.start(Congestion.PANAMA, 512)
    beside(control, lambda _: 100)
    alone = beside(control, lambda _: 0, windows=600)[300:]
    assert max(alone) < 50 + 20 + 10  # in flight, the threshold, and the overshoot


def test_alone_it_never_fills_a_queue():
    control = Control.start(Congestion.PANAMA, 512)
    assert max(beside(control, lambda _: 0, windows=2000)[20:]) < 50 + 20 + 10
    assert control.contending_windows == 0


def test_it_never_contends_with_a_switch_that_is_slow_and_marks_nothing():
    """The delay exists at any window, without other senders that fill the queue."""
    control = Control.start(Congestion.PANAMA, 2048)
    trips = slow_switch(control, 20, windows=200)
    assert max(trips[60:]) < 0.5
    assert control.contending_windows == 0


@pytest.mark.parametrize(("part", "left"), [(1.0, 0.8), (0.5, 0.9), (0.1, 0.97)])
def test_a_window_marked_as_a_whole_backs_off_at_least_a_fifth(part: float, left: float):
    """Alpha gains a sixteenth a window: too slow for many senders that start at once."""
    control = Control.start(Congestion.PANAMA, 512)
    for _ in range(4):
        control.on_results(control.window, 0, 0.0)
    control.on_results(control.window, 1, 0.0)
    for _ in range(100):  # no mark any more: alpha is nearly 0
        control.on_results(control.window + 1, 0, 0.0)
    before = control.window
    control.on_results(before + 1, round(part * (before + 1)), 0.0)
    assert control.window == pytest.approx(left * before, rel=0.02)


def test_it_backs_off_by_the_part_of_all_senders():
    """After marks round trips fell by a quarter: others have cut their windows by more than alpha."""
    meek, even = (Control.start(Congestion.PANAMA, 512) for _ in range(2))
    for control, low in ((meek, 0.0019), (even, 0.001)):
        for _ in range(60):
            control.on_results(control.window + 1, 0, 0.0)
        for _ in range(3):
            control.on_results(control.window + 1, 1, 0.002)
            for _ in range(100):
                control.on_results(control.window + 1, 0, low)
    before = meek.window, even.window
    for control in (meek, even):
        control.on_results(control.window + 1, 1, 0.002)
    assert meek.window > 0.95 * before[0]
    assert even.window == pytest.approx((1 - 0.85 * 0.25) * before[1], abs=1)


def test_trees_that_share_a_link_grow_together_as_one_connection():
    step = library().nf_window_increase
    step.restype = ctypes.c_double
    whole = step(ctypes.c_double(1096), ctypes.c_double(1))
    quarter = step(ctypes.c_double(1096), ctypes.c_double(0.25))
    small = step(ctypes.c_double(186), ctypes.c_double(1))
    assert whole * 1096 == pytest.approx(small * 186)  # bytes
    assert 4 * quarter == pytest.approx(whole)


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
    assert rtt.rto == Timing().initial_rto
    rtt.sample(0.1)
    assert rtt.rto == pytest.approx(0.1 + 4 * 0.05)
    rtt.sample(0.2)  # RTTVAR = 3/4 * 0.05 + 1/4 * 0.1, SRTT = 7/8 * 0.1 + 1/8 * 0.2
    assert rtt.rto == pytest.approx(0.1125 + 4 * 0.0625)
    for _ in range(200):
        rtt.sample(0.0001)
    steady = 0.0001 + Timing().min_rto_margin
    assert rtt.rto == pytest.approx(steady)
    for _ in range(20):
        rtt.on_timeout()
    assert rtt.rto == Timing().max_rto
    rtt.reset_backoff()
    assert rtt.rto == pytest.approx(steady)
    rtt.sample(0.0001)
    assert rtt.rto == pytest.approx(steady)
