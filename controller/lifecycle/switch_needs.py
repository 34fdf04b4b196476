# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What a job's transport, numerics and quorum need of the switches of its plan, which not all of them have."""

from __future__ import annotations

from netfold.controller.jobs.file import JobOrder
from netfold.controller.jobs.records import Transport
from netfold.controller.lifecycle.admission import RefusedError, Wire
from netfold.controller.planning.plan import Plan
from netfold.topologies.fabric import Fabric

SENDERS_OF_A_QUORUM = 32
"""A root that is a switch has a bit for each sender of the tree."""

FLOAT_LANES = (64,)
"""Of v1model's programs that add floats (p4src/v1model/lanes_float.p4)."""

ROCE_LANES = (64, 256)
ROCE_TREES = 16
"""traffic/roce/control.h: connections of a worker."""


def check_roce(fabric: Fabric, wire: Wire, name: str, plan: Plan) -> None:
    """Raises RefusedError if the switches of the plan do not speak RoCE or do not pass on what a leaf needs."""
    if wire.lanes not in ROCE_LANES:
        raise RefusedError(
            f"job '{name}': the controller runs programs of {wire.lanes} lanes; RoCE needs 256 lanes (a path MTU of "
            "1024 bytes) or 64 (256 bytes)"
        )
    if len(plan.trees) > ROCE_TREES:
        raise RefusedError(f"job '{name}': a RoCE job has at most {ROCE_TREES} trees; name another scheme")
    for tree in plan.trees:
        for node in {n for e in tree.edges for n in e.path if not fabric.is_host(n)}:
            chip = fabric.switch(node).chip
            if chip is not None:
                raise RefusedError(f"job '{name}': switch {node} is a {chip}; RoCE needs v1model programs")


def check_floats(fabric: Fabric, wire: Wire, order: JobOrder, plan: Plan) -> None:
    """Raises RefusedError if a job wants floats added and a switch of its plan does not know how that adds up, or takes
    them from RoCE."""
    if not order.file.numerics.floats:
        return
    name, known = order.file.name, " or ".join(map(str, FLOAT_LANES))
    nodes = {n for tree in plan.trees for n in tree.nodes}
    if order.file.transport is Transport.ROCE:
        nodes |= {n for tree in plan.trees for edge in tree.edges for n in edge.path}
    for node in sorted(n for n in nodes if not fabric.is_host(n)):
        chip = fabric.switch(node).chip
        if chip is not None:
            raise RefusedError(
                f"job '{name}': numerics are float32, and switch {node} is a {chip.value}, whose program adds whole "
                "numbers (docs/tofino.md); say block, or name a scheme that adds up elsewhere"
            )
        if wire.lanes not in FLOAT_LANES:
            raise RefusedError(
                f"job '{name}': numerics are float32, and switch {node} runs a program of {wire.lanes} lanes, which "
                f"adds whole numbers; start the controller with --lanes {known}, or say block"
            )


def check_quorum(fabric: Fabric, order: JobOrder, plan: Plan) -> int:
    """How many contributions are enough, 0: all are wanted. Of fewer workers than the file names it cannot be more than
    there are. Raises RefusedError where a node of the plan has no room for it."""
    name, quorum = order.file.name, order.file.quorum
    if quorum is None:
        return 0
    for tree in plan.trees:
        for node in tree.nodes:
            chip = None if fabric.is_host(node) else fabric.switch(node).chip
            if chip is not None:
                raise RefusedError(
                    f"job '{name}' has a quorum, and switch {node} is a {chip.value}, whose program has no room for "
                    "one (docs/protocol.md, 3.7); leave 'quorum' out, or name a scheme that adds up elsewhere"
                )
        if not fabric.is_host(tree.root) and len(tree.edges) > SENDERS_OF_A_QUORUM:
            raise RefusedError(
                f"job '{name}' has a quorum and a tree of {len(tree.edges)} senders to switch {tree.root}; a switch as "
                f"its root takes {SENDERS_OF_A_QUORUM}, a parameter server any number"
            )
    workers = {w for tree in plan.trees for edge in tree.edges if fabric.is_host(w := edge.child)}
    return min(quorum, len(workers))
