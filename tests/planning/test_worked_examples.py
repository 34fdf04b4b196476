# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The papers' worked examples: GRID Fig. 1 and InArt Fig. 1."""

from __future__ import annotations

import pytest

from netfold.controller.jobs.lookup import default_job
from netfold.controller.planning.planner import make_plan
from netfold.controller.planning.scheme_registry import SCHEMES
from netfold.topologies.spec import load_fabric
from tests.planning.cases import EPS, worked_example


@pytest.mark.parametrize(
    ("scheme", "rate"), [("none", 1.0), ("atp", 2.4375), ("grid", 3.0), ("optimal", 3.0)]
)
def test_grid_fig1_rates(scheme: str, rate: float) -> None:
    assert make_plan(*worked_example("grid-fig1", scheme)).rate == pytest.approx(rate, abs=EPS)


@pytest.mark.parametrize(("scheme", "rate"), [("lbmm", 4 / 3), ("atp", 2.0)])
def test_inart_fig1_baselines(scheme: str, rate: float) -> None:
    assert make_plan(*worked_example("inart-fig1", scheme)).rate == pytest.approx(rate, abs=EPS)


@pytest.mark.parametrize("seed", range(5))
def test_inart_fig1_reaches_at_least_the_published_rate(seed: int) -> None:
    plan = make_plan(*worked_example("inart-fig1", "inart"), seed=seed)
    assert plan.rate >= 2.5 - EPS
    assert plan.bound is not None
    assert plan.rate <= plan.bound + EPS


def test_inart_fig1_optimum_is_better_than_published_and_proven() -> None:
    plan = make_plan(*worked_example("inart-fig1", "optimal"))
    assert plan.rate == pytest.approx(8 / 3, abs=1e-5)
    assert plan.gap == pytest.approx(0.0, abs=1e-5)


def test_several_trees_per_server_come_nearer_to_the_bound_than_whole_parts_can() -> None:
    plan = make_plan(*worked_example("inart-fig1", "inart", trees_per_server=4))
    assert plan.bound is not None
    assert 8 / 3 * 1.05 < plan.rate <= plan.bound * (1 + 1e-6)


@pytest.mark.parametrize("example", ["grid-fig1", "inart-fig1"])
@pytest.mark.parametrize("scheme", ["atp", "hierarchical"])
def test_a_scheme_without_a_relaxation_has_no_bound(example: str, scheme: str) -> None:
    plan = make_plan(*worked_example(example, scheme))
    assert (plan.bound, plan.gap) == (None, None)


def test_auto_takes_several_trees_per_server_only_where_they_pay() -> None:
    few = make_plan(*worked_example("grid-fig1", "auto"))
    many = make_plan(*worked_example("inart-fig1", "auto"))
    assert len(few.trees) == 1
    assert len(many.trees) > 2
    assert many.rate > 8 / 3 * 1.1


@pytest.mark.parametrize("seed", range(10))
def test_grid_fig1_is_reached_from_every_seed(seed: int) -> None:
    assert make_plan(*worked_example("grid-fig1", "grid"), seed=seed).rate == pytest.approx(3.0, abs=EPS)


def test_grid_fig1_atp_fills_link_l1_and_switch_s1_as_in_the_figure() -> None:
    loads = make_plan(*worked_example("grid-fig1", "atp")).loads
    assert loads.links["S1", "S3"] == pytest.approx(3.0)
    assert loads.links.get(("S1", "S2"), 0.0) == 0.0
    assert loads.switches["S1"] == pytest.approx(9.0)


def test_grid_fig1_grid_moves_one_worker_of_s1_to_another_switch() -> None:
    """Row (c) of the figure: links, switches and server are loaded as the paper says."""
    plan = make_plan(*worked_example("grid-fig1", "grid"))
    for link in (("S1", "S3"), ("S1", "S2"), ("S2", "S3")):
        assert plan.loads.links[link] == pytest.approx(3.0)
    assert plan.loads.switches == pytest.approx({"S1": 9.0, "S2": 9.0, "S3": 6.0})
    assert plan.loads.servers["PS"] == pytest.approx(9.0)
    away = [e.child for e in plan.trees[0].edges if e.child in {"W1", "W2", "W3", "W4"} and e.parent != "S1"]
    assert len(away) == 1


def test_without_a_split_grids_atp_stays_at_what_s1_can_take() -> None:
    plan = make_plan(*worked_example("grid-fig1", "atp", atp_variant="whole"))
    assert plan.rate == pytest.approx(2.25)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grid-fig1", "inart-fig1"])
@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_the_same_seed_gives_the_same_plan(name: str, scheme: str) -> None:
    first, second = (make_plan(*worked_example(name, scheme), seed=3) for _ in range(2))
    assert first.trees == second.trees


@pytest.mark.parametrize("name", ["grid-fig1", "inart-fig1"])
def test_published_figures_are_those_of_the_papers(name: str) -> None:
    published = default_job(load_fabric(name)).published
    expected = {
        "grid-fig1": {"none": 1.0, "atp": 2.4375, "grid": 3.0},
        "inart-fig1": {"lbmm": pytest.approx(4 / 3), "atp": 2.0, "inart": 2.5},
    }
    assert published == expected[name]


def test_auto_is_as_good_as_the_best_scheme() -> None:
    rates = [
        make_plan(*worked_example("inart-fig1", s)).rate for s in ("none", "lbmm", "atp", "grid", "inart")
    ]
    assert make_plan(*worked_example("inart-fig1", "auto")).rate >= max(rates) * 0.99
