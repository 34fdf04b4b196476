# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Computes the loads of all resources under a set of drafts, per unit of rate, and whether a change keeps them below a
limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netfold.controller.planning.layout import Draft, total_load
from netfold.controller.planning.residual_network import ResidualNetwork, Route

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
