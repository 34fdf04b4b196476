# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Local search on drafts: it relieves the fullest resource, one move at a time, until no move helps.

A move gives one child another route or another node, closes a node by spreading its members over others,
or moves a member on to make room for another. A move counts only if everything it touches ends below the
present worst utilization, so the worst never rises and the search ends. Its effort is bounded by a number of
trials, not by time, so that a seed always gives the same plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from netfold.controller.planning.layout import (
    Draft,
    down_tree,
    feasible_rate,
    fit_shares,
    route_results,
    total_load,
)
from netfold.controller.planning.network import Network, Route
from netfold.controller.planning.plan import PlanningError

EPS = 1e-9
TRIALS = 60_000
TURN = 20
"""A new way down costs as much time as so many trials of a route."""
Delta = dict[int, float]


class Search:
    """The drafts under change, with their loads per unit of rate. With `levels`, nodes may send to nodes. Ways down
    that are set lead to `workers` and change too."""

    def __init__(
        self,
        network: Network,
        drafts: Sequence[Draft],
        nodes: Sequence[str],
        workers: Sequence[str] = (),
        *,
        shortest: bool = False,
        levels: bool = False,
    ) -> None:
        self.network, self.drafts, self.nodes = network, drafts, tuple(nodes)
        self.workers, self.shortest, self.levels = workers, shortest, levels
        self.trials = 0
        self.spent = network.spent_id
        self.capacity: list[float] = network.capacity.tolist()
        self.load: list[float] = total_load(network, drafts).tolist()
        self.used = [self._ratio(i, load) for i, load in enumerate(self.load)]
        self.members: list[dict[str, dict[str, None]]] = [
            {p: dict.fromkeys(c) for p, c in d.members().items()} for d in drafts
        ]

    def run(self, trials: int = TRIALS, target: float = float("inf")) -> None:
        """Make improving moves until `target` rate is reached, none is left, or `trials` are used up."""
        self.trials = trials
        while self.trials > 0:
            worst = max(self.used)
            if worst <= 0 or 1.0 / worst >= target or not self._relieve(self.used.index(worst), worst):
                return

    def place(self, t: int, child: str, parent: str) -> None:
        """Connect a child to a parent over the route whose fullest resource stays the emptiest. Raises
        PlanningError if there is no route."""
        share = self.drafts[t].share
        route = self._best_way(child, parent, share)
        if route is None:
            raise PlanningError(f"no route with capacity left leads from {child} to {parent}")
        self._connect(t, child, parent, route)
        self._apply(self._adding({}, route, parent, share))

    # ---- loads -------------------------------------------------------------------------------------------

    def _routes(self, child: str, parent: str) -> Sequence[Route]:
        routes = self.network.routes(child, parent)
        return [r for r in routes if len(r) == len(routes[0])] if self.shortest else routes

    def _ratio(self, resource: int, load: float) -> float:
        if load <= EPS:
            return 0.0
        capacity = self.capacity[resource]
        return load / capacity if capacity > 0 else float("inf")

    def _peak(self, route: Route, parent: str, share: float) -> float:
        """The greatest utilization that a new stream would leave."""
        load = self.load
        peak = self._ratio(self.spent[parent], load[self.spent[parent]] + share)
        for i in route:
            ratio = self._ratio(i, load[i] + share)
            peak = max(ratio, peak)
        return peak

    def _best_way(self, child: str, parent: str, share: float) -> Route | None:
        return min(self._routes(child, parent), key=lambda r: self._peak(r, parent, share), default=None)

    def _admits(
        self, route: Route, parent: str, share: float, leaving: Mapping[int, float], worst: float
    ) -> bool:
        """Whether a new stream alone stays below `worst` once what leaves has left: the quick first check."""
        self.trials -= 1
        if not self._stays(self.spent[parent], share, leaving, worst):
            return False
        return all(self._stays(i, share, leaving, worst) for i in route)

    def _stays(self, resource: int, share: float, leaving: Mapping[int, float], worst: float) -> bool:
        load = self.load[resource] + share + leaving.get(resource, 0.0)
        return load < worst * (1 - 1e-7) * self.capacity[resource]

    def _fits(self, delta: Delta, worst: float) -> bool:
        limit = worst * (1 - 1e-7)
        return all(self._ratio(i, self.load[i] + d) < limit for i, d in delta.items() if d > EPS)

    def _adding(self, base: Mapping[int, float], route: Route, parent: str, share: float) -> Delta:
        delta = dict(base)
        for i in (*route, self.spent[parent]):
            delta[i] = delta.get(i, 0.0) + share
        return delta

    def _leaving(self, t: int, child: str) -> Delta:
        """What goes when a child leaves its parent, with the parent's own stream if it was the last, and so on."""
        draft, members = self.drafts[t], self.members[t]
        delta: Delta = {}
        while True:
            parent = draft.parent[child]
            delta = self._adding(delta, draft.route[child], parent, -draft.share)
            if parent == draft.root or len(members[parent]) > 1:
                return delta
            child = parent

    def _apply(self, delta: Delta) -> None:
        for i, d in delta.items():
            self.load[i] += d
            self.used[i] = self._ratio(i, self.load[i])

    # ---- trees -------------------------------------------------------------------------------------------

    def _connect(self, t: int, child: str, parent: str, route: Route) -> None:
        draft, members = self.drafts[t], self.members[t]
        old = draft.parent.get(child)
        members.setdefault(parent, {})[child] = None
        draft.connect(child, parent, route)
        if old == parent:
            return
        leaver = child
        while old is not None:
            members[old].pop(leaver)
            if members[old] or old == draft.root:
                return
            del members[old], draft.route[old]
            leaver, old = old, draft.parent.pop(old)

    def _has_room(self, t: int, parent: str) -> bool:
        most = self.network.limits.fan_in
        return parent in self.network.server_id or len(self.members[t].get(parent, ())) < most

    def _open(self, t: int, *but: str) -> list[str]:
        return [v for v in self.nodes if v in self.members[t] and v not in but and v != self.drafts[t].root]

    def _below(self, t: int, node: str, above: str) -> bool:
        """Whether `node` is `above`, or sends to it over others."""
        parent, at = self.drafts[t].parent, node
        while at != above and at in parent:
            at = parent[at]
        return at == above

    def _places(self, t: int, child: str) -> list[str]:
        """Where a child may be added up, among what is open."""
        draft = self.drafts[t]
        if child not in self.members[t]:
            return [*self._open(t), draft.root]
        if not self.levels:
            return [draft.parent[child]]
        return [*(v for v in self._open(t) if not self._below(t, v, child)), draft.root]

    # ---- moves -------------------------------------------------------------------------------------------

    def _relieve(self, resource: int, worst: float) -> bool:
        """Find and make one move that lowers the load of `resource`."""
        touching = list(self._touching(resource))
        for attempt in (self._move, self._chain, self._close):
            for t, child in touching:
                if self.trials <= 0:
                    return False
                if attempt(t, child, resource, worst):
                    return True
        for t, draft in enumerate(self.drafts):
            if resource in draft.down and self.trials > 0 and self._turn(t, resource, worst):
                return True
        return False

    def _touching(self, resource: int) -> Iterator[tuple[int, str]]:
        for t, draft in enumerate(self.drafts):
            for child, parent in draft.parent.items():
                if self.spent[parent] == resource or resource in draft.route[child]:
                    yield t, child

    def _turn(self, t: int, resource: int, worst: float) -> bool:
        """Another way down."""
        draft = self.drafts[t]
        self.trials -= TURN
        leaving = Counter(draft.down)
        load = np.array(self.load)
        load[list(draft.down)] -= draft.share
        try:
            down = down_tree(self.network, draft, self.workers, load, both_ways=False)
        except PlanningError:
            return False
        change = Counter(down)
        change.subtract(leaving)
        delta = {i: count * draft.share for i, count in change.items() if count}
        if delta.get(resource, 0.0) >= 0 or not self._fits(delta, worst):
            return False
        draft.down = down
        self._apply(delta)
        return True

    def _move(self, t: int, child: str, resource: int, worst: float) -> bool:
        """Another route, another open node, the root, or a node that is opened for it."""
        draft = self.drafts[t]
        here, share = draft.parent[child], draft.share
        leaving = self._leaving(t, child)
        inner = child in self.members[t]
        for parent in self._places(t, child):
            if parent != here and not self._has_room(t, parent):
                continue
            base = leaving if parent != here else self._adding({}, draft.route[child], here, -share)
            for route in self._routes(child, parent):
                if route != draft.route[child] and self._admits(route, parent, share, base, worst):
                    delta = self._adding(base, route, parent, share)
                    if delta.get(resource, 0.0) < -EPS and self._fits(delta, worst):
                        self._connect_anew(t, child, parent, route)
                        self._apply(delta)
                        return True
        return (self.levels or not inner) and self._open_for(t, child, resource, worst, leaving)

    def _connect_anew(self, t: int, child: str, parent: str, route: Route) -> None:
        if self.drafts[t].parent[child] == parent:
            self.drafts[t].route[child] = route
        else:
            self._connect(t, child, parent, route)

    def _open_for(
        self, t: int, child: str, resource: int, worst: float, leaving: Mapping[int, float]
    ) -> bool:
        draft = self.drafts[t]
        root, share = draft.root, draft.share
        beyond = (root, *self._open(t, child)) if self.levels else (root,)
        for above in beyond:
            if not self._has_room(t, above) or self._below(t, above, child):
                continue
            if not self._admits((), above, share, leaving, worst):
                continue
            for parent in self.nodes:
                if parent in self.members[t] or parent == root:
                    continue
                for route in self.network.routes(child, parent, 2):
                    if not self._admits(route, parent, share, leaving, worst):
                        continue
                    up = self._best_way(parent, above, share)
                    if up is None:
                        continue
                    delta = self._adding(self._adding(leaving, route, parent, share), up, above, share)
                    if delta.get(resource, 0.0) < -EPS and self._fits(delta, worst):
                        self._connect(t, parent, above, up)
                        self._connect(t, child, parent, route)
                        self._apply(delta)
                        return True
        return False

    def _chain(self, t: int, child: str, resource: int, worst: float) -> bool:
        """Move a child to a full node after one of that node's members has gone elsewhere."""
        draft, members = self.drafts[t], self.members[t]
        here = draft.parent[child]
        if child in members or here not in members or (here != draft.root and len(members[here]) == 1):
            return False
        leaving = self._leaving(t, child)
        for node in self._open(t, here):
            for route in self.network.routes(child, node, 2):
                if any(
                    self.load[i] + draft.share >= worst * self.capacity[i] for i in route if i not in leaving
                ):
                    continue
                arriving = self._adding(leaving, route, node, draft.share)
                for other in list(members[node]):
                    if other in members or self.trials <= 0:
                        continue
                    if self._pass_on(t, other, arriving, resource, worst):
                        self._connect(t, child, node, route)
                        return True
        return False

    def _pass_on(self, t: int, other: str, arriving: Delta, resource: int, worst: float) -> bool:
        """Move `other` to another open node or the root, given what its successor changes. The loads of both
        are applied."""
        draft = self.drafts[t]
        node, share = draft.parent[other], draft.share
        if len(self.members[t][node]) == 1:
            return False
        base = self._adding(arriving, draft.route[other], node, -share)
        for parent in [*self._open(t, node), draft.root]:
            if not self._has_room(t, parent):
                continue
            for way in self.network.routes(other, parent, 2):
                if not self._admits(way, parent, share, base, worst):
                    continue
                delta = self._adding(base, way, parent, share)
                if delta.get(resource, 0.0) < -EPS and self._fits(delta, worst):
                    self._connect(t, other, parent, way)
                    self._apply(delta)
                    return True
        return False

    def _close(self, t: int, node: str, resource: int, worst: float) -> bool:
        """Spread a node's members over the other open nodes and the root."""
        draft, members = self.drafts[t], self.members[t]
        if node not in members or node == draft.root:
            return False
        total = self._adding({}, draft.route[node], draft.parent[node], -draft.share)
        places: list[tuple[str, str, Route]] = []
        arrivals: Counter[str] = Counter()
        if any(
            child in members for child in members[node]
        ):  # nodes would have to be kept from their own subtrees
            return False
        for child in members[node]:
            total = self._adding(total, draft.route[child], node, -draft.share)
            place = self._refuge(t, child, node, total, arrivals, worst)
            if place is None:
                return False
            total = self._adding(total, place[1], place[0], draft.share)
            arrivals[place[0]] += 1
            places.append((child, *place))
        if total.get(resource, 0.0) >= -EPS or not self._fits(total, worst):
            return False
        for child, parent, route in places:
            self._connect(t, child, parent, route)
        self._apply(total)
        return True

    def _refuge(
        self, t: int, child: str, node: str, total: Delta, arrivals: Counter[str], worst: float
    ) -> tuple[str, Route] | None:
        draft, members, most = self.drafts[t], self.members[t], self.network.limits.fan_in
        for parent in [*self._open(t, node), draft.root]:
            if parent != draft.root and len(members[parent]) + arrivals[parent] >= most:
                continue
            for route in self.network.routes(child, parent, 2):
                if self._admits(route, parent, draft.share, total, worst):
                    return parent, route
        return None


def improve(
    network: Network,
    drafts: Sequence[Draft],
    workers: Sequence[str],
    nodes: Sequence[str],
    *,
    trials: int = TRIALS,
    target: float = float("inf"),
    fit: bool = True,
    levels: bool = False,
) -> float:
    """Search, route the results anew, `fit` the shares; again while it helps. Returns the rate that is
    reached. Ways down that drafts have already are kept where new ones are worse."""
    rate = _ways_down(network, drafts, workers)
    while trials > 0 and rate < target * (1 - EPS):
        before = [d.copy() for d in drafts]
        search = Search(network, drafts, nodes, workers, levels=levels)
        search.run(trials, target)
        trials = search.trials
        reached = _ways_down(network, drafts, workers)
        if fit and len(drafts) > 1:
            fit_shares(network, drafts)
            reached = feasible_rate(network, drafts)
        if reached <= rate * (1 + 1e-7):
            if reached < rate:
                _restore(drafts, before)
            break
        rate = reached
    return feasible_rate(network, drafts)


def _ways_down(network: Network, drafts: Sequence[Draft], workers: Sequence[str]) -> float:
    """Route the results anew, or leave their ways as they are where new ones are worse. Returns the rate."""
    before = [d.copy() for d in drafts]
    route_results(network, drafts, workers)
    rate = feasible_rate(network, drafts)
    if all(d.down for d in before) and feasible_rate(network, before) > rate:
        _restore(drafts, before)
        rate = feasible_rate(network, drafts)
    return rate


def _restore(drafts: Sequence[Draft], saved: Sequence[Draft]) -> None:
    for draft, old in zip(drafts, saved, strict=True):
        draft.share, draft.parent, draft.route, draft.down = old.share, old.parent, old.route, old.down
