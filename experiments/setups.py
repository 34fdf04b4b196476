# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The papers' simulated fabrics and jobs, drawn by a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from netfold.controller.planning.plan import JobSpec
from netfold.experiments.published import Figure, Paper
from netfold.topologies.fabric import Fabric, Link, SwitchRole
from netfold.topologies.generators import (
    grid_fat_tree,
    grid_leaf_spine,
    inart_fat_tree,
    with_capacities,
    with_parameter_servers,
)

GRID_CAPACITY = (100.0, 3200.0)
GRID_INGRESS = 100.0
INART_INGRESS = 20.0
INART_LINKS = (10.0, 30.0)
INART_WORKERS, INART_SERVERS = 48, 4
PROGRAMMABLE = 0.2


@dataclass(frozen=True)
class Setup:
    """One drawn instance of one point of a figure."""

    fabric: Fabric
    job: JobSpec


def draw(paper: Paper, figure: Figure, x: int, seed: int) -> Setup:
    """The instance of `figure` at `x` for a seed."""
    rng = random.Random(f"{paper} {figure.name} {x} {seed}")
    return _grid(figure, x, rng) if paper is Paper.GRID else _inart(figure, x, rng)


def _grid(figure: Figure, workers: int, rng: random.Random) -> Setup:
    """Section 6.3: capacities uniform in [100, 3200] Gbit/s at the edge switches (scenario a, Fig. 11) or
    at a random fifth of all (scenario b, Fig. 12)."""
    fat_tree = figure.name.endswith("a")
    fabric = grid_fat_tree() if fat_tree else grid_leaf_spine()
    if figure.name.startswith("11"):
        able = [s.name for s in fabric.switches if s.role is SwitchRole.LEAF]
    else:
        able = rng.sample([s.name for s in fabric.switches], round(PROGRAMMABLE * len(fabric.switches)))
    capacities = dict.fromkeys((s.name for s in fabric.switches), 0.0)
    capacities |= {v: rng.uniform(*GRID_CAPACITY) for v in able}
    racks: dict[str, list[str]] = {}
    for host in fabric.hosts:
        racks.setdefault(fabric.attachment(host.name), []).append(host.name)
    per_rack = 4 if fat_tree else 10
    order = rng.sample(sorted(racks), len(racks))
    placed = [h for rack in order for h in racks[rack][:per_rack]][:workers]
    server = racks[order[-1]][-1]
    fabric = with_parameter_servers(with_capacities(fabric, capacities), [server], GRID_INGRESS)
    return Setup(fabric, JobSpec(f"grid-{figure.name}", tuple(placed), (server,)))


def _inart(figure: Figure, x: int, rng: random.Random) -> Setup:
    """Section 5.3: random servers and workers; ingress 20 and capacity 9 Mbit/s; links 20 or uniform in
    10-30."""
    fabric = inart_fat_tree()
    workers, servers = (x, INART_SERVERS) if figure.axis == "workers" else (INART_WORKERS, x)
    hosts = rng.sample([h.name for h in fabric.hosts], workers + servers)
    if "uniform" in figure.title:
        fabric = replace(fabric, links=tuple(_uneven(link, rng) for link in fabric.links))
    fabric = with_parameter_servers(fabric, hosts[:servers], INART_INGRESS)
    return Setup(fabric, JobSpec(f"inart-{figure.name}", tuple(hosts[servers:]), tuple(hosts[:servers])))


def _uneven(link: Link, rng: random.Random) -> Link:
    return replace(link, rate=rng.uniform(*INART_LINKS))
