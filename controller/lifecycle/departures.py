# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Decides what the remaining workers are sent when workers leave their job (docs/reference/protocol.md, 5.7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from netfold.controller.features.registry import features_in
from netfold.controller.jobs.file import JobFile, OnWorkerLoss
from netfold.controller.jobs.records import JobRecord, Member


@dataclass(frozen=True)
class Departures:
    """The first workers to leave.

    epoch       last epoch that they take part in; 0: they no longer take part in any
    calls       calls of the job that they have finished
    call_limit  calls from this number on are not completed in the present epoch
    is_final    those calls are not completed in a later epoch either: they fail. Otherwise members with further calls
                request a new epoch
    """

    hosts: tuple[str, ...]
    epoch: int
    calls: int
    call_limit: int
    is_final: bool


def departures_of(job: JobRecord, file: JobFile) -> Departures | None:
    """The departures that the other members have to be sent; None: all calls can be completed in the present epoch."""
    is_final = needs_all_workers(job, file)
    present = job.departed
    absent = [m for m in job.members if m.left and m.host in job.excluded] if is_final else []
    if not present and not absent:
        return None
    left = [*present, *absent]
    calls = min(m.calls for m in left)
    return Departures(
        hosts=tuple(m.host for m in left if m.calls == calls),
        epoch=job.epoch if present else 0,
        calls=calls,
        call_limit=0 if absent else calls,
        is_final=is_final,
    )


def needs_all_workers(job: JobRecord, file: JobFile) -> bool:
    """Whether the job cannot continue without the workers that have left, because its sums would have too few
    contributions."""
    if file.on_worker_loss is OnWorkerLoss.CONTINUE:
        return False
    workers = frozenset(job.workers)
    present = sum(not m.left and m.host in workers for m in job.members)
    return not any(feature.has_enough_workers(file, present) for feature in features_in(file))


def summary(members: Iterable[Member]) -> str:
    """Why a job is done: "every worker left", with their calls if these differ."""
    hosts: dict[int, list[str]] = {}
    for member in members:
        hosts.setdefault(member.calls, []).append(member.host)
    if len(hosts) < 2:
        return "every worker left"
    rows = (f"{', '.join(names)} after {calls} calls" for calls, names in sorted(hosts.items()))
    return f"every worker left: {'; '.join(rows)}"
