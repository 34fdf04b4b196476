# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines the linear models of a job (formulation.py): at given shares of the servers, and with shares as variables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.formulation import Formulation
from netfold.controller.planning.residual_network import ResidualNetwork
from netfold.controller.planning.sparse import INF


class FixedShares(Formulation):
    """The model at given shares of the servers, divided by the rate, so that it stays linear: R counts workers, Z is 0
    or 1, and u = 1/rate is minimized. `above` is a rate that is known to be possible: only better ones are sought."""

    def __init__(
        self,
        network: ResidualNetwork,
        workers: Sequence[str],
        servers: Sequence[str],
        nodes: Sequence[str],
        shares: Sequence[float],
        *,
        whole: bool = False,
        above: float | None = None,
    ) -> None:
        super().__init__(network, workers, servers, nodes, whole=whole)
        self.shares = tuple(shares)
        slowest = INF if above is None else 1.0 / above
        self.inverse = self.program.new_column(slowest, lower=1.0 / self.top)
        self.program.cost = {self.inverse: 1.0}
        self.build()

    def new_stream(self, s: int, size: int) -> int:
        return self.program.new_column(float(size), integer=self.whole)

    def all_of(self, s: int, columns: list[int], size: int) -> None:
        self.program.add([(c, 1.0) for c in columns], size, size)

    def at_most_one(self, s: int, columns: list[int]) -> None:
        if self.whole:
            self.program.add([(c, 1.0) for c in columns], 0.0, 1.0)

    def weight(self, s: int) -> float:
        return self.shares[s]

    def within_capacities(self) -> None:
        for resource, terms in self.usage.items():
            capacity = float(self.network.capacity[resource])
            self.program.add([*terms, (self.inverse, -capacity)], -INF, 0.0)

    def scale(self, values: NDArray[np.float64]) -> tuple[float, tuple[float, ...]]:
        return 1.0 / float(values[self.inverse]), self.shares

    def rate_bound(self, objective: float) -> float:
        return float(1.0 / objective) if objective > 0 else self.top


class FreeShares(Formulation):
    """The model in which the part F of the rate is a variable for each server: columns are rates, and the sum of F is
    maximized. If streams are whole, each has an additional binary, and each worker is a group of its own."""

    def __init__(
        self,
        network: ResidualNetwork,
        workers: Sequence[str],
        servers: Sequence[str],
        nodes: Sequence[str],
        *,
        whole: bool = False,
    ) -> None:
        super().__init__(network, workers, servers, nodes, whole=whole, single=whole)
        ingress = [float(network.capacity[network.server_id[s]]) for s in servers]
        self.most = [min(self.top, i) for i in ingress]
        self.rate = [self.program.new_column(most) for most in self.most]
        self.program.cost = dict.fromkeys(self.rate, -1.0)
        self.build()

    def new_stream(self, s: int, size: int) -> int:
        return self.program.new_column(size * self.most[s])

    def all_of(self, s: int, columns: list[int], size: int) -> None:
        self.program.add([*((c, 1.0) for c in columns), (self.rate[s], -float(size))], 0.0, 0.0)
        self._one_of(s, columns, at_least=1)

    def at_most_one(self, s: int, columns: list[int]) -> None:
        self._one_of(s, columns, at_least=0)

    def _one_of(self, s: int, columns: list[int], *, at_least: int) -> None:
        """Tie a binary to each column; at most one of them is 1."""
        if self.whole:
            picks = [(self.program.new_column(1.0, integer=True), 1.0) for _ in columns]
            for column, (pick, _) in zip(columns, picks, strict=True):
                self.program.add([(column, 1.0), (pick, -self.most[s])], -INF, 0.0)
            self.program.add(picks, at_least, 1.0)

    def weight(self, s: int) -> float:
        return 1.0

    def within_capacities(self) -> None:
        for resource, terms in self.usage.items():
            self.program.add(terms, -INF, float(self.network.capacity[resource]))
        self.program.add([(c, 1.0) for c in self.rate], 0.0, self.top)

    def scale(self, values: NDArray[np.float64]) -> tuple[float, tuple[float, ...]]:
        parts = [max(0.0, float(values[c])) for c in self.rate]
        rate = sum(parts)
        return rate, tuple(p / rate if rate > 0 else 1.0 / len(parts) for p in parts)

    def rate_bound(self, objective: float) -> float:
        return -objective
