# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Priority queues: which frame leaves first, and rates and bounds of single queues."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from running import program, running
from softswitch.admin.verbs.arguments import CommandError
from softswitch.admin.verbs.console import Console
from softswitch.engine.engine import Engine
from softswitch.errors import InvalidArgumentError
from softswitch.state.switch import Switch

MS = 1_000_000
LINE_BPS = 8 * (1000 + 17) * 1000  # one frame a millisecond


@contextmanager
def queued(queues: int, cache_dir: Path) -> Iterator[Switch]:
    """misc.p4, whose frames get the priority of their second byte."""
    made = json.loads(program("misc"))
    (body,) = [a["primitives"] for a in made["actions"] if a["name"] == "misc39"]
    names = [["standard_metadata", "priority"], ["i", "a"]]
    body.append({"op": "assign", "parameters": [{"type": "field", "value": name} for name in names]})
    with running(json.dumps(made).encode(), cache_dir, queues=queues) as (_, switch):
        yield switch


def send(switch: Switch, priority: int, number: int = 0, now_ns: int = 0) -> list[int]:
    frame = bytes([0, priority]) + bytes(8) + bytes([number]) * 990
    return [out[-1] for _, out in switch.inject(1, frame, now_ns)]


def leaves(switch: Switch, now_ns: int) -> list[int]:
    """The numbers of the frames that leave by then, in order."""
    return [out[-1] for _, out in switch.service(now_ns)[0]]


def test_the_highest_priority_leaves_first(cache_dir: Path) -> None:
    with queued(8, cache_dir) as switch:
        switch.port_config(2, LINE_BPS, 10)
        for number, priority in enumerate((0, 7, 3, 7)):
            send(switch, priority, number)
        assert leaves(switch, 0) == [1]
        send(switch, 5, 9, now_ns=MS // 2)
        assert leaves(switch, 10 * MS) == [3, 9, 2, 0]


def test_each_queue_has_its_own_bound_and_depth(cache_dir: Path) -> None:
    with queued(2, cache_dir) as switch:
        switch.port_config(2, LINE_BPS, 3)
        switch.queue_config(2, 1, packets=1)
        for number in range(4):
            send(switch, 0, number)
            send(switch, 1, 10 + number)
        stats = switch.port_stats(2)
        assert (stats["queue_depth"], stats["queue_drops"]) == (4, 1 + 3)
        sent, _ = switch.service(10 * MS)
        assert [out[-1] for _, out in sent] == [10, 0, 1, 2]
        assert [int.from_bytes(out[4:8], "big") for _, out in sent] == [0, 0, 1, 2], "depth of the own queue"


def test_a_queue_with_a_rate_waits_while_others_pass(cache_dir: Path) -> None:
    with queued(2, cache_dir) as switch:
        switch.queue_config(2, 1, rate_pps=1000)
        for number in range(3):
            assert send(switch, 1, number) == []
        assert leaves(switch, 0) == [0]
        send(switch, 0, 9)
        assert leaves(switch, 0) == [9], "its queue has no rate"
        assert switch.service(0)[1] == MS
        assert leaves(switch, 2 * MS) == [1, 2]
        switch.queue_config(2, 1, rate_pps=0)
        assert send(switch, 1, 4, now_ns=2 * MS) == [4]


def test_frames_behind_a_quick_line_leave_a_few_at_a_time_and_none_too_early(cache_dir: Path) -> None:
    with queued(1, cache_dir) as switch:
        frame_ns = MS // 10
        switch.port_config(2, 10 * LINE_BPS, 64)
        for number in range(20):
            send(switch, 0, number)
        sent, now, control_lock = len(leaves(switch, 0)), 0, 0
        while sent < 20:
            due = switch.service(now)[1]
            assert now < due <= now + 4 * frame_ns
            now, control_lock = due, control_lock + 1
            sent += len(leaves(switch, now))
            assert sent == min(20, now // frame_ns + 1)
        assert control_lock <= 8
        assert send(switch, 0, 9, now_ns=10 * MS) == []
        assert leaves(switch, 10 * MS) == [9], "an idle line makes no frame wait"


def test_a_line_that_was_idle_lets_a_few_frames_leave_at_once_and_no_more_by_that(cache_dir: Path) -> None:
    with queued(1, cache_dir) as switch:
        frame_ns = MS // 10
        switch.port_config(2, 10 * LINE_BPS, 64)
        for number in range(20):
            send(switch, 0, number, now_ns=10 * MS)
        assert leaves(switch, 10 * MS) == [0, 1, 2, 3]
        sent, now = 4, 10 * MS
        while sent < 20:
            now = switch.service(now)[1]
            sent += len(leaves(switch, now))
            assert sent <= 4 + (now - 10 * MS) // frame_ns
        assert now >= 10 * MS + 16 * frame_ns
        for number in range(3):
            send(switch, 0, number, now_ns=now)
        assert leaves(switch, now) == [], "what was saved up is spent"


def test_frames_that_a_quick_line_has_time_for_are_no_queue(cache_dir: Path) -> None:
    """They wait for the end of the batch, or for a run: a program that marks by depth would mark each run."""
    with queued(1, cache_dir) as switch:
        frame_ns = MS // 10
        switch.port_config(2, 10 * LINE_BPS, 64)
        send(switch, 0)
        leaves(switch, 0)
        for number in range(6):
            send(switch, 0, number, now_ns=10 * MS)
        depths = [int.from_bytes(out[4:8], "big") for _, out in switch.service(10 * MS)[0]]
        assert depths == [0, 0, 0, 0], "an idle line sends four at once"
        send(switch, 0, now_ns=10 * MS + 2 * frame_ns)
        depths = [int.from_bytes(out[4:8], "big") for _, out in switch.service(20 * MS)[0]]
        assert depths == [0, 1, 0], "one more than the line has time for, then none"


@pytest.mark.parametrize(("queue", "burst"), [(64, 40), (32, 24)])
def test_a_burst_that_an_idle_line_has_saved_up_is_no_queue(queue: int, burst: int, cache_dir: Path) -> None:
    """Three quarters of the queue, which workers may send at once, or 0.4 ms: a mark would say that links are full."""
    with queued(1, cache_dir) as switch:
        frame_ns = MS // 100
        switch.port_config(2, 100 * LINE_BPS, queue)
        send(switch, 0)
        leaves(switch, 0)
        for number in range(burst + 3):
            send(switch, 0, number, now_ns=10 * MS)
        depths = [int.from_bytes(out[4:8], "big") for _, out in switch.service(10 * MS)[0]]
        assert depths == [0] * burst
        assert leaves(switch, 10 * MS + 2 * frame_ns) == []
        assert leaves(switch, 20 * MS) == [burst, burst + 1, burst + 2], "no more than the line has time for"


def test_the_time_of_a_queue_s_frames_follows_from_their_own_lengths(cache_dir: Path) -> None:
    with queued(1, cache_dir) as switch:
        switch.port_config(2, 10 * LINE_BPS, 32)
        short = bytes(10)
        switch.inject(1, short, 0)
        switch.service(0)
        for number in range(6):
            send(switch, 0, number, now_ns=10 * MS)
        send(switch, 0, now_ns=10 * MS + MS // 100)
        sent, _ = switch.service(20 * MS)
        assert int.from_bytes(sent[-1][1][4:8], "big") >= 5, "less than a long frame takes"


def test_a_full_queue_has_room_for_frames_once_the_line_has_time_for_those_before(cache_dir: Path) -> None:
    with queued(1, cache_dir) as switch:
        frame_ns = MS // 10
        switch.port_config(2, 10 * LINE_BPS, 32)
        send(switch, 0)
        leaves(switch, 0)
        for number in range(40):
            send(switch, 0, number, now_ns=10 * MS)
        assert switch.port_stats(2)["queue_drops"] == 40 - 32 - 4
        for number in range(4):
            send(switch, 0, number, now_ns=10 * MS + 3 * frame_ns)
        assert switch.port_stats(2)["queue_drops"] == 40 - 32 - 4 + 1
        assert len(leaves(switch, 30 * MS)) == 32 + 4 + 3


def test_a_run_behind_a_quick_line_is_not_divided_by_calls_in_between(cache_dir: Path) -> None:
    """Other ports' frames call service at any time."""
    with queued(1, cache_dir) as switch:
        switch.port_config(2, 10 * LINE_BPS, 64)
        for number in range(20):
            send(switch, 0, number)
        runs = [len(leaves(switch, ns)) for ns in range(0, 3 * MS, MS // 100)]
        assert sum(runs) == 20
        assert sum(run > 0 for run in runs) <= 7


@pytest.mark.parametrize(("rate", "bound", "frame_ns"), [(LINE_BPS, 64, MS), (10 * LINE_BPS, 8, MS // 10)])
def test_behind_a_slow_line_or_in_a_short_queue_each_frame_has_its_own_time(
    rate: int, bound: int, frame_ns: int, cache_dir: Path
) -> None:
    with queued(1, cache_dir) as switch:
        switch.port_config(2, rate, bound)
        for number in range(3):
            send(switch, 0, number)
        assert leaves(switch, 0) == [0]
        assert switch.service(0)[1] == frame_ns
        assert leaves(switch, 50 * MS) == [1, 2]


def test_a_priority_without_a_queue_is_dropped_unless_there_is_one_queue(cache_dir: Path) -> None:
    with queued(2, cache_dir) as switch:
        assert send(switch, 2) == []
        assert switch.port_stats(2)["queue_drops"] == 1
    with queued(1, cache_dir) as switch:
        assert send(switch, 7, 5) == [5]


def test_a_swap_empties_all_queues(cache_dir: Path) -> None:
    with queued(8, cache_dir) as switch:
        switch.port_config(2, LINE_BPS, 10)
        for priority in range(8):
            send(switch, priority)
        pipeline = switch.swap(None)
        assert switch.stats()["swap_drops"] == 8
        assert switch.port_stats(2)["queue_depth"] == 0
        switch.swap(pipeline)


@pytest.mark.parametrize(
    ("port", "queue", "rate", "packets"), [(-1, 0, 1, 1), (1, 2, 1, 1), (1, 0, -1, 1), (1, 0, 1, 70000)]
)
def test_what_is_no_queue_is_refused(port: int, queue: int, rate: int, packets: int) -> None:
    switch = Switch(queues=2)
    with pytest.raises(InvalidArgumentError):
        switch.queue_config(port, queue, rate_pps=rate, packets=packets)
    switch.close()
    with pytest.raises(InvalidArgumentError):
        Switch(queues=9)


def test_the_commands_set_rates_and_bounds(cache_dir: Path) -> None:
    class Idle:
        def service(self) -> None:
            pass

    with queued(2, cache_dir) as switch:
        console = Console(switch, cast(Engine, Idle()))
        console.run("set_queue_rate 1000 2")
        console.run("set_queue_depth 1 2 1")
        for number in range(3):
            send(switch, 1, number)
        assert switch.port_stats(2)["queue_drops"] == 2
        console.run("set_queue_rate 0 2 1")
        assert leaves(switch, 0) == [0]
        for line in ("set_queue_rate 1 2 2", "set_queue_depth 70000 1"):
            with pytest.raises(CommandError, match=r"is not in 0\.\."):
                console.run(line)
