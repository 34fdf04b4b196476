# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs points in several processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection

from netfold.simulator.sweep.task import Json, SweepError, SweepTask


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
