# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs that give way to the traffic of others, and come back: when, at what gain, and that they never run after each
other."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from netfold.controller.health import reroute
from netfold.controller.health.foreign import reckoned
from netfold.controller.health.link_loads import Link, LinkLoad
from netfold.controller.health.reroute import Rerouter
from netfold.controller.jobs.file import JobOrder, read_order
from netfold.controller.jobs.records import JobRecord, JobState, Placement, PlannedTree
from netfold.controller.lifecycle.admission import PlanRequest, RefusedError, background_of, plan_order
from netfold.controller.lifecycle.presence import Progress, TreeProgress
from netfold.controller.planning.plan import Loads
from netfold.controller.switches.port_counters import ARRIVALS, cell
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import load_fabric
from tests.controller.deployment import Deployment, deployed

STEP_S = 0.5


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """Hosts' links carry 100, those between switches 200."""
    return load_fabric("leaf-spine-4x2")


def job_file(name: str, first: int, count: int, **more: object) -> str:
    workers = ", ".join(f"h{first + i}" for i in range(count))
    rest = "".join(f"{k}: {v}\n" for k, v in more.items())
    return f"name: {name}\nworkers: [{workers}]\nparameter_servers: 0\nscheme: panama\n{rest}"


@dataclass
class World:
    """A network in which jobs run and others send, without switches: what jobs get is what links leave them, and what
    is elastic takes what jobs leave. It is book, loads and planner to the one who re-routes."""

    fabric: Fabric
    now: float = 0.0
    jobs: dict[str, JobRecord] = field(default_factory=dict)
    orders: dict[str, JobOrder] = field(default_factory=dict)
    wanted: dict[Link, float] = field(default_factory=dict)
    """Of links that others send over."""
    moves: list[tuple[float, str]] = field(default_factory=list)
    tried: list[tuple[float, str]] = field(default_factory=list)
    """Which job was to be planned again, and when."""
    told: dict[str, dict[str, Progress]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rerouter = Rerouter(self.fabric, self, self, self, self, lambda: self.now)  # type: ignore[arg-type]

    # ---- the book ---------------------------------------------------------------------------------------

    def all(self) -> list[JobRecord]:
        return list(self.jobs.values())

    def get(self, name: str) -> JobRecord:
        return self.jobs[name]

    def __contains__(self, name: object) -> bool:
        return name in self.jobs

    def order(self, name: str) -> JobOrder:
        return self.orders[name]

    # ---- what others send -------------------------------------------------------------------------------

    def foreign(self) -> Loads:
        found = {}
        for link, wanted in self.wanted.items():
            rate = self.fabric.link(*link).rate
            if load := reckoned(min(wanted, rate - self.of_jobs(link)), rate):
                found[link] = load
        return Loads(links=found)

    def load(self, link: Link) -> LinkLoad:
        jobs = self.of_jobs(link)
        rate = self.fabric.link(*link).rate
        return LinkLoad(min(self.wanted.get(link, 0.0), rate - jobs), jobs)

    def of_jobs(self, link: Link) -> float:
        """What all jobs get of a link: the others press them down to a tenth of it, and no further."""
        promised = sum(self.plan(j).loads.links.get(link, 0.0) for j in self.jobs)
        rate = self.fabric.link(*link).rate
        return min(promised, max(rate - self.wanted.get(link, 0.0), rate / 10))

    def rate(self, name: str) -> float:
        own = self.plan(name).loads.links
        promised: Counter[Link] = Counter()
        for job in self.jobs:
            promised.update(self.plan(job).loads.links)
        return self.promised(name) * min(1.0, *(self.of_jobs(k) / promised[k] for k in own))

    def plan(self, name: str):
        placement = self.jobs[name].placement
        assert placement is not None
        return placement.plan

    def promised(self, name: str) -> float:
        return float(self.plan(name).rate)

    # ---- what workers say ------------------------------------------------------------------------------

    def of(self, name: str) -> dict[str, Progress]:
        return self.told.get(name, {})

    # ---- the planner ------------------------------------------------------------------------------------

    def submit(self, text: str) -> None:
        order = read_order(text, self.fabric)
        name = order.file.name
        self.orders[name] = order
        plan = plan_order(self.fabric, PlanRequest(order, background_of(self.all()), self.foreign()))
        placement = Placement(plan=plan, trees=(), epoch=1)
        self.jobs[name] = JobRecord(
            name=name, seq=len(self.jobs), spec_yaml=text, state=JobState.RUNNING, placement=placement
        )

    async def reroute(self, name: str, why: str, least: float, taken: Loads) -> bool:
        if (self.now, name) not in self.tried[
            -1:
        ]:  # beside what others have, and what they would take, in one turn
            self.tried.append((self.now, name))
        others = background_of(j for j in self.all() if j.name != name)
        foreign = Loads(links={**self.foreign().links, **taken.links})
        request = PlanRequest(self.orders[name], others, foreign, self.plan(name).trees)
        try:
            plan = plan_order(self.fabric, request)
        except RefusedError:
            return False
        if plan.rate < least:
            return False
        self.moves.append((self.now, name))
        job = self.jobs[name]
        placement = Placement(plan=plan, trees=(), epoch=job.epoch + 1)
        self.jobs[name] = job.model_copy(update={"placement": placement, "reason": why})
        return True

    def run(self, seconds: float, every: Callable[[], None] = lambda: None) -> None:
        async def whole() -> None:
            for _ in range(round(seconds / STEP_S)):
                self.now += STEP_S
                every()
                await self.rerouter.look()

        asyncio.run(whole())


def through(fabric: Fabric, spine: str, load: float) -> dict[Link, float]:
    """The same load on all of a spine's links."""
    near = [n for n in fabric.ports[spine] if not fabric.is_host(n)]
    return {pair: load for n in near for pair in ((n, spine), (spine, n))}


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
    assert world.plan("a").pace == pytest.approx(100)  # it may send at once what they leave
    world.wanted = {}
    world.run(10)
    assert world.promised("a") == pytest.approx(100)
    assert len(world.moves) == 1


@pytest.mark.parametrize(
    ("others", "words", "pace"), [(60, {}, 40), (0, {"rate": 45}, 45), (60, {"rate": 35}, 35)]
)
def test_the_pace_beside_foreign_traffic_keeps_to_other_jobs_promises_and_to_the_job_s_own_rate(
    fabric: Fabric, others: float, words: dict[str, float], pace: float
):
    world = World(fabric)
    if others:
        world.submit(job_file("b", 1, 16, rate=others))
    world.wanted = {("h1", "leaf1"): 80.0 - others}
    world.submit(job_file("a", 1, 16, **words))
    assert world.promised("a") < pace
    assert world.plan("a").pace == pytest.approx(pace)


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


def test_where_nothing_is_better_nobody_moves_and_few_plans_are_made(fabric: Fabric):
    world = World(fabric)
    world.submit(job_file("a", 1, 4))  # one rack
    world.wanted = {("h1", "leaf1"): 80.0}
    world.run(300)
    assert world.moves == []
    assert len(world.tried) <= 12


def test_who_found_no_better_place_is_planned_again_as_soon_as_the_squeeze_is_worse(fabric: Fabric):
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


def test_who_is_squeezed_off_a_full_link_does_not_count_on_what_it_left_there(fabric: Fabric):
    """TCP takes some seconds until it has all that it can get: what it has while it fills a link says nothing."""
    world = World(fabric)
    for name, first in (("a", 1), ("b", 2)):
        hosts = ", ".join(f"h{first + 4 * rack}" for rack in range(4))
        world.submit(f"name: {name}\nworkers: [{hosts}]\nparameter_servers: 0\nscheme: panama\n")
    few = through(fabric, "spine2", 25.0)
    world.wanted = through(fabric, "spine1", 170.0) | few
    world.run(2)
    world.wanted = through(fabric, "spine1", 400.0) | few
    world.run(120)
    assert all(at <= 2 for at, _ in world.moves)
    assert min(world.rate("a"), world.rate("b")) >= 90


def both_ways(leaf: str, spine: str, load: float) -> dict[Link, float]:
    return {(leaf, spine): load, (spine, leaf): load}


@pytest.mark.parametrize("how", ["moves", "ends"])
def test_who_found_no_better_place_is_planned_again_when_another_job_leaves_its_own(fabric: Fabric, how: str):
    world = World(fabric)
    for name, ends in (("a", (1, 9)), ("b", (2, 6))):
        hosts = ", ".join(f"h{i}" for i in ends)
        world.submit(
            f"name: {name}\nworkers: [{hosts}]\nparameter_servers: 0\nscheme: panama\noptions: {{trees: 1}}\n"
        )
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


def test_all_who_are_squeezed_have_their_turn_though_others_come_and_go(fabric: Fabric):
    """Each that goes is a reason to plan those again who found no better place: not the worst of them for ever."""
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


def test_what_does_not_squeeze_anybody_moves_nobody(fabric: Fabric):
    world = World(fabric)
    world.submit(job_file("a", 1, 16))
    world.wanted = through(fabric, "spine1", 60.0)
    world.run(30)
    assert (world.moves, world.tried) == ([], [])


@pytest.mark.parametrize(("marked", "moves"), [(0, 0), (30, 1)])
def test_a_tree_that_suffers_on_a_full_link_keeps_what_it_gets_there(fabric: Fabric, marked: int, moves: int):
    """What others send leaves room for the promise by its bytes (their bursts do not), and workers get half of it."""
    world = World(fabric)
    world.submit(job_file("a", 1, 16, options="{trees: 1}"))
    job = world.get("a")
    tree = PlannedTree(tree=7, slots=16, window=8, bases={})
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
        times = [at for at, who in world.moves if who == name]
        assert len(times) <= 9
        assert all(b - a >= reroute.DWELL_S for a, b in itertools.pairwise(times))
    loads = background_of(world.all()).links
    assert all(load <= fabric.link(*k).rate * (1 + 1e-9) for k, load in loads.items())


# ---- with switches ----------------------------------------------------------------------------------------


PATIENCE_S = 120.0
"""A job stays five seconds where it is, after a second move ten, after a third twenty."""


class Pressed:
    """Others who send over links: every switch's counters go on by as much with each of its readings."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.links: dict[Link, float] = {}
        self._last = asyncio.get_running_loop().time()

    def go_on(self) -> None:
        now = asyncio.get_running_loop().time()
        fabric = self.deployment.fabric
        for (sender, receiver), rate in self.links.items():
            state = self.deployment.switches[receiver].state
            at = (ARRIVALS, cell(fabric.ports[receiver][sender], False))
            more = rate * fabric.unit.bits_per_second / 8 * (now - self._last)
            state.ports[at] = state.ports.get(at, 0) + round(more)
        self._last = now

    async def until(self, true: Callable[[], bool], what: str) -> None:
        def going_on() -> bool:
            self.go_on()
            return true()

        await self.deployment.until(going_on, what, PATIENCE_S)


def test_a_job_moves_by_a_new_epoch_and_back_and_switches_hold_exactly_that(tmp_path: Path, fabric: Fabric):
    async def scenario() -> None:
        async with deployed(fabric, tmp_path) as deployment:
            controller = deployment.controller
            await deployment.settled()
            await controller.submit(job_file("a", 1, 16), queue=False)
            await deployment.runs("a")
            pressed = Pressed(deployment)
            whole = controller.book.get("a").placement.plan.rate
            both = through(fabric, "spine1", 170.0) | through(fabric, "spine2", 140.0)
            for links, rate in ((both, 90.0), ({}, whole)):
                pressed.links = links

                def there(rate: float = rate) -> bool:
                    job = controller.book.get("a")
                    assert job.placement is not None
                    near = job.placement.plan.rate == pytest.approx(rate, rel=0.1)
                    return near and job.state is JobState.RUNNING and job.reason.startswith("re-routed: ")

                await pressed.until(there, "moved, in one step or in two")
            await deployment.settled()
            deployment.assert_exact()

    asyncio.run(scenario())


def test_who_is_submitted_gets_a_place_beside_the_traffic_of_others_or_at_all(tmp_path: Path, fabric: Fabric):
    async def scenario() -> None:
        async with deployed(fabric, tmp_path) as deployment:
            controller = deployment.controller
            await deployment.settled()
            pressed = Pressed(deployment)
            pressed.links = through(fabric, "spine1", 170.0)
            await pressed.until(lambda: len(controller.loads.foreign().links) == 8, "seen")
            await controller.submit(job_file("a", 1, 16, rate=50), queue=False)
            loads = controller.book.get("a").placement.plan.loads.links
            assert all(loads.get(k, 0.0) <= 31 for k in pressed.links)
            await controller.submit(job_file("b", 1, 16, min_rate=49, rate=50), queue=False)
            assert controller.book.get("b").placement.plan.rate == pytest.approx(50)

    asyncio.run(scenario())


def test_what_a_plan_left_to_others_outlives_the_controller(tmp_path: Path, fabric: Fabric):
    """The next one gives it to the job when they have gone, and tells workers the same pace until then."""

    async def scenario() -> None:
        async with deployed(fabric, tmp_path) as deployment:
            await deployment.settled()
            pressed = Pressed(deployment)
            pressed.links = through(fabric, "spine1", 190.0) | through(fabric, "spine2", 190.0)
            loads = deployment.controller.loads
            await pressed.until(
                lambda: [f > 160 for f in loads.foreign().links.values()] == [True] * 16, "seen"
            )
            await deployment.controller.submit(job_file("a", 1, 16), queue=False)
            await deployment.runs("a")
            before = deployment.controller.book.get("a").placement
            assert before.plan.rate < 90
            await deployment.kill()
            controller = deployment.start()
            assert controller.book.get("a").placement == before
            await deployment.until(
                lambda: controller.book.get("a").reason == "re-routed: others send less", "moved"
            )
            assert controller.book.get("a").placement.plan.rate == pytest.approx(100)

    asyncio.run(scenario())
