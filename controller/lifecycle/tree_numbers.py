# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Allocates numbers of trees and UDP ports of jobs. A number is unique where it is used: that of a tree at each switch
that its packets pass, the port of a job at each of its hosts. So a fabric can have more trees than a switch, and more
jobs than a host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from netfold.controller.jobs.records import JobRecord, Placement
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.planning.plan import Tree
from netfold.protocol.constants import PORT_FIRST, PORT_LAST
from netfold.topologies.fabric import Fabric
from netfold.topologies.ports import Chip

MAX_TREES = {None: 1023, Chip.TOFINO: 1023, Chip.TOFINO2: 511}
"""Maximum trees of a switch (p4src/common/sizes.p4, p4src/tna/arch.p4): it has a cell for each verdict, and number 0 is
no tree."""

UDP_PORTS = range(PORT_FIRST, PORT_LAST + 1)


class TreeNumbers:
    """Numbers in use at each switch. The search starts after `last` and wraps around, so that a number is reused as
    late as possible."""

    def __init__(self, fabric: Fabric, placements: Iterable[Placement], last: int) -> None:
        self._fabric = fabric
        self._last = last
        self._used: dict[str, set[int]] = defaultdict(set)
        for placement in placements:
            for numbers, tree in zip(placement.trees, placement.plan.trees, strict=True):
                self._use(tree, numbers.tree)

    def take(self, tree: Tree, job: str) -> int:
        """Take a number that no other tree has at a switch of this one. Raises RefusedError."""
        switches = switches_of(self._fabric, tree)
        most = min(MAX_TREES[self._fabric.switch(s).chip] for s in switches)
        taken = set().union(*(self._used[s] for s in switches))
        for step in range(most):
            number = (self._last + step) % most + 1
            if number not in taken:
                self._use(tree, number)
                self._last = number
                return number
        fullest = max(switches, key=lambda s: len(self._used[s]))
        raise RefusedError(
            f"job '{job}': none of {most} tree numbers is free at all switches of a tree; switch {fullest} has "
            f"{len(self._used[fullest])} in use; wait for a job to end, or name a scheme with fewer trees"
        )

    def _use(self, tree: Tree, number: int) -> None:
        for switch in switches_of(self._fabric, tree):
            self._used[switch].add(number)


def switches_of(fabric: Fabric, tree: Tree) -> list[str]:
    """The switches at which the tree's number is used."""
    return [n for n in tree.touched if not fabric.is_host(n)]


def free_udp_port(job: JobRecord, jobs: Iterable[JobRecord], last: int) -> int:
    """The next port after the last one that was handed out that no other job has at hosts of this job. Raises
    RefusedError."""
    hosts = {m.host for m in job.members}
    taken = {j.udp_port for j in jobs if not j.state.is_terminal and any(m.host in hosts for m in j.members)}
    first = last - UDP_PORTS.start + 1 if last else 0
    for i in range(len(UDP_PORTS)):
        port = UDP_PORTS[(first + i) % len(UDP_PORTS)]
        if port not in taken:
            return port
    raise RefusedError(
        f"job '{job.name}': its hosts are in jobs with all {len(UDP_PORTS)} UDP ports; wait for one of them to end, or "
        "name hosts of fewer jobs"
    )


def check_udp_port(job: JobRecord, hosts: Iterable[str], jobs: Iterable[JobRecord]) -> None:
    """Raises RefusedError if one of the hosts to add is in another job with the same port."""
    added = frozenset(hosts)
    for other in jobs:
        if other.name == job.name or other.state.is_terminal or other.udp_port != job.udp_port:
            continue
        for member in other.members:
            if member.host in added:
                raise RefusedError(
                    f"'{member.host}' cannot join job '{job.name}': it is in job '{other.name}', which has the same "
                    f"UDP port {job.udp_port}; wait for one of them to end"
                )
