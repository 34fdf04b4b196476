# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines a sparse linear or mixed-integer program, and solves it by HiGHS: one thread and a fixed seed, stopped by the
number of its steps, so that every run has the same result. The time limit is only a safety net; a result states whether
it was reached.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import highspy
import numpy as np
from numpy.typing import NDArray

INF: float = highspy.kHighsInf
SIMPLEX_COLUMNS = 3_000
"""Number of columns above which programs without integers are solved by interior point without crossover (to about
1e-8): they are degenerate, and slow for the simplex method."""


class Stopped(StrEnum):
    """The limit that ended a search before its proof."""

    STEPS = "steps"
    TIME = "time"


@dataclass(frozen=True)
class Effort:
    """Limits of a search. `work` bounds a search for integers: the number of steps times the number of integers. The
    solver checks it after each step (a node, a round of cuts), and a run repeats the steps exactly; they take longer in
    larger programs. `seconds` is the safety net."""

    work: int = 200_000
    seconds: float = 60.0


@dataclass(frozen=True)
class Outcome:
    """Outcome of a search: `values` of the best point by column, None if none was found; `bound` on the objective of
    any point; `stopped` is None if the point is proven the best, or if it is proven that there is none."""

    values: NDArray[np.float64] | None
    bound: float
    stopped: Stopped | None
    status: str


@dataclass
class LinearProgram:
    """Minimize `cost` over columns within bounds, rows within [low, high]. Rows and columns are added in any order."""

    row: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    cost: dict[int, float] = field(default_factory=dict)

    def new_column(self, upper: float, *, integer: bool = False, lower: float = 0.0) -> int:
        self.upper.append(upper)
        self.lower.append(lower)
        self.integer.append(integer)
        return len(self.upper) - 1

    def add(self, terms: list[tuple[int, float]], low: float, high: float) -> None:
        at = len(self.low)
        for column, value in terms:
            self.row.append(at)
            self.column.append(column)
            self.value.append(value)
        self.low.append(low)
        self.high.append(high)

    @property
    def size(self) -> int:
        """The number of integer columns, or of all if there are none."""
        return sum(self.integer) or len(self.upper)

    def solve(self, effort: Effort) -> Outcome:
        solver = self._solver(effort)
        left = effort.work // max(1, self.size)

        def count(event: highspy.HighsCallbackEvent) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                event.interrupt()

        if any(self.integer):
            solver.cbMipInterrupt.subscribe(count)
        solver.run()
        status, info = solver.getModelStatus(), solver.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible.value
        ended = {
            highspy.HighsModelStatus.kTimeLimit: Stopped.TIME,
            highspy.HighsModelStatus.kInterrupt: Stopped.STEPS,
        }
        stopped = ended.get(status)
        return Outcome(
            np.asarray(solver.getSolution().col_value, dtype=np.float64) if found else None,
            float(info.mip_dual_bound if stopped else info.objective_function_value),
            stopped,
            solver.modelStatusToString(status),
        )

    def _solver(self, effort: Effort) -> highspy.Highs:
        order = np.argsort(np.asarray(self.row, dtype=np.int64), kind="stable")
        starts = np.searchsorted(np.asarray(self.row)[order], np.arange(len(self.low) + 1))
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.upper), len(self.low)
        lp.col_lower_, lp.col_upper_ = np.asarray(self.lower), np.asarray(self.upper)
        lp.row_lower_, lp.row_upper_ = np.asarray(self.low), np.asarray(self.high)
        cost = np.zeros(len(self.upper))
        cost[list(self.cost)] = list(self.cost.values())
        lp.col_cost_ = cost
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = starts
        lp.a_matrix_.index_ = np.asarray(self.column, dtype=np.int32)[order]
        lp.a_matrix_.value_ = np.asarray(self.value)[order]
        if any(self.integer):
            kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
            lp.integrality_ = [kinds[i] for i in self.integer]
        solver = new_solver()
        solver.setOptionValue("time_limit", effort.seconds)
        solver.setOptionValue("mip_rel_gap", 1e-6)
        if not any(self.integer) and len(self.upper) > SIMPLEX_COLUMNS:
            solver.setOptionValue("solver", "ipm")
            solver.setOptionValue("run_crossover", "off")
        solver.passModel(lp)
        return solver


class _SilentHighs(highspy.Highs):  # type: ignore[misc]
    """HiGHS without its banner, which newer versions print when the constructor enables the callbacks, before an option
    can be set. Standard output belongs to the command."""

    def enableCallbacks(self) -> None:  # noqa: N802 (of highspy)
        self.silent()
        super().enableCallbacks()


def new_solver() -> highspy.Highs:
    """A solver without output, with one thread and a fixed seed, so that every run has the same result."""
    solver = _SilentHighs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 0)
    return solver
