# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What one worker's core sends, when, and what it takes: windows, resends, timers, the pacer (docs/protocol.md,
5.1, 5.2, 5.4)."""

from __future__ import annotations

import numpy as np
import pytest

from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.engine import NEVER, Status
from netfold.traffic.membership.assignment import Timing
from tests.traffic.cores import LANES, Core, assignment, number_of, place_of, result


def opened(
    slots: int, window: int, chunks: int, congestion: Congestion = Congestion.FIXED, **shape: float
) -> Core:
    """A worker alone, past its resume and opening chunks, at time 0: its data are the places 1 ... of the main
    stream."""
    core = Core(congestion)
    core.assign(assignment(slots=slots, window=window, **shape))  # type: ignore[arg-type]
    core.submit(np.zeros(chunks * LANES, np.int32))
    for _ in range(2):
        core.turn(0.0)
        for _, payload in core.send(0.0, room=1):
            record = bytearray(payload)
            record[0] = 0x11
            core.receive(bytes(record), 0.0)
    core.turn(0.0)
    return core


def back(core: Core, now: float, lanes: int, *numbers: int) -> list[tuple[int, bytes]]:
    """The results of these chunks come, all at once; gives what goes then."""
    for number in numbers:
        core.receive(result(number_of(number, lanes), lanes), now)
    core.turn(now)
    return core.send(now)


def test_results_that_nobody_waits_for_change_nothing():
    core = opened(16, 4, 10)
    assert [place_of(p, 16) for _, p in core.send(0.0)] == [1, 2, 3, 4]
    strange = [
        result(number_of(5, 16), 16),  # not sent yet
        result(number_of(1, 16), 16, epoch=2),
        result(number_of(1, 16) + 16, 16),  # the same slot, a later round
        result(number_of(1, 16), 16, tree=41),
        result(number_of(1, 16), 16)[:-4],
        result(number_of(1, 16), 16) + bytes(4),
        result(number_of(1, 16), 16, version_kind=0x10),
        result(number_of(1, 16), 16, version_kind=0x21),
        result(number_of(1, 16), 16, slot=40_000),
        b"",
    ]
    for payload in strange:
        core.receive(payload, 0.001)
    core.receive(result(number_of(1, 16), 16), 0.001, endpoint=1)
    core.turn(0.001)
    assert core.send(0.001) == []
    for _ in range(2):
        core.receive(result(number_of(1, 16), 16), 0.001)
    core.turn(0.001)
    assert [place_of(p, 16) for _, p in core.send(0.001)] == [5], (
        "one result lets one chunk go, however often it comes"
    )


def test_a_chunk_that_was_overtaken_is_sent_again_before_its_time_is_up():
    core = opened(16, 2, 10)
    core.send(0.0)
    back(core, 0.001, 16, 2)
    core.receive(result(number_of(3, 16), 16), 0.002)  # sent 1 ms after chunk 2, and back
    core.turn(0.002)
    assert place_of(core.send(0.0021)[0][1], 16) == 1
    assert core.totals().retransmits == 1


def test_after_two_round_trips_of_silence_one_of_the_last_chunks_goes_again():
    core = opened(64, 32, 3)
    core.send(0.0)
    core.receive(result(number_of(1, 64), 64), 0.001)
    core.turn(0.001)
    assert core.send(0.002) == []
    due = core.next(0.002)
    assert 0.003 < due < 0.004
    assert [place_of(p, 64) for _, p in core.send(due)] == [2]
    assert core.send(due + 0.0005) == []


def test_silence_of_many_chunks_is_a_slow_workers_and_nothing_goes_again_before_the_timeout():
    """A loss holds up one channel; the others' results come."""
    core = opened(64, 32, 100)
    core.send(0.0)
    back(core, 0.001, 64, 1)
    assert core.next(0.002) > Timing().least_variance
    assert core.send(0.01) == []


def test_silence_doubles_the_wait_and_costs_one_probe_each_time():
    core = opened(64, 32, 100)
    core.send(0.0)
    now, sent = 0.0, 0
    while now < 60:
        now = core.next(now)
        core.turn(now)
        sent += len(core.send(now))
    assert sent <= 28 + 70


@pytest.mark.parametrize("window", [1, 4, 12, 28])
def test_after_silence_the_oldest_chunk_alone_goes_again(window):
    core = opened(64, window, 100)
    assert len(core.send(0.0)) == window
    due = core.next(0.0)
    assert due == Timing().first_timeout  # no round trip is known
    assert [place_of(p, 64) for _, p in core.send(due)] == [1]
    assert core.totals().retransmits == 1


def test_when_a_whole_window_is_lost_the_answer_to_the_probe_brings_the_rest():
    core = opened(64, 12, 100)
    core.send(0.0)
    due = core.next(0.0)
    core.send(due)
    core.receive(result(number_of(1, 64), 64), due + 0.001)
    core.turn(due + 0.001)
    first = [place_of(p, 64) for _, p in core.send(due + 0.001)]
    assert first == [2, 13], "the oldest, whose time is up too, and a new one"
    core.receive(result(number_of(13, 64), 64), due + 0.002)
    core.turn(due + 0.002)
    assert [place_of(p, 64) for _, p in core.send(due + 0.002)] == [*range(3, 13), 14]


def test_what_went_before_a_probe_goes_again_after_its_answer_and_a_round_trip_of_silence():
    """The new chunk that the answer lets go may be lost, too."""
    core = opened(64, 12, 100)
    core.send(0.0)
    core.receive(result(number_of(12, 64), 64), 0.002)  # a sample
    core.turn(0.002)
    core.send(0.002)
    due = core.next(0.002)
    assert [place_of(p, 64) for _, p in core.send(due)] == [1]
    back(core, due + 0.002, 64, 1)  # the next probe, and what the answer lets go
    silent = core.next(due + 0.002)
    assert silent == pytest.approx(due + 0.002 + 0.002 + Timing().least_reordering)
    assert [place_of(p, 64) for _, p in core.send(silent)] == [*range(3, 12), 13]


def test_what_waits_while_others_go_again_makes_the_timeout_no_longer_than_twice_the_round_trip():
    core = opened(64, 12, 100)
    core.send(0.0)
    back(core, 0.001, 64, 1)
    now = 0.001
    for first in range(2, 90, 4):
        now = core.next(now)
        core.send(now)  # a probe
        now = core.next(now)
        core.send(now)
        back(core, now, 64, *range(first, first + 4))
    for number in range(90, 95):
        back(core, now + 0.001, 64, number)
    assert core.report().rtt < 0.1


def test_results_may_gather_as_long_as_a_quarter_of_what_is_under_way_takes_at_the_paced_rate():
    core = opened(1024, 512, 100, rate_mbps=74 * 8 * 0.02)  # 20,000 packets a second
    under_way = len(core.send(0.0))
    assert core.gather() == pytest.approx(under_way / 80_000)
    for number in range(1, 61):
        core.receive(result(number_of(number, 1024), 1024), 0.001)
    core.turn(0.001)
    assert core.gather() == pytest.approx((under_way - 60) / 80_000)
    for number in range(61, 75):
        core.receive(result(number_of(number, 1024), 1024), 0.001)
    core.turn(0.001)
    assert core.gather() == 0, "the last few are waited for one by one"


def test_without_a_rate_nothing_gathers():
    core = opened(64, 28, 100)
    core.send(0.0)
    assert core.gather() == 0


def test_a_full_socket_is_met_again_with_what_it_did_not_take():
    core = opened(16, 4, 10)
    assert [len(core.send(0.0, room=1)) for _ in range(6)] == [1, 1, 1, 1, 0, 0]


def test_a_call_whose_deadline_passes_says_what_is_missing():
    core = Core()
    core.assign(assignment(slots=16, window=4))
    call = core.submit(np.zeros(40, np.int32), deadline=5.0)
    core.turn(0.0)
    core.send(0.0)
    assert core.next(0.0) <= 5.0
    core.turn(5.0)
    assert core.status(call) is Status.TIMEOUT
    assert core.outcome(call).text == (
        "tree 40 (to 10.0.0.1): 1 of 1 results, under way 1, the first is chunk 0"
    )
    assert core.totals().broken
    assert core.send(6.0) == []


def test_a_tree_gets_its_share_of_the_rate_and_no_more():
    core = opened(1024, 512, 20_000, rate_mbps=1.0)  # in packets of 74 bytes: 1,689 a second
    sent = len(core.send(0.0))
    assert sent == 14, "a burst of 16, of which two went before"
    for millisecond in range(1, 101):
        for _, payload in core.send(millisecond / 1000):
            record = bytearray(payload)
            record[0] = 0x11
            core.receive(bytes(record), millisecond / 1000)
            sent += 1
        core.turn(millisecond / 1000)
    assert 160 < sent - 14 < 180
    assert core.next(0.1) < NEVER


def test_a_single_chunk_does_not_wait_for_the_pacer():
    core = Core()
    core.assign(assignment(slots=64, rate_mbps=0.001))
    core.submit(np.zeros(4, np.int32))
    for turn, packets in enumerate((1, 2)):  # resume; opening and data
        core.turn(float(turn))
        sent = core.send(float(turn))
        assert len(sent) == packets
        for _, payload in sent:
            core.receive(b"\x11" + payload[1:], float(turn))
    core.turn(2.0)
    assert core.totals().pending == 0


@pytest.mark.parametrize("service", [0.0018, 0.0057])
@pytest.mark.parametrize("delay", [0.0005, 0.002])
def test_a_way_that_turns_out_slower_than_its_first_packets_said_is_learned(delay: float, service: float):
    """A port's bucket lets the first ones pass at once, and then each takes its time. Whoever then sends all of it
    again and again has to notice that it comes twice: else no round trip is ever known, and the window stays small."""
    slots, quick, chunks = 64, 6, 400
    core = Core(Congestion.PANAMA)
    core.assign(assignment(slots=slots, rate_mbps=5.0))
    call = core.submit(np.zeros(chunks * LANES, np.int32))
    now, free, sent = 0.0, 0.0, 0
    waiting: list[tuple[float, bytes]] = []
    while core.status(call) is Status.PENDING and now < 4 * chunks * service:
        core.turn(now)
        for _, payload in core.send(now):
            sent += 1
            free = max(now, free) + (service if sent > quick else 0.0)
            waiting.append((free + delay, bytes([0x11]) + payload[1:]))
        due = core.next(now)
        if waiting and waiting[0][0] <= due:
            now, payload = waiting.pop(0)
            core.receive(payload, now)
        elif core.status(call) is Status.PENDING:
            now = max(due, now + 1e-6)
    assert core.status(call) is Status.DONE
    assert sent < 1.8 * chunks, "also what went again at first"
    assert core.report().rtt > service
