# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans by `auto`: the best of the schemes that suit a job; of (nearly) equal ones the simplest, in the order listed
here. Where no scheme of a paper reaches the best rate, a packing of trees does, and its bound holds for all of them."""

from __future__ import annotations

from dataclasses import replace

from netfold.controller.planning.atp import plan_atp
from netfold.controller.planning.grid import plan_grid
from netfold.controller.planning.hierarchical import plan_hierarchical
from netfold.controller.planning.inart import plan_inart
from netfold.controller.planning.lbmm import plan_lbmm
from netfold.controller.planning.none import plan_none
from netfold.controller.planning.panama import plan_panama
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.scheme import Scheme, Task
from netfold.controller.planning.switchml import plan_switchml
from netfold.controller.planning.tree_packing import plan_packing


def plan_inart_split(task: Task) -> Plan:
    """Plan by `inart` with several trees for each server: nearer to the bound, for more slots and tree numbers."""
    return plan_inart(task.with_options(trees_per_server=SPLIT))


SPLIT = 4
CLEARLY_BETTER, MUCH_BETTER = 1.005, 1.1
NEARLY_BEST = 0.97
"""Fraction of the bound at which one tree is good enough."""
WITHOUT_SEARCH: tuple[Scheme, ...] = (plan_switchml, plan_panama)
ONE_SERVER: tuple[Scheme, ...] = (plan_none, plan_grid, plan_atp)
SEVERAL_SERVERS: tuple[Scheme, ...] = (plan_none, plan_lbmm, plan_inart, plan_atp)


def plan_auto(task: Task) -> Plan:
    """Plan by the best scheme. The plan names it."""
    found = _Best(task)
    for scheme in WITHOUT_SEARCH:
        found.offer(scheme, CLEARLY_BETTER)
    found.offer(plan_packing, CLEARLY_BETTER)
    count = len(task.job.parameter_servers)
    with_servers = () if count == 0 else ONE_SERVER if count == 1 else SEVERAL_SERVERS
    for scheme in (*with_servers, plan_hierarchical):
        found.offer(scheme, CLEARLY_BETTER)
    if with_servers and "trees_per_server" not in task.job.options:
        found.offer(plan_inart_split, MUCH_BETTER)
    return found.plan()


class _Best:
    """The best plan of the schemes offered so far."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._bound = self._access = task.network.access_limit(task.workers)
        self._plan: Plan | None = None
        self._reasons: list[str] = []

    def offer(self, scheme: Scheme, factor: float) -> None:
        """Take the scheme's plan if its rate is more than `factor` times the best one's, or if it is nearly equal and
        has fewer trees."""
        if self._is_done():
            return
        try:
            plan = scheme(self._task)
        except PlanningError as error:
            self._reasons.append(str(error))
            return
        if scheme is plan_packing and plan.bound is not None:
            self._bound = min(self._bound, plan.bound)
        if self._plan is None or _is_better(plan, self._plan, factor):
            self._plan = plan

    def _is_done(self) -> bool:
        """Whether no scheme can be much better or simpler: all links of workers are full, or one tree is near the
        bound."""
        best = self._plan
        if best is None:
            return False
        enough = NEARLY_BEST * self._bound if len(best.trees) == 1 else (1 - 1e-6) * self._access
        return best.rate >= enough

    def plan(self) -> Plan:
        if self._plan is None:
            raise PlanningError(
                f"job '{self._task.job.name}': no scheme has a plan: "
                + "; ".join(dict.fromkeys(self._reasons))
            )
        bound = max(self._bound, self._plan.rate)
        return replace(self._plan, bound=bound, solve_s=self._task.report("auto").solve_s)


def _is_better(plan: Plan, best: Plan, factor: float) -> bool:
    is_simpler = len(plan.trees) < len(best.trees)
    return plan.rate > best.rate * factor or (is_simpler and plan.rate * CLEARLY_BETTER >= best.rate)
