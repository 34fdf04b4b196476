# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The packet level's C code under the address and undefined-behavior sanitizers, warnings as errors, in a process of
its own: jobs, rings and flows that lose packets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from netfold.simulator.native import sources_of
from netfold.simulator.recipe import OPTIONS

SCRIPT = """
import ctypes, sys
from netfold.simulator.packet import native
code = ctypes.CDLL(sys.argv[1])
native.library = lambda: code
from tests.simulator import test_packet_level as level, test_packet_targets as targets
from netfold.simulator.scenario import TcpVariant
level.test_sums_are_right_whatever_is_lost("grid")
level.test_sums_are_right_whatever_is_lost("none")
for kind in targets.KINDS:
    targets.test_blocks_are_right_whatever_is_lost(kind, "grid")
level.test_a_ring_moves_the_gradient_almost_twice()
level.test_it_ends_when_it_is_told_to()
for variant in TcpVariant:
    level.test_flows_arrive_whatever_is_lost(variant)
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc, whose sanitizers are used")
def test_no_fault_is_found(tmp_path: Path):
    built = tmp_path / "packet.so"
    sources = [str(s) for s in sources_of("packet") if s.suffix == ".c"]
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(
        [
            "gcc",
            "-std=gnu11",
            "-O1",
            "-g",
            "-fPIC",
            "-shared",
            *checks,
            "-o",
            built,
            *sources,
            *OPTIONS["packet"],
        ],
        check=True,
    )
    asan = subprocess.check_output(["gcc", "-print-file-name=libasan.so"], text=True).strip()
    environment = {**os.environ, "LD_PRELOAD": asan, "ASAN_OPTIONS": "detect_leaks=0"}
    command = [sys.executable, "-c", SCRIPT, str(built)]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
