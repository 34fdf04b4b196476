# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Requests of operators: submit a job, cancel it, plan jobs again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.jobs.submitter import UNNAMED, Submitter
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.events import LinksKnown
from netfold.controller.lifecycle.job_registry import UnknownJobError
from netfold.controller.lifecycle.states import Lifecycle
from netfold.controller.planning.plan import Plan
from netfold.controller.scheduling.migration_scheduler import MigrationScheduler
from netfold.controller.scheduling.placement_scheduler import PlacementScheduler
from netfold.controller.switches.failed_elements import NO_ELEMENTS, elements_named


class OperatorRequests:
    def __init__(
        self,
        state: ControllerState,
        lifecycle: Lifecycle,
        placements: PlacementScheduler,
        migrations: MigrationScheduler,
    ) -> None:
        self._state = state
        self._registry = state.registry
        self._lifecycle = lifecycle
        self._placements = placements
        self._migrations = migrations
        self._inherited = {j.name for j in self._registry.all()}
        """Names of the jobs that the last controller left."""

    async def submit(
        self,
        text: str,
        submitter: Submitter = UNNAMED,
        *,
        queue: bool,
        source: str = "",
        request_id: str = "",
    ) -> JobRecord:
        """Admit a job; shortly after a start only when all switches are connected or given up. `source`: name of the
        file in messages. A request whose answer was lost changes nothing. Raises JobError for a bad file,
        JobExistsError, RefusedError (unless it may wait)."""
        resolved = await asyncio.to_thread(resolve_job, text, self._state.fabric, source or "job")
        await self._state.failures.known.wait()
        if not self._registry.has_live(resolved.file.name):
            self._state.member_status.forget(resolved.file.name)
        return await self._placements.submit(resolved, submitter, queue=queue, request_id=request_id)

    async def plan(
        self,
        text: str,
        submitter: Submitter = UNNAMED,
        *,
        source: str = "",
        without: Sequence[str] = (),
        is_hidden: Callable[[str], bool] = lambda name: False,
    ) -> Plan:
        """The plan that a job would have now, around the elements `without`. Nothing is kept of it. Raises JobError,
        WithdrawalError, RefusedError, LimitError, and JobExistsError for a job that is hidden from the submitter."""
        fabric = self._state.fabric
        resolved = await asyncio.to_thread(resolve_job, text, fabric, source or "job")
        avoided = await asyncio.to_thread(elements_named, fabric, without) if without else NO_ELEMENTS
        await self._state.failures.known.wait()
        return await self._placements.plan(resolved, submitter, avoided, is_hidden)

    def cancel(self, name: str, canceled_by: str = "") -> JobRecord:
        """Cancel a job. Raises UnknownJobError."""
        if not self._registry.get(name).state.is_terminal:
            self._lifecycle.end(name, JobState.CANCELED, f"canceled by {canceled_by or 'an operator'}")
        return self._registry.get(name)

    async def replan(self, names: Iterable[str]) -> list[str]:
        """Plan these jobs again, one by one; those that gain enough move. Raises UnknownJobError."""
        chosen = [self._registry.get(n) for n in names] or self._registry.all()
        moved = [j.name for j in chosen if await self._migrations.replan(j.name)]
        self._placements.try_queue()
        return moved

    def on_links_known(self, _: LinksKnown) -> None:
        """Plan jobs again that this controller placed before all links had answered a probe: their plans could not use
        the whole fabric."""
        early = [
            j.name for j in self._registry.all() if j.state.is_installed and j.name not in self._inherited
        ]
        self._state.tasks.spawn(
            self._replan_running(early), "jobs that were planned before all links were known"
        )

    async def _replan_running(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(UnknownJobError):
                while self._registry.get(name).state is JobState.INSTALLING:
                    await self._state.changes.wait(name)
                await self._migrations.replan(name)
