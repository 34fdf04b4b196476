# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A scenario of a run: a list of steps at virtual times, drawn from a seed (drawing.py) or written by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from netfold.controller.jobs.etcd_engine import MAX_KEYS
from netfold.topologies.generators import leaf_spine
from tests.simulation.faults import Intensity

FABRICS = {
    "two leaves, two spines": lambda: leaf_spine(2, 2, 2, parameter_servers=1),
    "two servers": lambda: leaf_spine(2, 2, 2, parameter_servers=2),
    "three leaves, two spines": lambda: leaf_spine(3, 2, 2),
    "one spine": lambda: leaf_spine(2, 1, 3),
    "one leaf": lambda: leaf_spine(1, 1, 6),
}
HORIZON_S = 60.0
"""The time of faults; afterwards all is well, and the run has to come to rest."""


@dataclass(frozen=True)
class Step:
    """`kind` is a method of Actions (actions.py); `arguments` are its own."""

    at_s: float
    kind: str
    arguments: tuple[object, ...] = ()

    def __str__(self) -> str:
        return f"{self.at_s:.2f} {self.kind}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Way:
    """To etcd. `faults`: chance of a fault, for each call. `max_keys`: a commit of more keys takes several calls."""

    faults: float = 0.0
    max_keys: int = MAX_KEYS


@dataclass(frozen=True)
class Scenario:
    """`seed` draws delays and orders; the steps may be another seed's, or a shrunk list. `slow_plans`: most plans take
    seconds. `tick_s`: see VirtualLoop. `has_aging`: jobs gain priority while they wait. `controllers` share a store in
    etcd; 0: one has it in a file. See Way for `etcd`."""

    seed: int
    fabric: str
    steps: tuple[Step, ...]
    intensity: Intensity = field(default_factory=Intensity)
    reorder: float = 0.0
    probe_s: float = 0.0
    slow_plans: bool = False
    tick_s: float = 0.0
    has_aging: bool = True
    controllers: int = 0
    etcd: Way = Way()

    def with_steps(self, steps: tuple[Step, ...]) -> Scenario:
        return replace(self, steps=steps)


def on_engine(scenario: Scenario, engine: str) -> Scenario:
    """The scenario with a store in etcd, or as it is."""
    return replace(scenario, controllers=max(1, scenario.controllers)) if engine == "etcd" else scenario
