# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Emulated links, swaps under traffic, bounds on loops, and frames that no program expects."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import pack
from mutations import base
from running import PROGRAMS, program, running
from softswitch.errors import InvalidArgumentError
from softswitch.state.entities import ActionCall, CloneSession, DigestEvent, Exact, Replica, TableEntry
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch

MS = 1_000_000
IN = pack((0, 8), (0, 72))  # misc.p4's header; 10 bytes


@pytest.fixture
def misc(cache_dir: Path) -> Iterator[tuple[Pipeline, Switch]]:
    with running(program("misc"), cache_dir) as both:
        yield both


def queue_fields(out: bytes) -> tuple[int, int, int]:
    """enq_qdepth, deq_qdepth, deq_timedelta (us)."""
    return tuple(int.from_bytes(out[i : i + 4], "big") for i in (4, 8, 12))  # type: ignore[return-value]


# ---- emulated links ----


def test_a_port_without_a_rate_sends_at_once(misc: tuple[Pipeline, Switch]) -> None:
    ((port, out),) = misc[1].inject(1, IN, 5 * MS)
    assert (port, queue_fields(out)) == (2, (0, 0, 0))


def test_a_rate_spaces_frames_and_the_program_sees_the_queue(misc: tuple[Pipeline, Switch]) -> None:
    """Frames leave with 17 + 1000 bytes: 8136 bits, at 8.136 Mbit/s one each millisecond."""
    _, switch = misc
    switch.port_config(2, 8_136_000, 10)
    assert [switch.inject(1, IN + bytes(990), 0) for _ in range(4)] == [[]] * 4
    assert switch.port_stats(2)["queue_depth"] == 4
    sent, deadline = switch.service(0)
    assert (len(sent), deadline) == (1, MS)
    out = [sent[0][1]]
    for ms in (1, 2, 3):
        assert switch.service(ms * MS - 1) == ([], ms * MS)
        sent, deadline = switch.service(ms * MS)
        out += [frame for _, frame in sent]
    assert deadline is None
    assert [queue_fields(o) for o in out] == [(0, 3, 0), (1, 2, 1000), (2, 1, 2000), (3, 0, 3000)]


def test_a_late_service_releases_all_that_is_due(misc: tuple[Pipeline, Switch]) -> None:
    _, switch = misc
    switch.port_config(2, 8_136_000, 10)
    for _ in range(4):
        switch.inject(1, IN + bytes(990), 0)
    sent, deadline = switch.service(10 * MS)
    assert (len(sent), deadline) == (4, None)
    switch.inject(1, IN + bytes(990), 10 * MS)
    assert len(switch.service(10 * MS)[0]) == 1, "an idle line owes nothing and saves nothing up"


def test_a_full_queue_drops_the_tail(misc: tuple[Pipeline, Switch]) -> None:
    _, switch = misc
    switch.port_config(2, 1000, 3)
    for i in range(5):
        switch.inject(1, IN + bytes([i]), 0)
    stats = switch.port_stats(2)
    assert (stats["queue_depth"], stats["queue_drops"]) == (3, 2)
    switch.port_config(2, 0, 0)
    sent, _ = switch.service(0)
    assert [frame[-1] for _, frame in sent] == [0, 1, 2], "without a rate they all leave, in order"


def test_payloads_outlive_the_frame_in_a_queue(misc: tuple[Pipeline, Switch]) -> None:
    _, switch = misc
    switch.port_config(2, 8_000_000, 64)
    frames = [IN + bytes([i]) * (i + 1) for i in range(40)]
    for f in frames:
        switch.inject(1, f, 0)
    sent, _ = switch.service(10_000 * MS)
    assert [frame[17:] for _, frame in sent] == frames


@pytest.mark.parametrize(
    ("port", "rate", "queue"), [(70000, 1, 1), (-1, 1, 1), (1, 1, 0), (1, 1, 70000), (1, -1, 1)]
)
def test_bad_links_are_refused(misc: tuple[Pipeline, Switch], port: int, rate: int, queue: int) -> None:
    with pytest.raises(InvalidArgumentError):
        misc[1].port_config(port, rate, queue)


def test_copies_made_at_the_end_of_a_queue_leave_at_once(cache_dir: Path) -> None:
    """An egress clone and a recirculation of a frame that waited: their own ports have no rate."""
    with running(program("copies"), cache_dir) as (pipeline, switch):
        pipeline.clone_insert(CloneSession(6, [Replica(4, 7)]))
        switch.port_config(2, 8_000_000, 8)
        clone = pack((0, 8), (1, 8), (2, 16), (0, 16), (0, 16))
        again = pack((0, 8), (4, 8), (2, 16), (0, 16), (0, 16))
        assert switch.inject(1, clone, 0) == []
        assert [port for port, _ in switch.service(0)[0]] == [2, 4]
        assert switch.inject(1, again, MS) == []
        passes = []
        for ms in range(1, 9):
            passes += [frame[18 + 7] for _, frame in switch.service(ms * MS)[0]]
        assert passes == [3], "the third pass keeps the frame"


# ---- swaps ----


def test_a_swap_changes_the_program_and_drops_what_waits(cache_dir: Path) -> None:
    with running(program("misc"), cache_dir) as (old, switch):
        switch.port_config(2, 1000, 10)
        switch.inject(1, IN, 0)
        new = Pipeline.load(program("copies"), cache_dir)
        assert switch.swap(new) is old
        assert switch.stats()["swap_drops"] == 1
        switch.port_config(2, 0, 0)
        ((port, _),) = switch.inject(1, pack((0, 8), (0, 8), (4, 16), (0, 16), (0, 16)), 1)
        assert port == 4
        with pytest.raises(InvalidArgumentError, match="in a switch"):
            new.close()
        assert switch.swap(old) is new
        new.close()
        with pytest.raises(InvalidArgumentError, match="closed"):
            new.multicast_groups()
        assert len(switch.inject(1, IN, 2)) == 1


def test_without_a_pipeline_frames_are_counted(cache_dir: Path) -> None:
    switch = Switch()
    assert switch.inject(1, b"x" * 60, 0) == []
    assert switch.stats()["no_pipeline"] == 1
    switch.close()
    switch.close()


def test_control_and_swaps_under_traffic(cache_dir: Path) -> None:
    """One thread sends, one writes entries, the main one swaps: nothing crashes, and each frame meets one
    whole program."""
    with running(program("misc"), cache_dir) as (first, switch):
        second = Pipeline.load(program("misc"), cache_dir)
        stop, wrong = threading.Event(), []

        def traffic() -> None:
            while not stop.is_set():
                for _ in range(50):
                    for _, frame in switch.inject(1, IN, 0):
                        if len(frame) != 27:
                            wrong.append(frame)

        def control() -> None:
            match = {"hdr.i.a": Exact(b"\0")}
            while not stop.is_set():
                for p in (first, second):
                    p.table_insert(
                        "MyIngress.by_a", TableEntry(match, ActionCall("MyIngress.mark", {"port": b"\3"}))
                    )
                    p.table_delete("MyIngress.by_a", match)

        threads = [threading.Thread(target=t) for t in (traffic, control)]
        for t in threads:
            t.start()
        for _ in range(201):
            switch.swap(second if switch.pipeline is first else first)
        stop.set()
        for t in threads:
            t.join(20)
        assert not any(t.is_alive() for t in threads)
        assert wrong == []
        switch.swap(first)
        second.close()


# ---- bounds ----


def test_a_program_that_copies_and_recirculates_for_ever_is_cut(cache_dir: Path) -> None:
    """copies.p4 with the command in the payload again and again: each pass makes more passes."""
    with running(program("copies"), cache_dir) as (pipeline, switch):
        pipeline.multicast_insert(1, [Replica(p, i) for p in range(1, 5) for i in range(1, 9)])
        command = pack((1, 8), (4 | 32, 8), (1, 16), (1, 16), (0, 16))
        switch.inject(1, command * 100, 0)
        assert switch.stats()["loops_cut"] > 0


def test_a_clone_session_cuts_to_its_length(cache_dir: Path) -> None:
    with running(program("copies"), cache_dir) as (pipeline, switch):
        pipeline.clone_insert(CloneSession(5, [Replica(3, 1)], packet_length=21))
        command = pack((2, 8), (0, 8), (4, 16), (0, 16), (0, 16))
        out = switch.inject(1, command + bytes(100), 0)
        assert [(port, len(frame)) for port, frame in out] == [(3, 21), (4, 18 + 8 + 100)]


@pytest.mark.parametrize("name", sorted(p.stem for p in PROGRAMS.glob("*.json")))
def test_frames_cut_at_every_byte(name: str, cache_dir: Path) -> None:
    """Runts and truncations go through every program; the seed bytes reach different parser states."""
    with running(program(name), cache_dir) as (_, switch):
        for first in (0, 1, 2, 3, 4, 5, 0x25, 0x31, 0xFF):
            frame = bytes([first]) + bytes(range(256)) * 6
            for length in (*range(80), 200, 1000, 1500):
                switch.inject(1, frame[:length], 0)
        assert switch.port_stats(1)["rx_packets"] == 9 * 83


def test_frames_beyond_the_largest_are_counted(misc: tuple[Pipeline, Switch]) -> None:
    _, switch = misc
    assert switch.inject(1, bytes(65536), 0) == []
    assert switch.stats()["rx_oversize"] == 1
    assert switch.inject(1, bytes(65535), 0) == [], "with its new header it would be too long"
    assert switch.stats()["too_long"] == 1
    assert len(switch.inject(1, bytes(65500), 0)) == 1


LEARN = bytes(12) + (0x88B5).to_bytes(2, "big") + bytes(46)


def test_what_the_old_program_said_is_not_read_as_the_new_ones(cache_dir: Path) -> None:
    kinds = json.dumps(base("kinds")).encode()
    with running(kinds, cache_dir) as (pipeline, switch):
        pipeline.digest_enable("seen_t", True)
        switch.inject(1, LEARN, 1000)
        assert [type(event) for event in switch.events()] == [DigestEvent]
        switch.inject(1, LEARN, 2000)
        other = Pipeline.load(kinds, cache_dir)
        assert switch.swap(other) is pipeline
        assert switch.events() == []
        other.digest_enable("seen_t", True)
        switch.inject(1, LEARN, 3000)
        (event,) = switch.events()
        assert event.time_ns == 3000
        switch.inject(1, LEARN, 4000)
        switch.swap(pipeline)
        assert switch.events() == []
        other.close()
