# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of a host's leader, through the network."""

from __future__ import annotations

import logging

from netfold.api.connection import Connection
from netfold.traffic.membership.jobs import cancel_job
from netfold.traffic.pytorch.call import Call
from netfold.traffic.worker.handle import Handle
from netfold.traffic.worker.worker import Worker

log = logging.getLogger("netfold.torch")

_CANCEL_S = 3.0


class Network:
    """A `call.Carrier`. Its averages are over hosts, which is over ranks where each host has one."""

    def __init__(self, worker: Worker, where: Connection, job: str) -> None:
        self._worker = worker
        self._where = where
        self._job = job

    def start(self, call: Call) -> None:
        start(self._worker, call)

    def give_up(self) -> None:
        """Ends the job: its other members hear that at once."""
        if cancel_job(self._where, self._job, _CANCEL_S):
            log.warning("job %s is canceled, as this rank cannot go on", self._job)

    def close(self) -> None:
        self._worker.close()


def start(worker: Worker, call: Call) -> None:
    """Hands the call to the worker; its end to the call's `done`."""

    def over(handle: Handle) -> None:
        try:
            handle.result()
        except Exception as error:
            call.done(error)
        else:
            call.done(None)

    worker.submit(call.array(), call.op, call.left()).add_done_callback(over)
