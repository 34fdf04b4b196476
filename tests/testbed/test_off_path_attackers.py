# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Off-path attackers (docs/explanation/security.md) beside jobs through switches: root on other hosts, and processes
without rights on the hosts of workers. Jobs of switches and of a parameter server finish, and all sums are right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product

import pytest

from netfold.controller.lifecycle.tree_numbers import UDP_PORTS
from netfold.testbed.counters import read_verdicts
from netfold.testbed.testbed import Testbed
from tests.testbed.test_scenarios import FINISH_S, assert_exact
from tests.traffic.off_path import Flow, Plan, attacking

pytestmark = [pytest.mark.root, pytest.mark.mininet]

ATTACKERS = ("h4", "h8")
LEAVES = ("leaf1", "leaf2")
"""One attacker at each leaf, which drops its ICMP errors."""

CALLS = ["--workload", "alexnet", "--model-scale", "0.001", "--iterations", 8, "--timeout", 40]
AT_SWITCHES, AT_SERVER = ("h1", "h2", "h5", "h6"), ("h3", "h7")
"""Workers of a job whose roots are switches, and of one with a parameter server."""

BESIDE_PER_SECOND = 500
"""Datagrams of a process on a worker's host: it shares the link, which it could fill."""


@pytest.fixture
def system() -> Iterator[Testbed]:
    with Testbed(target="softswitch", lanes=64, name="attack", first_grpc_port=20020) as running:
        yield running


def guessed_flows(system: Testbed) -> tuple[Flow, ...]:
    """The packets of the first two jobs, from every worker to every node that may be its root."""
    addressing = system.net.addressing
    servers = [h.name for h in system.fabric.hosts if h.parameter_server]
    roots = [str(addressing.ip(name)) for name in (*addressing.switches, *servers)]
    workers = [str(addressing.ip(host)) for host in (*AT_SWITCHES, *AT_SERVER)]
    return tuple(
        Flow(worker, root, port, port) for worker, root, port in product(workers, roots, UDP_PORTS[:2])
    )


def attacks_on(system: Testbed, flows: tuple[Flow, ...], per_second: int) -> Iterator[tuple[str, Plan]]:
    """Attacking hosts and their attacks, with forged sources: switches compare none."""
    addressing = system.net.addressing
    hosts = addressing.hosts.values()
    spoofed = tuple(
        {*(str(h.ip) for h in hosts), *(str(h.gateway_ip) for h in hosts), *(f.destination for f in flows)}
    )
    for number, host in enumerate(ATTACKERS):
        yield host, Plan("icmp", flows, spoofed, per_second=per_second, seed=number)
    yield ATTACKERS[0], Plan("arp", flows, spoofed, interface="eth0", per_second=per_second, seed=2)
    back = tuple(Flow(f.destination, f.source, f.destination_port, f.source_port) for f in flows)
    for number, host in enumerate((ATTACKERS[1], AT_SWITCHES[0], AT_SERVER[0])):
        own = (str(addressing.hosts[host].ip),)
        yield host, Plan("datagrams", (*flows, *back), own, per_second=BESIDE_PER_SECOND, seed=3 + number)


def finish_jobs_under_attack(system: Testbed, per_second: int) -> None:
    with ExitStack() as open_attacks:
        running = [
            open_attacks.enter_context(attacking(plan, system.net.hosts[host].popen))
            for host, plan in attacks_on(system, guessed_flows(system), per_second)
        ]
        jobs = [
            system.submit("switches", CALLS, workers=AT_SWITCHES, scheme="panama", rate=40),
            system.submit("server", CALLS, workers=AT_SERVER, scheme="none", parameter_servers=1, rate=40),
        ]
        results = [job.result(FINISH_S) for job in jobs]
        counted = read_verdicts(system.net)
    assert all(attack.sent > 0 for attack in running)
    assert all(counted[leaf]["malformed"] > 0 for leaf in LEAVES), "no attack reached a switch"
    for of_job in results:
        assert_exact(of_job)
        assert max(r["restarts"] for r in of_job.values()) == 0, "an attack cost an epoch"
        assert sum(r["socket_errors"] for r in of_job.values()) == 0, "a switch let an error through"


@pytest.mark.slow
def test_jobs_finish_under_attack_with_all_sums_right(system: Testbed) -> None:
    finish_jobs_under_attack(system, per_second=1000)


@pytest.mark.long
def test_jobs_finish_under_attack_at_any_rate(system: Testbed) -> None:
    finish_jobs_under_attack(system, per_second=0)
