# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans by InArt (WWW 2024): L-InArt splits the model over the parameter servers by Lagrange multipliers, R-InArt then
rounds nodes and routes. Repair may refit the split to the rounded trees, before the job starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netfold.controller.planning.grid import relax_and_round
from netfold.controller.planning.plan import Plan
from netfold.controller.planning.scheme import Task


@dataclass(frozen=True)
class Split:
    """A stationary point of L-InArt's Lagrangian: `shares` of the servers, the part of each server's stream
    that goes unaggregated, the rate, and the multipliers of the switches' and of each server's capacity."""

    shares: tuple[float, ...]
    direct: tuple[float, ...]
    rate: float
    switch_price: float
    server_price: float


def lagrange_splits(ingress: Sequence[float], capacity: float, workers: int) -> list[Split]:
    """L-InArt without routing (Alg. 1, Eq. 2-3), for servers' `ingress` B, all switches' `capacity` C, n
    `workers`.

    With F = f x, direct parts D and per-worker switch capacity c = C / n, Eq. 2 is: maximize sum F subject to
    F_s + (n - 1) D_s <= B_s (price q_s), sum (F_s - D_s) <= c (price p), 0 <= D_s <= F_s. Stationarity in F_s
    and D_s gives q_s + p = 1 and (n - 1) q_s = p where 0 < D_s < F_s, so q_s = 1/n and p = (n-1)/n: all
    servers' rows and the switches' row are tight, and f = c + (sum B - c) / n. These are |S| + 1 equations in
    2 |S| unknowns, and the paper does not say which solution it picks. We return two: the same direct
    fraction for all servers, so that x_s is B_s / sum B; and, if it is a solution and another one, equal x_s.
    """
    total, each, n, count = sum(ingress), capacity / workers, workers, len(ingress)
    shares = tuple(b / total for b in ingress)
    if total <= each or n == 1:
        return [Split(shares, (0.0,) * count, total, 0.0, 1.0)]
    rate = each + (total - each) / n
    prices = ((n - 1) / n, 1 / n)
    splits = [Split(shares, ((rate - each) / rate,) * count, rate, *prices)]
    part = rate / count
    direct = tuple((b / part - 1) / (n - 1) for b in ingress)
    if max(ingress) > min(ingress) and all(0 <= d <= 1 for d in direct):
        splits.append(Split((1 / count,) * count, direct, rate, *prices))
    return splits


def plan_inart(task: Task) -> Plan:
    """Plan at each split of L-InArt, and return the best plan."""
    servers, network = task.servers(), task.network
    ingress = [float(network.capacity[network.server_id[s]]) for s in servers]
    capacity = float(sum(network.capacity[network.switch_id[v]] for v in network.aggregators()))
    splits = lagrange_splits(ingress, capacity, len(task.workers))
    plans = [relax_and_round(task, "inart", servers, split.shares) for split in splits]
    return max(plans, key=lambda p: p.rate)
