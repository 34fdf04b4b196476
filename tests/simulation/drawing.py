# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A scenario from a seed. Each seed has a theme, whose jobs and faults are dense: what goes wrong needs several of one
kind in a row more often than one of each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from netfold.controller.jobs.etcd_engine import MAX_KEYS
from netfold.controller.jobs.records import Transport
from netfold.topologies.fabric import Fabric
from tests.simulation.fabric_file import KINDS
from tests.simulation.faults import Intensity
from tests.simulation.program import JobSpec
from tests.simulation.rolled_out import NEXT
from tests.simulation.scenario import FABRICS, HORIZON_S, Scenario, Step, Way
from tests.simulation.switch import MUTE, REFUSED

SHARES = (0.3, 0.7, 0.95)
"""Fractions of a link's rate that cross traffic takes."""

DURATIONS_S = (0.0, 0.3, 2.0, 6.0, 12.0, 25.0, 40.0)

SLOW_S = (1.0, 4.0, 12.0)
"""A message to or from a slow switch takes up to so long."""

STALLS_S = (1.0, 3.0, 8.0, 20.0)

CUTS = ((False, False, 0.0), (True, False, 0.0), (True, True, 0.3), (True, True, 2.0))
"""A cut of the way to etcd says whether requests pass, whether answers pass, and how late each one may be."""

BURST_S = 1.5
"""Mean time between the moment of a burst and what happens."""

TICKS_S = (1 / 16, 1 / 8)
"""Events that come at different times otherwise come at the same one in such a tick."""

CONTROLLER = {"restart_controller": 4, "kill_at_commit": 4}
SWITCHES = {
    "power_cut": 4,
    "drop_connections": 2,
    "hang": 2,
    "forget_elections": 1,
    "cut_link": 2,
    "drift": 1,
    "rogue": 1,
}
OTHERS = {"fill_disk": 2, "crash_planner": 1, "replan": 2, "restore_store": 1, "cross_traffic": 2}
ALL_FAULTS = {**CONTROLLER, **SWITCHES, **OTHERS}


@dataclass(frozen=True)
class Theme:
    """`faults`: weights of kinds; `count`: how many. `jobs`: least and most. `work_s`: of members. `member_faults`:
    chance of each kind, for each worker. `greedy`: chance of a job that takes no less than its rate. `noise`: chance of
    small faults of the switches' calls. `aging`: chance that jobs gain priority while they wait. `bursts`: so many
    moments, soon after which most happens; 0: all happens at any time. `controllers`: how many share a store in etcd;
    0: one has it in a file."""

    faults: dict[str, int] = field(default_factory=lambda: ALL_FAULTS)
    jobs: tuple[int, int] = (2, 7)
    count: tuple[int, ...] = (0, 1, 2, 3, 5, 8)
    work_s: tuple[float, ...] = (0.5, 5.0, 20.0, 60.0)
    rates: tuple[int, ...] = (40, 60, 100)
    durations_s: tuple[float, ...] = DURATIONS_S
    elastic: float = 0.5
    canceled: float = 0.15
    greedy: float = 0.3
    member_faults: float = 0.12
    noise: float = 0.5
    slow_plans: float = 0.2
    probes: float = 0.5
    fabrics: tuple[str, ...] = ("two leaves, two spines", "three leaves, two spines", "one spine")
    workers: tuple[int, ...] = (2, 3, 4)
    bursts: int = 0
    aging: float = 1.0
    controllers: tuple[int, ...] = (0,)


MAINTENANCE = Theme(
    jobs=(3, 6),
    count=(3, 5, 8),
    work_s=(5.0, 20.0, 60.0),
    rates=(20, 40, 60),
    noise=0.2,
    slow_plans=0.3,
    probes=0.8,
)
"""An operator changes the fabric or its switches while jobs run."""

THEMES = {
    "mixed": Theme(),
    "losses": Theme(
        jobs=(2, 4), work_s=(40.0, 60.0), elastic=0.9, member_faults=0.5, count=(0, 1, 2), rates=(20, 40)
    ),
    "queue": Theme(
        jobs=(7, 12),
        work_s=(0.5, 2.0, 5.0),
        rates=(40, 60, 100),
        canceled=0.3,
        greedy=0.8,
        count=(1, 2, 4),
        slow_plans=0.7,
    ),
    "reservations": Theme(
        {"power_cut": 4, "cut_link": 2, "hang": 1, "rack": 3},
        jobs=(5, 8),
        work_s=(10.0, 60.0, 90.0, 90.0),
        rates=(40, 60, 60, 100),
        durations_s=(12.0, 25.0, 40.0),
        elastic=0.6,
        canceled=0.05,
        member_faults=0.03,
        greedy=0.9,
        count=(0, 1, 1, 2),
        noise=0.1,
        slow_plans=0.35,
        fabrics=("one leaf", "one leaf", "one spine", "three leaves, two spines"),
        workers=(2, 2, 3),
        bursts=3,
        aging=0.2,
    ),
    "repairs": Theme(
        {"power_cut": 3, "cut_link": 4, "hang": 3, "drop_connections": 1, "replan": 1},
        jobs=(2, 5),
        count=(3, 5, 8),
        work_s=(20.0, 60.0),
        rates=(20, 40),
        durations_s=(2.0, 12.0, 25.0, 40.0),
        noise=0.2,
        slow_plans=0.6,
        probes=0.8,
    ),
    "restarts": Theme(CONTROLLER, jobs=(3, 6), count=(3, 5, 8), durations_s=(0.0, 0.3, 2.0, 6.0), noise=0.2),
    "disk": Theme(
        {"fill_disk": 6, "restart_controller": 1, "power_cut": 1},
        jobs=(4, 8),
        count=(3, 5, 8),
        work_s=(0.5, 2.0, 5.0, 20.0),
        durations_s=(0.3, 2.0, 6.0),
        noise=0.2,
    ),
    "switches": Theme(SWITCHES, count=(3, 5, 8), noise=1.0),
    "traffic": Theme(
        {"cross_traffic": 8, "cut_link": 1, "power_cut": 1, "replan": 1},
        jobs=(2, 5),
        count=(3, 5, 8),
        work_s=(20.0, 60.0),
        rates=(40, 60, 100),
        durations_s=(2.0, 6.0, 12.0, 25.0),
        noise=0.2,
    ),
    "busy": Theme(
        {
            "slow": 4,
            "hang": 3,
            "stall": 3,
            "slow_planner": 1,
            "drop_connections": 1,
            "cut_link": 1,
            "power_cut": 1,
        },
        jobs=(2, 5),
        count=(3, 5, 8),
        work_s=(20.0, 60.0),
        rates=(20, 40),
        durations_s=(2.0, 6.0, 12.0, 25.0, 40.0),
        member_faults=0.05,
        noise=0.2,
        probes=0.8,
    ),
    "drains": replace(
        MAINTENANCE,
        faults={
            "drain": 8,
            "cordon": 1,
            "maintenance": 1,
            "power_cut": 1,
            "cut_link": 1,
            "restart_controller": 1,
            "kill_at_commit": 1,
            "fill_disk": 1,
            "hang": 1,
            "replan": 1,
        },
        work_s=(20.0, 60.0),
        durations_s=(2.0, 12.0, 25.0, 40.0),
    ),
    "fabrics": replace(
        MAINTENANCE,
        faults={
            "change_fabric": 10,
            "drain": 2,
            "power_cut": 1,
            "cut_link": 1,
            "restart_controller": 1,
            "kill_at_commit": 2,
            "fill_disk": 1,
            "hang": 1,
            "replan": 1,
        },
        durations_s=(0.3, 2.0, 12.0, 25.0),
    ),
    "upgrades": replace(
        MAINTENANCE,
        faults={
            "roll_out": 8,
            "cancel_rollout": 3,
            "finalize": 3,
            "change_version": 3,
            "restart_controller": 2,
            "kill_at_commit": 3,
            "power_cut": 1,
            "drop_connections": 1,
            "fill_disk": 1,
            "drain": 1,
        },
        durations_s=(0.3, 2.0, 6.0, 12.0),
        slow_plans=0.2,
        probes=0.5,
    ),
    "leaders": Theme(
        {
            "kill_replica": 3,
            "stop_replica": 4,
            "hang_replica": 2,
            "cut_etcd": 4,
            "lose_majority": 2,
            "step_down": 2,
            "kill_at_commit": 2,
            "drop_connections": 2,
            "power_cut": 1,
        },
        jobs=(2, 5),
        count=(2, 4, 6, 9),
        work_s=(0.5, 5.0, 20.0, 60.0),
        rates=(20, 40),
        durations_s=(0.3, 2.0, 4.0, 8.0, 15.0, 25.0),
        noise=0.2,
        probes=0.5,
        member_faults=0.05,
        bursts=2,
        controllers=(2, 3, 3),
    ),
    "restores": Theme({"restore_store": 3, "power_cut": 1, "restart_controller": 1}, count=(2, 4), noise=0.1),
}


PARTS = {"drains": 0.1, "fabrics": 0.05, "upgrades": 0.05, "leaders": 0.05}
"""Parts of the seeds that themes have. The theme of each other seed does not depend on it."""


def theme_of(seed: int) -> str:
    for theme, part in PARTS.items():
        if random.Random(f"{theme} {seed}").random() < part:
            return theme
    others = [theme for theme in THEMES if theme not in PARTS]
    return random.Random(f"theme {seed}").choice(["mixed", "reservations", *others])


def scenario_of(seed: int) -> Scenario:
    chosen = random.Random(f"scenario {seed}")
    theme = THEMES[theme_of(seed)]
    name = chosen.choice(theme.fabrics)
    fabric = FABRICS[name]()
    draw_time = _times(chosen, theme)
    jobs = [*_jobs(chosen, fabric, theme, draw_time)]
    faults = _faults(chosen, fabric, theme, draw_time, jobs)
    steps = [*jobs, *faults, *_extras(seed, fabric), *_restarts(seed, fabric, jobs)]
    return Scenario(
        seed,
        name,
        tuple(sorted(steps, key=lambda s: s.at_s)),
        _intensity(chosen, theme),
        reorder=chosen.choice((0.0, 0.1, 0.5)),
        probe_s=1.0 if chosen.random() < theme.probes else 0.0,
        slow_plans=chosen.random() < theme.slow_plans,
        tick_s=random.Random(f"tick {seed}").choice((0.0, 0.0, *TICKS_S)),
        has_aging=theme.aging == 1 or chosen.random() < theme.aging,
        controllers=random.Random(f"controllers {seed}").choice(theme.controllers),
        etcd=_way(random.Random(f"etcd {seed}")),
    )


DrawTime = Callable[[float], float]
"""A time before another one."""


def _times(chosen: random.Random, theme: Theme) -> DrawTime:
    moments = [chosen.uniform(0, HORIZON_S * 0.8) for _ in range(theme.bursts)]

    def draw_time(last_s: float) -> float:
        if moments and chosen.random() < 0.6:
            return min(last_s, chosen.choice(moments) + chosen.expovariate(1 / BURST_S))
        return chosen.uniform(0, last_s)

    return draw_time


def _way(chosen: random.Random) -> Way:
    return Way(chosen.choice((0.0, 0.005, 0.03)), chosen.choice((MAX_KEYS, 6)))


def _intensity(chosen: random.Random, theme: Theme) -> Intensity:
    longest = chosen.choice((0.002, 0.02, 0.2))
    if chosen.random() >= theme.noise:
        return Intensity(max_delay_s=longest)
    return Intensity(
        rpc_error=chosen.choice((0.0, 0.01, 0.05)),
        refused_update=chosen.choice((0.0, 0.01, 0.05)),
        stream_loss=chosen.choice((0.0, 0.003, 0.02)),
        late_write=chosen.choice((0.0, 0.5)),
        twice=chosen.choice((0.0, 0.2)),
        max_delay_s=longest,
    )


# ---- jobs ---------------------------------------------------------------------------------------------


def _jobs(chosen: random.Random, fabric: Fabric, theme: Theme, draw_time: DrawTime) -> Iterator[Step]:
    for number in range(chosen.randint(*theme.jobs)):
        at = draw_time(HORIZON_S * 0.8)
        spec = _job(chosen, fabric, theme, f"job{number}")
        yield Step(at, "submit", (spec,))
        if chosen.random() < theme.canceled:
            yield Step(at + chosen.expovariate(1 / 5), "cancel", (spec.name,))
        if spec.is_elastic and chosen.random() < 0.3:
            yield from _added_workers(chosen, fabric, spec, at)
        for host in spec.workers:
            yield from _member_faults(chosen, theme, spec, host, at)


MAX_REFUSAL_S = 5.0
"""No job fails because a switch takes no connections for so long."""


def _extras(seed: int, fabric: Fabric) -> Iterator[Step]:
    """Yields steps of some seeds; the other draws do not depend on these: a switch that takes no connections for a
    moment, and a job of a scheme that needs a parameter server, where there is none."""
    chosen = random.Random(f"extras {seed}")
    hosts = [h.name for h in fabric.hosts if not h.parameter_server]
    if chosen.random() < 0.2:
        switch = chosen.choice([s.name for s in fabric.switches])
        at, lasts_s = chosen.uniform(0, HORIZON_S * 0.9), chosen.uniform(0.5, MAX_REFUSAL_S)
        yield Step(at, "refuse_connections", (switch, lasts_s))
    if len(hosts) == len(fabric.hosts) and chosen.random() < 0.1:
        workers = tuple(chosen.sample(hosts, 2))
        spec = JobSpec("impossible", workers, "none", 60, chosen.random() < 0.8, 0, False, work_s=5.0)
        yield Step(chosen.uniform(0, HORIZON_S * 0.8), "submit", (spec,))


MAX_RESTART_S = 3.0
"""Within a lease."""


def _restarts(seed: int, fabric: Fabric, jobs: list[Step]) -> Iterator[Step]:
    """Yields restarts in a third of the seeds; the other draws do not depend on these: members of any job are started
    again within their leases, in place of a process that has died or beside one that lives."""
    chosen = random.Random(f"restarts {seed}")
    if chosen.random() < 2 / 3:
        return
    servers = [h.name for h in fabric.hosts if h.parameter_server]
    for step in (s for s in jobs if s.kind == "submit"):
        spec = step.arguments[0]
        assert isinstance(spec, JobSpec)
        at = step.at_s
        while chosen.random() < 0.5:
            host = chosen.choice((*spec.workers, *servers))
            at += 2.0 + chosen.expovariate(1 / 6)
            kind = chosen.choice(("kill_member", "kill_member", "vanish_member", "start_second"))
            if kind == "start_second" and chosen.random() < 0.5:
                yield Step(at - chosen.uniform(0, 0.2), "break_stream", (spec.name, host, True))
            yield Step(at, kind, (spec.name, host))
            if kind != "start_second":
                yield Step(at + chosen.uniform(0, MAX_RESTART_S), "start_member", (spec.name, host))


def _job(chosen: random.Random, fabric: Fabric, theme: Theme, name: str) -> JobSpec:
    hosts = [h.name for h in fabric.hosts if not h.parameter_server]
    has_servers = len(hosts) < len(fabric.hosts)
    workers = tuple(chosen.sample(hosts, chosen.choice(theme.workers)))
    is_elastic = chosen.random() < theme.elastic
    scheme = chosen.choice(("switchml", "panama", "panama", *(("atp", "none") if has_servers else ())))
    transport, quorum = Transport.UDP, 0
    if chosen.random() < 0.15:
        transport, scheme = Transport.ROCE, "panama"
        if chosen.random() < 0.8:  # others may have a worker that is alone at its leaf: no plan has them
            workers = _rack_pairs(chosen, fabric)
    elif chosen.random() < 0.15:
        quorum = chosen.randint(1, len(workers))
    rate = chosen.choice(theme.rates)
    return JobSpec(
        name=name,
        workers=workers,
        scheme=scheme,
        rate=rate,
        min_rate=rate if chosen.random() < theme.greedy else 0,
        queue=chosen.random() < 0.85,
        priority=chosen.choice((0, 0, 0, 1, 5)),
        is_elastic=is_elastic,
        work_s=chosen.choice(theme.work_s),
        transport=transport,
        quorum=quorum,
    )


def _rack_pairs(chosen: random.Random, fabric: Fabric) -> tuple[str, ...]:
    """Two workers of each of one or two leaves: a RoCE worker needs another one at its leaf."""
    racks: dict[str, list[str]] = {}
    for host in fabric.hosts:
        if not host.parameter_server:
            racks.setdefault(fabric.attachment(host.name), []).append(host.name)
    leaves = chosen.sample(sorted(racks), min(chosen.randint(1, 2), len(racks)))
    return tuple(h for leaf in leaves for h in chosen.sample(racks[leaf], 2))


def _added_workers(chosen: random.Random, fabric: Fabric, spec: JobSpec, at: float) -> Iterator[Step]:
    others = [h.name for h in fabric.hosts if not h.parameter_server and h.name not in spec.workers]
    if others:
        host, later = chosen.choice(others), at + chosen.expovariate(1 / 8)
        yield Step(later, "add_worker", (spec.name, host))
        yield Step(later + chosen.uniform(0, 3), "start_member", (spec.name, host))


def _member_faults(
    chosen: random.Random, theme: Theme, spec: JobSpec, host: str, at: float
) -> Iterator[Step]:
    def later(mean_s: float) -> float:
        return at + chosen.expovariate(1 / mean_s)

    chance = theme.member_faults
    lost_at = later(8)
    while chosen.random() < chance:
        kind = chosen.choice(("kill_member", "kill_member", "vanish_member"))
        yield Step(lost_at, kind, (spec.name, host))
        if chosen.random() < 0.6:
            yield Step(lost_at + chosen.expovariate(1 / 4), "start_member", (spec.name, host))
        lost_at += 4.0 + chosen.expovariate(1 / 8)
    if chosen.random() < 0.5 * chance:
        left_at = later(8)
        yield Step(left_at, "leave_member", (spec.name, host))
        if chosen.random() < 0.4:
            yield Step(left_at + chosen.expovariate(1 / 4), "start_member", (spec.name, host))
    if chosen.random() < 1.5 * chance:
        yield Step(later(8), "break_stream", (spec.name, host, chosen.random() < 0.5))
    if chosen.random() < chance:
        yield Step(later(8), "request_epoch", (spec.name, host))


# ---- faults -------------------------------------------------------------------------------------------


def _faults(
    chosen: random.Random, fabric: Fabric, theme: Theme, draw_time: DrawTime, jobs: list[Step]
) -> Iterator[Step]:
    switches = [s.name for s in fabric.switches]
    links = [(k.a, k.b) for k in fabric.links if not fabric.is_host(k.a) and not fabric.is_host(k.b)]

    def lasts() -> float:
        return chosen.choice(theme.durations_s)

    def switch() -> str:
        return chosen.choice(switches)

    def replica() -> int:
        return chosen.choice((0, 0, 0, 1, 2))

    def element() -> str:
        """Mostly a switch, often a link between switches, seldom a host."""
        hosts = [h.name for h in fabric.hosts]
        named = {"switch": switches, "link": ["-".join(sorted(k)) for k in links], "host": hosts}
        (kind,) = chosen.choices(list(named), (5, 3, 1))
        return chosen.choice(named[kind])

    arguments: dict[str, Callable[[], tuple[object, ...]]] = {
        "restart_controller": lambda: (lasts(),),
        "kill_at_commit": lambda: (chosen.randint(1, 6), chosen.random() < 0.5, lasts()),
        "power_cut": lambda: (switch(), lasts()),
        "drop_connections": lambda: (switch(),),
        "hang": lambda: (switch(), lasts()),
        "forget_elections": lambda: (switch(),),
        "drift": lambda: (switch(), chosen.random()),
        "rogue": lambda: (switch(), lasts()),
        "cut_link": lambda: (*chosen.choice(links), lasts()),
        "fill_disk": lambda: (lasts(),),
        "restore_store": lambda: (lasts(),),
        "cross_traffic": lambda: (*chosen.sample(chosen.choice(links), 2), chosen.choice(SHARES), lasts()),
        "slow": lambda: (switch(), chosen.choice(SLOW_S), lasts()),
        "slow_planner": lambda: (lasts(),),
        "stall": lambda: (chosen.choice(STALLS_S),),
        "crash_planner": tuple,
        "replan": tuple,
        "drain": lambda: (element(), lasts()),
        "cordon": lambda: (element(), lasts()),
        "kill_replica": lambda: (replica(), lasts()),
        "stop_replica": lambda: (replica(), lasts()),
        "hang_replica": lambda: (replica(), lasts()),
        "cut_etcd": lambda: (replica(), *chosen.choice(CUTS), lasts()),
        "lose_majority": lambda: (lasts(),),
        "step_down": tuple,
        "roll_out": lambda: (chosen.choice((NEXT, NEXT, REFUSED, MUTE)),),
        "cancel_rollout": tuple,
        "finalize": tuple,
        "change_version": lambda: (lasts(),),
        "change_fabric": lambda: (chosen.choice(KINDS), chosen.random()),
    }
    if theme.controllers != (0,):
        yield from (Step(0.0, "forget_ids", (name,)) for name in switches if chosen.random() < 0.5)
    if "change_version" in theme.faults and chosen.random() < 0.5:
        yield Step(0.5, "use_store_of_before")
    for _ in range(chosen.choice(theme.count)):
        at = draw_time(HORIZON_S * 0.9)
        (kind,) = chosen.choices(list(theme.faults), list(theme.faults.values()))
        if kind == "restore_store":
            yield Step(at - chosen.uniform(0.5, 30.0), "back_up_store")
        if kind == "maintenance":
            yield from _maintenance(chosen, fabric, at, lasts())
            continue
        if kind == "rack":
            yield from _rack_failure(chosen, fabric, jobs, at, lasts())
            continue
        yield Step(at, kind, arguments[kind]())


def _maintenance(chosen: random.Random, fabric: Fabric, at: float, lasts_s: float) -> Iterator[Step]:
    """A leaf is held, and away for a while: mostly for less than it is held."""
    leaf = chosen.choice(sorted({fabric.attachment(h.name) for h in fabric.hosts}))
    yield Step(at, "hold", (leaf, lasts_s + chosen.choice((-5.0, 5.0, 10.0, 30.0)) + 1.0))
    yield Step(at + 1.0, "black_out", (leaf, lasts_s))


def _rack_failure(
    chosen: random.Random, fabric: Fabric, jobs: list[Step], at: float, lasts_s: float
) -> Iterator[Step]:
    """The power of a leaf and of hosts at it."""
    leaf = chosen.choice(sorted({fabric.attachment(h.name) for h in fabric.hosts}))
    yield Step(at, "power_cut", (leaf, lasts_s))
    for spec in (s.arguments[0] for s in jobs if s.kind == "submit" and s.at_s < at):
        assert isinstance(spec, JobSpec)
        for host in spec.workers:
            if fabric.attachment(host) == leaf and chosen.random() < 0.7:
                yield Step(at + chosen.uniform(0, 3), "kill_member", (spec.name, host))
