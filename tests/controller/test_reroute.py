# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs that give way to the traffic of others, and come back: when, at what gain, and that they never run after each
other."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from netfold.controller.health import reroute
from netfold.controller.health.link_loads import Link, LinkLoad
from netfold.controller.jobs.records import AllocatedTree
from netfold.controller.lifecycle.capacity import background_of
from netfold.controller.lifecycle.member_status import Progress, TreeProgress
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import load_fabric
from tests.controller.world import STEP_S, World, both_ways, job_file, job_of, through


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """Hosts' links carry 100, those between switches 200."""
    return load_fabric("leaf-spine-4x2")


def test_a_squeezed_job_moves_at_once_and_comes_back_when_the_load_is_gone(fabric: Fabric):
    world = World(fabric)
    world.submit(job_file("a", 1, 16))
    whole = world.promised("a")
    for spine in ("spine1", "spine2"):
        world.wanted = through(fabric, spine, 180.0)
        before = world.rate("a")
        world.run(STEP_S)
        assert world.rate("a") >= 1.1 * before
        assert world.rate("a") == pytest.approx(whole)
        world.wanted = {}
        world.run(60)
        assert world.rate("a") == pytest.approx(whole)
    assert len(world.moves) <= 4


def test_a_load_on_both_ways_lowers_the_promise_and_its_end_restores_it(fabric: Fabric):
    world = World(fabric)
    world.submit(job_file("a", 1, 16))
    world.wanted = through(fabric, "spine1", 400.0) | through(fabric, "spine2", 140.0)
    world.run(10)
    assert 70 <= world.promised("a") <= 90
    assert world.rate("a") >= 0.9 * world.promised("a")
    world.wanted = {}
    world.run(10)
    assert world.promised("a") == pytest.approx(100)
    assert len(world.moves) == 2


def test_a_job_gets_what_others_sent_when_it_was_planned_and_no_longer_when_it_runs(fabric: Fabric):
    world = World(fabric)
    world.wanted = through(fabric, "spine1", 400.0) | through(fabric, "spine2", 140.0)
    world.submit(job_file("a", 1, 16))
    assert world.promised("a") < 90
    assert world.plan("a").pacing_rate == pytest.approx(100)  # it may send at once what they leave
    world.wanted = {}
    world.run(10)
    assert world.promised("a") == pytest.approx(100)
    assert len(world.moves) == 1


@pytest.mark.parametrize(
    ("others", "words", "pacing_rate"), [(60, {}, 40), (0, {"rate": 45}, 45), (60, {"rate": 35}, 35)]
)
def test_the_pacing_rate_beside_cross_traffic_keeps_to_other_jobs_reserved_rates_and_to_the_job_s_own_rate(
    fabric: Fabric, others: float, words: dict[str, float], pacing_rate: float
):
    world = World(fabric)
    if others:
        world.submit(job_file("b", 1, 16, rate=others))
    world.wanted = {("h1", "leaf1"): 80.0 - others}
    world.submit(job_file("a", 1, 16, **words))
    assert world.promised("a") < pacing_rate
    assert world.plan("a").pacing_rate == pytest.approx(pacing_rate)


@pytest.mark.parametrize(("word", "moves"), [("off", 0), ("on", 1), ("fixed-split", 1)])
def test_a_job_file_says_whether_its_job_moves(fabric: Fabric, word: str, moves: int):
    world = World(fabric)
    world.submit(job_file("a", 1, 16, reroute=word))
    shares = sorted(t.share for t in world.plan("a").trees)
    world.wanted = through(fabric, "spine1", 180.0)
    world.run(5)
    assert len(world.moves) == moves
    if word == "fixed-split":
        assert sorted(t.share for t in world.plan("a").trees) == pytest.approx(shares)


def test_where_nothing_is_better_no_job_moves_and_few_plans_are_made(fabric: Fabric):
    world = World(fabric)
    world.submit(job_file("a", 1, 4))  # one rack
    world.wanted = {("h1", "leaf1"): 80.0}
    world.run(300)
    assert world.moves == []
    assert len(world.tried) <= 12


def test_a_job_without_a_better_place_is_planned_again_as_soon_as_the_squeeze_is_worse(fabric: Fabric):
    """Loads become known bit by bit. A plan for the first bit of one says nothing of all of it."""
    world = World(fabric)
    world.submit(job_file("a", 1, 16, options="{trees: 1}"))
    (spine,) = (n for n in ("spine1", "spine2") if any(n in link for link in world.plan("a").loads.links))
    other = "spine2" if spine == "spine1" else "spine1"
    world.wanted = through(fabric, spine, 120.0) | through(fabric, other, 125.0)
    world.run(STEP_S)
    assert (len(world.tried), world.moves) == (1, [])
    world.wanted = through(fabric, spine, 180.0) | through(fabric, other, 125.0)
    world.run(STEP_S)
    assert len(world.moves) == 1
    assert world.promised("a") == pytest.approx(75)


def test_a_job_squeezed_off_a_full_link_does_not_count_on_what_it_left_there(fabric: Fabric):
    """TCP takes some seconds until it has all that it can get: what it has while it fills a link says nothing."""
    world = World(fabric)
    for name, first in (("a", 1), ("b", 2)):
        world.submit(job_of(name, range(first, 17, 4)))
    few = through(fabric, "spine2", 25.0)
    world.wanted = through(fabric, "spine1", 170.0) | few
    world.run(2)
    world.wanted = through(fabric, "spine1", 400.0) | few
    world.run(120)
    assert all(at <= 2 for at, _ in world.moves)
    assert min(world.rate("a"), world.rate("b")) >= 90


@pytest.mark.parametrize("how", ["moves", "ends"])
def test_a_job_without_a_better_place_is_planned_again_when_another_one_leaves(fabric: Fabric, how: str):
    world = World(fabric)
    for name, ends in (("a", (1, 9)), ("b", (2, 6))):
        world.submit(job_of(name, ends, options="{trees: 1}"))
    world.wanted = (
        both_ways("leaf3", "spine1", 120.0)
        | both_ways("leaf4", "spine2", 150.0)
        | both_ways("leaf1", "spine2", 30.0)
        | both_ways("leaf2", "spine2", 30.0)
    )
    world.run(STEP_S)
    assert (len(world.tried), world.moves) == (1, [])
    if how == "moves":
        world.wanted |= both_ways("leaf2", "spine2", 150.0)
    else:
        del world.jobs["b"]
    world.run(2 * STEP_S)
    assert "a" in [name for _, name in world.moves]
    assert world.rate("a") == pytest.approx(100)


def test_all_squeezed_jobs_have_their_turn_though_other_jobs_come_and_go(fabric: Fabric):
    """Each job that ends is a reason to plan those again that found no better place: not the worst of them for ever."""
    world = World(fabric)
    for rack in range(4):
        world.submit(job_file(f"squeezed{rack}", 4 * rack + 1, 3))
        world.wanted |= {(f"h{4 * rack + 1}", f"leaf{rack + 1}"): 60.0 + 10 * rack}

    def come_and_go() -> None:
        if world.jobs.pop("guest", None) is None:
            world.submit(job_file("guest", 4, 1))

    world.run(16 * STEP_S, come_and_go)
    assert world.moves == []
    turns = Counter(name for _, name in world.tried)
    assert len(turns) == 4
    assert max(turns.values()) - min(turns.values()) <= 1


def test_traffic_that_squeezes_no_job_moves_none(fabric: Fabric):
    world = World(fabric)
    world.submit(job_file("a", 1, 16))
    world.wanted = through(fabric, "spine1", 60.0)
    world.run(30)
    assert (world.moves, world.tried) == ([], [])


@pytest.mark.parametrize(("marked", "moves"), [(0, 0), (30, 1)])
def test_a_tree_that_suffers_on_a_full_link_keeps_what_it_gets_there(fabric: Fabric, marked: int, moves: int):
    """The traffic of others leaves room for the promise by its bytes (their bursts do not), and workers get half of
    it."""
    world = World(fabric)
    world.submit(job_file("a", 1, 16, options="{trees: 1}"))
    job = world.get("a")
    tree = AllocatedTree(tree=7, slots=16, window=8, bases={})
    world.jobs["a"] = job.model_copy(
        update={"placement": job.placement.model_copy(update={"trees": (tree,)})}
    )
    world.wanted = through(fabric, "spine1", 105.0)
    pressed = LinkLoad(105.0, 80.0)
    world.load = lambda link: pressed if link in world.wanted else LinkLoad()  # type: ignore[method-assign]
    world.told = {"a": {"h1": Progress(lately=(TreeProgress(7, results=100, marked=marked),))}}
    world.run(STEP_S)
    assert len(world.moves) == moves


SEEDS = 4


@pytest.mark.parametrize("seed", range(SEEDS))
def test_two_jobs_never_chase_each_other(fabric: Fabric, seed: int):
    """Five minutes. First loads that stay: each job moves a few times at most and then never again. Then loads that
    come and go as they like: a job that moves often has to wait, and both fit beside each other all the while."""
    rng = random.Random(seed)
    world = World(fabric)
    world.submit(job_file("a", 1, 8, rate=rng.choice((60, 100))))
    world.submit(job_file("b", 9, 8, rate=rng.choice((60, 100))))

    def some() -> dict[Link, float]:
        return through(fabric, rng.choice(("spine1", "spine2")), rng.uniform(40, 200)) | {
            (f"leaf{rng.randint(1, 4)}", f"spine{rng.randint(1, 2)}"): rng.uniform(40, 200)
        }

    world.wanted = some()
    world.run(60)
    settled = len(world.moves)
    assert settled <= 4
    world.run(90)
    assert len(world.moves) == settled, "the load has not changed"

    def come_and_go() -> None:
        if rng.random() < 0.2:
            world.wanted = some() if rng.random() < 0.7 else {}

    world.run(150, come_and_go)
    for name in world.jobs:
        times = [at for at, moved in world.moves if moved == name]
        assert len(times) <= 9
        assert all(b - a >= reroute.DWELL_S for a, b in itertools.pairwise(times))
    loads = background_of(world.all()).links
    assert all(load <= fabric.link(*k).rate * (1 + 1e-9) for k, load in loads.items())
