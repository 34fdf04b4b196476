# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the requirements of the features of a job (RoCE, float32, quorum, half) on its plan and size. `REQUIREMENTS`
lists the checks; each raises RefusedError, and accepts a job without the feature."""

from __future__ import annotations

from collections.abc import Callable

from netfold.controller.jobs.file import ResolvedJob
from netfold.controller.jobs.records import Transport
from netfold.controller.lifecycle.job_admission import PacketModel, RefusedError
from netfold.controller.planning.plan import Plan
from netfold.controller.switches.roce import ROCE_SIDE
from netfold.topologies.fabric import Fabric
from netfold.traffic.numerics import MAX_QUARTER_WORKERS, PAIR_BITS, kept_bits

MIN_HALF_BITS = {"half": 4, "auto": 1}
"""Minimum bits of a value that the scheme half has to keep (traffic/numerics.py), by the job's numerics. `auto` is half
for float16 and bfloat16 alone."""

FLOAT_LANES = (64,)
"""Lane counts of the v1model programs that add floats (p4src/v1model/lanes_float.p4)."""

ROCE_LANES = (64, 256)
MAX_ROCE_TREES = 16
"""Maximum connections of a worker (traffic/agent/messages.h)."""


def check_roce(fabric: Fabric, packet_model: PacketModel, resolved: ResolvedJob, plan: Plan) -> None:
    """RoCE needs v1model programs of certain lane counts on all switches of the plan."""
    if resolved.file.transport is not Transport.ROCE:
        return
    name = resolved.file.name
    if packet_model.lanes not in ROCE_LANES:
        raise RefusedError(
            f"job '{name}': the controller runs programs of {packet_model.lanes} lanes; RoCE needs 256 lanes (a path "
            "MTU of 1024 bytes) or 64 (256 bytes)"
        )
    if len(plan.trees) > MAX_ROCE_TREES:
        raise RefusedError(
            f"job '{name}': a RoCE job has at most {MAX_ROCE_TREES} trees; name another scheme"
        )
    for tree in plan.trees:
        for node in {n for e in tree.edges for n in e.path if not fabric.is_host(n)}:
            chip = fabric.switch(node).chip
            if chip is not None:
                raise RefusedError(f"job '{name}': switch {node} is a {chip}; RoCE needs v1model programs")
    for worker in sorted({w for tree in plan.trees for w in tree.workers_below(tree.root)}):
        _check_roce_port(fabric, name, worker)


def _check_roce_port(fabric: Fabric, job: str, worker: str) -> None:
    """Raises RefusedError if a RoCE worker's port is unsuitable. Its packets are admitted as from port + ROCE_SIDE, a
    port number of nine bits, and no other packets may come by that port."""
    leaf = fabric.attachment(worker)
    port = fabric.ports[leaf][worker]
    if port >= ROCE_SIDE:
        raise RefusedError(
            f"job '{job}': worker {worker} is at port {port} of switch {leaf}; RoCE needs a port of at most "
            f"{ROCE_SIDE - 1}"
        )
    other = next((n for n, p in fabric.ports[leaf].items() if p == port + ROCE_SIDE), None)
    if other is not None:
        raise RefusedError(
            f"job '{job}': worker {worker} is at port {port} of switch {leaf}, and port {port + ROCE_SIDE} leads to "
            f"{other}, which could contribute in its place; RoCE needs port {port + ROCE_SIDE} unused"
        )


def check_floats(fabric: Fabric, packet_model: PacketModel, resolved: ResolvedJob, plan: Plan) -> None:
    """float32 needs programs that add floats at all nodes; with RoCE also at the switches between them."""
    if not resolved.file.numerics.floats:
        return
    name, known = resolved.file.name, " or ".join(map(str, FLOAT_LANES))
    nodes = {n for tree in plan.trees for n in tree.nodes}
    if resolved.file.transport is Transport.ROCE:
        nodes |= {n for tree in plan.trees for edge in tree.edges for n in edge.path}
    for node in sorted(n for n in nodes if not fabric.is_host(n)):
        chip = fabric.switch(node).chip
        if chip is not None:
            raise RefusedError(
                f"job '{name}': numerics are float32, and switch {node} is a {chip.value}, whose program adds whole "
                "numbers (docs/how-to/tofino.md); say block, or name a scheme that adds up elsewhere"
            )
        if packet_model.lanes not in FLOAT_LANES:
            raise RefusedError(
                f"job '{name}': numerics are float32, and switch {node} runs a program of {packet_model.lanes} lanes, "
                f"which adds whole numbers; start the controller with --lanes {known}, or say block"
            )


def check_quorum(fabric: Fabric, packet_model: PacketModel, resolved: ResolvedJob, plan: Plan) -> None:
    """A quorum needs v1model programs at all nodes, and a bit for each sender at a switch as root."""
    name = resolved.file.name
    if resolved.file.quorum is None:
        return
    for tree in plan.trees:
        for node in tree.nodes:
            chip = None if fabric.is_host(node) else fabric.switch(node).chip
            if chip is not None:
                raise RefusedError(
                    f"job '{name}' has a quorum, and switch {node} is a {chip.value}, whose program has no room for "
                    "one (docs/reference/protocol.md, 3.7); leave 'quorum' out, or name a scheme that adds up elsewhere"
                )
        most = None if fabric.is_host(tree.root) else fabric.switch(tree.root).max_children
        if most is not None and len(tree.edges) > most:
            raise RefusedError(
                f"job '{name}' has a quorum and a tree of {len(tree.edges)} senders to switch {tree.root}; a root with "
                f"a bitmap of {most} bits takes {most}, a parameter server any number"
            )


def check_half(fabric: Fabric, packet_model: PacketModel, resolved: ResolvedJob, plan: Plan) -> None:
    """Two values in a lane lose the bits that the sum of all workers needs; enough bits must remain."""
    workers, mode = len(resolved.workers), resolved.file.numerics.mode
    if mode not in MIN_HALF_BITS or kept_bits(workers, half=True) >= MIN_HALF_BITS[mode]:
        return
    value = "value" if mode == "half" else "float16 or bfloat16"
    raise RefusedError(
        f"job '{resolved.file.name}': numerics '{mode}' keep {max(kept_bits(workers, half=True), 0)} bits of a {value} "
        f"with {workers} workers; expected at most {1 << (PAIR_BITS - MIN_HALF_BITS[mode])} workers, which keep "
        f"{MIN_HALF_BITS[mode]}, or block, which keeps {kept_bits(workers)}"
    )


def check_quarter(fabric: Fabric, packet_model: PacketModel, resolved: ResolvedJob, plan: Plan) -> None:
    """Each worker rounds to the eight bits of the sum, so the error grows with the workers."""
    workers = len(resolved.workers)
    if resolved.file.numerics.mode == "quarter" and workers > MAX_QUARTER_WORKERS:
        raise RefusedError(
            f"job '{resolved.file.name}': numerics 'quarter' are for at most {MAX_QUARTER_WORKERS} workers, and it has "
            f"{workers}: every worker adds a rounding to eight bits; expected half or block"
        )


REQUIREMENTS: tuple[Callable[[Fabric, PacketModel, ResolvedJob, Plan], None], ...] = (
    check_roce,
    check_floats,
    check_quorum,
    check_half,
    check_quarter,
)


def check_requirements(fabric: Fabric, packet_model: PacketModel, resolved: ResolvedJob, plan: Plan) -> None:
    """Check all requirements. Raises RefusedError."""
    for check in REQUIREMENTS:
        check(fabric, packet_model, resolved, plan)


def quorum_of(fabric: Fabric, resolved: ResolvedJob, plan: Plan) -> int:
    """Number of contributions that are enough to seal a sum, at most the workers of the plan; 0: all are needed."""
    if resolved.file.quorum is None:
        return 0
    workers = {w for tree in plan.trees for edge in tree.edges if fabric.is_host(w := edge.child)}
    return min(resolved.file.quorum, len(workers))
