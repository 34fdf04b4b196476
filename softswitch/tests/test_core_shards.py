# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A switch of several threads does to each packet what one of one thread does, whichever thread receives it."""

from __future__ import annotations

import random
from pathlib import Path

import netfold_case
import pytest
from cases import CASES, Frame, pack
from netfold_programs import COMPILED, needs_netfold
from running import program, running
from softswitch.errors import InvalidArgumentError
from softswitch.state.entities import ActionCall, CounterData, Exact, MeterConfig, TableEntry
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch

SLOTS = 64
THREADS = (2, 4)
SHARED = [name for name in CASES if name != "state"]
"""All programs but the one that is refused (test_translate_sharding.py)."""


def state_of(pipeline: Pipeline) -> dict[str, list[object]]:
    cells: dict[str, list[object]] = {
        name: list(pipeline.register_read_all(name)) for name in pipeline.registers
    }
    for name, info in pipeline.counters.items():
        cells[name] = list(pipeline.counter_cells(name, range(info.size)))
    return cells


def check_equal(
    p4_json: bytes, cache_dir: Path, threads: int, set_up: object, frames: list[Frame], seed: int
) -> int:
    """Frames that were handed over."""
    chance = random.Random(seed)
    with (
        running(p4_json, cache_dir, 1) as (one, alone),
        running(p4_json, cache_dir, threads) as (several, shared),
    ):
        for pipeline in (one, several):
            set_up(pipeline, random.Random(seed))  # type: ignore[operator]
        for now_ns, (port, frame) in enumerate(frames):
            expected = alone.inject(port, frame, now_ns * 1000)
            assert shared.inject(port, frame, now_ns * 1000, chance.randrange(threads)) == expected
        assert state_of(several) == state_of(one)
        stats = dict(shared.stats())
        handed_over = stats.pop("handed_over")
        assert stats == {name: value for name, value in alone.stats().items() if name != "handed_over"}
        assert [shared.port_stats(port) for port in range(5)] == [alone.port_stats(port) for port in range(5)]
    return handed_over


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", SHARED)
def test_every_program_does_the_same(name: str, threads: int, cache_dir: Path) -> None:
    set_up, make = CASES[name]
    frames = list(make(random.Random(7)))
    check_equal(program(name), cache_dir, threads, set_up, frames, 7)


@needs_netfold
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("seed", range(2))
def test_netfold_does_the_same(threads: int, seed: int, cache_dir: Path) -> None:
    p4_json = (COMPILED / "netfold-v1model-32.json").read_bytes()
    frames = list(netfold_case.frames(random.Random(seed)))
    assert check_equal(p4_json, cache_dir, threads, netfold_case.setup, frames, seed) > 0


def lanes_of_any_slot(chance: random.Random, count: int) -> list[Frame]:
    def frame() -> bytes:
        values = [(chance.choice([0, 1, 0x7FFFFFFF, chance.getrandbits(32)]), 32) for _ in range(32)]
        slot = chance.randrange(SLOTS + 8)  # some without a register
        return bytes(12) + b"\x88\xb5" + pack((slot, 16), (chance.random() < 0.3, 8), (0, 8), *values)

    return [(chance.randrange(1, 5), frame()) for _ in range(count)]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("seed", range(3))
def test_sums_of_all_slots_are_the_same(threads: int, seed: int, cache_dir: Path) -> None:
    frames = lanes_of_any_slot(random.Random(seed), 600)
    handed_over = check_equal(program("lanes"), cache_dir, threads, lambda *_: None, frames, seed)
    share = handed_over / len(frames)
    assert abs(share - (1 - 1 / threads)) < 0.1, "a thread has its share of the slots"


def test_what_the_controller_writes_all_threads_read(cache_dir: Path) -> None:
    with running(program("lanes"), cache_dir, 4) as (pipeline, switch):
        for slot in range(SLOTS):
            pipeline.register_write("MyIngress.lane_00", slot, slot)
        for slot in range(SLOTS):
            frame = bytes(12) + b"\x88\xb5" + pack((slot, 16), (0, 16), *[(1, 32)] * 32)
            ((_, left),) = switch.inject(1, frame, 0, thread=slot % 4)
            assert int.from_bytes(left[18:22], "big") == slot + 1
        assert pipeline.register_read_all("MyIngress.lane_00") == [slot + 1 for slot in range(SLOTS)]


@needs_netfold
def test_counters_are_sums_of_the_threads_and_can_be_set(cache_dir: Path) -> None:
    p4_json = (COMPILED / "netfold-v1model-32.json").read_bytes()
    cell = "SwitchIngress.port_rx"
    with running(p4_json, cache_dir, 2) as (pipeline, switch):
        for number in range(10):
            switch.inject(1, bytes(60), 0, thread=number % 2)
        assert pipeline.counter_read(cell, 2) == CounterData(10, 600)
        pipeline.counter_write(cell, 2, CounterData(5, 7))
        assert pipeline.counter_read(cell, 2) == CounterData(5, 7)
        switch.inject(1, bytes(60), 0, thread=1)
        assert pipeline.counter_read(cell, 2) == CounterData(6, 67)


def misc_frame(a: int, op: int = 0) -> bytes:
    return bytes([op, a]) + bytes(30)


def test_direct_counters_are_sums_of_the_threads_and_can_be_set(cache_dir: Path) -> None:
    match = {"hdr.i.a": Exact(bytes([misc_frame(7)[1]]))}
    with running(program("misc"), cache_dir, 2) as (pipeline, switch):
        entry = TableEntry(match, ActionCall("MyIngress.mark", {"port": b"\3"}))
        pipeline.table_insert("MyIngress.by_a", entry)
        for number in range(6):
            assert switch.inject(1, misc_frame(7), 0, thread=number % 2)[0][0] == 3
        assert pipeline.direct_counter_read("MyIngress.by_a", match).packets == 6
        pipeline.direct_counter_write("MyIngress.by_a", match, CounterData(2, 0))
        switch.inject(1, misc_frame(7), 0, thread=1)
        assert pipeline.direct_counter_read("MyIngress.by_a", match).packets == 3


def test_threads_share_the_tokens_of_a_meter(cache_dir: Path) -> None:
    with running(program("misc"), cache_dir, 2) as (pipeline, switch):
        pipeline.meter_write("MyIngress.packets", 0, MeterConfig(1, 3, 1, 5))
        colors = [switch.inject(1, misc_frame(0, op=1), 0, thread=n % 2)[0][1] for n in range(6)]
    assert len(set(colors[:3])) == 1, "three packets are green"
    assert colors[3] == colors[4] != colors[0], "two are yellow"
    assert colors[5] not in colors[:5], "and one is red"


def test_digests_of_all_threads_arrive(cache_dir: Path) -> None:
    with running(program("misc"), cache_dir, 2) as (pipeline, switch):
        (name,) = pipeline.digests
        pipeline.digest_enable(name, True)
        for number in range(4):
            switch.inject(1 + number, misc_frame(number, op=3), 0, thread=number % 2)
        assert len(switch.events()) == 4


def test_rates_of_links_are_refused() -> None:
    switch = Switch(threads=2)
    try:
        with pytest.raises(
            InvalidArgumentError, match="port 1: a link's rate and queue need a switch of one thread"
        ):
            switch.port_config(1, 1_000_000, 64)
        with pytest.raises(InvalidArgumentError, match="need a switch of one thread"):
            switch.queue_config(1, 0, rate_pps=5)
        switch.port_config(1, 0, 0)
    finally:
        switch.close()


@pytest.mark.parametrize("threads", [0, 3, 32])
def test_threads_are_a_power_of_two(threads: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{threads} threads; expected a power of two, 1..16"):
        Switch(threads=threads)


def test_a_pipeline_runs_in_a_switch_of_as_many_threads(cache_dir: Path) -> None:
    pipeline, switch = Pipeline.load(program("router"), cache_dir, threads=2), Switch()
    try:
        with pytest.raises(InvalidArgumentError, match="the pipeline is for 2 threads; the switch has 1"):
            switch.swap(pipeline)
    finally:
        switch.close()
        pipeline.close()
