# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The planners against the best trees of tiny fabrics, links and the way down included.

Going through all trees takes longer than planning, so the optima of the first fabrics are committed (tiny_optima.json;
`python -m tests.planning.test_brute_force` writes it anew): a few are found again in every run, all of them, and more,
in the long one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from netfold.controller.planning.plan import PlanningError
from netfold.controller.planning.planner import make_plan
from tests.planning.brute_force import TooLarge, best_one_level, best_single_tree
from tests.planning.cases import job_on, tiny_fabric

EXACT = 1e-5
FILE = Path(__file__).with_name("tiny_optima.json")
COMMITTED = {1: range(120), 2: range(60)}
"""Seeds by the number of servers."""


@dataclass(frozen=True)
class Optima:
    """The rates of the best trees of one level, one for each server, and of the best single tree."""

    one_level: float
    single: float


def committed(servers: int) -> dict[int, Optima]:
    known = json.loads(FILE.read_text())[str(servers)]
    return {int(seed): Optima(*rates) for seed, rates in known.items()}


def found(seed: int, servers: int) -> Optima | None:
    """By brute force; None where there are too many trees."""
    fabric = tiny_fabric(seed, servers)
    try:
        return Optima(best_one_level(fabric, job_on(fabric)), best_single_tree(fabric, job_on(fabric)))
    except TooLarge:
        return None


def assert_found_again(seed: int, servers: int, known: Optima) -> None:
    again = found(seed, servers)
    assert again is not None
    assert (again.one_level, again.single) == pytest.approx((known.one_level, known.single))


def ratios(scheme: str, servers: int, optima: dict[int, Optima], *, single: bool = False) -> dict[int, float]:
    """Planned rate over the optimum by seed. Where nothing can be sent there must be no plan."""
    result = {}
    for seed, known in optima.items():
        fabric = tiny_fabric(seed, servers)
        best = known.single if single else known.one_level
        try:
            rate = make_plan(fabric, job_on(fabric, scheme)).rate
        except PlanningError:
            rate = 0.0
        result[seed] = rate / best if best else float(rate == 0.0)
    return result


def below(ratios: dict[int, float], least: float) -> list[int]:
    return [seed for seed, ratio in ratios.items() if ratio < least * (1 - EXACT)]


def part(servers: int, count: int) -> dict[int, Optima]:
    """So many of the committed optima."""
    return dict(list(committed(servers).items())[:count])


def drawn(servers: int, count: int, after: Iterable[int]) -> dict[int, Optima]:
    """Optima of so many other fabrics."""
    seeds = [max(after) + 1 + i for i in range(count)]
    return {seed: known for seed in seeds if (known := found(seed, servers)) is not None}


@pytest.mark.parametrize("servers", [1, 2])
def test_a_few_committed_optima_are_found_again(servers: int) -> None:
    known = committed(servers)
    for seed in random.Random(servers).sample(sorted(known), 3 - servers):
        assert_found_again(seed, servers, known[seed])


@pytest.mark.parametrize(("servers", "count"), [(1, 20), (2, 5)])
def test_optimal_is_the_optimum(servers: int, count: int) -> None:
    known = ratios("optimal", servers, part(servers, count))
    assert known == pytest.approx(dict.fromkeys(known, 1.0), rel=EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["grid", "inart"])
@pytest.mark.parametrize(("servers", "count"), [(1, 12), (2, 4)])
def test_rounding_and_repair_come_near_the_optimum(scheme: str, servers: int, count: int) -> None:
    known = ratios(scheme, servers, part(servers, count))
    assert len(below(known, 0.9)) <= 1
    assert not below(known, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize(("servers", "count"), [(1, 8), (2, 2)])
def test_auto_comes_near_the_best_tree_of_any_root_and_depth(servers: int, count: int) -> None:
    known = ratios("auto", servers, part(servers, count), single=True)
    assert not below(known, 0.95)


def test_trees_of_several_levels_to_servers_are_found() -> None:
    """On these fabrics they carry up to three times what one level does."""
    winning = {seed: o for seed, o in committed(1).items() if o.single > o.one_level * 1.5}
    few = dict(list(winning.items())[:4])
    assert not below(ratios("hierarchical", 1, few, single=True), 0.95)


@pytest.mark.long
@pytest.mark.parametrize(("servers", "more"), [(1, 200), (2, 40)])
def test_all_optima_and_more(servers: int, more: int) -> None:
    known = committed(servers)
    for seed, optima in known.items():
        assert_found_again(seed, servers, optima)
    every = known | drawn(servers, more, COMMITTED[servers])
    exact = ratios("optimal", servers, every)
    assert exact == pytest.approx(dict.fromkeys(exact, 1.0), rel=EXACT)
    for scheme in ("grid", "inart"):
        near = ratios(scheme, servers, every)
        assert len(below(near, 0.9)) <= 0.05 * len(near)
        assert not below(near, 0.5)
    auto = ratios("auto", servers, every, single=True)
    assert len(below(auto, 0.95)) <= 0.05 * len(auto)


def write() -> None:
    optima = {
        str(servers): {
            str(seed): [known.one_level, known.single]
            for seed in seeds
            if (known := found(seed, servers)) is not None
        }
        for servers, seeds in COMMITTED.items()
    }
    FILE.write_text(json.dumps(optima) + "\n")


if __name__ == "__main__":
    write()
