# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine's core under the address and undefined-behavior sanitizers: hostile packets, epochs and times."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from netfold.traffic.engine.recipe import FOLDER

CORE = ("numbers", "dtypes", "codec", "control", "tree", "call", "core")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DNF_PLAIN")


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("engine") / "fuzz"
    sources = [Path(__file__).with_name("engine_fuzz.c"), *(FOLDER / f"{name}.c" for name in CORE)]
    strict = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Wconversion", "-Werror")
    command = ["gcc", *strict, *SANITIZE, f"-I{FOLDER}", "-o", made, *sources, "-lm"]
    subprocess.run(command, check=True, timeout=100)
    return made


def fuzz(fuzzer: Path, seed: int, steps: int) -> str:
    done = subprocess.run(
        [fuzzer, str(seed), str(steps)], capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("seed", range(3))
def test_whatever_comes_the_core_stays_within_its_memory(fuzzer: Path, seed: int):
    assert "calls done" in fuzz(fuzzer, seed, 30_000)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 110))
def test_whatever_comes_for_long_the_core_stays_within_its_memory(fuzzer: Path, seed: int):
    fuzz(fuzzer, seed, 1_000_000)
