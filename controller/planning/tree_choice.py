# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Chooses the best packing of a limited number of trees from many: a mixed-integer program, in which a tree has a rate
only if it is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netfold.controller.planning.packing_problem import PackingProblem
from netfold.controller.planning.sparse import INF, Effort, LinearProgram
from netfold.controller.planning.tree_columns import TreeColumn

EFFORT = Effort(work=20_000)
"""Effort of the search, about a second if no choice is proven the best."""
BETTER = 1e-6


def choose_trees(
    problem: PackingProblem, columns: Sequence[TreeColumn], max_trees: int, above: float, most: float
) -> list[TreeColumn]:
    """Choose at most `max_trees` of `columns` whose packing has a rate of more than `above`, the greatest that a
    limited number of steps finds. `most`: the rate of the packing of all columns. Empty if no such trees were found."""
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
    values = program.solve(EFFORT).values
    if values is None:
        return []
    return [column for column, is_chosen in zip(columns, chosen, strict=True) if values[is_chosen] > 0.5]
