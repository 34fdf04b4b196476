# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Replaces all workers of a job at once: the next generation joins in a new epoch of the same job. It has the plan and
the slots of the one before where its hosts are the same, and a new plan otherwise.

A generation's first epoch is stored together with its number. So no process of an earlier generation is assigned an
epoch of it, and none of it an epoch that the earlier ones had."""

from __future__ import annotations

from collections import Counter

from netfold.controller.jobs.file import OnWorkerLoss
from netfold.controller.jobs.records import JobRecord
from netfold.controller.lifecycle.capacity import RefusedError, unavoidable
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.epochs import Epochs, EpochsExhaustedError
from netfold.controller.lifecycle.states import Lifecycle
from netfold.controller.scheduling.plan_scheduler import PlanPriority, PlanScheduler
from netfold.controller.scheduling.planning_client import PlanningClient
from netfold.protocol.listing import listing


class Reconfigurations:
    def __init__(
        self,
        state: ControllerState,
        lifecycle: Lifecycle,
        epochs: Epochs,
        planning: PlanningClient,
        plan_scheduler: PlanScheduler,
    ) -> None:
        self._fabric = state.fabric
        self._registry = state.registry
        self._lifecycle = lifecycle
        self._epochs = epochs
        self._planning = planning
        self._plan_scheduler = plan_scheduler

    async def reconfigure(
        self, name: str, generation: int, workers: tuple[str, ...], request_id: str
    ) -> JobRecord:
        """Start the generation after this one, of these workers of the job. A request that has started it already,
        whose answer was lost, changes nothing. Raises UnknownJobError, StoreError, and RefusedError: then the job is as
        before."""
        try:
            job = self._checked(name, generation, workers)
            if not self._keeps_plan(job, workers, request_id):

                async def work(_: bool) -> None:
                    await self._move(name, generation, workers, request_id)

                await self._plan_scheduler.run(PlanPriority.REPAIR, work)
        except RefusedError:
            job = self._registry.get(name)
            started = (job.generation, job.request_id, {*job.workers})
            is_repeated = request_id != "" and (generation + 1, request_id, {*workers}) == started
            if not is_repeated or not job.state.is_installed:
                raise
        return self._registry.get(name)

    def _checked(self, name: str, generation: int, workers: tuple[str, ...]) -> JobRecord:
        """The job, if it may be reconfigured so. Raises UnknownJobError, RefusedError."""
        job = self._registry.get(name)
        policy = self._registry.resolved_job(name).file.on_worker_loss
        if policy is not OnWorkerLoss.RECONFIGURE or not job.state.is_installed:
            raise RefusedError(
                f"job '{name}' is {job.state}, with `on_worker_loss: {policy}`; a job that is reconfigured is "
                "installed, with `on_worker_loss: reconfigure`"
            )
        if job.generation != generation:
            raise RefusedError(
                f"job '{name}' has workers of generation {job.generation}; expected generation {generation}"
            )
        known, counts = dict.fromkeys(job.all_workers), Counter(workers)
        if strange := [w for w in counts if w not in known]:
            raise RefusedError(
                f"{listing(strange)} is no worker of job '{name}'; its workers are {listing([*known])}"
            )
        if twice := [w for w, count in counts.items() if count > 1]:
            raise RefusedError(f"{listing(twice)} is named twice; each host has one worker of job '{name}'")
        return job

    def _keeps_plan(self, job: JobRecord, workers: tuple[str, ...], request_id: str) -> bool:
        """Start the next generation on the plan and the slots of the job. False: they are of other workers, pass
        failed elements, or have no epoch left."""
        assert job.placement is not None
        planned = {e.child for tree in job.placement.plan.trees for e in tree.edges}
        if set(workers) != planned & set(job.all_workers) or self._lifecycle.is_affected(job):
            return False
        following = job.next_generation(workers, request_id)
        try:
            self._epochs.start(following, _why(following))
        except EpochsExhaustedError:
            return False
        self._lifecycle.forget_members(job.name)
        return True

    async def _move(self, name: str, generation: int, workers: tuple[str, ...], request_id: str) -> None:
        """Start the next generation on a new plan, which may take the slots of the one before: that one has no workers
        any more. Raises UnknownJobError, StoreError, RefusedError."""
        job, resolved = self._checked(name, generation, workers), self._registry.resolved_job(name)
        absent = frozenset(job.next_generation(workers, request_id).excluded)
        bound = unavoidable(self._fabric, workers)
        plan = await self._planning.plan(resolved, lambda: absent, (), is_urgent=True, may_use=lambda: bound)
        following = self._checked(name, generation, workers).next_generation(workers, request_id)
        with self._registry.change():
            placed = self._registry.with_placement(following, resolved, plan, gives_up_slots=True)
            self._registry.write(placed.model_copy(update={"previous": None, "reason": _why(following)}))
        self._lifecycle.forget_members(name)
        self._lifecycle.replaced(name)


def _why(job: JobRecord) -> str:
    return f"its workers of generation {job.generation} join"
