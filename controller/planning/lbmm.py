# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans by LBMM: no aggregation; the gradient is split over all parameter servers in proportion to their ingress
capacity."""

from __future__ import annotations

from netfold.controller.planning.none import plan_direct
from netfold.controller.planning.plan import Plan
from netfold.controller.planning.scheme import Task


def plan_lbmm(task: Task) -> Plan:
    servers = task.servers()
    ingress = [float(task.network.capacity[task.network.server_id[s]]) for s in servers]
    return plan_direct(task, "lbmm", servers, [b / sum(ingress) for b in ingress])
