# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Decides when a job is planned again because of cross traffic, and how large the gain of a move has to be.

A job is under-served if its links have no room for its reserved rate in addition to the cross traffic. It may gain if
cross traffic that its plan had to avoid has ended. It moves if the new plan gives MIN_GAIN more than it keeps in its
place. Moves end for these reasons:

- a job counts for other jobs with its reserved rate, not with the rate that it sends: no job follows the packets of
  another;
- a plan fits in addition to reserved rates and cross traffic, so a move takes nothing from other jobs and gives the job
  a tenth more: while cross traffic stays, no job can move for ever;
- while cross traffic comes and goes, each further move within FLAP_WINDOW_S waits twice as long as the one before;
- on a full link on which jobs are under-served, cross traffic counts as if it took all, as TCP will.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from netfold.controller.health.link_loads import Link
from netfold.controller.health.link_room import MIN_KEPT_FRACTION
from netfold.controller.planning.plan import Plan
from netfold.topologies.fabric import Fabric

MIN_GAIN = 1.1
"""Minimum ratio of the rate after a move to the rate that is kept without it."""

FREED_FRACTION = 0.1
"""Fraction of a link's rate: when cross traffic has decreased by more, jobs that had to avoid it are planned again."""

DWELL_S, MAX_DWELL_S = 5.0, 80.0
"""Seconds that a job stays after a move; they double after each further move within FLAP_WINDOW_S."""

FLAP_WINDOW_S = 120.0

RETRY_S, MAX_RETRY_S = 2.0, 60.0
"""Seconds of delay after a plan that was not worth a move; it doubles while nothing changes. A plan is made at once if
the job keeps less than MIN_KEPT_FRACTION of the fraction that it kept then, or if another job has moved or ended, which
may free capacity."""


@dataclass
class RerouteState:
    """A running job in its present place.

    seen_cross_traffic  largest cross traffic by link since the job was last planned
    stays_until         it is not moved before
    moved_at            when it was last moved because of cross traffic
    tried_at            when it was last planned again, while it kept `kept` of its reserved rate
    retry_s             delay of the next plan after `tried_at`
    """

    plan: Plan
    seen_cross_traffic: dict[Link, float]
    stays_until: float = -math.inf
    dwell_s: float = DWELL_S
    moved_at: float = -math.inf
    tried_at: float = -math.inf
    kept: float = 1.0
    retry_s: float = RETRY_S

    def update(self, plan: Plan, cross_traffic: Mapping[Link, float], now: float) -> None:
        """Follow the placement of the job: a plan that another part of the controller made starts a new stay. The cross
        traffic that a plan assumed may have ended before the job runs, because workers take time to join."""
        if self.plan is not plan:
            self.plan = plan
            self.seen_cross_traffic = dict(plan.assumed_cross_traffic.links)
            self.stays_until = max(self.stays_until, now + DWELL_S)
        seen = self.seen_cross_traffic
        seen.update({k: max(load, seen.get(k, 0.0)) for k, load in cross_traffic.items()})

    def reason(
        self,
        fabric: Fabric,
        kept: float,
        max_rate: Callable[[], float],
        cross_traffic: Mapping[Link, float],
        freed_at: float,
        now: float,
    ) -> str:
        """The reason to plan the job again now; empty: it stays. `kept`: fraction of its reserved rate; `freed_at`:
        when a job last moved or ended; `max_rate()`: a rate that no plan of the job can exceed."""
        is_under_served = kept < MIN_KEPT_FRACTION
        if not is_under_served:
            self.retry_s = RETRY_S
        has_changed = freed_at > self.tried_at or kept < MIN_KEPT_FRACTION * self.kept
        if now < self.stays_until or (now < self.tried_at + RETRY_S and not has_changed):
            return ""
        is_freed = any(
            load - cross_traffic.get(link, 0.0) > FREED_FRACTION * fabric.link(*link).rate
            for link, load in self.seen_cross_traffic.items()
        )
        if is_under_served and (is_freed or has_changed or now >= self.tried_at + self.retry_s):
            return f"cross traffic leaves it {kept:.0%} of {self.plan.rate:g} {self.plan.unit}"
        if is_freed and kept * self.plan.rate * MIN_GAIN <= max_rate():
            return "cross traffic has decreased"
        return ""

    def on_tried(self, kept: float, cross_traffic: Mapping[Link, float], now: float, *, moved: bool) -> None:
        """Note that the job was planned again."""
        self.tried_at, self.kept, self.seen_cross_traffic = now, kept, dict(cross_traffic)
        if not moved:
            self.retry_s = min(2 * self.retry_s, MAX_RETRY_S)
            return
        is_flapping = now - self.moved_at < FLAP_WINDOW_S
        self.dwell_s = min(2 * self.dwell_s, MAX_DWELL_S) if is_flapping else DWELL_S
        self.stays_until, self.moved_at, self.retry_s = now + self.dwell_s, now, RETRY_S
