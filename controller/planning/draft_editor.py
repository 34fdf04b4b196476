# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Edits drafts one connection at a time and keeps the loads of their resources up to date. Loads are per unit of rate,
and a change of them is checked against a limit before it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from netfold.controller.planning.candidate_paths import Route
from netfold.controller.planning.layout import Draft, total_load
from netfold.controller.planning.plan import PlanningError
from netfold.controller.planning.residual_network import ResidualNetwork

EPS = 1e-9
_STRICTLY_BELOW = 1 - 1e-7

LoadChange = dict[int, float]
"""Difference of load by resource."""


class ResourceLoads:
    """Loads: `load` and `utilization` are by resource number. A stream uses the links of its route and the capacity of
    its parent."""

    def __init__(self, network: ResidualNetwork, drafts: Sequence[Draft]) -> None:
        self._parent_resource = network.capacity_id
        self.capacity: list[float] = network.capacity.tolist()
        self.load: list[float] = total_load(network, drafts).tolist()
        self.utilization = [self.ratio(i, load) for i, load in enumerate(self.load)]

    def ratio(self, resource: int, load: float) -> float:
        """Utilization of a resource with this load; infinite where it has no capacity."""
        if load <= EPS:
            return 0.0
        capacity = self.capacity[resource]
        return load / capacity if capacity > 0 else float("inf")

    def peak_with(self, route: Route, parent: str, share: float) -> float:
        """The greatest utilization on a route and at its parent after a new stream is added."""
        load = self.load
        at_parent = self._parent_resource[parent]
        peak = self.ratio(at_parent, load[at_parent] + share)
        for i in route:
            ratio = self.ratio(i, load[i] + share)
            peak = max(ratio, peak)
        return peak

    def has_room(
        self, route: Route, parent: str, share: float, change: Mapping[int, float], limit: float
    ) -> bool:
        """True if a new stream alone, after `change`, keeps its resources below the utilization `limit`."""
        if not self._has_room_at(self._parent_resource[parent], share, change, limit):
            return False
        return all(self._has_room_at(i, share, change, limit) for i in route)

    def _has_room_at(self, resource: int, share: float, change: Mapping[int, float], limit: float) -> bool:
        load = self.load[resource] + share + change.get(resource, 0.0)
        return load < limit * _STRICTLY_BELOW * self.capacity[resource]

    def stays_below(self, change: LoadChange, limit: float) -> bool:
        """True if every resource that gets more load stays below the utilization `limit`."""
        strict_limit = limit * _STRICTLY_BELOW
        return all(self.ratio(i, self.load[i] + d) < strict_limit for i, d in change.items() if d > EPS)

    def with_stream(self, change: Mapping[int, float], route: Route, parent: str, share: float) -> LoadChange:
        """`change` and a new stream (a removed one: a negative share)."""
        total = dict(change)
        for i in (*route, self._parent_resource[parent]):
            total[i] = total.get(i, 0.0) + share
        return total

    def apply(self, change: LoadChange) -> None:
        for i, d in change.items():
            self.load[i] += d
            self.utilization[i] = self.ratio(i, self.load[i])


class DraftEditor:
    """Edits drafts. A tree is given by its index in `drafts`; `members[tree][node]` are the children of a node, in
    order. `nodes` are switches that may become nodes. `shortest`: use only shortest routes."""

    def __init__(
        self,
        network: ResidualNetwork,
        drafts: Sequence[Draft],
        nodes: Sequence[str],
        *,
        shortest: bool = False,
    ) -> None:
        self.network, self.drafts, self.nodes = network, drafts, tuple(nodes)
        self._shortest = shortest
        self.loads = ResourceLoads(network, drafts)
        self.members: list[dict[str, dict[str, None]]] = [
            {p: dict.fromkeys(c) for p, c in d.members().items()} for d in drafts
        ]

    def place(self, tree: int, child: str, parent: str) -> None:
        """Connect a new child to a parent over the route whose fullest resource stays the emptiest. Raises
        PlanningError if there is no route, or if the child is the root."""
        if child in (parent, self.drafts[tree].root):
            raise PlanningError(
                f"{child} cannot be a child of {parent} in a tree with the root {self.drafts[tree].root}"
            )
        share = self.drafts[tree].share
        route = self.best_route(child, parent, share)
        if route is None:
            raise PlanningError(f"no route with capacity left leads from {child} to {parent}")
        self.connect(tree, child, parent, route)
        self.loads.apply(self.loads.with_stream({}, route, parent, share))

    def connect(self, tree: int, child: str, parent: str, route: Route) -> None:
        """Connect or reconnect a child; a node that has lost its last child leaves the tree. The loads stay."""
        draft, members = self.drafts[tree], self.members[tree]
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

    def reconnect(self, tree: int, child: str, parent: str, route: Route) -> None:
        """Reconnect a child as `connect` does; a child that keeps its parent keeps its place among the children."""
        if self.drafts[tree].parent[child] == parent:
            self.drafts[tree].route[child] = route
        else:
            self.connect(tree, child, parent, route)

    # ---- queries -----------------------------------------------------------------------------------------

    def routes(self, child: str, parent: str) -> Sequence[Route]:
        routes = self.network.paths.routes(child, parent)
        return [r for r in routes if len(r) == len(routes[0])] if self._shortest else routes

    def best_route(self, child: str, parent: str, share: float) -> Route | None:
        """The route whose fullest resource stays the emptiest."""
        routes = self.routes(child, parent)
        return min(routes, key=lambda r: self.loads.peak_with(r, parent, share), default=None)

    def removal(self, tree: int, child: str) -> LoadChange:
        """The change when a child leaves its parent: its stream, the parent's if it was the last child, and so on."""
        draft, members = self.drafts[tree], self.members[tree]
        change: LoadChange = {}
        while True:
            parent = draft.parent[child]
            change = self.loads.with_stream(change, draft.route[child], parent, -draft.share)
            if parent == draft.root or len(members[parent]) > 1:
                return change
            child = parent

    def has_fan_in_left(self, tree: int, parent: str) -> bool:
        if parent in self.network.server_id:
            return True
        return len(self.members[tree].get(parent, ())) < self.network.max_children(parent)

    def open_nodes(self, tree: int, *excluded: str) -> list[str]:
        """The nodes of a tree below the root."""
        members, root = self.members[tree], self.drafts[tree].root
        return [v for v in self.nodes if v in members and v not in excluded and v != root]

    def is_below(self, tree: int, node: str, ancestor: str) -> bool:
        """True if `node` is `ancestor`, or sends to it directly or over other nodes."""
        parent, at = self.drafts[tree].parent, node
        while at != ancestor and at in parent:
            at = parent[at]
        return at == ancestor

    def streams_on(self, resource: int) -> Iterator[tuple[int, str]]:
        """Tree and child of each stream that uses a resource."""
        for tree, draft in enumerate(self.drafts):
            for child, parent in draft.parent.items():
                if self.network.capacity_id[parent] == resource or resource in draft.route[child]:
                    yield tree, child
