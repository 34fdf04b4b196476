# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Fabrics and jobs that several tests of the planners use."""

from __future__ import annotations

import random
from dataclasses import replace

import networkx as nx
from hypothesis import strategies as st

from netfold.controller.jobs.lookup import default_job
from netfold.controller.planning.plan import JobSpec
from netfold.topologies.fabric import Fabric, Host, Link, Switch
from netfold.topologies.generators import leaf_spine
from netfold.topologies.spec import load_fabric

EPS = 1e-6


def worked_example(name: str, scheme: str, **options: str | int) -> tuple[Fabric, JobSpec]:
    """A committed example, planned by `scheme`."""
    fabric = load_fabric(name)
    spec = default_job(fabric).spec
    return fabric, replace(spec, scheme=scheme, options={**spec.options, **options})


def star(
    workers: int, servers: int, *, rate: float = 10.0, capacity: float = 10.0, ingress: float | None = 4.0
) -> Fabric:
    """One switch with `workers` hosts and `servers` parameter servers."""
    hosts = [Host(f"w{i}") for i in range(workers)]
    hosts += [Host(f"ps{i}", parameter_server=True, capacity=ingress) for i in range(servers)]
    links = tuple(Link(h.name, "s", rate) for h in hosts)
    return Fabric("star", tuple(hosts), (Switch("s", capacity=capacity),), links)


def job_on(fabric: Fabric, scheme: str = "auto", **options: str | int | float) -> JobSpec:
    """A job over all hosts of a fabric."""
    workers = tuple(h.name for h in fabric.hosts if not h.parameter_server)
    servers = tuple(h.name for h in fabric.hosts if h.parameter_server)
    return JobSpec("job", workers, servers, scheme=scheme, options=options)


@st.composite
def random_fabrics(draw: st.DrawFn) -> Fabric:
    """Small leaf-spines and random meshes with uneven links, capacities and servers."""
    seed = draw(st.integers(0, 10_000))
    rng = random.Random(seed)
    switches = draw(st.integers(1, 7))
    names = [f"s{i}" for i in range(switches)]
    pairs = {(rng.randrange(i), i) for i in range(1, switches)}
    pairs |= {(a, b) for a in range(switches) for b in range(a + 1, switches) if rng.random() < 0.4}
    links = [Link(names[a], names[b], rng.choice([1.0, 2.5, 4.0, 10.0])) for a, b in sorted(pairs)]
    count = draw(st.integers(1, 9))
    hosts = [Host(f"w{i}") for i in range(count)]
    servers = draw(st.integers(1, 3))
    hosts += [Host(f"ps{i}", True, rng.choice([1.0, 3.0, None])) for i in range(servers)]
    links += [Link(h.name, rng.choice(names), rng.choice([2.0, 5.0])) for h in hosts]
    made = tuple(Switch(n, capacity=rng.choice([0.0, 2.0, 6.0, 20.0])) for n in names)
    return Fabric(f"random-{seed}", tuple(hosts), made, tuple(links))


def switch_graph(fabric: Fabric) -> nx.Graph[str]:
    """Switches and the links between them, for networkx's algorithms as an oracle."""
    return fabric.graph.subgraph([s.name for s in fabric.switches])


def small_leaf_spine() -> Fabric:
    return leaf_spine(4, 2, 4, parameter_servers=2, rate=100.0, fabric_rate=200.0, name="small")


def tiny_fabric(seed: int, servers: int) -> Fabric:
    """A mesh of 3 or 4 switches with 3 to 6 workers, small enough to go through all of its trees; capacities are such
    that links, switches and servers all bind somewhere."""
    rng = random.Random(seed)
    names = [f"s{i}" for i in range(rng.choice([3, 4]))]
    pairs = {(rng.randrange(i), i) for i in range(1, len(names))}
    pairs |= {(a, b) for b in range(len(names)) for a in range(b) if rng.random() < 0.4}
    links = [Link(names[a], names[b], rng.choice([1.0, 2.0, 2.5, 4.0, 6.0, 10.0])) for a, b in sorted(pairs)]
    hosts = [Host(f"w{i}") for i in range(rng.randint(3, 6))]
    hosts += [Host(f"ps{i}", True, rng.choice([1.0, 3.0, 6.0, None])) for i in range(servers)]
    links += [Link(h.name, rng.choice(names), rng.choice([4.0, 5.0, 8.0])) for h in hosts]
    switches = tuple(Switch(n, capacity=rng.choice([0.0, 2.0, 6.0, 12.0, 20.0])) for n in names)
    return Fabric(f"tiny-{seed}", tuple(hosts), switches, tuple(links))
