# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The faulty lines of the engine, driven directly: what comes out depends on the seed and the order alone."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from softswitch.engine.abi import FaultSettings

ENGINE = Path(__file__).parents[1] / "softswitch" / "engine"
SINK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint8), ctypes.c_uint32)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("faults") / "faults.so"
    flags = ["-O1", "-g", "-Wall", "-Werror", "-fPIC", "-shared"]
    subprocess.run(["gcc", *flags, "-o", path, ENGINE / "fault_injector.c"], check=True)
    loaded = ctypes.CDLL(str(path))
    loaded.ss_fault_next_due.restype = ctypes.c_uint64
    return loaded


class Line:
    """One line, and what has come out of it."""

    def __init__(self, library: ctypes.CDLL, **settings: float) -> None:
        self._library = library
        self._memory = ctypes.create_string_buffer(4096)  # struct ss_fault_injector, zeroed
        self.out: list[bytes] = []
        self._sink = SINK(lambda _, data, length: self.out.append(ctypes.string_at(data, length)))
        self.configure(**settings)

    def configure(self, **settings: float) -> None:
        self._library.ss_fault_configure(self._memory, ctypes.byref(FaultSettings(**settings)))

    def send(self, frame: bytes, now_ns: int = 1) -> None:
        now = ctypes.c_uint64(now_ns)
        self._library.ss_fault_pass(self._memory, now, frame, ctypes.c_uint32(len(frame)), self._sink, None)

    def release(self, now_ns: int) -> None:
        self._library.ss_fault_release(self._memory, ctypes.c_uint64(now_ns), self._sink, None)

    def next_due(self) -> int:
        return int(self._library.ss_fault_next_due(self._memory))

    def free(self) -> None:
        self._library.ss_fault_free(self._memory)


@pytest.fixture
def make_line(library: ctypes.CDLL) -> Iterator[type[Line]]:
    lines: list[Line] = []

    def make(**settings: float) -> Line:
        lines.append(Line(library, **settings))
        return lines[-1]

    yield make  # type: ignore[misc]
    for line in lines:
        line.free()


def numbered(count: int) -> list[bytes]:
    return [n.to_bytes(4, "big") * 8 for n in range(count)]


def test_a_line_without_faults_passes_everything_in_order(make_line) -> None:
    line = make_line()
    for frame in numbered(50):
        line.send(frame)
    assert line.out == numbered(50)


@pytest.mark.parametrize("fault", ["loss", "duplicate", "corrupt"])
def test_the_same_seed_gives_the_same_fate_at_any_time(make_line, fault: str) -> None:
    first, second, other = (
        make_line(**{fault: 0.3}, seed=5),
        make_line(**{fault: 0.3}, seed=5),
        make_line(**{fault: 0.3}, seed=6),
    )
    for at, frame in enumerate(numbered(400)):
        first.send(frame, now_ns=1)
        second.send(frame, now_ns=1 + at * 12345)
        other.send(frame)
    assert first.out == second.out
    assert first.out != other.out
    assert first.out != numbered(400)


def test_loss_takes_about_its_share(make_line) -> None:
    line = make_line(loss=0.25, seed=3)
    for frame in numbered(4000):
        line.send(frame)
    assert 2800 < len(line.out) < 3200
    assert line.out == sorted(line.out), "what is left keeps its order"


def test_total_loss_and_certain_duplication(make_line) -> None:
    nothing, twice = make_line(loss=1.0), make_line(duplicate=1.0)
    for frame in numbered(10):
        nothing.send(frame)
        twice.send(frame)
    assert nothing.out == []
    assert twice.out == [frame for frame in numbered(10) for _ in range(2)]


def test_corruption_flips_one_bit(make_line) -> None:
    line = make_line(corrupt=1.0, seed=9)
    for frame in numbered(100):
        line.send(frame)
    flipped = [
        int.from_bytes(a, "big") ^ int.from_bytes(b, "big")
        for a, b in zip(numbered(100), line.out, strict=True)
    ]
    assert [bin(bits).count("1") for bits in flipped] == [1] * 100
    assert len(set(flipped)) > 50, "not always the same bit"


def test_a_reordered_frame_comes_behind_its_gap(make_line) -> None:
    line = make_line(reorder=1.0, reorder_gap=2, reorder_hold_ns=10**9, seed=1)
    line.send(b"late")
    assert line.out == []
    line.configure(reorder=1e-300, reorder_gap=2, reorder_hold_ns=10**9, seed=1)
    line.send(b"one")
    assert line.out == [b"one"]
    line.send(b"two")
    assert line.out == [b"one", b"two", b"late"]
    assert line.next_due() == 2**64 - 1


def test_a_reordered_frame_is_let_out_when_nothing_follows(make_line) -> None:
    line = make_line(reorder=1.0, reorder_gap=2, reorder_hold_ns=1000)
    line.send(b"late", now_ns=500)
    assert line.next_due() == 1500
    line.release(1499)
    assert line.out == []
    line.release(1500)
    assert line.out == [b"late"]


def test_delay_keeps_the_order_and_jitter_need_not(make_line) -> None:
    even, uneven = make_line(delay_ns=1000), make_line(delay_ns=1000, jitter_ns=900, seed=2)
    for at, frame in enumerate(numbered(50)):
        even.send(frame, now_ns=1 + at)
        uneven.send(frame, now_ns=1 + at)
    even.release(1000)
    assert even.out == []
    for line in (even, uneven):
        line.release(1000 + 1 + 50 + 900)
        assert sorted(line.out) == numbered(50)
    assert even.out == numbered(50)
    assert uneven.out != numbered(50)


def test_a_long_queue_of_jittered_frames_comes_out_by_time(make_line) -> None:
    line = make_line(delay_ns=10**6, jitter_ns=10**6, seed=4)
    for frame in numbered(500):
        line.send(frame, now_ns=1)
    seen = 0
    while (due := line.next_due()) != 2**64 - 1:
        line.release(due - 1)
        assert len(line.out) == seen, "nothing leaves before its time"
        line.release(due)
        assert len(line.out) > seen
        seen = len(line.out)
    assert sorted(line.out) == numbered(500)


def test_a_full_line_drops_and_stays_usable(make_line) -> None:
    line = make_line(delay_ns=1000)
    for _ in range(1200):
        line.send(bytes(32 * 1024), now_ns=1)
    line.release(2000)
    assert len(line.out) == 1024, "32 MiB wait at most"
    line.send(b"again", now_ns=3000)
    line.release(4000)
    assert line.out[-1] == b"again"
