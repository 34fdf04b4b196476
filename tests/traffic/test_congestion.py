# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traffic.congestion import AtpAimd, Congestion, FixedWindow, PanamaDctcp
from traffic.rtt import RttEstimator


def turn(control, marked=0):
    """One window of results."""
    count = control.window
    control.on_results(count, min(marked, count))


@given(
    kind=st.sampled_from(list(Congestion)),
    limit=st.integers(1, 300),
    events=st.lists(
        st.one_of(st.just("loss"), st.tuples(st.integers(1, 50), st.integers(0, 50))), max_size=80
    ),
)
def test_the_window_stays_between_one_and_the_limit(kind, limit, events):
    control = kind.start(limit)
    for event in events:
        if event == "loss":
            control.on_loss()
        else:
            control.on_results(event[0], min(event))
        assert 1 <= control.window <= limit


def test_dctcp_doubles_until_marked_then_follows_the_marked_part():
    control = PanamaDctcp(512)
    for _ in range(4):
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
    assert rtt.timeout == pytest.approx(RttEstimator.KEPT_BACKOFF * steady)
    rtt.sample(0.0001)
    assert rtt.timeout == pytest.approx(steady)
