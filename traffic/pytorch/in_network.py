# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of a host's first rank, through the network."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from netfold.protocol.connection import Connection
from netfold.protocol.target import Targets
from netfold.traffic.membership.jobs import KeptJob, cancel_job, interrupt_job
from netfold.traffic.pytorch.tensor_call import NetworkUse, TensorCall
from netfold.traffic.pytorch.work import CALLBACKS
from netfold.traffic.worker.call_dump import program_location
from netfold.traffic.worker.handle import Handle
from netfold.traffic.worker.worker import Worker

log = logging.getLogger("netfold.torch")

_CANCEL_S = 3.0


class InNetworkReducer:
    """A `tensor_call.Reducer` over hosts. Its averages divide by the number of hosts. `kept`: the job, if it outlives
    its ranks."""

    def __init__(
        self, worker: Worker, where: Connection, job: str, host: str, kept: KeptJob | None = None
    ) -> None:
        self._worker = worker
        self._where = where
        self._job = job
        self._host = host
        self._kept = kept

    def start(self, call: TensorCall) -> None:
        submit_to_worker(self._worker, call)

    def on_end(self, callback: Callable[[Exception], None]) -> None:
        self._worker.on_end(lambda error: CALLBACKS.run(lambda: callback(error)))

    def abort(self, cause: str) -> None:
        """Ends the calls of all members of the job: cancels it, or interrupts one that is kept."""
        by = f"a rank at host {self._host}: {cause}"
        if self._kept is not None:
            interrupt_job(self._where, self._job, self._kept.generation, by, _CANCEL_S)
        elif cancel_job(self._where, self._job, by, _CANCEL_S):
            log.warning("job %s is canceled because this rank cannot continue", self._job)

    def report_waiting(self, waiting: Callable[[], str]) -> None:
        """Add what the reducer waits for on this host, "" if for nothing, to the place of the program in reports."""
        self._worker.stats.location = lambda: "; ".join(filter(None, (program_location(), waiting())))

    def network_use(self) -> NetworkUse:
        """Raises TrafficError when the job has ended."""
        assignment, stats = self._worker.assignment, self._worker.stats
        return NetworkUse(assignment.rate_mbps, assignment.link_mbps, stats.chunks, stats.retransmits)

    @property
    def has_targets(self) -> bool:
        """Whether epochs of the job may have targets."""
        return self._worker.assignment.targets is not Targets.OFF

    def close(self) -> None:
        self._worker.close()


def submit_to_worker(worker: Worker, call: TensorCall) -> None:
    """Submits the call; `call.done` gets the error of its result, or None."""

    def on_done(handle: Handle) -> None:
        try:
            handle.result()
        except Exception as error:
            call.done(error)
        else:
            call.done(None)

    gradient = call.gradient
    handle = worker.submit(
        call.array(),
        call.op,
        call.remaining_s(),
        call.context,
        lossy=gradient is not None,
        follows_all=gradient is not None and gradient.follows_all,
        warm_up=gradient is not None and gradient.warm_up,
        remainder=None if gradient is None or gradient.remainder is None else np.asarray(gradient.remainder),
        blocks=call.blocks,
        kind=call.kind,
    )
    handle.add_done_callback(on_done)
