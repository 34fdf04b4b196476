# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Starts new epochs of installed jobs.

A job gets a new epoch on the trees and slots that it has when a member requests one, when another process takes the
place of a member, when a worker registers other RoCE connections (members.py calls `start` or `start_or_move`), and
when a switch lost its registers (`on_registers_lost`). Each placement and migration starts an epoch on new trees and
slots, too (allocation.py)."""

from __future__ import annotations

import asyncio

from netfold.controller.features.targets.feature import decide_targets
from netfold.controller.jobs.records import LAST_EPOCH, JobRecord, JobState, Placement
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.events import CapacityFreed, EpochsExhausted
from netfold.controller.lifecycle.states import Lifecycle
from netfold.protocol.target import Targets

JOBS_A_CHANGE = 16
"""Jobs whose new epochs are one change. With the switches of a rack's spine it is a transaction of etcd."""


class EpochsExhaustedError(Exception):
    """All epochs of the job's slots are used up."""


class Epochs:
    """Publishes EpochsExhausted for a job that has to move to other slots. A migration ends at its new placement when
    an epoch starts there."""

    def __init__(self, state: ControllerState, lifecycle: Lifecycle) -> None:
        self._fabric = state.fabric
        self._registry = state.registry
        self._events = state.events
        self._lifecycle = lifecycle

    def start(self, job: JobRecord, why: str) -> None:
        """Start a new epoch. Raises EpochsExhaustedError."""
        with self._registry.change():
            self._registry.write(self._with_new_epoch(job, why))
        if job.previous is None:
            self._lifecycle.changed(job.name)
        else:
            self._lifecycle.replaced(job.name)

    def has_unsupported_targets(self, job: JobRecord) -> bool:
        """Whether the packets of the epoch have targets, or may have in others, that a member does not know."""
        return job.state.is_installed and self._with_supported_targets(job) is not job.placement

    def start_or_move(self, job: JobRecord, why: str) -> None:
        """Start a new epoch, or have the job moved to slots that have epochs left."""
        try:
            self.start(job, why)
        except EpochsExhaustedError as error:
            self._events.publish(EpochsExhausted(job.name, job.epoch, str(error)))

    async def on_registers_lost(self, switch: str, done: set[str]) -> None:
        """Start a new epoch of each job of a switch that has lost its registers, and with them the sums of jobs. Some
        jobs are a change, so that none grows with the number of all, and heartbeats are read in between. The caller
        repeats the call until all are stored. `done`: empty at first, and then the names of those that are. Raises
        StoreError."""
        names = [j.name for j in self._registry.all() if j.name not in done and _uses(j, switch)]
        why = f"switch {switch} lost its registers"
        renewed, exhausted = list[JobRecord](), list[EpochsExhausted]()
        if not done:  # else blocks have the new epochs
            with self._registry.change():
                self._registry.registers_empty(switch)
        try:
            for first in range(0, len(names), JOBS_A_CHANGE):
                if first:
                    await asyncio.sleep(0)
                jobs = [
                    self._registry.get(n) for n in names[first : first + JOBS_A_CHANGE] if n in self._registry
                ]
                written = list[JobRecord]()
                with self._registry.change():
                    for job in (j for j in jobs if _uses(j, switch)):  # it may have ended or moved meanwhile
                        try:
                            self._registry.write(self._with_new_epoch(job, why))
                            written.append(job)
                        except EpochsExhaustedError as error:
                            exhausted.append(EpochsExhausted(job.name, job.epoch, str(error)))
                renewed += written
                done.update(job.name for job in written)
                self._lifecycle.hold_back(job.name for job in written)
        finally:
            if renewed:
                self._lifecycle.changed(*(job.name for job in renewed))
            if any(job.previous is not None for job in renewed):
                self._events.publish(CapacityFreed())
        for event in exhausted:
            self._events.publish(event)

    def _with_new_epoch(self, job: JobRecord, why: str) -> JobRecord:
        """The job in an epoch that none of its slots has seen, within a change. Raises EpochsExhaustedError."""
        assert job.placement is not None
        epoch = max(job.epoch, self._registry.last_epoch(job.placement)) + 1
        if epoch > LAST_EPOCH:
            raise EpochsExhaustedError(f"{why}, and all {LAST_EPOCH} job epochs of its slots are used up")
        placement = self._with_supported_targets(job).model_copy(update={"epoch": epoch})
        self._registry.use_slots(placement)
        changes = {"state": JobState.INSTALLING, "placement": placement, "previous": None, "reason": why}
        return job.model_copy(update=changes)

    def _with_supported_targets(self, job: JobRecord) -> Placement:
        """The placement of the job, without targets if its members do not know them any more. It gets no others: a
        stream for gathers takes slots."""
        placement = job.placement
        assert placement is not None
        resolved = self._registry.resolved_job(job.name)
        decision = decide_targets(self._fabric, self._registry.lanes, resolved, placement.plan, job)
        lower = Targets.OFF if decision.targets is Targets.OFF else Targets.PAUSED
        if decision.targets is Targets.ON or placement.targets in (lower, Targets.OFF):
            return placement
        return placement.without_targets(lower, decision.because)


def _uses(job: JobRecord, switch: str) -> bool:
    return any(switch in tree.bases for placement in job.placements for tree in placement.trees)
