# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Chooses which directions of links are probed next: those that jobs use in each period, the others in turn."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from netfold.controller.jobs.records import Placement
from netfold.controller.lifecycle.job_registry import JobRegistry

MAX_PROBES_PER_S = 500
"""Probes per second in the whole fabric, unless jobs use more links than these leave room for."""

USED_TURN_S = 1.2
"""Seconds in which each hop that a job uses gets a probe, unless MAX_USED_PER_S is too few for that. A dead link is
then found in 3 s."""

MAX_USED_PER_S = 1000
"""Maximum probes per second of the hops that jobs use."""

ROUND_S = 50.0
"""Seconds in which each hop gets a probe, whether a job uses it or not, up to 20,000 hops."""

Hop = tuple[str, str]
"""One direction of a link: sender and receiver."""


class ProbeOrder:
    """The order of the probes over `hops`, in periods of `period_s` seconds. A part of each period's probes is kept for
    a round over all hops, so that jobs on many links and links that miss answers delay no other link for long."""

    def __init__(self, hops: Iterable[Hop], registry: JobRegistry, period_s: float) -> None:
        self._turn = deque(hops)
        self._used = set[Hop]()
        self._used_turn = deque[Hop]()
        self._registry = registry
        self._links: dict[str, tuple[tuple[Placement, ...], set[frozenset[str]]]] = {}
        self._period_s = period_s
        self._budget = max(1, int(MAX_PROBES_PER_S * period_s))
        self._in_round = min(math.ceil(len(self._turn) * period_s / ROUND_S), math.ceil(0.8 * self._budget))

    def next_hops(self, late: list[Hop]) -> list[Hop]:
        """The hops to probe in this period. `late`: they miss an answer."""
        self._find_used()
        in_turn = math.ceil(len(self._used) * self._period_s / USED_TURN_S)
        for_used = max(self._budget - self._in_round, min(in_turn, int(MAX_USED_PER_S * self._period_s)))
        budget = for_used + self._in_round
        chosen = dict.fromkeys([hop for hop in late if hop in self._used][:for_used])
        _take(chosen, self._used_turn, for_used)
        chosen.update(dict.fromkeys(late[: (budget - len(chosen)) // 2]))
        _take(chosen, self._turn, budget)
        return list(chosen)

    def move_first(self, hops: Iterable[Hop]) -> None:
        """Make these the next hops of the round."""
        for hop in hops:
            self._turn.remove(hop)
            self._turn.appendleft(hop)

    def _find_used(self) -> None:
        """Find the hops that installed placements use. Those that are new are the next in turn."""
        links = {job.name: self._links_of(job.name, job.placements) for job in self._registry.all()}
        if links == self._links:
            return
        self._links = links
        between = set[frozenset[str]]().union(*(found for _, found in links.values()))
        before, self._used = self._used, {hop for hop in self._turn if frozenset(hop) in between}
        kept = [hop for hop in self._used_turn if hop in self._used]
        self._used_turn = deque([*sorted(self._used - before), *kept])

    def _links_of(
        self, name: str, placements: tuple[Placement, ...]
    ) -> tuple[tuple[Placement, ...], set[frozenset[str]]]:
        known = self._links.get(name)
        if known is not None and known[0] == placements:
            return known
        return placements, {link for placement in placements for link in placement.links}


def _take(chosen: dict[Hop, None], turn: deque[Hop], limit: int) -> None:
    """Add the next hops in turn until `limit` hops are chosen."""
    for _ in range(len(turn)):
        if len(chosen) >= limit:
            return
        chosen[turn[0]] = None
        turn.rotate(-1)
