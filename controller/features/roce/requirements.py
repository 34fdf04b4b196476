# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks what RoCE needs of programs, trees and ports."""

from __future__ import annotations

from collections.abc import Iterator

from netfold.controller.features.roce.tables import ROCE_SIDE
from netfold.controller.jobs.file import ResolvedJob
from netfold.controller.planning.plan import Plan
from netfold.topologies.fabric import Fabric

ROCE_LANES = (64, 256)
MAX_ROCE_TREES = 16
"""Maximum connections of a worker (traffic/agent/messages.h)."""


def refusals(fabric: Fabric, lanes: int, resolved: ResolvedJob, plan: Plan) -> Iterator[str]:
    """RoCE needs v1model programs of certain lane counts on all switches of the plan."""
    name = resolved.file.name
    if lanes not in ROCE_LANES:
        yield (
            f"job '{name}': the controller runs programs of {lanes} lanes; RoCE needs 256 lanes (a path MTU of 1024 "
            "bytes) or 64 (256 bytes)"
        )
    if len(plan.trees) > MAX_ROCE_TREES:
        yield f"job '{name}': a RoCE job has at most {MAX_ROCE_TREES} trees; name another scheme"
    for tree in plan.trees:
        for node in {n for e in tree.edges for n in e.path if not fabric.is_host(n)}:
            chip = fabric.switch(node).chip
            if chip is not None:
                yield f"job '{name}': switch {node} is a {chip}; RoCE needs v1model programs"
    for worker in sorted({w for tree in plan.trees for w in tree.workers_below(tree.root)}):
        yield from _port_refusals(fabric, name, worker)


def _port_refusals(fabric: Fabric, job: str, worker: str) -> Iterator[str]:
    """A RoCE worker's packets are admitted as from port + ROCE_SIDE, a port number of nine bits, and no other packets
    may come by that port."""
    leaf = fabric.attachment(worker)
    port = fabric.ports[leaf][worker]
    if port >= ROCE_SIDE:
        yield (
            f"job '{job}': worker {worker} is at port {port} of switch {leaf}; RoCE needs a port of at most "
            f"{ROCE_SIDE - 1}"
        )
    other = next((n for n, p in fabric.ports[leaf].items() if p == port + ROCE_SIDE), None)
    if other is not None:
        yield (
            f"job '{job}': worker {worker} is at port {port} of switch {leaf}, and port {port + ROCE_SIDE} leads to "
            f"{other}, which could contribute in its place; RoCE needs port {port + ROCE_SIDE} unused"
        )
