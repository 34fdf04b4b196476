# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What happens in a run: a list of steps at virtual times, drawn from a seed. A scenario by hand is such a list."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine
from tests.simulation.faults import Intensity
from tests.simulation.program import JobSpec

FABRICS = {
    "two leaves, two spines": lambda: leaf_spine(2, 2, 2, parameter_servers=1),
    "three leaves, two spines": lambda: leaf_spine(3, 2, 2),
    "one spine": lambda: leaf_spine(2, 1, 3),
}
HORIZON_S = 60.0
"""Of faults; afterwards all is well, and the run has to come to rest."""


@dataclass(frozen=True)
class Step:
    """`kind` is a method of Actions (actions.py); `arguments` are its own."""

    at_s: float
    kind: str
    arguments: tuple[object, ...] = ()

    def __str__(self) -> str:
        return f"{self.at_s:.2f} {self.kind}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Scenario:
    """`seed` draws delays and orders; the steps may be another seed's, or a shrunk list."""

    seed: int
    fabric: str
    steps: tuple[Step, ...]
    intensity: Intensity = field(default_factory=Intensity)
    reorder: float = 0.0
    probe_s: float = 0.0

    def with_steps(self, steps: tuple[Step, ...]) -> Scenario:
        return replace(self, steps=steps)


def scenario_of(seed: int) -> Scenario:
    chosen = random.Random(f"scenario {seed}")
    name = chosen.choice(list(FABRICS))
    fabric = FABRICS[name]()
    is_noisy = chosen.random() < 0.5
    intensity = Intensity(
        rpc_error=chosen.choice((0.0, 0.01, 0.05)) if is_noisy else 0.0,
        stream_loss=chosen.choice((0.0, 0.003, 0.02)) if is_noisy else 0.0,
        late_write=chosen.choice((0.0, 0.5)) if is_noisy else 0.0,
        twice=chosen.choice((0.0, 0.2)) if is_noisy else 0.0,
        max_delay_s=chosen.choice((0.002, 0.02, 0.2)),
    )
    steps = [*_jobs(chosen, fabric), *_faults(chosen, fabric)]
    return Scenario(
        seed,
        name,
        tuple(sorted(steps, key=lambda s: s.at_s)),
        intensity,
        reorder=chosen.choice((0.0, 0.1, 0.5)),
        probe_s=chosen.choice((0.0, 1.0)),
    )


def _jobs(chosen: random.Random, fabric: Fabric) -> list[Step]:
    hosts = [h.name for h in fabric.hosts if not h.parameter_server]
    has_servers = len(hosts) < len(fabric.hosts)
    schemes = ("switchml", "panama", "panama", *(("atp", "none") if has_servers else ()))
    steps: list[Step] = []
    for number in range(chosen.randint(2, 7)):
        at = chosen.uniform(0, HORIZON_S * 0.8)
        workers = tuple(chosen.sample(hosts, chosen.randint(2, min(4, len(hosts)))))
        spec = JobSpec(
            name=f"job{number}",
            workers=workers,
            scheme=chosen.choice(schemes),
            rate=chosen.choice((40, 60, 100)),
            queue=chosen.random() < 0.85,
            priority=chosen.choice((0, 0, 0, 1, 5)),
            is_elastic=chosen.random() < 0.5,
            work_s=chosen.choice((0.5, 5.0, 20.0, 60.0)),
        )
        steps.append(Step(at, "submit", (spec,)))
        if chosen.random() < 0.15:
            steps.append(Step(at + chosen.expovariate(1 / 5), "cancel", (spec.name,)))
        for host in workers:
            if chosen.random() < 0.12:
                kind = chosen.choice(("kill_member", "kill_member", "vanish_member"))
                steps.append(Step(at + chosen.expovariate(1 / 8), kind, (spec.name, host)))
                if chosen.random() < 0.6:
                    steps.append(
                        Step(steps[-1].at_s + chosen.expovariate(1 / 4), "start_member", (spec.name, host))
                    )
            if chosen.random() < 0.2:
                half_open = chosen.random() < 0.5
                steps.append(
                    Step(at + chosen.expovariate(1 / 8), "break_stream", (spec.name, host, half_open))
                )
            if chosen.random() < 0.1:
                steps.append(Step(at + chosen.expovariate(1 / 8), "request_epoch", (spec.name, host)))
    return steps


def _faults(chosen: random.Random, fabric: Fabric) -> list[Step]:
    switches = [s.name for s in fabric.switches]
    links = [(k.a, k.b) for k in fabric.links if not fabric.is_host(k.a) and not fabric.is_host(k.b)]
    steps: list[Step] = []
    for _ in range(chosen.choice((0, 1, 2, 3, 5, 8))):
        at = chosen.uniform(0, HORIZON_S * 0.9)
        lasts = chosen.choice((0.0, 0.3, 2.0, 6.0, 12.0, 25.0, 40.0))
        switch = chosen.choice(switches)
        kind = chosen.choice(
            ("restart_controller", "restart_controller", "kill_at_commit", "power_cut", "power_cut",
             "drop_connections", "hang", "forget_elections", "cut_link", "fill_disk", "crash_planner", "replan")
        )  # fmt: skip
        arguments: dict[str, tuple[object, ...]] = {
            "restart_controller": (lasts,),
            "kill_at_commit": (chosen.randint(1, 6), chosen.random() < 0.5, lasts),
            "power_cut": (switch, lasts),
            "drop_connections": (switch,),
            "hang": (switch, lasts),
            "forget_elections": (switch,),
            "cut_link": (*chosen.choice(links), lasts),
            "fill_disk": (lasts,),
        }
        steps.append(Step(at, kind, arguments.get(kind, ())))
    return steps
