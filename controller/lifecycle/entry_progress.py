# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Answers whether switches hold the entries of a job: those of its trees, and those that features add while it runs,
such as the connections of RoCE workers. A job moves away from a switch that does not take its entries."""

from __future__ import annotations

import logging
from typing import Protocol

from netfold.controller.features.feature import Feature
from netfold.controller.features.registry import features_of
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.lifecycle.background_tasks import BackgroundTasks
from netfold.controller.lifecycle.failure_state import FailureState
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.switches.fleet import Fleet

log = logging.getLogger(__name__)

MIN_REFUSALS = 3
"""Number of consecutive writes that a switch refuses, after which its refusal counts as final."""


class JobStates(Protocol):
    """Changes of the states of jobs (states.py)."""

    def retarget(self) -> int:
        """Set the desired state, and return its version."""

    def commit(self, job: JobRecord) -> None:
        """Store the job and notify its members."""

    def strand(self, name: str, why: str, unfinished: list[str]) -> None:
        """Move the job away from these switches."""


class FeatureEntries:
    """The versions of the desired state that have the pending entries of jobs."""

    def __init__(
        self,
        registry: JobRegistry,
        switches: SwitchProgress,
        tasks: BackgroundTasks,
        failures: FailureState,
        states: JobStates,
        install_s: float,
    ) -> None:
        self._registry = registry
        self._switches = switches
        self._tasks = tasks
        self._failures = failures
        self._states = states
        self._install_s = install_s
        self._versions: dict[str, int] = {}

    def install(self, job: JobRecord) -> None:
        """Write the pending entries of the job's features, if it has any."""
        if _pending(job):
            self._await(job.name, self._states.retarget())

    def settle(self) -> None:
        """Record the entries that all switches hold."""
        for name, version in list(self._versions.items()):
            job = self._registry.get(name)
            pending = _pending(job)
            if not pending:
                del self._versions[name]
            elif not self._switches.unfinished(job, version):
                for feature in pending:
                    job = feature.with_entries_installed(job)
                self._states.commit(job)
                del self._versions[name]
                self._failures.forget(name)
                log.info("job %s: its %s are installed in epoch %d", name, _names(pending), job.epoch)

    def version(self, name: str) -> int | None:
        """The version that has the pending entries of a job; None: it has none."""
        return self._versions.get(name)

    def forget(self, name: str) -> None:
        self._versions.pop(name, None)

    def _await(self, name: str, version: int) -> None:
        self._versions[name] = version
        self._tasks.call_later(self._install_s, self._on_timeout, name, version, job=name)

    def _on_timeout(self, name: str, version: int) -> None:
        """Move the job away from switches that have not taken its entries. Entries that changed meanwhile have a
        version and a timer of their own."""
        job = self._registry.get(name)
        pending = _pending(job)
        if not pending or self._versions.get(name) != version:
            return
        unfinished = self._switches.unfinished(job, version)
        if not self._switches.are_refusing(
            unfinished
        ):  # they are slow, or only the store has not recorded them as installed
            self._await(name, version)
        if unfinished:
            listed = self._switches.listed(unfinished)
            why = f"switches did not take its {_names(pending)} in {self._install_s:g} s: {listed}"
            self._states.strand(name, why, unfinished)


def _pending(job: JobRecord) -> list[Feature]:
    if job.state is not JobState.RUNNING:
        return []
    return [feature for feature in features_of(job) if feature.has_pending_entries(job)]


def _names(pending: list[Feature]) -> str:
    return " and ".join(feature.pending_entries for feature in pending)


class SwitchProgress:
    """Compares the versions of the desired state that switches hold with those that jobs wait for."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def of(self, job: JobRecord) -> list[str]:
        """All switches that hold entries of a job."""
        return sorted(job.nodes & self._fleet.sessions.keys())

    def unfinished(self, job: JobRecord, version: int) -> list[str]:
        """Switches of the new placement of the job that do not hold this version."""
        new = self.of(job.model_copy(update={"previous": None}))
        return [s for s in new if not self._fleet.holds(s, version)]

    def are_refusing(self, switches: list[str]) -> bool:
        """Whether one of the switches is connected and refuses. A slow switch takes the entries later. A switch that is
        not connected takes them when it is back, or the failure monitor gives it up."""
        found = map(self._fleet.health, switches)
        return any(h.preempted or (h.reached and h.refusals >= MIN_REFUSALS) for h in found)

    def listed(self, switches: list[str]) -> str:
        """The switches with their last errors."""
        return "; ".join(f"{s}: {self._fleet.health(s).error or 'it is too busy'}" for s in switches)
