# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the greatest fractional packing of aggregation trees, by column generation: maximize the sum of the trees'
rates x_T so that sum x_T use_T(r) <= capacity(r) for every resource r.

Each round solves the packing over the trees found so far and takes its dual values as prices of the resources; trees
that cost less than 1 enter the packing. At any prices p, capacity . p over the cheapest tree's cost is an upper bound
of the rate of any plan: the bound is proven in every round, whether or not it is the last. The duals come from the
interior of the optimal face and are drawn to those of the best bound (Wentges, Int. Trans. Oper. Res. 4, 1997):
otherwise equal links would be priced one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.packing_problem import PackingProblem
from netfold.controller.planning.sparse import new_solver
from netfold.controller.planning.tree_columns import TreeColumn
from netfold.controller.planning.tree_pricing import TreePricing

Floats = NDArray[np.float64]

PROVEN = 1e-4
"""Relative distance to the bound at which a packing is accepted as proven."""
SMOOTHING = 0.5
FLOOR = 1e-6
"""Fraction of the total price that all resources share, so that no price is 0 and short trees are preferred."""


@dataclass(frozen=True)
class TreePacking:
    """Trees, their rates in the best packing of them, and an upper bound of the rate of any plan: at `prices` of the
    resources and `access_price` of the workers' links all capacities are worth 1, and a tree costs 1/`bound` or more.
    """

    columns: tuple[TreeColumn, ...]
    rates: Floats
    bound: float
    prices: Floats
    access_price: float

    @property
    def rate(self) -> float:
        return float(self.rates.sum())


@dataclass(frozen=True)
class Solved:
    """Rates by tree; prices by resource, and of the workers' links together."""

    rates: Floats
    prices: Floats
    access: float

    @property
    def rate(self) -> float:
        return float(self.rates.sum())


def generate(problem: PackingProblem, rounds: int) -> TreePacking:
    """Generate a packing in at most `rounds` rounds. It has no column if no tree was found; then nothing can be sent if
    the bound is 0."""
    pricing = TreePricing(problem)
    capacity = problem.network.capacity
    usable = capacity > 0
    prices = _Prices(np.where(usable, 1.0 / np.where(usable, capacity, 1.0), 0.0), 0.0)
    prices = prices.of_worth_1(capacity, problem.access)
    columns: dict[object, TreeColumn] = {}
    bound, best_prices, solved, is_smoothed = float("inf"), prices, None, False
    for _ in range(rounds):
        enough = float("inf") if solved is None else 1.0 / solved.rate
        priced = pricing.price(prices.resources, prices.access, columns, enough)
        if not np.isfinite(priced.lower):
            return TreePacking((), np.zeros(0), 0.0, prices.resources, prices.access)
        if 1.0 / priced.lower < bound:
            bound, best_prices = 1.0 / priced.lower, prices
        if not priced.columns and not is_smoothed:
            break
        if priced.columns:
            columns |= {c.key: c for c in priced.columns}
            solved = solve_packing(list(columns.values()), capacity, problem.access)
        if solved is None or solved.rate >= bound * (1 - PROVEN):
            break
        prices = _Prices(solved.prices, solved.access).of_worth_1(capacity, problem.access)
        is_smoothed = bool(priced.columns)
        if is_smoothed:
            prices = prices.drawn_to(best_prices)
    rates = np.zeros(0) if solved is None else solved.rates
    return TreePacking(
        tuple(columns.values()),
        rates,
        max(bound, float(rates.sum())),
        best_prices.resources,
        best_prices.access,
    )


@dataclass(frozen=True)
class _Prices:
    """Prices of every resource, and of the own links of all workers together."""

    resources: Floats
    access: float

    def of_worth_1(self, capacity: Floats, access_capacity: float) -> _Prices:
        """The prices scaled so that all capacities together are worth 1, and none has the price 0."""
        worth = float(capacity @ self.resources) + access_capacity * self.access
        floor = FLOOR * worth / float(capacity.sum())
        whole = worth * (1 + FLOOR)
        return _Prices((self.resources + floor) / whole, self.access / whole)

    def drawn_to(self, other: _Prices) -> _Prices:
        own = 1 - SMOOTHING
        return _Prices(
            own * self.resources + SMOOTHING * other.resources, own * self.access + SMOOTHING * other.access
        )


def solve_packing(
    columns: Sequence[TreeColumn], capacity: Floats, access: float, *, vertex: bool = False
) -> Solved:
    """The best packing of these trees. `vertex`: return one with few trees instead of one in the interior of the best
    ones."""
    use = np.stack([c.use for c in columns], axis=1)
    rows = np.flatnonzero(use.any(axis=1))
    matrix = np.vstack([use[rows], np.ones(len(columns))])
    high = np.append(capacity[rows], access)
    solver = _solver(matrix, high, vertex)
    solver.run()
    solution = solver.getSolution()
    rates = np.maximum(np.asarray(solution.col_value), 0.0)
    load = matrix @ rates
    over = float((load / high).max(initial=1.0))
    dual = np.maximum(-np.asarray(solution.row_dual), 0.0)
    prices = np.zeros(len(capacity))
    prices[rows] = dual[:-1]
    return Solved(rates / over, prices, float(dual[-1]))


def _solver(matrix: Floats, high: Floats, vertex: bool) -> highspy.Highs:
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.col_cost_ = -np.ones(lp.num_col_)
    lp.col_lower_, lp.col_upper_ = np.zeros(lp.num_col_), np.full(lp.num_col_, highspy.kHighsInf)
    lp.row_lower_, lp.row_upper_ = np.full(lp.num_row_, -highspy.kHighsInf), high
    row, column = np.nonzero(matrix)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.searchsorted(row, np.arange(lp.num_row_ + 1))
    lp.a_matrix_.index_ = column.astype(np.int32)
    lp.a_matrix_.value_ = matrix[row, column]
    solver = new_solver()
    if not vertex:
        solver.setOptionValue("solver", "ipm")
        solver.setOptionValue("run_crossover", "off")
        solver.setOptionValue("presolve", "off")
    solver.passModel(lp)
    return solver
