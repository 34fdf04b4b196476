# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans by `packing`: several trees at the shares that give the best rate, each with any root (a server or a switch)
and any depth, and as few of them as give nearly all of it.

The bound holds for every plan (column_generation.py). The option `trees` is the greatest number of trees (default 8).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netfold.controller.planning.column_generation import generate, solve_packing
from netfold.controller.planning.layout import Draft, finish
from netfold.controller.planning.packing_problem import PackingProblem
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.scheme import Task
from netfold.controller.planning.sparse import INF, Effort, LinearProgram
from netfold.controller.planning.tree_columns import TreeColumn, as_draft

TREES = 8
ROUNDS = 60
ENOUGH = 0.97
"""Fraction of the rate of the best packing that the few trees of a plan have to give."""

CHOICE_EFFORT = Effort(work=20_000)
"""Effort of the choice of trees, about a second if no choice is proven the best."""

BETTER = 1e-6


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
