# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The linear model against GRIA as printed and against brute force; R-GRIA's theorems over seeds; repair."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
from scipy.optimize import linprog

from netfold.controller.planning.candidate_paths import Limits
from netfold.controller.planning.formulation import FixedShares, FreeShares
from netfold.controller.planning.grid import free_routing_bound, repair, round_once
from netfold.controller.planning.inart import lagrange_splits
from netfold.controller.planning.layout import feasible_rate, total_load
from netfold.controller.planning.packing import packing_bound
from netfold.controller.planning.planner import make_plan
from netfold.controller.planning.residual_network import ResidualNetwork
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine, with_capacities, with_parameter_servers
from tests.planning.cases import job_on, star

SEEDS = [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 20))]


def _roomy(seed: int, workers: int = 24, switches: int = 6) -> tuple[Fabric, list[str], str]:
    """A leaf-spine whose links never bind (GRIA leaves them out), capacities drawn by the seed."""
    rng = random.Random(seed)
    fabric = leaf_spine(switches, 4, workers // switches + 1, rate=1e4)
    capacities = {s.name: rng.uniform(20.0, 200.0) if "leaf" in s.name else 0.0 for s in fabric.switches}
    server = fabric.hosts[-1].name
    fabric = with_parameter_servers(with_capacities(fabric, capacities), [server], 100.0)
    return fabric, [h.name for h in fabric.hosts if h.name != server][:workers], server


def _gria(capacities: list[float], ingress: float, workers: int) -> float:
    """GRIA's relaxation exactly as printed (Eq. 1): x, r, y and lambda, T = ingress."""
    n, s = workers, len(capacities)
    x, r, y, rate = 0, n * (s + 1), 2 * n * (s + 1), 2 * n * (s + 1) + s
    size = rate + 1
    upper: list[tuple[dict[int, float], float]] = []
    equal: list[tuple[dict[int, float], float]] = []
    for i in range(n):
        row = range(i * (s + 1), (i + 1) * (s + 1))
        equal.append(({x + j: 1.0 for j in row}, 1.0))
        upper += [({r + j: 1.0, x + j: -ingress}, 0.0) for j in row]
        upper += [({r + i * (s + 1) + v: 1.0, y + v: -1.0}, 0.0) for v in range(s)]
        upper.append(({rate: 1.0, **{r + j: -1.0 for j in row}}, 0.0))
    for v in range(s):
        upper.append(({r + i * (s + 1) + v: 1.0 for i in range(n)}, capacities[v]))
    direct = {r + i * (s + 1) + s: 1.0 for i in range(n)}
    upper.append((direct | {y + v: 1.0 for v in range(s)}, ingress))

    def dense(rows: list[tuple[dict[int, float], float]]) -> tuple[np.ndarray, np.ndarray]:
        matrix = np.zeros((len(rows), size))
        for k, (terms, _) in enumerate(rows):
            matrix[k, list(terms)] = list(terms.values())
        return matrix, np.array([b for _, b in rows])

    cost = np.zeros(size)
    cost[rate] = -1.0
    a, b = dense(upper)
    e, f = dense(equal)
    return float(-linprog(cost, A_ub=a, b_ub=b, A_eq=e, b_eq=f, method="highs").fun)


@pytest.mark.parametrize("seed", range(5))
def test_the_model_gives_the_relaxation_of_gria_as_printed(seed: int) -> None:
    fabric, workers, server = _roomy(seed)
    network = ResidualNetwork(fabric, limits=Limits(fan_in=1000))
    nodes = network.aggregators()
    printed = _gria([fabric.switch(v).capacity for v in nodes], 100.0, len(workers))
    ours = FixedShares(network, workers, [server], nodes, [1.0]).solve().rate
    assert ours == pytest.approx(printed, rel=1e-6)
    assert FreeShares(network, workers, [server], nodes).solve().rate == pytest.approx(printed, rel=1e-6)
    assert free_routing_bound(network, workers, [server], nodes) == pytest.approx(printed, rel=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_rounding_keeps_the_relaxations_rate_and_gives_each_worker_one_node(seed: int) -> None:
    """R-GRIA's Theorems 1 and 7."""
    fabric, workers, server = _roomy(seed)
    network = ResidualNetwork(fabric)
    model = FixedShares(network, workers, [server], network.aggregators(), [1.0])
    solution = model.solve()
    [draft] = round_once(network, model, solution, np.random.default_rng(seed))
    assert set(workers) <= set(draft.parent)
    assert set(draft.parent) - set(workers) == set(draft.parent.values()) - {server}
    plan = make_plan(fabric, job_on(fabric, "grid"), seed=seed)
    assert plan.rounded_rate is not None
    assert plan.rate <= plan.rounded_rate * (1 + 1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_rounding_overruns_switches_within_the_stated_factor(seed: int) -> None:
    """Theorem 5: O(log |S|), and 2 when every switch could take 3 log |S| times what all workers send."""
    fabric, workers, server = _roomy(seed)
    network = ResidualNetwork(fabric, limits=Limits(fan_in=1000))
    model = FixedShares(network, workers, [server], network.aggregators(), [1.0])
    solution = model.solve()
    drafts = round_once(network, model, solution, np.random.default_rng(seed))
    load = total_load(network, drafts) * solution.rate
    nodes = network.aggregators()
    over = max(load[network.switch_id[v]] / network.capacity[network.switch_id[v]] for v in nodes)
    nu = min(fabric.switch(v).capacity for v in nodes) / (len(workers) * 100.0)
    assert over <= (2.0 if nu >= 3 * math.log(len(nodes)) else 3 * math.log(len(nodes)))


@pytest.mark.parametrize("seed", SEEDS)
def test_rounding_asks_the_server_for_at_most_one_stream_per_used_switch_and_direct_worker(seed: int) -> None:
    """Theorem 6 states O(log |N||S|); what holds without its assumption is the number of streams."""
    fabric, workers, server = _roomy(seed)
    network = ResidualNetwork(fabric)
    model = FixedShares(network, workers, [server], network.aggregators(), [1.0])
    solution = model.solve()
    [draft] = round_once(network, model, solution, np.random.default_rng(seed))
    asked = total_load(network, [draft])[network.server_id[server]]
    assert asked == len(draft.members()[server])


@pytest.mark.parametrize("seed", range(6))
def test_repair_is_never_worse_than_scaling_down(seed: int) -> None:
    fabric, workers, server = _roomy(seed)
    network = ResidualNetwork(fabric)
    nodes = network.aggregators()
    model = FixedShares(network, workers, [server], nodes, [1.0])
    solution = model.solve()
    drafts = round_once(network, model, solution, np.random.default_rng(seed))
    scaled = feasible_rate(network, drafts)
    assert repair(network, workers, nodes, drafts, solution.rate).rate >= scaled * (1 - 1e-9)


def _best_assignment(capacities: list[float], ingress: float, workers: int) -> float:
    """Brute force over all assignments, links aside: workers are alike, so member counts are enough."""
    best = 0.0
    for counts in itertools.product(range(workers + 1), repeat=len(capacities)):
        direct = workers - sum(counts)
        if direct < 0:
            continue
        streams = direct + sum(1 for c in counts if c)
        rates = [ingress / streams] + [c / m for c, m in zip(capacities, counts, strict=True) if m]
        best = max(best, min(rates))
    return best


@pytest.mark.parametrize("seed", range(8))
def test_optimal_and_the_packing_bound_agree_with_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    fabric, _, server = _roomy(seed, workers=9, switches=3)
    capacities = {f"leaf{i}": rng.uniform(5.0, 60.0) for i in (1, 2, 3)}
    fabric = with_capacities(fabric, capacities)
    workers = [h.name for h in fabric.hosts if h.name != server][:9]
    job = job_on(fabric, "optimal")
    best = _best_assignment(list(capacities.values()), 100.0, len(job.workers))
    plan = make_plan(fabric, job)
    assert plan.rate == pytest.approx(best, rel=1e-5)
    network = ResidualNetwork(fabric)
    assert packing_bound(network, job.workers, [server], network.aggregators()) == pytest.approx(
        best, rel=1e-5
    )
    assert len(workers) == 9


@pytest.mark.parametrize("seed", range(4))
def test_grid_reaches_the_optimum_of_small_fabrics_with_links_to_spare(seed: int) -> None:
    fabric, _, _ = _roomy(seed, workers=12, switches=4)
    grid, optimal = (make_plan(fabric, job_on(fabric, s), seed=seed) for s in ("grid", "optimal"))
    assert grid.rate >= optimal.rate * 0.999


def test_exact_and_relaxed_forms_agree_where_nothing_has_to_be_split() -> None:
    fabric = star(4, 1, rate=10.0, capacity=40.0, ingress=10.0)
    network = ResidualNetwork(fabric)
    job = job_on(fabric)
    forms = [
        FixedShares(network, job.workers, ["ps0"], ["s"], [1.0], whole=w).solve().rate for w in (False, True)
    ]
    assert forms == pytest.approx([10.0, 10.0])


def test_more_roundings_never_make_it_worse() -> None:
    fabric, _, _ = _roomy(1)
    few, many = (make_plan(fabric, job_on(fabric, "grid", roundings=n), seed=5) for n in (1, 12))
    assert many.rate >= few.rate * (1 - 1e-9)


@pytest.mark.parametrize(("capacity", "count"), [(1000.0, 1), (12.0, 2)])
def test_lagrange_splits_satisfy_their_stationarity_conditions(capacity: float, count: int) -> None:
    ingress, n = (4.0, 2.0), 6
    splits = lagrange_splits(ingress, capacity, n)
    assert len(splits) == count
    for split in splits:
        assert sum(split.shares) == pytest.approx(1.0)
        assert split.server_price + split.switch_price == pytest.approx(1.0)
        if split.switch_price > 0:
            assert (n - 1) * split.server_price == pytest.approx(split.switch_price)
        added = 0.0
        for share, direct, most in zip(split.shares, split.direct, ingress, strict=True):
            part = split.rate * share
            assert 0 <= direct <= 1
            assert part * (1 + (n - 1) * direct) == pytest.approx(most)
            added += n * part * (1 - direct)
        assert added <= capacity * (1 + 1e-9)


def test_no_scheme_beats_the_sum_of_all_capacities_over_workers() -> None:
    """f <= (sum B + sum C) / n, which the published curve of InArt's Fig. 12a breaks."""
    fabric = star(6, 2, rate=100.0, capacity=9.0, ingress=4.0)
    for scheme in ("none", "lbmm", "atp", "grid", "inart", "optimal"):
        assert make_plan(fabric, job_on(fabric, scheme)).rate <= (8.0 + 9.0) / 6 * (1 + 1e-9)


def test_rounding_is_spread_as_the_relaxation_says() -> None:
    fabric, workers, server = _roomy(3, workers=30)
    network = ResidualNetwork(fabric)
    model = FixedShares(network, workers, [server], network.aggregators(), [1.0])
    solution = model.solve()
    expected: Counter[str] = Counter()
    for g, group in enumerate(model.groups):
        for choice in solution.choices[0, g]:
            expected[choice.parent] += choice.fraction * len(group.workers)  # type: ignore[assignment]
    rng, drawn, rounds = np.random.default_rng(0), Counter[str](), 200
    for _ in range(rounds):
        [draft] = round_once(network, model, solution, rng)
        drawn.update(draft.parent[w] for w in workers)
    for node, mean in expected.items():
        assert drawn[node] / rounds == pytest.approx(mean, abs=0.15 * len(workers) ** 0.5 + 0.1)
