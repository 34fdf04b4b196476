# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netfold.traffic.worker.congestion import AtpAimd, Congestion, FixedWindow, PanamaDctcp
from netfold.traffic.worker.rtt import RttEstimator


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
    control = kind.start(limit)
    for event in events:
        if event == "loss":
            control.on_loss()
        else:
            control.on_results(event[0], min(event[:2]), event[2])
        assert 1 <= control.window <= limit


def test_dctcp_doubles_until_marked_then_follows_the_marked_part():
    control = PanamaDctcp(512)
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
    assert control.window == PanamaDctcp.FLOOR
    turn(control)
    assert control.window == PanamaDctcp.FLOOR + 1


def test_losses_where_nothing_marks_do_not_collapse_the_window():
    control = PanamaDctcp(512)
    for _ in range(100):
        turn(control)
        control.on_loss()
    assert control.window >= PanamaDctcp.UNMARKED_FLOOR


def test_a_line_that_loses_some_does_not_keep_the_window_from_opening():
    control = PanamaDctcp(512)
    for _ in range(4):
        control.on_loss()
        turn(control)
    assert control.window >= PanamaDctcp.UNMARKED_FLOOR


def slow_switch(control, chunks_s, windows=60, base=0.002):
    """A switch that marks nothing and keeps what it has no time for: gives the round trips, in seconds."""
    trips = []
    for _ in range(windows):
        trips.append(max(base, control.window / chunks_s))
        control.on_results(control.window, 0, trips[-1] - base)
    return trips


@pytest.mark.parametrize("chunks_s", [200, 1000, 3000])
def test_a_switch_that_marks_nothing_is_not_buried_in_packets(chunks_s):
    trips = slow_switch(PanamaDctcp(2048), chunks_s)
    assert max(trips[20:]) < 2 * PanamaDctcp.LATE
    assert min(trips[20:]) > PanamaDctcp.LATE / 4  # and kept busy


def test_chunks_that_were_sent_twice_do_not_open_the_window():
    control = PanamaDctcp(512)
    for _ in range(10):
        control.on_results(control.window, 0, None)
    assert control.window == PanamaDctcp.INITIAL


def test_delay_says_nothing_where_queues_mark():
    control = PanamaDctcp(512)
    turn(control, marked=1)
    before = control.window
    slow_switch(control, 100, windows=5)
    assert control.window > before


def test_a_loss_long_after_the_last_mark_is_no_congestion():
    control = PanamaDctcp(512)
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
    control = AtpAimd(1000)
    for _ in range(200):
        turn(control)
    assert control.window == AtpAimd.CEILING
    control.on_results(50, 50)
    control.on_results(50, 50)
    assert control.window == 50


def test_the_fixed_window_is_fixed():
    control = FixedWindow(77)
    control.on_loss()
    control.on_results(9, 9)
    assert control.window == 77


def test_the_timeout_follows_rfc_6298_within_its_bounds():
    rtt = RttEstimator()
    assert rtt.timeout == RttEstimator.INITIAL
    rtt.sample(0.1)
    assert rtt.timeout == pytest.approx(0.1 + 4 * 0.05)
    rtt.sample(0.2)  # RTTVAR = 3/4 * 0.05 + 1/4 * 0.1, SRTT = 7/8 * 0.1 + 1/8 * 0.2
    assert rtt.timeout == pytest.approx(0.1125 + 4 * 0.0625)
    for _ in range(200):
        rtt.sample(0.0001)
    steady = 0.0001 + RttEstimator.GRANULARITY
    assert rtt.timeout == pytest.approx(steady)
    for _ in range(20):
        rtt.expired()
    assert rtt.timeout == RttEstimator.CEILING
    rtt.progress()
    assert rtt.timeout == pytest.approx(steady)
    rtt.sample(0.0001)
    assert rtt.timeout == pytest.approx(steady)
