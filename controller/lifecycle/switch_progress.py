# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Answers which switches of a job have not taken its entries, and whether they refuse them or are slow."""

from __future__ import annotations

from netfold.controller.jobs.records import JobRecord
from netfold.controller.switches.fleet import Fleet

MIN_REFUSALS = 3
"""Number of consecutive writes that a switch refuses, after which its refusal counts as final."""


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
