# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Searches locally on drafts: makes moves that relieve the fullest resource until none is left.

LocalSearch.run picks the fullest resource and tries the moves in this order for each stream on it: reroute the stream
(another route or parent), make room at a full node for it, close its node; then another result tree. A move counts only
if all that it changes ends below the present greatest utilization: that never rises, and the search ends. Effort is a
number of trials, not a time, so that a seed always gives the same plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from netfold.controller.planning.candidate_paths import Route
from netfold.controller.planning.draft_editor import EPS, DraftEditor, LoadChange
from netfold.controller.planning.layout import (
    Draft,
    feasible_rate,
    fit_shares,
    result_tree,
    route_results,
)
from netfold.controller.planning.plan import PlanningError
from netfold.controller.planning.residual_network import ResidualNetwork

TRIALS = 60_000
RESULT_TREE_TRIALS = 20
"""Cost of trying another result tree, in trials of a route."""
ROUTES_TRIED = 2
"""Number of routes that are tried to a parent that the child has not had."""


class LocalSearch:
    """Changes `drafts` in place. `has_levels`: nodes may send to nodes. Existing result trees of drafts lead to
    `workers` and may change, too."""

    def __init__(
        self,
        network: ResidualNetwork,
        drafts: Sequence[Draft],
        nodes: Sequence[str],
        workers: Sequence[str] = (),
        *,
        has_levels: bool = False,
    ) -> None:
        self._network = network
        self._drafts = drafts
        self._workers = workers
        self._has_levels = has_levels
        self._editor = DraftEditor(network, drafts, nodes)
        self._loads = self._editor.loads
        self.trials = 0

    def run(self, trials: int = TRIALS, target: float = float("inf")) -> None:
        """Make moves until the `target` rate is reached, none is left, or `trials` are used up."""
        self.trials = trials
        while self.trials > 0:
            limit = max(self._loads.utilization)
            is_done = limit <= 0 or 1.0 / limit >= target
            if is_done or not self._relieve(self._loads.utilization.index(limit), limit):
                return

    def _relieve(self, resource: int, limit: float) -> bool:
        """Make one move that lowers the load of `resource` and keeps all others below `limit`; False: there is none."""
        streams = list(self._editor.streams_on(resource))
        for move in (self._reroute, self._make_room, self._close_node):
            for tree, child in streams:
                if self.trials <= 0:
                    return False
                if move(tree, child, resource, limit):
                    return True
        for tree, draft in enumerate(self._drafts):
            is_on_it = resource in draft.result_links
            if is_on_it and self.trials > 0 and self._replace_result_tree(tree, resource, limit):
                return True
        return False

    # ---- conditions of a move ----------------------------------------------------------------------------

    def _try_route(
        self, route: Route, parent: str, share: float, change: Mapping[int, float], limit: float
    ) -> bool:
        """Check a route quickly, at the cost of a trial."""
        self.trials -= 1
        return self._loads.has_room(route, parent, share, change, limit)

    def _is_gain(self, change: LoadChange, resource: int, limit: float) -> bool:
        return change.get(resource, 0.0) < -EPS and self._loads.stays_below(change, limit)

    def _possible_parents(self, tree: int, child: str) -> list[str]:
        """The present nodes of the tree that may be the parent of a child."""
        draft, editor = self._drafts[tree], self._editor
        if child not in editor.members[tree]:
            return [*editor.open_nodes(tree), draft.root]
        if not self._has_levels:
            return [draft.parent[child]]
        return [*(v for v in editor.open_nodes(tree) if not editor.is_below(tree, v, child)), draft.root]

    # ---- moves -------------------------------------------------------------------------------------------

    def _reroute(self, tree: int, child: str, resource: int, limit: float) -> bool:
        """Give a child another route, another node or the root as parent, or a new node."""
        draft, editor, loads = self._drafts[tree], self._editor, self._loads
        here, share = draft.parent[child], draft.share
        removal = editor.removal(tree, child)
        is_node = child in editor.members[tree]
        for parent in self._possible_parents(tree, child):
            if parent != here and not editor.has_fan_in_left(tree, parent):
                continue
            base = removal if parent != here else loads.with_stream({}, draft.route[child], here, -share)
            for route in editor.routes(child, parent):
                if route == draft.route[child] or not self._try_route(route, parent, share, base, limit):
                    continue
                change = loads.with_stream(base, route, parent, share)
                if self._is_gain(change, resource, limit):
                    editor.reconnect(tree, child, parent, route)
                    loads.apply(change)
                    return True
        return (self._has_levels or not is_node) and self._open_node(tree, child, resource, limit, removal)

    def _open_node(
        self, tree: int, child: str, resource: int, limit: float, removal: Mapping[int, float]
    ) -> bool:
        """Open a node: a switch that is no node yet becomes the parent of the child, below the root or below another
        node."""
        draft, editor, loads = self._drafts[tree], self._editor, self._loads
        root, share = draft.root, draft.share
        for above in (root, *editor.open_nodes(tree, child)) if self._has_levels else (root,):
            if not editor.has_fan_in_left(tree, above) or editor.is_below(tree, above, child):
                continue
            if not self._try_route((), above, share, removal, limit):
                continue
            for parent in editor.nodes:
                if parent in editor.members[tree] or parent == root:
                    continue
                for route in self._network.paths.routes(child, parent, ROUTES_TRIED):
                    if not self._try_route(route, parent, share, removal, limit):
                        continue
                    upstream = editor.best_route(parent, above, share)
                    if upstream is None:
                        continue
                    change = loads.with_stream(removal, route, parent, share)
                    change = loads.with_stream(change, upstream, above, share)
                    if self._is_gain(change, resource, limit):
                        editor.connect(tree, parent, above, upstream)
                        editor.connect(tree, child, parent, route)
                        loads.apply(change)
                        return True
        return False

    def _make_room(self, tree: int, child: str, resource: int, limit: float) -> bool:
        """Move the child to a full node, after a child of that node has moved to another parent."""
        draft, members, loads = self._drafts[tree], self._editor.members[tree], self._loads
        here = draft.parent[child]
        if child in members or here not in members or (here != draft.root and len(members[here]) == 1):
            return False
        removal = self._editor.removal(tree, child)
        for node in self._editor.open_nodes(tree, here):
            for route in self._network.paths.routes(child, node, ROUTES_TRIED):
                if any(
                    loads.load[i] + draft.share >= limit * loads.capacity[i]
                    for i in route
                    if i not in removal
                ):
                    continue
                change = loads.with_stream(removal, route, node, draft.share)
                for other in list(members[node]):
                    if other in members or self.trials <= 0:
                        continue
                    if self._evict(tree, other, change, resource, limit):
                        self._editor.connect(tree, child, node, route)
                        return True
        return False

    def _evict(self, tree: int, other: str, arriving: LoadChange, resource: int, limit: float) -> bool:
        """Move `other` to another node or the root, for a child that arrives with `arriving`. The loads of both moves
        are applied."""
        draft, editor, loads = self._drafts[tree], self._editor, self._loads
        node, share = draft.parent[other], draft.share
        if len(editor.members[tree][node]) == 1:
            return False
        base = loads.with_stream(arriving, draft.route[other], node, -share)
        for parent in [*editor.open_nodes(tree, node), draft.root]:
            if not editor.has_fan_in_left(tree, parent):
                continue
            for route in self._network.paths.routes(other, parent, ROUTES_TRIED):
                if not self._try_route(route, parent, share, base, limit):
                    continue
                change = loads.with_stream(base, route, parent, share)
                if self._is_gain(change, resource, limit):
                    editor.connect(tree, other, parent, route)
                    loads.apply(change)
                    return True
        return False

    def _close_node(self, tree: int, node: str, resource: int, limit: float) -> bool:
        """Distribute a node's children over the other nodes and the root."""
        draft, members, loads = self._drafts[tree], self._editor.members[tree], self._loads
        if node not in members or node == draft.root:
            return False
        if any(child in members for child in members[node]):  # a node must not move below itself
            return False
        change = loads.with_stream({}, draft.route[node], draft.parent[node], -draft.share)
        moves: list[tuple[str, str, Route]] = []
        arrivals: Counter[str] = Counter()
        for child in members[node]:
            change = loads.with_stream(change, draft.route[child], node, -draft.share)
            found = self._other_parent(tree, child, node, change, arrivals, limit)
            if found is None:
                return False
            parent, route = found
            change = loads.with_stream(change, route, parent, draft.share)
            arrivals[parent] += 1
            moves.append((child, parent, route))
        if not self._is_gain(change, resource, limit):
            return False
        for child, parent, route in moves:
            self._editor.connect(tree, child, parent, route)
        loads.apply(change)
        return True

    def _other_parent(
        self, tree: int, child: str, node: str, change: LoadChange, arrivals: Counter[str], limit: float
    ) -> tuple[str, Route] | None:
        """A parent other than `node` with capacity for the child, and the route."""
        draft, members = self._drafts[tree], self._editor.members[tree]
        for parent in [*self._editor.open_nodes(tree, node), draft.root]:
            count = len(members[parent]) + arrivals[parent]
            if parent != draft.root and count >= self._network.max_children(parent):
                continue
            for route in self._network.paths.routes(child, parent, ROUTES_TRIED):
                if self._try_route(route, parent, draft.share, change, limit):
                    return parent, route
        return None

    def _replace_result_tree(self, tree: int, resource: int, limit: float) -> bool:
        draft = self._drafts[tree]
        self.trials -= RESULT_TREE_TRIALS
        removed = Counter(draft.result_links)
        load = np.array(self._loads.load)
        load[list(draft.result_links)] -= draft.share
        try:
            links = result_tree(self._network, draft, self._workers, load, both_ways=False)
        except PlanningError:
            return False
        counts = Counter(links)
        counts.subtract(removed)
        change = {i: count * draft.share for i, count in counts.items() if count}
        if change.get(resource, 0.0) >= 0 or not self._loads.stays_below(change, limit):
            return False
        draft.result_links = links
        self._loads.apply(change)
        return True


def improve(
    network: ResidualNetwork,
    drafts: Sequence[Draft],
    workers: Sequence[str],
    nodes: Sequence[str],
    *,
    trials: int = TRIALS,
    target: float = float("inf"),
    fit: bool = True,
    has_levels: bool = False,
) -> float:
    """Repeat while it helps: search, route the results again, `fit` the shares. Returns the rate that is reached.
    Existing result trees are kept if new ones are worse."""
    rate = _route_results_if_better(network, drafts, workers)
    while trials > 0 and rate < target * (1 - EPS):
        before = [d.copy() for d in drafts]
        search = LocalSearch(network, drafts, nodes, workers, has_levels=has_levels)
        search.run(trials, target)
        trials = search.trials
        reached = _route_results_if_better(network, drafts, workers)
        if fit and len(drafts) > 1:
            fit_shares(network, drafts)
            reached = feasible_rate(network, drafts)
        if reached <= rate * (1 + 1e-7):
            if reached < rate:
                _restore(drafts, before)
            break
        rate = reached
    return feasible_rate(network, drafts)


def _route_results_if_better(
    network: ResidualNetwork, drafts: Sequence[Draft], workers: Sequence[str]
) -> float:
    """Route the results again if that is better, and return the rate."""
    before = [d.copy() for d in drafts]
    route_results(network, drafts, workers)
    rate = feasible_rate(network, drafts)
    if all(d.result_links for d in before) and feasible_rate(network, before) > rate:
        _restore(drafts, before)
        rate = feasible_rate(network, drafts)
    return rate


def _restore(drafts: Sequence[Draft], saved: Sequence[Draft]) -> None:
    for draft, old in zip(drafts, saved, strict=True):
        draft.share, draft.parent, draft.route = old.share, old.parent, old.route
        draft.result_links = old.result_links
