# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans by `packing`: several trees at the shares that give the best rate, each with any root (a server or a switch)
and any depth, and as few of them as give nearly all of it. The option `trees` is the greatest number of trees (default
8).

Column generation finds the greatest fractional packing of aggregation trees: maximize the sum of the trees' rates x_T
so that sum x_T use_T(r) <= capacity(r) for every resource r. Each round solves the packing over the trees found so far
and takes its dual values as prices of the resources; trees that cost less than 1 enter the packing. At any prices p,
capacity . p over the cheapest tree's cost is an upper bound of the rate of any plan: the bound is proven in every
round, whether or not it is the last. The duals come from the interior of the optimal face and are drawn to those of the
best bound (Wentges, Int. Trans. Oper. Res. 4, 1997): otherwise equal links would be priced one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.layout import Draft, finish
from netfold.controller.planning.packing_problem import PackingProblem
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.scheme import Task
from netfold.controller.planning.sparse import INF, Effort, LinearProgram, new_solver
from netfold.controller.planning.tree_columns import TreeColumn, as_draft
from netfold.controller.planning.tree_pricing import TreePricing

TREES = 8
ROUNDS = 60
ENOUGH = 0.97
"""Fraction of the rate of the best packing that the few trees of a plan have to give."""

CHOICE_EFFORT = Effort(work=20_000)
"""Effort of the choice of trees, about a second if no choice is proven the best."""

BETTER = 1e-6

Floats = NDArray[np.float64]

PROVEN = 1e-4
"""Relative distance to the bound at which a packing is accepted as proven."""

SMOOTHING = 0.5

FLOOR = 1e-6
"""Fraction of the total price that all resources share, so that no price is 0 and short trees are preferred."""


def plan_packing(task: Task) -> Plan:
    trees = task.number("trees", TREES, 1, 64)
    problem = PackingProblem(task.network, task.workers, task.job.parameter_servers)
    packing = generate(problem, ROUNDS)
    if not packing.columns:
        raise PlanningError(
            f"job '{task.job.name}' by packing: no tree joins all workers with a parameter server or a switch "
            "that has capacity left"
        )
    drafts = _select_trees(problem, packing.columns, ENOUGH * packing.rate, trees)
    return finish(task.network, task.job, drafts, task.report("packing", min(packing.bound, problem.access)))


def _select_trees(
    problem: PackingProblem, columns: Sequence[TreeColumn], wanted: float, max_trees: int
) -> list[Draft]:
    """Trees that give the rate `wanted` together, or the greatest rate that `max_trees` give: those of a best packing,
    of which one after the other is left out while the rest suffice. If these give too little, any of `columns` are
    chosen."""
    capacity, access = problem.network.capacity, problem.access
    rates = solve_packing(columns, capacity, access, vertex=True).rates
    most = float(rates.sum())
    kept = [c for c, rate in zip(columns, rates, strict=True) if rate > 1e-9 * most]
    while len(kept) > 1:
        rest = [solve_packing([d for d in kept if d is not c], capacity, access, vertex=True) for c in kept]
        best = max(range(len(kept)), key=lambda i: rest[i].rate)
        if rest[best].rate < wanted and len(kept) <= max_trees:
            break
        kept.pop(best)
    rates = solve_packing(kept, capacity, access, vertex=True).rates
    found = float(rates.sum())
    if found < wanted and (better := choose_trees(problem, columns, max_trees, found, most)):
        kept, rates = better, solve_packing(better, capacity, access, vertex=True).rates
    return [as_draft(problem, c, float(rate)) for c, rate in zip(kept, rates, strict=True) if rate > 0]


def choose_trees(
    problem: PackingProblem, columns: Sequence[TreeColumn], max_trees: int, above: float, most: float
) -> list[TreeColumn]:
    """Choose at most `max_trees` of `columns` whose packing has a rate of more than `above`, the greatest that a
    limited number of steps finds: a mixed-integer program, in which a tree has a rate only if it is chosen. `most`: the
    rate of the packing of all columns. Empty if no such trees were found."""
    capacity = problem.network.capacity
    use = np.stack([c.use for c in columns], axis=1)
    used = np.flatnonzero(use.any(axis=1))
    use = use[used] / capacity[used, np.newaxis]
    alone = np.minimum(problem.access, 1.0 / use.max(axis=0))
    program = LinearProgram()
    share = [program.new_column(1.0) for _ in columns]  # of the rate that the tree has alone
    chosen = [program.new_column(1.0, integer=True) for _ in columns]
    for loads in use * alone:
        program.add([(share[i], float(loads[i])) for i in np.flatnonzero(loads)], -INF, 1.0)
    gain = [(x, float(rate / most)) for x, rate in zip(share, alone, strict=True)]
    program.add(gain, above * (1 + BETTER) / most, 1.0)
    for x, is_chosen in zip(share, chosen, strict=True):
        program.add([(x, 1.0), (is_chosen, -1.0)], -INF, 0.0)
    program.add([(is_chosen, 1.0) for is_chosen in chosen], -INF, float(max_trees))
    program.cost = {x: -rate for x, rate in gain}
    values = program.solve(CHOICE_EFFORT).values
    if values is None:
        return []
    return [column for column, is_chosen in zip(columns, chosen, strict=True) if values[is_chosen] > 0.5]


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
