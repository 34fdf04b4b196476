# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a plan fits: in addition to the loads of other jobs, and around failed elements. Errors of jobs that do not
fit."""

from __future__ import annotations

from collections.abc import Iterable

from netfold.controller.jobs.records import JobRecord, links_of
from netfold.controller.planning.plan import InvalidPlanError, Loads, Plan
from netfold.controller.planning.residual_network import NO_LOADS
from netfold.controller.planning.validate import add_loads, check_capacities
from netfold.controller.switches.failed_elements import FailedElements
from netfold.topologies.fabric import Fabric


class RefusedError(Exception):
    """The job does not fit now; the message has the reason and a request that would fit."""


class ImpossibleJobError(RefusedError):
    """The job would not fit even if the whole fabric worked and had no other job, so waiting does not help."""


def background_of(jobs: Iterable[JobRecord]) -> Loads:
    loads = NO_LOADS
    for job in jobs:
        if job.state.is_installed and job.placement is not None:
            loads = add_loads(loads, job.placement.plan.loads)
    return loads


def fits(fabric: Fabric, plan: Plan, background: Loads) -> bool:
    """Whether the loads of the plan fit in addition to the background."""
    try:
        check_capacities(fabric, plan.job, plan.loads, background)
    except InvalidPlanError:
        return False
    return True


def failed_in(plan: Plan, failed: FailedElements) -> FailedElements:
    """The failed elements that the plan uses."""
    links = links_of(plan)
    return FailedElements(failed.links & links, failed.switches & {n for link in links for n in link})


def uses_failed(plan: Plan, failed: FailedElements, lost: Iterable[str]) -> bool:
    """Whether the plan uses failed elements or lost members."""
    return bool(failed_in(plan, FailedElements(failed.links, failed.switches.union(lost))))


def unavoidable(fabric: Fabric, hosts: Iterable[str]) -> FailedElements:
    """The hosts, the switches that they are attached to, and the links in between: no plan of these workers avoids
    them."""
    racks = {host: fabric.attachment(host) for host in hosts}
    return FailedElements(frozenset(map(frozenset, racks.items())), frozenset((*racks, *racks.values())))
