# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Stores that members have joined. Those that join in one turn of the event loop are one change: with etcd a change
takes milliseconds, in which nothing else goes on, and a thousand members come together."""

from __future__ import annotations

import asyncio

from netfold.controller.jobs.records import JobRecord
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.members import Members


class Joins:
    """Stores the plain case, in which nothing but the member changes. The member's heartbeat, which follows, finds it
    stored, and does all else."""

    def __init__(self, state: ControllerState, members: Members) -> None:
        self._members = members
        self._registry = state.registry
        self._changes = state.changes
        self._waiting: list[tuple[str, str, int]] = []
        self._stored: asyncio.Future[None] | None = None

    async def store(self, name: str, host: str, process: int, *, supports_targets: bool) -> bool:
        """Return once the store has the member, and whether that took time, in which another process of the member may
        have joined. Raises UnknownJobError, StoreError."""
        if not supports_targets or self._joined(self._registry.get(name), host, process) is None:
            return False
        if self._stored is None:
            loop = asyncio.get_running_loop()
            self._stored = loop.create_future()
            self._stored.add_done_callback(asyncio.Future.exception)  # all that wait may be canceled
            loop.call_later(0, self._commit)
        self._members.renew_lease(name, host)  # its stream may end before its heartbeat is handled
        self._waiting.append((name, host, process))
        await asyncio.shield(self._stored)
        return True

    def _joined(self, job: JobRecord, host: str, process: int) -> JobRecord | None:
        """The job after the member has joined; None if its heartbeat changes nothing, or more than the member. A
        process that takes the place of another one may need a new epoch, as one without a number may."""
        member = job.member(host)
        if job.state.is_terminal or member is None or member.left or host in job.excluded:
            return None
        is_first = process != 0 and not member.is_of_other_process(process)
        if not is_first or (member.joined and member.supports_targets):
            return None
        return job.with_member(host, joined=True, process=process, supports_targets=True)

    def _commit(self) -> None:
        waiting, stored = self._waiting, self._stored
        self._waiting, self._stored = [], None
        assert stored is not None
        try:
            with self._registry.change():
                for name, host, process in waiting:
                    if name in self._registry:
                        job = self._joined(self._registry.get(name), host, process)
                        if job is not None:
                            self._registry.write_member(job, host)
        except Exception as error:  # those that wait would do so for ever
            stored.set_exception(error)
        else:
            stored.set_result(None)
            self._changes.notify()
