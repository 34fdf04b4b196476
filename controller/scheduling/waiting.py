# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the running jobs that have to end before a queued job fits."""

from __future__ import annotations

from collections.abc import Iterable

from netfold.controller.jobs.records import JobRecord, Placement
from netfold.controller.lifecycle.job_admission import background_of, fits
from netfold.controller.planning.plan import Loads
from netfold.controller.planning.validate import add_loads
from netfold.topologies.fabric import Fabric


def jobs_in_the_way(
    fabric: Fabric, reserved: Placement, ahead: Loads, jobs: Iterable[JobRecord]
) -> list[JobRecord]:
    """The installed jobs without which the reserved placement has its rate, in addition to all others and the
    reservations `ahead` of it. Of jobs that could replace each other the earlier ones are named, because they tend to
    end first. Empty if the placement does not fit in addition to the reservations alone."""
    in_the_way: list[JobRecord] = []
    background = ahead
    if not fits(fabric, reserved.plan, background):
        return []
    for job in sorted((j for j in jobs if j.state.is_installed), key=lambda j: j.seq, reverse=True):
        more = add_loads(background, background_of([job]))
        if fits(fabric, reserved.plan, more):
            background = more
        else:
            in_the_way.append(job)
    return in_the_way[::-1]
