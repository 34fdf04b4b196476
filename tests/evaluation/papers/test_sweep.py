# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sweeps: what is done stays, and where a point ran changes no bit."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from distributed import LocalCluster

from netfold.simulator.sweep import dask_executor
from netfold.simulator.sweep.cache import Cache, default_folder
from netfold.simulator.sweep.code_version import code_version
from netfold.simulator.sweep.sweep import Executor, sweep
from netfold.simulator.sweep.task import SweepError, SweepTask
from tests.evaluation.papers.points import Walk, another_version, die, fall, slow_walk, walk
from tests.house.imports import REPOSITORY

HERE = Executor(jobs=1)
TWO = Executor(jobs=2)
DEADLINE_S = 120


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", "0" * 64)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """One that was there before, with two workers."""
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.1",
                      dashboard_address=None) as cluster:  # fmt: skip
        yield cluster.scheduler_address


def _counted(log: Path) -> list[int]:
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def test_results_come_in_the_order_of_the_points() -> None:
    found = list(sweep(walk, [Walk(3), Walk(1), Walk(2)], HERE))
    assert found == [SweepTask(walk, Walk(seed)).run() for seed in (3, 1, 2)]
    assert found[0]["pair"] == [1, None]  # type: ignore[call-overload, index]


def test_two_processes_give_every_bit_that_one_process_gives(cache: Cache) -> None:
    points = [Walk(seed) for seed in range(7)]
    told: list[tuple[int, int]] = []
    there = list(sweep(walk, points, TWO, cache, lambda done, of: told.append((done, of))))
    here = list(sweep(walk, points, HERE))
    assert json.dumps(there) == json.dumps(here)
    assert told == [(n, 7) for n in range(8)]
    kept = list(sweep(walk, points, Executor(scheduler="tcp://no-scheduler.invalid:1"), cache))
    assert json.dumps(kept) == json.dumps(here)


def test_a_process_that_ends_is_an_error_and_leaves_no_process(cache: Cache) -> None:
    with pytest.raises(SweepError, match="a process that computed points ended"):
        list(sweep(die, [Walk(seed) for seed in (1, 2, 3)], TWO, cache))
    assert multiprocessing.active_children() == []


def test_a_sweep_that_is_given_up_ends_its_processes(tmp_path: Path) -> None:
    """The other points wait for a file that never comes."""
    points = [Walk(seed, log=str(tmp_path / "go")) for seed in range(3)]
    found = sweep(slow_walk, points, TWO)
    assert next(found) == SweepTask(walk, Walk(0)).run()
    assert multiprocessing.active_children() != []
    found.close()  # type: ignore[attr-defined]
    assert multiprocessing.active_children() == []


def test_a_point_is_computed_once(cache: Cache, tmp_path: Path) -> None:
    log = tmp_path / "log"
    points = [Walk(seed, log=str(log)) for seed in range(4)]
    first = sweep(walk, points, HERE, cache)
    assert [next(first), next(first)]
    first.close()  # type: ignore[attr-defined]  # interrupted
    assert len(list(sweep(walk, points, HERE, cache))) == 4
    assert _counted(log) == [0, 1, 2, 3]


@pytest.mark.parametrize("damage", ["", "{", "null", '{"value": 1}', "\x00\xff", "changed", "of another"])
def test_a_damaged_entry_is_computed_again(cache: Cache, tmp_path: Path, damage: str) -> None:
    log = tmp_path / "log"
    task, other = SweepTask(walk, Walk(0, log=str(log))), SweepTask(walk, Walk(1, log=str(log)))
    (right,) = sweep(walk, [task.parameters], HERE, cache)
    file = cache.path(task)
    if damage == "changed":
        entry = json.loads(file.read_text())
        entry["value"]["end"] += 1
        file.write_text(json.dumps(entry))
    elif damage == "of another":
        cache.put(other, other.run())
        file.write_bytes(cache.path(other).read_bytes())
    else:
        file.write_text(damage, encoding="latin-1")
    assert list(sweep(walk, [task.parameters], HERE, cache)) == [right]
    assert _counted(log).count(0) == 2
    assert cache.get(task) == (right,)
    assert [p.suffix for p in file.parent.iterdir() if p != cache.path(other)] == [".json"]


def test_parameters_function_and_version_tell_entries_apart(cache: Cache) -> None:
    @dataclass(frozen=True)
    class Stroll:
        seed: int
        steps: int
        log: str

    task = SweepTask(walk, Walk(0))
    cache.put(task, 1)
    others = [
        SweepTask(walk, Walk(1)),
        SweepTask(walk, Walk(0, steps=99)),
        SweepTask(fall, Walk(0)),
        SweepTask(walk, Stroll(0, 100, "")),
    ]
    assert [cache.get(t) for t in others] == [None] * 4
    assert replace(cache, version="1" * 64).get(task) is None
    assert cache.get(SweepTask(walk, Walk(0))) == (1,)


def test_a_result_may_be_null(cache: Cache) -> None:
    cache.put(SweepTask(walk, Walk(0)), None)
    assert list(sweep(walk, [Walk(0)], HERE, cache)) == [None]


def test_a_point_that_fails_is_named_and_what_was_done_is_kept(cache: Cache) -> None:
    with pytest.raises(SweepError, match=r"fall\(Walk\(seed=2.*ValueError: too steep"):
        list(sweep(fall, [Walk(seed) for seed in (0, 1, 2)], HERE, cache))
    assert [cache.get(SweepTask(fall, Walk(seed))) is not None for seed in (0, 1, 2)] == [True, True, False]


def test_an_existing_scheduler_gives_the_same(scheduler: str) -> None:
    points = [Walk(seed) for seed in range(5)]
    there = list(sweep(walk, points, Executor(scheduler=scheduler)))
    assert json.dumps(there) == json.dumps(list(sweep(walk, points, HERE)))


def test_a_point_that_fails_on_a_worker_is_named(scheduler: str) -> None:
    with pytest.raises(SweepError, match=r"fall\(Walk\(seed=2.*ValueError: too steep"):
        list(sweep(fall, [Walk(seed) for seed in (1, 2)], Executor(scheduler=scheduler)))


def test_workers_with_other_code_are_refused(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "code_version", another_version)
    with pytest.raises(SweepError, match=r"worker .* has another netfold"):
        list(sweep(walk, [Walk(1), Walk(2)], Executor(scheduler=scheduler)))


def test_points_are_frozen_dataclasses_and_functions_can_be_found_by_name() -> None:
    @dataclass
    class Loose:
        seed: int

    with pytest.raises(TypeError, match="not a frozen dataclass"):
        SweepTask(walk, Loose(1))
    with pytest.raises(TypeError, match="top level of a module"):
        SweepTask(lambda p: None, Walk(1))


def test_the_cache_lies_where_caches_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "netfold" / "sweeps"
    assert len(code_version()) == 64


def test_a_folder_that_cannot_be_written_is_refused_at_once() -> None:
    with pytest.raises(SweepError, match=r"/proc/none.*--no-cache"):
        Cache(Path("/proc/none"), "0" * 64)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netfold.simulator.sweep.dask_executor.SCHEDULER_TIMEOUT_S", 1)
    with pytest.raises(SweepError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1 "):
        list(sweep(walk, [Walk(0), Walk(1)], Executor(scheduler="tcp://127.0.0.1:1")))
    with pytest.raises(SweepError, match=r"no Dask scheduler answers at nonsense://1 "):
        list(sweep(walk, [Walk(0)], Executor(scheduler="nonsense://1")))


@pytest.mark.long
def test_ctrl_c_ends_clean_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """A terminal's Ctrl-C reaches the command and its workers all at once."""
    command = [
        sys.executable,
        "-c",
        f"from tests.evaluation.papers.points import main; main({str(tmp_path)!r})",
    ]

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, cwd=REPOSITORY, start_new_session=True, stderr=subprocess.PIPE, text=True
        )

    process = start()
    deadline = time.monotonic() + DEADLINE_S
    while not list(tmp_path.glob("*/*.json")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert said.strip() == (
        "netfold test: interrupted; the same command continues with the remaining points, unless --no-cache"
    )
    assert not (tmp_path / "found").exists()
    kept = {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/*.json")}
    (tmp_path / "go").touch()
    _, said = start().communicate(timeout=DEADLINE_S)
    assert said == ""
    whole = [SweepTask(walk, Walk(seed)).run() for seed in range(4)]
    assert json.loads((tmp_path / "found").read_text()) == whole
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
