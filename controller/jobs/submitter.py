# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The submitter of a job, and the limits of its tenant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn

from netfold.controller.jobs.file import ResolvedJob
from netfold.controller.jobs.records import JobRecord, JobState

_SLURM_NAME = re.compile(r"slurm-[0-9]+")


class LimitError(Exception):
    """A tenant has reached one of its limits, which the message has with its value, or the name is not for users."""


class LastingLimitError(LimitError):
    """The job would be above a limit of its tenant also if the tenant had no other job."""


@dataclass(frozen=True)
class TenantLimits:
    """Limits of a tenant; None: no limit.

    jobs      jobs that have not ended
    queued    jobs that wait for capacity
    rate      rates of all workers of all its jobs together, in the fabric's unit
    priority  highest priority of a job
    calls     calls a second; None: the default
    planning  seconds of planning for its submissions, within an hour

    weight    no limit: its part of the fabric among tenants whose jobs wait; None: 1
    """

    jobs: int | None = None
    queued: int | None = None
    rate: float | None = None
    priority: int | None = None
    calls: float | None = None
    planning: float | None = None
    weight: float | None = None


@dataclass(frozen=True)
class Submitter:
    """`name`, `tenant`: "": the caller has none, as at a Unix socket. `may_name_for_slurm`: whether a job may have the
    name of a job of Slurm. Users that took such names would keep out the jobs of others."""

    name: str = ""
    tenant: str = ""
    limits: TenantLimits = field(default_factory=TenantLimits)
    may_name_for_slurm: bool = False

    @property
    def weight(self) -> float:
        return self.limits.weight or 1.0

    def check(
        self, resolved: ResolvedJob, jobs: Iterable[tuple[JobRecord, ResolvedJob]], *, queued: bool
    ) -> None:
        """Check a new job. `jobs`: those of the tenant that have not ended. Raises LimitError."""
        limits, file, own = self.limits, resolved.file, list(jobs)
        if _SLURM_NAME.fullmatch(file.name) and not self.may_name_for_slurm:
            raise LastingLimitError(
                f"the name '{file.name}' is kept for a job of Slurm; expected another one"
            )
        if limits.priority is not None and file.priority > limits.priority:
            self._refuse(f"priority is {file.priority}", f"priority={limits.priority}", LastingLimitError)
        if limits.jobs is not None and len(own) >= limits.jobs:
            self._refuse(f"{len(own)} jobs have not ended", f"jobs={limits.jobs}")
        waiting = sum(job.state is JobState.QUEUED for job, _ in own)
        if queued and limits.queued is not None and waiting >= limits.queued:
            self._refuse(f"{waiting} jobs are queued", f"queued={limits.queued}")
        self.check_rate(resolved, len(resolved.workers), own)

    def check_rate(
        self, resolved: ResolvedJob, new_workers: int, jobs: Iterable[tuple[JobRecord, ResolvedJob]]
    ) -> None:
        """Check the rate with `new_workers` of a job, and all workers of the `jobs`. Raises LimitError."""
        if self.limits.rate is None:
            return
        rate, limit = resolved.file.rate, f"rate={self.limits.rate:g}"
        if rate is None:
            self._refuse(f"job '{resolved.file.name}' has no `rate`", limit, LastingLimitError)
        own = rate * new_workers
        promised = sum(_promised(job, known) for job, known in jobs) + own
        if promised > self.limits.rate:
            kind = LastingLimitError if own > self.limits.rate else LimitError
            self._refuse(
                f"its jobs would have {promised:g} at {resolved.file.name}'s rate of {rate:g}", limit, kind
            )

    def _refuse(self, what: str, limit: str, kind: type[LimitError] = LimitError) -> NoReturn:
        raise kind(f"tenant '{self.tenant}': {what}; its limit is {limit}")


def _promised(job: JobRecord, resolved: ResolvedJob) -> float:
    """The most that a job may get: it may move to a plan with the rate of its file."""
    planned = 0.0 if job.placement is None else job.placement.plan.rate
    rate = planned if resolved.file.rate is None else resolved.file.rate
    return rate * len(resolved.workers)


UNNAMED = Submitter(may_name_for_slurm=True)
