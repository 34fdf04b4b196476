# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The groups of a mesh of 8 x 8 hosts: the world and all 16 rows and columns are jobs at the same time, beside each
other on the links. They come and go, 64 groups in all, and leave nothing behind."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from netfold.controller.jobs.records import JobState
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.topologies.generators import leaf_spine
from netfold.traffic.membership.job_options import JobOptions
from tests.controller.deployment import Deployment, ready

pytestmark = pytest.mark.timeout(3600)

SIDE, ROUNDS = 8, 4
WORLD_RATE, GROUP_RATE = 40.0, 15.0
HOSTS = [f"h{n + 1}" for n in range(SIDE * SIDE)]
GROUPS = {f"row{n}": HOSTS[n * SIDE : (n + 1) * SIDE] for n in range(SIDE)}
GROUPS |= {f"column{n}": HOSTS[n::SIDE] for n in range(SIDE)}
STANDSTILL_S = 600.0
"""A machine may stand still for minutes: that is no switch that is lost."""
TIMEOUTS = ControllerTimeouts(
    reroute=STANDSTILL_S, restart=STANDSTILL_S, start=STANDSTILL_S, install=STANDSTILL_S
)


async def start(deployment: Deployment, name: str, hosts: list[str], rate: float) -> None:
    """As `new_group` does; a job that has to wait is refused."""
    options = JobOptions(rate=rate, lease_ms=int(1000 * STANDSTILL_S))
    spec = json.dumps({**options.job_file(name, hosts), "join_s": STANDSTILL_S})
    await deployment.controller.requests.submit(spec, queue=False)


async def leave(deployment: Deployment, name: str, hosts: list[str]) -> None:
    for host in hosts:
        deployment.controller.jobs.members.heartbeat(name, host)
    for host in hosts:
        deployment.controller.jobs.members.leave(name, host, calls=1)
    assert deployment.job(name).state is JobState.DONE


async def runs(deployment: Deployment, name: str) -> None:
    await deployment.until(lambda: deployment.state(name) is JobState.RUNNING, f"{name} runs", STANDSTILL_S)


def entries(deployment: Deployment) -> dict[str, int]:
    """Number of entries and multicast groups of each switch."""
    return {
        name: len(switch.state.tables) + len(switch.state.groups)
        for name, switch in deployment.switches.items()
    }


@pytest.mark.slow
async def test_all_groups_of_a_mesh_of_8_x_8_are_jobs_at_once(tmp_path: Path):
    fabric = leaf_spine(SIDE, 4, SIDE)
    async with ready(fabric, tmp_path, rpc_timeout_s=STANDSTILL_S, timeouts=TIMEOUTS) as deployment:
        registry = deployment.controller.state.registry
        await start(deployment, "world", HOSTS, WORLD_RATE)
        await runs(deployment, "world")
        alone = entries(deployment)
        for number in range(ROUNDS):
            groups = {f"{name}-{number}": hosts for name, hosts in GROUPS.items()}
            for name, hosts in groups.items():
                await start(deployment, name, hosts, GROUP_RATE)
            for name in groups:
                await runs(deployment, name)
            assert {deployment.state(name) for name in ("world", *groups)} == {JobState.RUNNING}
            plans = {name: registry.get(name).placement.plan for name in ("world", *groups)}
            assert {name: plan.rate for name, plan in plans.items()} == {
                "world": WORLD_RATE,
                **dict.fromkeys(groups, GROUP_RATE),
            }
            links: Counter[tuple[str, str]] = Counter()
            for plan in plans.values():
                links.update(plan.loads.links)
            assert all(rate <= fabric.link(*link).rate + 1e-6 for link, rate in links.items())
            for name, hosts in groups.items():
                await leave(deployment, name, hosts)
            await deployment.until(lambda: entries(deployment) == alone, "entries removed", STANDSTILL_S)
        deployment.assert_exact()
