# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds schemes by name: netfold's own, one file each, and those that installed packages add by the entry point group
`netfold.planners`:

    [project.entry-points."netfold.planners"]
    my-scheme = "my_package:plan_my_scheme"

`plan_my_scheme` is a Scheme (scheme.py): it gets a Task and returns a Plan. `netfold plan`, `plan compare`, job files
and `netfold simulate` take its name. It reads the job's options itself."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from traceback import extract_tb

from netfold.controller.planning.atp import plan_atp
from netfold.controller.planning.auto import plan_auto
from netfold.controller.planning.grid import plan_grid
from netfold.controller.planning.hierarchical import plan_hierarchical
from netfold.controller.planning.inart import plan_inart
from netfold.controller.planning.lbmm import plan_lbmm
from netfold.controller.planning.none import plan_none
from netfold.controller.planning.optimal import plan_optimal
from netfold.controller.planning.panama import plan_panama
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.scheme import Scheme, Task
from netfold.controller.planning.switchml import plan_switchml
from netfold.controller.planning.tree_packing import plan_packing

ENTRY_POINT_GROUP = "netfold.planners"

BUILT_IN_SCHEMES: dict[str, Scheme] = {
    "none": plan_none,
    "lbmm": plan_lbmm,
    "atp": plan_atp,
    "switchml": plan_switchml,
    "grid": plan_grid,
    "inart": plan_inart,
    "panama": plan_panama,
    "hierarchical": plan_hierarchical,
    "packing": plan_packing,
    "optimal": plan_optimal,
    "auto": plan_auto,
}


def _scheme_of(entry_point: EntryPoint) -> Scheme:
    """Loads the scheme when a job names it. A defect of a package is an error of the jobs that name its scheme, and
    affects no other scheme: `netfold plan --compare` shows it in one row."""

    def plan(task: Task) -> Plan:
        title = f"job '{task.job.name}': scheme '{entry_point.name}' ({entry_point.value})"
        try:
            scheme: Scheme = entry_point.load()
        except Exception as error:
            raise PlanningError(f"{title} cannot be loaded: {error}") from error
        try:
            made = scheme(task)
        except PlanningError:
            raise
        except Exception as error:
            raise PlanningError(f"{title} failed {_place(error)}: {type(error).__name__}: {error}") from error
        if not isinstance(made, Plan):
            raise PlanningError(f"{title} returned a {type(made).__name__}, not a Plan")
        return made

    return plan


def _place(error: Exception) -> str:
    """The line that raised the error."""
    frame = extract_tb(error.__traceback__)[-1]
    return f"in {frame.filename}, line {frame.lineno}"


INSTALLED_SCHEMES: dict[str, Scheme] = {
    e.name: _scheme_of(e)
    for e in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda e: e.name)
    if e.name not in BUILT_IN_SCHEMES
}
"""Schemes of other packages. They cannot replace a scheme of netfold's own."""

SCHEMES: dict[str, Scheme] = {**BUILT_IN_SCHEMES, **INSTALLED_SCHEMES}
