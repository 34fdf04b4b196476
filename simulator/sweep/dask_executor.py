# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs points on the workers of an existing Dask scheduler.

A scheduler's clients can run code on its workers, and it can run code here. It is reached as Dask's own
configuration has it (`tls://` and `DASK_DISTRIBUTED__COMM__TLS__*`)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from distributed import Client, as_completed
from distributed.scheduler import KilledWorker

from netfold.simulator.sweep.code_version import code_version
from netfold.simulator.sweep.task import Json, SweepError, SweepTask

SCHEDULER_TIMEOUT_S, FIRST_WORKER_TIMEOUT_S = 15, 60
"""These are the timeouts of a scheduler's answer, and of its first worker."""


def run_on_dask(tasks: Sequence[tuple[int, SweepTask]], scheduler: str) -> Iterator[tuple[int, Json]]:
    """Yields results with their tasks' numbers, in order of completion. Raises SweepError."""
    with _client(scheduler) as client:
        _check_code_versions(client)
        futures = {
            client.submit(task.run, key=f"netfold-{number}-{id(tasks)}", pure=False): number
            for number, task in tasks
        }
        try:
            for future in as_completed(futures):
                number = futures.pop(future)
                try:
                    yield number, future.result()
                except KilledWorker as error:
                    task = dict(tasks)[number]
                    raise SweepError(
                        f"{task}: the workers that ran it died; was there too little memory?"
                    ) from error
                future.release()
        finally:
            client.cancel(list(futures), force=True)


@contextmanager
def _client(scheduler: str) -> Iterator[Client]:
    logging.getLogger("distributed").setLevel(logging.ERROR)
    try:
        client = Client(scheduler, timeout=SCHEDULER_TIMEOUT_S)
    except (OSError, ValueError, RuntimeError) as error:
        raise SweepError(
            f"no Dask scheduler answers at {scheduler} ({error}); an address looks like tcp://HOST:8786 or "
            "tls://HOST:8786, for which Dask's own configuration names the certificates"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=FIRST_WORKER_TIMEOUT_S)
        except TimeoutError as error:
            raise SweepError(f"the Dask scheduler at {scheduler} has no workers") from error
        yield client


def _check_code_versions(client: Client) -> None:
    """Checks that workers have this version of the code, under which results are cached. Raises SweepError."""
    try:
        versions = client.run(code_version)
    except ModuleNotFoundError as error:
        raise SweepError(f"the Dask workers cannot import netfold ({error}); install it there too") from error
    for worker, version in versions.items():
        if version != code_version():
            raise SweepError(
                f"the Dask worker {worker} has another netfold, or other libraries, than this machine; its results "
                "could differ: install the same there"
            )
