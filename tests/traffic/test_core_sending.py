# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packets of one worker's core, their times, and the answers it takes: windows, retransmissions, timers, pacing
(docs/reference/protocol.md, 5.1, 5.2, 5.4)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from netfold.protocol.congestion import Timing
from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.engine import NEVER, Status
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
        core.process(0.0)
        for _, payload in core.send(0.0, room=1):
            record = bytearray(payload)
            record[0] = 0x11
            core.receive(bytes(record), 0.0)
    core.process(0.0)
    return core


def back(core: Core, now: float, lanes: int, *numbers: int) -> list[tuple[int, bytes]]:
    """Receives the results of these chunks at once; returns the packets that are sent then."""
    for number in numbers:
        core.receive(result(number_of(number, lanes), lanes), now)
    core.process(now)
    return core.send(now)


def test_results_that_are_not_awaited_change_nothing():
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
    core.process(0.001)
    assert core.send(0.001) == []
    for _ in range(2):
        core.receive(result(number_of(1, 16), 16), 0.001)
    core.process(0.001)
    assert [place_of(p, 16) for _, p in core.send(0.001)] == [5], (
        "one result lets one chunk go, however often it comes"
    )


def test_an_overtaken_chunk_is_retransmitted_before_its_timeout():
    core = opened(16, 2, 10)
    core.send(0.0)
    back(core, 0.001, 16, 2)
    core.receive(result(number_of(3, 16), 16), 0.002)  # sent 1 ms after chunk 2, and back
    core.process(0.002)
    assert place_of(core.send(0.0021)[0][1], 16) == 1
    assert (core.totals().retransmits, core.totals().probes) == (1, 0)


def test_after_two_rtts_of_silence_one_chunk_of_the_tail_is_retransmitted():
    core = opened(64, 32, 3)
    core.send(0.0)
    core.receive(result(number_of(1, 64), 64), 0.001)
    core.process(0.001)
    assert core.send(0.002) == []
    due = core.next_deadline(0.002)
    assert 0.003 < due < 0.004
    assert [place_of(p, 64) for _, p in core.send(due)] == [2]
    assert core.send(due + 0.0005) == []


def test_silence_of_many_chunks_causes_no_probe_before_the_timeout():
    """A loss stops one channel; the others have results."""
    core = opened(64, 32, 100)
    core.send(0.0)
    back(core, 0.001, 64, 1)
    assert core.next_deadline(0.002) > Timing().min_rto_margin
    assert core.send(0.01) == []


def test_silence_doubles_the_rto_and_costs_one_probe_each_time():
    core = opened(64, 32, 100)
    core.send(0.0)
    now, sent = 0.0, 0
    while now < 60:
        now = core.next_deadline(now)
        core.process(now)
        sent += len(core.send(now))
    assert sent <= 28 + 70


def test_in_silence_the_chunks_go_again_in_turn_each_within_the_longest_rto():
    core = opened(64, 8, 100)
    core.send(0.0)
    now, times, places = 0.0, [0.0], []
    while now < 60:
        now = core.next_deadline(now)
        core.process(now)
        for _, payload in core.send(now):
            times.append(now)
            places.append(place_of(payload, 64))
    assert max(after - before for before, after in itertools.pairwise(times)) <= Timing().max_rto + 1e-6
    assert len(places) > 58
    assert places == [1 + turn % 8 for turn in range(len(places))], "the one whose last copy is oldest"


@pytest.mark.parametrize("window", [1, 4, 12, 28])
def test_after_silence_the_oldest_chunk_alone_is_retransmitted(window):
    core = opened(64, window, 100)
    assert len(core.send(0.0)) == window
    due = core.next_deadline(0.0)
    assert due == Timing().initial_rto  # no round trip is known
    assert [place_of(p, 64) for _, p in core.send(due)] == [1]
    assert (core.totals().retransmits, core.totals().probes) == (1, 1)


def test_after_the_loss_of_a_whole_window_the_result_of_the_probe_triggers_the_rest():
    core = opened(64, 12, 100)
    core.send(0.0)
    due = core.next_deadline(0.0)
    core.send(due)
    core.receive(result(number_of(1, 64), 64), due + 0.001)
    core.process(due + 0.001)
    first = [place_of(p, 64) for _, p in core.send(due + 0.001)]
    assert first == [2, 13], "the oldest, whose time is up too, and a new one"
    core.receive(result(number_of(13, 64), 64), due + 0.002)
    core.process(due + 0.002)
    assert [place_of(p, 64) for _, p in core.send(due + 0.002)] == [*range(3, 13), 14]


def test_chunks_sent_before_a_probe_are_retransmitted_an_rtt_after_its_result():
    """The new chunk that the result allows may be lost, too."""
    core = opened(64, 12, 100)
    core.send(0.0)
    core.receive(result(number_of(12, 64), 64), 0.002)  # a sample
    core.process(0.002)
    core.send(0.002)
    due = core.next_deadline(0.002)
    assert [place_of(p, 64) for _, p in core.send(due)] == [1]
    back(core, due + 0.002, 64, 1)  # the next probe, and what the answer lets go
    silent = core.next_deadline(due + 0.002)
    assert silent == pytest.approx(due + 0.002 + 0.002 + Timing().min_reorder_window)
    assert [place_of(p, 64) for _, p in core.send(silent)] == [*range(3, 12), 13]


def test_an_ambiguous_rtt_counts_at_most_twice_the_srtt():
    core = opened(64, 12, 100)
    core.send(0.0)
    back(core, 0.001, 64, 1)
    now = 0.001
    for first in range(2, 90, 4):
        now = core.next_deadline(now)
        core.send(now)  # a probe
        now = core.next_deadline(now)
        core.send(now)
        back(core, now, 64, *range(first, first + 4))
    for number in range(90, 95):
        back(core, now + 0.001, 64, number)
    assert core.report().srtt < 0.1


def test_results_are_coalesced_while_a_quarter_of_the_chunks_in_flight_returns():
    core = opened(1024, 512, 100, rate_mbps=74 * 8 * 0.02)  # 20,000 packets a second
    under_way = len(core.send(0.0))
    assert core.coalescing_delay() == pytest.approx(under_way / 80_000)
    for number in range(1, 61):
        core.receive(result(number_of(number, 1024), 1024), 0.001)
    core.process(0.001)
    assert core.coalescing_delay() == pytest.approx((under_way - 60) / 80_000)
    for number in range(61, 75):
        core.receive(result(number_of(number, 1024), 1024), 0.001)
    core.process(0.001)
    assert core.coalescing_delay() == 0, "the last few are waited for one by one"


def test_a_delay_that_a_timer_costs_more_than_is_left_out():
    core = opened(1024, 512, 100, rate_mbps=74 * 8 * 0.4)  # 400,000 packets a second
    assert 8 <= len(core.send(0.0)) < 160
    assert core.coalescing_delay() == 0


def test_without_pacing_results_are_not_coalesced():
    core = opened(64, 28, 100)
    core.send(0.0)
    assert core.coalescing_delay() == 0


def test_what_a_full_socket_did_not_take_is_sent_later():
    core = opened(16, 4, 10)
    assert [len(core.send(0.0, room=1)) for _ in range(6)] == [1, 1, 1, 1, 0, 0]


def test_the_message_of_a_timeout_names_the_missing_results():
    core = Core()
    core.assign(assignment(slots=16, window=4))
    call = core.submit(np.zeros(40, np.int32), deadline=5.0)
    core.process(0.0)
    core.send(0.0)
    assert core.next_deadline(0.0) <= 5.0
    core.process(5.0)
    assert core.status(call) is Status.TIMEOUT
    assert core.outcome(call).text == (
        "tree 40 (to 10.0.0.1): 1 of 1 results missing, 1 in flight, the first is chunk 0"
    )
    assert core.totals().has_failed_call
    assert core.send(6.0) == []


def test_a_tree_is_paced_at_its_share_of_the_rate():
    core = opened(1024, 512, 20_000, rate_mbps=1.0)  # in packets of 74 bytes: 1,689 a second
    sent = len(core.send(0.0))
    assert sent == 14, "a burst of 16, of which two went before"
    for millisecond in range(1, 101):
        for _, payload in core.send(millisecond / 1000):
            record = bytearray(payload)
            record[0] = 0x11
            core.receive(bytes(record), millisecond / 1000)
            sent += 1
        core.process(millisecond / 1000)
    assert 160 < sent - 14 < 180
    assert core.next_deadline(0.1) < NEVER


def test_a_segment_of_one_chunk_is_not_paced():
    core = Core()
    core.assign(assignment(slots=64, rate_mbps=0.001))
    core.submit(np.zeros(4, np.int32))
    for turn, packets in enumerate((1, 2)):  # resume; opening and data
        core.process(float(turn))
        sent = core.send(float(turn))
        assert len(sent) == packets
        for _, payload in sent:
            core.receive(b"\x11" + payload[1:], float(turn))
    core.process(2.0)
    assert core.totals().pending == 0


@pytest.mark.parametrize("service", [0.0018, 0.0057])
@pytest.mark.parametrize("delay", [0.0005, 0.002])
def test_spurious_retransmissions_reveal_an_rtt_that_grew(delay: float, service: float):
    """A port's token bucket passes the first packets at once, the next ones at a low rate. A worker that retransmits
    all of them has to detect the duplicates: else no RTT is ever unambiguous, and the window stays small."""
    slots, quick, chunks = 64, 6, 400
    core = Core(Congestion.PANAMA)
    core.assign(assignment(slots=slots, rate_mbps=5.0))
    call = core.submit(np.zeros(chunks * LANES, np.int32))
    now, free, sent = 0.0, 0.0, 0
    waiting: list[tuple[float, bytes]] = []
    while core.status(call) is Status.PENDING and now < 4 * chunks * service:
        core.process(now)
        for _, payload in core.send(now):
            sent += 1
            free = max(now, free) + (service if sent > quick else 0.0)
            waiting.append((free + delay, bytes([0x11]) + payload[1:]))
        due = core.next_deadline(now)
        if waiting and waiting[0][0] <= due:
            now, payload = waiting.pop(0)
            core.receive(payload, now)
        elif core.status(call) is Status.PENDING:
            now = max(due, now + 1e-6)
    assert core.status(call) is Status.DONE
    assert sent < 1.8 * chunks, "also what went again at first"
    assert core.report().srtt > service
