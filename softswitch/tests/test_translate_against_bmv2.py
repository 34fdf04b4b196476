# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The same entries and the same packets into BMv2 and into our switch: the same bytes must come out of the
same ports. Copies of one frame are compared as a set, for BMv2's threads leave their order open."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import netfold_case
import pytest
from bmv2 import Bmv2, available
from cases import CASES, PORTS, state_out_of_range_frames, state_setup
from netfold_programs import COMPILED, needs_netfold
from running import PROGRAMS, running
from softswitch.testing import simple_switch
from testnet import needs_root

SEED = 20260101

pytestmark = [
    pytest.mark.bmv2,
    *needs_root,
    pytest.mark.skipif(not available(), reason="SKIPPED: simple_switch_grpc is not on PATH"),
]


@pytest.mark.parametrize("name", CASES)
def test_same_bytes_as_bmv2(name: str, tmp_path: Path, cache_dir: Path) -> None:
    compare(PROGRAMS / f"{name}.json", *CASES[name], tmp_path, cache_dir)


def test_out_of_range_indexes_do_the_same(tmp_path: Path, cache_dir: Path) -> None:
    try:
        compare(PROGRAMS / "state.json", state_setup, state_out_of_range_frames, tmp_path, cache_dir)
    except simple_switch.SwitchDiedError as died:
        if died.signal is not signal.SIGSEGV:
            raise
        # BMv2's range checks are inside #ifndef NDEBUG (targets/simple_switch/primitives.cpp): CMake's Release build
        # has none, and then there is nothing to compare with.
        pytest.skip("SKIPPED: this simple_switch_grpc is built with NDEBUG, without its range checks")


@needs_netfold
def test_netfolds_program_does_the_same_on_bmv2(tmp_path: Path, cache_dir: Path) -> None:
    program = COMPILED / f"netfold-v1model-{netfold_case.LANES}.json"
    compare(program, netfold_case.setup, netfold_case.frames, tmp_path, cache_dir)


def test_a_frame_without_a_trace_is_waited_for_until_it_is_done(tmp_path: Path) -> None:
    with Bmv2(PROGRAMS / "parsing.json", tmp_path, PORTS) as bmv2:
        assert bmv2.process is not None
        bmv2.process.send_signal(signal.SIGSTOP)
        goes_on = threading.Timer(0.3, bmv2.process.send_signal, [signal.SIGCONT])
        goes_on.start()
        began = time.monotonic()
        assert bmv2.inject(1, bytes(14), 0) == []
        assert time.monotonic() - began > 0.25
        goes_on.join()


def compare(
    program: Path,
    setup: Callable[[Any, random.Random], None],
    frames: Callable[[random.Random], Iterator[tuple[int, bytes]]],
    tmp_path: Path,
    cache_dir: Path,
) -> None:
    different = []
    with (
        running(program.read_bytes(), cache_dir) as (pipeline, switch),
        Bmv2(program, tmp_path, PORTS) as bmv2,
    ):
        setup(pipeline, random.Random(SEED))
        setup(bmv2, random.Random(SEED))
        for i, (port, frame) in enumerate(frames(random.Random(SEED + 1))):
            ours = [o for o in switch.inject(port, frame, i * 1_000_000) if 1 <= o[0] <= PORTS]
            theirs = bmv2.inject(port, frame, len(ours))
            if sorted(ours) != sorted(theirs):
                different.append(show(i, port, frame, ours, theirs))
            if len(different) == 3:
                break
        if not different:
            assert bmv2.take(1, 0.3) == [], "BMv2 sent more than we did"
    assert not different, f"seed {SEED}:\n" + "\n".join(different)


def show(
    i: int, port: int, frame: bytes, ours: list[tuple[int, bytes]], theirs: list[tuple[int, bytes]]
) -> str:
    lines = [f"packet {i} into port {port}: {frame.hex()}"]
    lines += [f"   ours out of {p}: {data.hex()}" for p, data in ours]
    lines += [f"   BMv2 out of {p}: {data.hex()}" for p, data in theirs]
    return "\n".join(lines)
