# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Loads of links, read from ports' counters: rates by direction, through restarts, silence and odd clocks."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import finsy as fy
import numpy as np
import pytest
from finsy.proto import p4r
from numpy.typing import NDArray

from netfold.controller.health.link_loads import LinkLoads, metered_ports
from netfold.controller.switches.port_counters import (
    PORT_RX,
    PORT_TX,
    UNKNOWN,
    AnswerError,
    PortReader,
    cell,
)
from netfold.protocol.wire import FRAMING_BYTES
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import load_fabric
from tests.controller.deployment import ready

P4INFO = Path(__file__).resolve().parents[2] / "p4src" / "compiled" / "netfold-v1model-64.p4info.txtpb"

MBIT = 1_000_000 // 8


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """Its unit is Mbit/s, and its hosts' links carry 100."""
    return load_fabric("leaf-spine-2x2")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def loads(fabric: Fabric, clock: Clock) -> LinkLoads:
    return LinkLoads(fabric, 1.0, clock)


def counted(loads: LinkLoads, fabric: Fabric, megabits: float, jobs: float = 0.0) -> None:
    """Since leaf1 started, so much has come from h1 to it, and nothing else."""
    loads.counted("leaf1", leaf1_counts(fabric, h1=(megabits, jobs)), loads._now())


def leaf1_counts(fabric: Fabric, **arrived: tuple[float, float]) -> NDArray[np.int64]:
    """Returns counts of bytes from the leaf's neighbors, of others and of jobs, in megabits; other ports are
    unknown."""
    incoming, outgoing = metered_ports(fabric, "leaf1")
    counts = np.full((len(incoming) + len(outgoing), 2), UNKNOWN, np.int64)
    for near, megabits in arrived.items():
        counts[incoming.index(fabric.ports["leaf1"][near])] = [round(m * MBIT) for m in megabits]
    return counts


def cross_traffic(loads: LinkLoads) -> float | None:
    load = loads.all().get(("h1", "leaf1"))
    return None if load is None else load.cross_traffic


def test_rates_are_bytes_over_the_time_between_readings(loads: LinkLoads, fabric: Fabric, clock: Clock):
    counted(loads, fabric, 1000.0)
    assert loads.all() == {}
    for at, megabits, jobs in ((0.5, 1030.0, 5.0), (1.0, 1060.0, 10.0)):
        clock.at = 1000.0 + at
        counted(loads, fabric, megabits, jobs)
    assert cross_traffic(loads) == pytest.approx(60)
    assert loads.all()["h1", "leaf1"].jobs == pytest.approx(10)
    assert loads.cross_traffic().links == {("h1", "leaf1"): pytest.approx(60)}


def test_a_rate_is_of_the_last_half_second_where_it_is_read_so_often(
    loads: LinkLoads, fabric: Fabric, clock: Clock
):
    """And it is said that it changes for as long as it does."""
    total = 0.0
    for step in range(20):
        clock.at = 1000.0 + 0.25 * step
        total += 0.25 * (80 if step > 10 else 0)
        changes = loads.counted("leaf1", leaf1_counts(fabric, h1=(total, 0.0)), clock.at)
        if step > 1:
            assert cross_traffic(loads) == pytest.approx({11: 40}.get(step, 80 if step > 11 else 0))
            assert changes == (step in (11, 12))


def test_a_switch_that_starts_from_zero_is_no_burst(loads: LinkLoads, fabric: Fabric, clock: Clock):
    for at, megabits in ((0, 5000.0), (1, 5010.0), (2, 3.0)):
        clock.at = 1000.0 + at
        counted(loads, fabric, megabits)
        assert cross_traffic(loads) in (None, pytest.approx(10))
    clock.at = 1003.0
    counted(loads, fabric, 23.0)
    assert cross_traffic(loads) == pytest.approx(20)


def test_what_was_not_heard_of_for_long_is_not_known_and_not_averaged(
    loads: LinkLoads, fabric: Fabric, clock: Clock
):
    for at, megabits in ((0, 0.0), (1, 50.0)):
        clock.at = 1000.0 + at
        counted(loads, fabric, megabits)
    clock.at = 1007.0
    assert loads.all() == {}
    counted(loads, fabric, 400.0)
    assert loads.all() == {}
    clock.at = 1008.0
    counted(loads, fabric, 430.0)
    assert cross_traffic(loads) == pytest.approx(30)


def test_two_readings_at_once_divide_by_nothing(loads: LinkLoads, fabric: Fabric):
    counted(loads, fabric, 0.0)
    counted(loads, fabric, 10.0)
    assert loads.all() == {}


def test_noise_is_nobodys_and_a_full_link_leaves_a_rest(loads: LinkLoads, fabric: Fabric, clock: Clock):
    for rate, seen in ((1.5, {}), (99.0, {("h1", "leaf1"): pytest.approx(90)})):
        clock.at += 100
        counted(loads, fabric, 0.0)
        clock.at += 1
        counted(loads, fabric, rate)
        assert loads.cross_traffic().links == seen


def test_an_answer_is_decoded_and_another_one_is_refused():
    schema = fy.P4Schema(P4INFO)
    reader = PortReader(schema, 1, 256, (3, 5), (5,))

    def answer(*counted: int) -> list[p4r.ReadResponse]:
        """In two messages, as a switch may."""
        messages = [p4r.ReadResponse(), p4r.ReadResponse()]
        for place, (wanted, n) in enumerate(zip(reader.request.entities, counted, strict=True)):
            data = p4r.CounterData(byte_count=100 * n, packet_count=n)
            entity = messages[place % 2].entities.add(counter_entry=wanted.counter_entry)
            entity.counter_entry.data.CopyFrom(data)
        return messages

    each = 100 + FRAMING_BYTES
    short, whole = 60 + FRAMING_BYTES, 1082 + FRAMING_BYTES  # whatever length the switch counted
    jobs = 10**14 * each + 5 * short + 6 * whole
    first = reader.counts(answer(0, 1, 2, 3, 4, 10**14, 5, 6))
    assert first.tolist() == [[0, each], [2 * each, 3 * each], [4 * each, jobs]]
    assert reader.counts(answer(0, 1, 2, 3, 4, 10**14, 5, 6)) is first
    second = reader.counts(answer(0, 1, 7, 3, 4, 10**14, 5, 6))
    assert (second - first).tolist() == [[0, 0], [5 * each, 0], [0, 0]]
    other = p4r.ReadResponse(entities=PortReader(schema, 1, 256, (4, 6), (7,)).request.entities)
    half = answer(*range(8))[0]
    too_large = answer(0, 1, 7, 3, 4, 9 * 10**16, 5, 6)
    for wrong in (
        [],
        [half],
        [half, half],
        [p4r.ReadResponse(entities=[p4r.Entity()] * 8)],
        [other],
        too_large,
    ):
        with pytest.raises(AnswerError):
            reader.counts(wrong)
    assert reader.counts(answer(0, 1, 7, 3, 4, 10**14, 5, 6)) is second


async def test_the_controller_reads_every_direction_of_every_link_in_one_request_of_each_switch(
    tmp_path: Path, fabric: Fabric
):
    async with ready(fabric, tmp_path) as deployment:
        controller = deployment.controller
        links = {pair for k in fabric.links for pair in ((k.a, k.b), (k.b, k.a))}
        await deployment.until(lambda: controller.switches.loads.all().keys() == links, "all links are known")
        assert {load.cross_traffic for load in controller.switches.loads.all().values()} == {0.0}
        ports, bytes_of = fabric.ports["leaf1"], Counter[tuple[str, int]]()
        deployment.switches["leaf1"].state.ports = bytes_of
        for _ in range(8):
            bytes_of[PORT_RX, cell(ports["spine1"], False)] += 10**10
            bytes_of[PORT_TX, cell(ports["h1"], True)] += 10**10
            before = deployment.switches["leaf1"].reads
            await deployment.until(lambda b=before: deployment.switches["leaf1"].reads > b, "read again")
        await deployment.until(lambda: controller.switches.loads.all()["leaf1", "h1"].jobs > 0, "seen")
        seen = controller.switches.loads.all()
        assert seen["spine1", "leaf1"].cross_traffic > 0
        assert seen["spine1", "leaf1"].jobs == 0
        assert seen["leaf1", "h1"].cross_traffic == 0
        assert set(controller.switches.loads.cross_traffic().links) == {("spine1", "leaf1")}


@pytest.mark.slow
async def test_a_reading_is_of_when_the_switch_counted(
    tmp_path: Path, fabric: Fabric, monkeypatch: pytest.MonkeyPatch
):
    """Not of when its answer was received: a constant load would seem to change with the delay of answers."""
    read_at: dict[int, float] = {}
    heard: list[tuple[int, float]] = []
    async with ready(fabric, tmp_path) as deployment:
        switch, loads = deployment.switches["leaf1"], deployment.controller.switches.loads
        answer, hear = switch._counted, loads.counted

        def answered(asked: p4r.CounterEntry) -> p4r.Entity:
            """How often it was read, in every cell."""
            read_at.setdefault(switch.reads, time.monotonic())
            found = answer(asked)
            found.counter_entry.data.byte_count = 1000 * switch.reads
            return found

        def counted(name: str, counts: NDArray[np.int64], asked: float) -> bool:
            if name == "leaf1" and counts.max() >= 1000:
                heard.append((int(counts.max()) // 1000, asked))
            return hear(name, counts, asked)

        monkeypatch.setattr(switch, "_counted", answered)
        monkeypatch.setattr(loads, "counted", counted)
        await deployment.until(lambda: len(heard) >= 8, "read")
    assert all(asked <= read_at[reading] for reading, asked in heard)
