# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Measures cross traffic as plans have to assume it, and the fraction of each job's reserved rate for which its links
have room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from netfold.controller.health.link_loads import MAX_SHARE, Link, LinkLoads
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.lifecycle.member_status import MemberStatus
from netfold.controller.planning.plan import Loads, Plan
from netfold.topologies.fabric import Fabric

MIN_KEPT_FRACTION = 0.9
"""Fraction of its reserved rate: a job that keeps less is under-served, and planned again."""

MAX_ECN_MARKED, MAX_RETRANSMITTED = 0.1, 0.05
"""Fractions of the results of a tree. A tree above one of them suffers: a full link of it that carries cross traffic
has no room beyond the present load of jobs there, even if the cross traffic has fewer bytes."""

FULL_FRACTION = 0.9
"""Fraction of a link's rate: a link with that load is full."""


class LinkRoom:
    def __init__(
        self, fabric: Fabric, registry: JobRegistry, loads: LinkLoads, member_status: MemberStatus
    ) -> None:
        self._fabric = fabric
        self._registry = registry
        self._loads = loads
        self._member_status = member_status

    def cross_traffic(self) -> Loads:
        """Cross traffic as plans have to assume it: the measured one; and on full links of trees that suffer, the whole
        rate that jobs do not get."""
        measured = self._loads.cross_traffic().links
        pressed: dict[Link, float] = {}
        for link in measured:
            load, rate = self._loads.load(link), self._fabric.link(*link).rate
            is_full = load.cross_traffic + load.jobs >= FULL_FRACTION * rate
            if is_full and rate - load.jobs > measured[link]:
                pressed[link] = min(rate - load.jobs, MAX_SHARE * rate)
        if not pressed:
            return Loads(links=measured)
        suffering = {link for job in self._registry.all() for link in self._suffering_links(job)}
        return Loads(links={**measured, **{k: load for k, load in pressed.items() if k in suffering}})

    def kept_fractions(self, cross_traffic: Mapping[Link, float]) -> dict[str, float]:
        """For each installed job, the fraction of its reserved rate for which its links have room, 0 to 1."""
        plans = self._installed_plans()
        reserved = _reserved(plans.values(), cross_traffic)
        fractions = {
            link: max(0.0, self._fabric.link(*link).rate - cross_traffic[link]) / load
            for link, load in reserved.items()
            if load > 0
        }
        return {
            name: min([1.0, *(part for link, part in fractions.items() if link in plan.loads.links)])
            for name, plan in plans.items()
        }

    def contested_links(self, cross_traffic: Mapping[Link, float]) -> set[Link]:
        """Full links between switches on which jobs are under-served. Cross traffic there takes the rate that jobs
        leave to it: TCP takes, some seconds later, the rate that a job gives up. (No plan can avoid the link of a
        host.)"""
        reserved = _reserved(self._installed_plans().values(), cross_traffic)
        contested = set()
        for link, load in cross_traffic.items():
            if any(self._fabric.is_host(end) for end in link):
                continue
            rate, now = self._fabric.link(*link).rate, self._loads.load(link)
            is_full = now.cross_traffic + now.jobs >= FULL_FRACTION * rate
            if is_full and rate - load < MIN_KEPT_FRACTION * reserved[link]:
                contested.add(link)
        return contested

    def _suffering_links(self, job: JobRecord) -> Iterator[Link]:
        """The links of a job's trees that suffer, as a worker reports it."""
        if job.state is not JobState.RUNNING or job.placement is None:
            return
        reports = [t for progress in self._member_status.of(job.name).values() for t in progress.lately]
        suffering = {t.tree for t in reports if t.marks > MAX_ECN_MARKED or t.losses > MAX_RETRANSMITTED}
        for numbers, tree in zip(job.placement.trees, job.placement.plan.trees, strict=False):
            if numbers.tree in suffering:
                yield from tree.result_links
                yield from (hop for edge in tree.edges for hop in pairwise(edge.path))

    def _installed_plans(self) -> dict[str, Plan]:
        return {
            j.name: j.placement.plan
            for j in self._registry.all()
            if j.state.is_installed and j.placement is not None
        }


def _reserved(plans: Iterable[Plan], links: Iterable[Link]) -> Counter[Link]:
    """The sum of the plans' reserved rates on each of these links."""
    reserved: Counter[Link] = Counter()
    for plan in plans:
        reserved.update({k: plan.loads.links[k] for k in links if k in plan.loads.links})
    return reserved
