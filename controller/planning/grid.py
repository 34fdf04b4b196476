# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans by GRID (ToN 2023): R-GRIA, Alg. 1, with link limits added and a repair. Several parameter servers get equal
parts."""

from __future__ import annotations

from netfold.controller.planning.plan import Plan
from netfold.controller.planning.relax_and_round import relax_and_round
from netfold.controller.planning.scheme import Task


def plan_grid(task: Task) -> Plan:
    servers = task.servers()
    return relax_and_round(task, "grid", servers, [1.0 / len(servers)] * len(servers))
