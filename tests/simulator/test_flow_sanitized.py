# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The flow level's C code under the address and undefined-behavior sanitizers: random networks run to their end."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from netfold.simulator.native import sources_of
from tests import c_programs

STRICT = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.fixture(scope="module")
def fuzzer() -> Path:
    own = sources_of("flow")
    sources = [Path(__file__).with_name("flow_fuzz.c"), *(s for s in own if s.suffix == ".c")]
    return c_programs.program("flow_fuzz", sources, [*STRICT, *SANITIZE, f"-I{own[0].parent}"])


@pytest.mark.parametrize("seed", range(12))
def test_everything_ends_within_its_memory_and_capacity(fuzzer: Path, seed: int):
    done = subprocess.run([fuzzer, str(seed)], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "events" in done.stdout
