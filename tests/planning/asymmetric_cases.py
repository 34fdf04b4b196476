# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Random fabrics that are not alike everywhere: meshes, leaf-spines and three tiers of 4 to 12 switches with unequal
and missing links, switches that only forward or have little room, parameter servers, and earlier jobs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from netfold.controller.planning.plan import JobSpec, Loads, PlanningError
from netfold.controller.planning.planner import make_plan
from netfold.topologies.fabric import Fabric, Host, Link, Switch

RATES = (5.0, 10.0, 15.0, 20.0, 30.0, 40.0)
ACCESS = 100.0
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class AsymmetricCase:
    fabric: Fabric
    job: JobSpec
    background: Loads


def asymmetric_case(seed: int) -> AsymmetricCase:
    rng = random.Random(f"asymmetric {seed}")
    edge, upper, pairs = rng.choice(_SHAPES)(rng)
    names = [*edge, *upper]
    chosen = rng.sample(edge, min(len(edge), rng.randint(2, 5)))
    hosts = [(f"w{i}", rng.choice(chosen)) for i in range(rng.randint(0, 6))]
    hosts += [(f"w{len(hosts) + i}", v) for i, v in enumerate(chosen)]
    servers = [(f"ps{i}", rng.choice(names)) for i in range(rng.choice((0, 0, 0, 1, 2)))]
    others = [(f"x{i}", rng.choice(edge)) for i in range(rng.choice((0, 0, 3)))]
    links = [Link(a, b, rng.choice(RATES)) for a, b in pairs]
    links += [Link(h, v, ACCESS) for h, v in (*hosts, *servers, *others)]
    fabric = Fabric(
        f"asymmetric-{seed}",
        tuple(Host(h) for h, _ in (*hosts, *others))
        + tuple(Host(s, parameter_server=True, capacity=rng.choice((20.0, 60.0, None))) for s, _ in servers),
        tuple(Switch(v, capacity=rng.choice((0.0, 30.0, 90.0, 1000.0, 1000.0, 1000.0))) for v in names),
        tuple(links),
    )
    job = JobSpec("job", tuple(h for h, _ in hosts), tuple(s for s, _ in servers), scheme="auto")
    earlier = JobSpec("earlier", tuple(h for h, _ in others), scheme="panama")
    return AsymmetricCase(fabric, job, _half_of(fabric, earlier) if others else Loads())


def _half_of(fabric: Fabric, job: JobSpec) -> Loads:
    """Returns the load that a job with half of its possible rate puts on the fabric."""
    try:
        plan = make_plan(fabric, replace(job, scheme="switchml"))
    except PlanningError:
        return Loads()
    return plan.loads.times(0.5)


def _mesh(rng: random.Random) -> tuple[list[str], list[str], Pairs]:
    names = [f"s{i}" for i in range(rng.randint(4, 12))]
    pairs = {(rng.randrange(i), i) for i in range(1, len(names))}
    pairs |= {(a, b) for b in range(len(names)) for a in range(b) if rng.random() < 0.25}
    return names, [], [(names[a], names[b]) for a, b in sorted(pairs)]


def _leaf_spine(rng: random.Random) -> tuple[list[str], list[str], Pairs]:
    leaves = [f"leaf{i}" for i in range(rng.randint(2, 7))]
    spines = [f"spine{i}" for i in range(rng.randint(2, 5))]
    pairs = [(a, b) for a in leaves for b in spines if b == spines[0] or rng.random() < 0.85]
    return leaves, spines, pairs


def _three_tiers(rng: random.Random) -> tuple[list[str], list[str], Pairs]:
    pods = rng.randint(2, 3)
    cores = [f"core{i}" for i in range(rng.randint(1, 2))]
    leaves, upper, pairs = [], list(cores), []
    for pod in range(pods):
        tors = [f"tor{pod}{i}" for i in range(rng.randint(1, 2))]
        aggs = [f"agg{pod}{i}" for i in range(rng.randint(1, 2 if pods == 2 else 1))]
        pairs += [(t, a) for t in tors for a in aggs if a == aggs[0] or rng.random() < 0.85]
        pairs += [(a, c) for a in aggs for c in cores if c == cores[0] or rng.random() < 0.85]
        leaves, upper = leaves + tors, upper + aggs
    return leaves, upper, pairs


_SHAPES: tuple[Callable[[random.Random], tuple[list[str], list[str], Pairs]], ...] = (
    _mesh,
    _leaf_spine,
    _three_tiers,
)
