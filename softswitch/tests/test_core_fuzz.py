# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Every program under AddressSanitizer and UndefinedBehaviorSanitizer, fed with damaged frames."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from netfold_programs import COMPILED
from running import PROGRAMS
from softswitch.build import native
from softswitch.build.compiler import gcc

FUZZ = Path(__file__).with_name("fuzz.py")
ALL = sorted([*PROGRAMS.glob("*.json"), *COMPILED.glob("*-64.json")])
DEADLINE_S = 240
"""Limit of processor time: a machine may stand still for as long. The test's timeout ends what uses none."""


def runtime(name: str) -> str:
    done = subprocess.run([gcc(), f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def fuzz(program: Path, cache: Path, seed: int, count: int) -> None:
    sanitized(FUZZ, program, cache, seed, count, cache=cache)


def sanitized(
    script: Path, *arguments: object, cache: Path | None = None, deadline_s: float = DEADLINE_S
) -> str:
    """Runs a script with the sanitizers' runtime preloaded; what it says. `cache` is for the core, `deadline_s` of
    processor time."""
    preload = runtime("libasan.so")
    if not Path(preload).exists():
        pytest.skip("SKIPPED: gcc has no libasan")
    options = "detect_leaks=1:abort_on_error=0:exitcode=99"
    environment = {
        **os.environ,
        "LD_PRELOAD": f"{preload} {runtime('libubsan.so')}",
        "ASAN_OPTIONS": options,
        "LSAN_OPTIONS": f"suppressions={FUZZ.with_name('leaks.txt')}:print_suppressions=0",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "SOFTSWITCH_CACHE": str(cache or native.default_cache_dir()),
        "PYTHONMALLOC": "malloc",
    }
    most = math.ceil(deadline_s)
    command = ["prlimit", f"--cpu={most}:{most + 1}", sys.executable, str(script), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != -signal.SIGXCPU, f"{arguments}: not done in {deadline_s:g} s"
    assert done.returncode == 0, f"{arguments}:\n{done.stdout}\n{done.stderr[-6000:]}"
    return done.stdout


@pytest.mark.slow
def test_only_processor_time_is_limited(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import time; time.sleep(3.0); print('done')")
    assert sanitized(script, deadline_s=2.0) == "done\n"
    script.write_text("while True: pass")
    with pytest.raises(AssertionError, match="not done in 2 s"):
        sanitized(script, deadline_s=2.0)


@pytest.mark.parametrize(
    "program", [PROGRAMS / "parsing.json", PROGRAMS / "copies.json"], ids=lambda p: p.stem
)
def test_damaged_frames_a_few(program: Path, cache_dir: Path) -> None:
    fuzz(program, cache_dir, 1, 300)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("program", ALL, ids=lambda p: p.stem)
def test_damaged_frames(program: Path, seed: int, cache_dir: Path) -> None:
    fuzz(program, cache_dir, seed, 20_000)
