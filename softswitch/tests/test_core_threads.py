# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The core's own locks under ThreadSanitizer: frames, control operations and swaps at once."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from mutations import base
from running import program
from softswitch.build import native
from softswitch.translate.program import translate

HERE = Path(__file__).parent
THREADS = ("-std=gnu11", "-O1", "-g", "-fsanitize=thread", "-fno-omit-frame-pointer", "-pthread")


def compile_c(*arguments: object) -> None:
    subprocess.run(["gcc", *THREADS, *map(str, arguments)], check=True, timeout=240)


SHARED = {1: (base("kinds"), base("wire")), 2: (json.loads(program("lanes")), json.loads(program("misc")))}
"""Programs by the threads that run them: `kinds` needs one."""


@pytest.mark.long
@pytest.mark.parametrize("threads", SHARED)
def test_nothing_is_touched_by_two_threads_at_once(tmp_path: Path, threads: int) -> None:
    programs = []
    for number, tree in enumerate(SHARED[threads]):
        source = tmp_path / f"{number}.c"
        source.write_text(translate(json.dumps(tree).encode()).source)
        programs.append(tmp_path / f"{number}.so")
        compile_c("-fPIC", "-shared", f"-I{native.RUNTIME}", "-o", programs[-1], source)
    stress = tmp_path / "stress"
    core = sorted(native.CORE.glob("*.c"))
    compile_c("-rdynamic", "-o", stress, HERE / "core_stress.c", *core, "-ldl")
    # ThreadSanitizer wants the address space laid out as it is used to.
    command = ["setarch", "-R", stress, *programs, "10", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    assert "ThreadSanitizer" not in done.stderr
    assert done.stdout.startswith("done ")
