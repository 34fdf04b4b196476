# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Counters, meters, registers, digests, value sets, aging, random numbers, log_msg, assert."""

from __future__ import annotations

import json
import random
import select
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import by, pack
from running import program, running
from softswitch.errors import InvalidArgumentError, ResourceExhaustedError
from softswitch.state.entities import (
    ActionCall,
    CounterData,
    DigestEvent,
    Exact,
    IdleEvent,
    MeterConfig,
    TableEntry,
    Ternary,
)
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch

IN = "MyIngress."
SECOND = 1_000_000_000
OUT_BYTES = 1 + 1 + 2 + 4 + 4 + 4 + 1


@pytest.fixture
def misc(cache_dir: Path) -> Iterator[tuple[Pipeline, Switch]]:
    with running(program("misc"), cache_dir) as both:
        yield both


def send(
    switch: Switch, *, op: int = 0, a: int = 0, b: int = 0, c: int = 0, now_ns: int = 0, tail: int = 0
) -> bytes:
    ((_, out),) = switch.inject(1, pack((op, 8), (a, 8), (b, 16), (c, 48)) + bytes(tail), now_ns)
    return out


def entry(a: int, timeout_ns: int = 0) -> TableEntry:
    return TableEntry(
        {"hdr.i.a": Exact(by(a, 8))}, ActionCall(IN + "mark", {"port": b"\x05"}), idle_timeout_ns=timeout_ns
    )


def test_timeouts_follow_the_model_as_entries_come_are_hit_and_go(misc: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = misc
    rng = random.Random(7)
    kept: dict[int, list[int]] = {}  # entry -> timeout, last hit, last notice since it was modified
    for step in range(1, 400):
        now, a = step * 10_000_000, rng.randrange(16)
        told = [other for other, (timeout, *since) in kept.items() if max(since) + timeout <= now]
        for other in told:
            kept[other][2] = now
        _, deadline = switch.service(now)
        seen = [e.entry.match["hdr.i.a"].value[0] for e in switch.events()]
        assert sorted(seen) == sorted(told), step
        earliest = min((max(since) + timeout for timeout, *since in kept.values()), default=None)
        assert (deadline is None) if earliest is None else (now < deadline <= earliest)
        if a in kept and rng.random() < 0.3:
            pipeline.table_delete(IN + "by_a", entry(a).match)
            del kept[a]
        elif a in kept and rng.random() < 0.5:
            send(switch, a=a, now_ns=now)
            kept[a][1] = now
        elif a in kept:
            kept[a] = [rng.randrange(1, 30) * 10_000_000, kept[a][1], 0]
            pipeline.table_modify(IN + "by_a", entry(a, kept[a][0]))
        else:
            kept[a] = [rng.randrange(1, 30) * 10_000_000, now, 0]
            pipeline.table_insert(IN + "by_a", entry(a, kept[a][0]))


# ---- counters and registers ----


def test_counters_count_packets_and_bytes(cache_dir: Path) -> None:
    with running(program("state"), cache_dir) as (pipeline, switch):
        match = {"hdr.i.op": Exact(b"\0")}
        pipeline.table_insert(IN + "direct", TableEntry(match, ActionCall(IN + "hit")))
        for size in (20, 30):
            switch.inject(1, pack((0, 8), (3, 8), (0, 80)) + bytes(size - 12), 0)
        switch.inject(1, pack((0, 8), (16, 8), (0, 80)), 0)  # out of range: nothing is counted
        assert pipeline.counter_read(IN + "counted", 3) == CounterData(2, 50)
        assert pipeline.counter_read(IN + "counted", 0) == CounterData()
        assert pipeline.direct_counter_read(IN + "direct", match) == CounterData(3, 62)
        pipeline.counter_write(IN + "counted", 3, CounterData(7, 8))
        pipeline.direct_counter_write(IN + "direct", match, CounterData(1, 2))
        switch.inject(1, pack((0, 8), (3, 8), (0, 80)), 0)
        assert pipeline.counter_read(IN + "counted", 3) == CounterData(8, 20)
        assert pipeline.direct_counter_read(IN + "direct", match) == CounterData(2, 14)
        with pytest.raises(InvalidArgumentError, match=r"not in 0\.\.15"):
            pipeline.counter_read(IN + "counted", 16)


@pytest.mark.parametrize(
    ("name", "width"), [("reg8", 8), ("reg32", 32), ("reg48", 48), ("reg64", 64), ("reg80", 80)]
)
def test_registers_of_each_width(name: str, width: int, cache_dir: Path) -> None:
    with running(program("state"), cache_dir) as (pipeline, switch):
        top = (1 << width) - 1
        pipeline.register_write(IN + name, 15, top)
        switch.inject(1, pack((1, 8), (2, 8), (0x1122334455667788AABB, 80)), 0)
        assert pipeline.register_read(IN + name, 15) == top
        assert pipeline.register_read(IN + name, 2) == 0x1122334455667788AABB & top
        for value in (top + 1, -1):
            with pytest.raises(InvalidArgumentError, match=f"does not fit {width} bits"):
                pipeline.register_write(IN + name, 0, value)
        with pytest.raises(InvalidArgumentError, match="index 16"):
            pipeline.register_write(IN + name, 16, 0)


# ---- meters ----


def colors(switch: Switch, op: int, count: int, now_ns: int, tail: int = 0) -> list[int]:
    return [send(switch, op=op, a=3, now_ns=now_ns, tail=tail)[0] for _ in range(count)]


def test_packet_meter_by_rfc_2698(misc: tuple[Pipeline, Switch]) -> None:
    """Bursts of 2 committed and 4 peak; then one token of each rate comes back at a time."""
    pipeline, switch = misc
    assert colors(switch, 1, 3, 0) == [0, 0, 0], "not configured: green"
    config = MeterConfig(cir=10, cburst=2, pir=20, pburst=4)
    pipeline.meter_write(IN + "packets", 3, config)
    assert pipeline.meter_read(IN + "packets", 3) == config
    assert colors(switch, 1, 6, 0) == [0, 0, 1, 1, 2, 2]
    assert colors(switch, 1, 3, SECOND // 10) == [0, 1, 2]
    assert colors(switch, 1, 6, 10 * SECOND) == [0, 0, 1, 1, 2, 2]
    pipeline.meter_write(IN + "packets", 3, None)
    assert colors(switch, 1, 3, 10 * SECOND) == [0, 0, 0]


def test_byte_meter_counts_the_frame(misc: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = misc
    pipeline.meter_write(IN + "octets", 3, MeterConfig(cir=1000, cburst=250, pir=2000, pburst=450))
    assert colors(switch, 2, 5, 0, tail=90) == [0, 0, 1, 1, 2]


def test_direct_meter_marks_hits(misc: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = misc
    pipeline.table_insert(IN + "by_a", entry(7))
    pipeline.direct_meter_write(IN + "by_a", entry(7).match, MeterConfig(1, 1, 1, 2))
    assert [send(switch, a=7)[1] for _ in range(3)] == [0, 1, 2]
    assert pipeline.direct_meter_read(IN + "by_a", entry(7).match) == MeterConfig(1, 1, 1, 2)


def test_a_peak_below_the_committed_rate_is_refused(misc: tuple[Pipeline, Switch]) -> None:
    with pytest.raises(InvalidArgumentError, match="below cir"):
        misc[0].meter_write(IN + "packets", 0, MeterConfig(10, 1, 5, 1))


# ---- events ----


def readable(switch: Switch) -> bool:
    return bool(select.select([switch.event_fd()], [], [], 0)[0])


def test_digests_wait_until_they_are_taken(misc: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = misc
    send(switch, op=3, a=4, c=0xABCDEF, now_ns=5)
    assert not readable(switch)
    assert switch.events() == [], "off until enabled"
    (name,) = pipeline.digests
    pipeline.digest_enable(name, True)
    send(switch, op=3, a=4, c=0xABCDEF, now_ns=6)
    send(switch, op=3, a=5, c=0, now_ns=7)
    assert readable(switch)
    assert switch.events(1) == [DigestEvent(name, (b"\xab\xcd\xef", b"\x04", b"\x01"), 6)]
    assert switch.events() == [DigestEvent(name, (b"\0", b"\x05", b"\x01"), 7)]
    assert not readable(switch)


def test_a_full_ring_loses_and_counts(misc: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = misc
    pipeline.digest_enable(pipeline.digests[0], True)
    for _ in range(5000):
        send(switch, op=3)
    assert switch.stats()["events_lost"] == 5000 - 4096
    assert len(switch.events(10_000)) == 4096


def test_idle_entries_are_told_once(misc: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = misc
    send(switch, now_ns=SECOND)
    pipeline.table_insert(IN + "by_a", entry(7, timeout_ns=SECOND))
    assert switch.service(SECOND)[1] is not None
    send(switch, a=7, now_ns=SECOND + SECOND // 2)
    switch.service(2 * SECOND + SECOND // 10)
    assert switch.events() == [], "it was hit half a second before"
    assert pipeline.table_idle_ns(IN + "by_a", entry(7).match) == 6 * SECOND // 10
    for _ in range(2):
        switch.service(3 * SECOND)
    assert switch.events() == [IdleEvent(IN + "by_a", entry(7, SECOND), 3 * SECOND)]
    send(switch, a=7, now_ns=3 * SECOND)
    switch.service(3 * SECOND + SECOND // 2)
    switch.service(5 * SECOND)
    assert len(switch.events()) == 1, "a hit starts it anew"


# ---- the rest ----


def test_value_sets_steer_the_parser(misc: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = misc
    (name,) = pipeline.value_sets
    assert send(switch, b=0x1234)[OUT_BYTES - 1] == 0
    members = [(Exact(b"\x12\x34"),), (Ternary(b"\x80\x00", b"\xff\x00"),)]
    pipeline.value_set_write(name, members)
    assert [send(switch, b=b)[OUT_BYTES - 1] for b in (0x1234, 0x80FF, 0x1235)] == [1, 1, 0]
    assert list(pipeline.value_set_read(name)) == members
    with pytest.raises(ResourceExhaustedError, match="4 members"):
        pipeline.value_set_write(name, [(Exact(b"\1"),)] * 5)
    pipeline.value_set_write(name, [])
    assert send(switch, b=0x1234)[OUT_BYTES - 1] == 0


def test_random_stays_within_its_bounds(misc: tuple[Pipeline, Switch]) -> None:
    seen = {int.from_bytes(send(misc[1], op=4)[2:4], "big") for _ in range(300)}
    assert seen == set(range(10, 21))


def test_log_msg_goes_to_the_sink(misc: tuple[Pipeline, Switch]) -> None:
    lines: list[tuple[str, str]] = []
    misc[1].log_to(lambda level, text: lines.append((level, text)))
    send(misc[1], op=5, a=3, c=77)
    misc[1].log_to(None)
    send(misc[1], op=5, a=3, c=78)
    assert lines == [("I", "a=3 c=77 100%")]


def test_a_failed_assert_drops_the_frame(misc: tuple[Pipeline, Switch]) -> None:
    assert misc[1].inject(1, pack((6, 8), (0, 72)), 0) == []
    assert misc[1].stats()["asserts_failed"] == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{} and {}", "3 and 4722366482869645213695"),
        ("{a}{b}", "34722366482869645213695"),
        (r"\{\} {}", "{} 3"),
        ("100% of {}, {}, {}", "100% of 3, 4722366482869645213695, "),
        ("none", "none"),
    ],
)
def test_log_msg_formats_as_bmv2(text: str, line: str, cache_dir: Path) -> None:
    made = json.loads(program("misc"))
    (call,) = [p for a in made["actions"] for p in a["primitives"] if p["op"] == "log_msg"]
    small = {"type": "hexstr", "value": "0x3"}
    wide = {"type": "hexstr", "value": hex(2**72 - 1)}
    call["parameters"] = [
        {"type": "string", "value": text},
        {"type": "parameters_vector", "value": [small, wide]},
    ]
    lines: list[str] = []
    with running(json.dumps(made).encode(), cache_dir) as (_, switch):
        switch.log_to(lambda _, told: lines.append(told))
        send(switch, op=5)
    assert lines == [line]
