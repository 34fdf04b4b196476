# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Points on Dask: a cluster of this machine's own, or an existing one.

Who may speak to a scheduler may run code on its workers, and a scheduler may run code here: so the own cluster listens
on the loopback with TLS by a certificate that lives as long as it does, and an existing one is spoken to as Dask's own
configuration says (`tls://` and `DASK_DISTRIBUTED__COMM__TLS__*`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from distributed import Client, LocalCluster, as_completed
from distributed.scheduler import KilledWorker
from distributed.security import Security

from netfold.experiments.sweep.point import Json, SweepError, Task
from netfold.experiments.sweep.version import code_version

ANSWER_S, WORKERS_S = 15, 60
"""For a scheduler to answer, and for its first worker to come."""
LEAVE_INTERRUPTS_ALONE = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""Ctrl-C reaches a terminal's processes all at once; this one ends the others."""


def run_on_dask(
    tasks: Sequence[tuple[int, Task]], jobs: int, scheduler: str | None
) -> Iterator[tuple[int, Json]]:
    """Each with its number, as they are done. Raises SweepError."""
    with _client(min(jobs, len(tasks)), scheduler) as client:
        _same_code(client)
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
def _client(jobs: int, scheduler: str | None) -> Iterator[Client]:
    logging.getLogger("distributed").setLevel(logging.ERROR)
    if scheduler is None:
        with (
            LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                memory_limit=0,
                host="127.0.0.1",
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # 8787 may be another sweep's
                security=Security.temporary(),
                preload=[LEAVE_INTERRUPTS_ALONE],
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(scheduler, timeout=ANSWER_S)
    except (OSError, ValueError, RuntimeError) as error:
        raise SweepError(
            f"no Dask scheduler answers at {scheduler} ({error}); an address looks like tcp://HOST:8786 or "
            "tls://HOST:8786, for which Dask's own configuration names the certificates"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=WORKERS_S)
        except TimeoutError as error:
            raise SweepError(f"the Dask scheduler at {scheduler} has no workers") from error
        yield client


def _same_code(client: Client) -> None:
    """Results are kept by this version of the code, so no other may make them."""
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
