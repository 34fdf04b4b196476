# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled programs: bounded, the longest unused goes first, and never under a process that uses it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from running import PROGRAMS
from softswitch.build import native
from softswitch.build.compiler import Job
from softswitch.build.program import prune
from softswitch.engine.abi import engine_library
from softswitch.errors import PipelineError
from softswitch.state.pipeline import Pipeline
from testnet import DEADLINE_S

WIRE = (PROGRAMS / "wire.json").read_bytes()

LOADER = """
import sys
from pathlib import Path
from softswitch.build import native
from softswitch.state.pipeline import Pipeline
from softswitch.build.program import prune
from softswitch.engine.abi import engine_library
native.core_library()
native.OPTIMIZE = ("-O0",)
wire, cache = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2])
for _ in range(int(sys.argv[3])):
    pipeline = Pipeline.load(wire, cache)
    prune(cache, 0)
    assert list(cache.glob("program-*.so")), "removed while it is loaded"
    sys.stdout.write("loaded\\n")
    sys.stdout.flush()
    sys.stdin.readline()
    pipeline.close()
    prune(cache, 0)
"""


@pytest.fixture(autouse=True)
def quick_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are compiled quickly here, as none of them runs."""
    native.core_library()
    monkeypatch.setattr(native, "OPTIMIZE", ("-O0",))


def stored(cache: Path) -> set[str]:
    return {path.stem.removeprefix("program-") for path in cache.glob("program-*")}


def store(cache: Path, name: str, size: int, used: int) -> None:
    """A program of three files that take `size` bytes together."""
    for suffix, share in ((".so", size - 20), (".json", 10), (".c", 10)):
        (cache / f"program-{name}{suffix}").write_bytes(bytes(share))
    os.utime(cache / f"program-{name}.so", (used, used))


@pytest.mark.parametrize(
    ("limit", "left"), [(1000, "abc"), (999, "ac"), (700, "ac"), (600, "a"), (300, "a"), (299, ""), (0, "")]
)
def test_the_longest_unused_go_first(tmp_path: Path, limit: int, left: str) -> None:
    for name, size, used in (("a", 300, 3), ("b", 300, 1), ("c", 400, 2)):
        store(tmp_path, name, size, used)
    (tmp_path / "core-0.so").write_bytes(bytes(5000))
    prune(tmp_path, limit)
    assert stored(tmp_path) == set(left)
    assert len(list(tmp_path.iterdir())) == 3 * len(left) + 1


def test_a_program_counts_as_used_when_it_is_loaded_and_stays_while_it_is(tmp_path: Path) -> None:
    Pipeline.load(WIRE, tmp_path).close()
    (name,) = stored(tmp_path)
    os.utime(tmp_path / f"program-{name}.so", (1, 1))
    store(tmp_path, "other", 100, 2)
    pipeline = Pipeline.load(WIRE, tmp_path)
    prune(tmp_path, 0)
    assert stored(tmp_path) == {name}
    store(tmp_path, "other", 100, 2)
    pipeline.close()
    prune(tmp_path, sum(file.stat().st_size for file in tmp_path.iterdir()) - 1)
    assert stored(tmp_path) == {name}
    layout = tmp_path / f"program-{name}.json"
    layout.unlink()
    Pipeline.load(WIRE, tmp_path).close()
    assert layout.exists(), "made again"
    prune(tmp_path, 0)
    assert stored(tmp_path) == set()


def test_processes_that_build_load_and_prune_at_once_do_not_hurt_each_other(tmp_path: Path) -> None:
    rounds = 2
    command = [sys.executable, "-c", LOADER, PROGRAMS / "wire.json", tmp_path, str(rounds)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        for process in processes:
            said, _ = process.communicate("\n" * rounds, timeout=3 * DEADLINE_S)
            assert process.returncode == 0
            assert said == "loaded\n" * rounds
        assert stored(tmp_path) == set()
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_program_that_another_process_uses_stays(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOADER, PROGRAMS / "wire.json", tmp_path, "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "loaded\n"
            prune(tmp_path, 0)
            assert len(stored(tmp_path)) == 1
            process.stdin.write("\n")
            process.stdin.close()
            assert process.wait(DEADLINE_S) == 0
        finally:
            process.kill()
    assert stored(tmp_path) == set()


def test_the_engine_is_compiled_with_optimization(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Compiled(Exception):
        pass

    def compile_shared(sources: object, target: Path, flags: tuple[str, ...]) -> None:
        raise Compiled(target.name, flags)

    monkeypatch.setattr(native, "compile_shared", compile_shared)
    with pytest.raises(Compiled) as made:
        engine_library(tmp_path)
    name, flags = made.value.args
    assert name.startswith("engine-")
    assert {"-O2", "-O3"} & set(flags)


def test_a_folder_is_named_as_one_pleases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Pipeline.load(WIRE, Path()).close()
    assert len(stored(tmp_path)) == 1


def test_what_another_user_could_have_put_there_is_not_run(tmp_path: Path) -> None:
    Pipeline.load(WIRE, tmp_path).close()
    (program,) = tmp_path.glob("program-*.so")
    program.chmod(0o666)
    with pytest.raises(PipelineError, match="not ours alone"):
        Pipeline.load(WIRE, tmp_path)
    program.chmod(0o600)
    Pipeline.load(WIRE, tmp_path).close()
    tmp_path.chmod(0o777)
    with pytest.raises(PipelineError, match="not ours alone"):
        Pipeline.load(WIRE, tmp_path)
    tmp_path.chmod(0o700)


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(_job: Job) -> bytes:
        raise PipelineError("gcc failed")

    with pytest.raises(PipelineError, match="gcc failed"):
        Pipeline.load(WIRE, tmp_path, compile_c=fail)
    assert list(tmp_path.iterdir()) == []
