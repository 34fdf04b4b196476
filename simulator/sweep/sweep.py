# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs many points of one function: from the cache, in processes of this machine, or on Dask. The place where a
point ran changes no bit."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TypeVar

from netfold.simulator.sweep.cache import Cache
from netfold.simulator.sweep.task import Json, SweepError, SweepTask

JOBS = 2

Parameters = TypeVar("Parameters")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Executor:
    """Points are computed on an existing Dask scheduler, else in `jobs` processes of this machine (1: in this
    process)."""

    jobs: int = JOBS
    scheduler: str | None = None


def sweep(
    function: Callable[[Parameters], Json],
    points: Sequence[Parameters],
    executor: Executor,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Iterator[Json]:
    """Yields the results in the order of the points, each as soon as it and the earlier ones are complete. `progress`
    receives the numbers of complete points and of all points. Complete points stay in the cache.

    Raises SweepError; the first point that fails ends the sweep.
    """
    tasks = [SweepTask(function, point) for point in points]
    found = _known(tasks, cache)
    missing = [(n, task) for n, task in enumerate(tasks) if n not in found]
    if progress is not None:
        progress(len(found), len(tasks))
    sent = 0
    with closing(_run(missing, executor)) as results:
        for number, value in results:
            if cache is not None:
                cache.put(tasks[number], value)
            found[number] = value
            if progress is not None:
                progress(len(found) + sent, len(tasks))
            while sent in found:
                yield found.pop(sent)
                sent += 1
    while sent in found:
        yield found.pop(sent)
        sent += 1


def _known(tasks: Iterable[SweepTask], cache: Cache | None) -> dict[int, Json]:
    if cache is None:
        return {}
    entries = ((n, cache.get(task)) for n, task in enumerate(tasks))
    return {n: entry[0] for n, entry in entries if entry is not None}


def _run(tasks: Sequence[tuple[int, SweepTask]], executor: Executor) -> Generator[tuple[int, Json]]:
    """Yields each result with its number, in the order of completion."""
    if not tasks:
        return
    if executor.scheduler is not None:
        from netfold.simulator.sweep.dask_executor import run_on_dask  # noqa: PLC0415 (it takes seconds)

        yield from run_on_dask(tasks, executor.scheduler)
    elif executor.jobs > 1 and len(tasks) > 1:
        yield from run_in_processes(tasks, executor.jobs)
    else:
        yield from ((number, task.run()) for number, task in tasks)


def run_in_processes(tasks: Sequence[tuple[int, SweepTask]], jobs: int) -> Iterator[tuple[int, Json]]:
    """Yields results with their tasks' numbers, in order of completion. Raises SweepError. The processes end with
    the iterator, even while they compute."""
    context = multiprocessing.get_context("spawn")
    ended, end = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), context, _start_worker, (ended,))
    try:
        futures = {pool.submit(task.run): number for number, task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise SweepError("a process that computed points ended; was there too little memory?") from error
    finally:
        end.close()
        pool.shutdown(cancel_futures=True)
        ended.close()


def _start_worker(ended: Connection) -> None:
    """Ignores Ctrl-C, which reaches all processes of a terminal: the sweep's own process ends the others, by
    closing its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with, args=(ended,), daemon=True).start()


def _exit_with(ended: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        ended.recv()
    os._exit(1)
