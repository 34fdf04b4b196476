# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job as lines of text: for a large one summaries, exceptions first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from netfold.controller.operator.top import connected_members
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.listing import listing

MAX_LINES = 16
"""Members, or nodes of a tree, that are shown one by one."""

CONNECTED = "connected"


def plan_of(answer: pb.Job) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads(answer.plan_json) if answer.plan_json else {}
    return plan


def headline(reason: str) -> str:
    """The first clause of a reason, for one line of a table: what binds. `job explain` prints all clauses."""
    first, _, rest = reason.partition("; ")
    return f"{first} ..." if rest else first


def job_line(answer: pb.Job, reason: str | None = None) -> str:
    reason = answer.reason if reason is None else reason
    state = pb.JobState.Name(answer.state).lower()
    has_ended = answer.state in (pb.FAILED, pb.DONE, pb.CANCELED)
    connected = f", {connected_members(answer)}" + ("" if answer.sandbox else " connected")
    connected = "" if has_ended else connected
    # A job that runs has the reason of its last new epoch or move, which is over.
    last = "; last change: " if answer.state == pb.RUNNING else ": "
    return f"{answer.name}: {state}, job epoch {answer.epoch}{connected}" + (last + reason if reason else "")


def job_lines(answer: pb.Job) -> Iterator[str]:
    """The job, its plan, its trees and its members."""
    yield job_line(answer)
    plan = plan_of(answer)
    if plan:
        bound = f", bound {plan['bound']:g}" if plan["bound"] else ""
        yield f"  plan: {plan['algorithm']}, {plan['rate']:g} {plan['unit']} a worker{bound}"
        if plan.get("hierarchy"):
            yield f"  ranks: {plan['hierarchy']['why']}"
        if not answer.sandbox:
            because = plan.get("no_targets_because", "the controller is of an earlier version")
            yield "  targets: " + (f"none, {because}" if because else "a block goes to its owner alone")
        for tree, numbers in zip(plan["trees"], plan["installed"], strict=True):
            yield (
                f"  tree {numbers['tree']}: root {tree['root']}, share {tree['share']:.3f}, "
                f"{numbers['slots']} slots, window {numbers['window']}: {_nodes(tree['nodes'])}"
            )
    yield from _members(answer.members)


def packet_lines(answer: pb.Job) -> Iterator[str]:
    """The fields of the job's packets, as `netfold host send` and examples/gradient_by_hand.py take them."""
    fields = answer.packets
    if not fields.trees:
        yield "  packets: none, the job is not installed"
        return
    yield f"  packets: UDP port {fields.udp_port} (source and destination), epoch {answer.epoch}, {fields.lanes} lanes"
    for tree in fields.trees:
        children = ", ".join(f"{host} {number}" for host, number in sorted(tree.children.items()))
        yield f"  tree {tree.tree}: to {tree.root_address}, {tree.slots} slots, children: {children}"


def _nodes(nodes: Mapping[str, Sequence[str]]) -> str:
    if sum(map(len, nodes.values())) <= MAX_LINES:
        return "; ".join(f"{node} <- {', '.join(children)}" for node, children in nodes.items())
    widest = max(nodes, key=lambda node: len(nodes[node]))
    return f"{len(nodes)} nodes, at most {len(nodes[widest])} children ({widest})"


def _members(members: Sequence[pb.Member]) -> Iterator[str]:
    if len(members) <= MAX_LINES:
        yield from (f"  {_kind(member)} {member.host}: {_presence(member)}" for member in members)
        return
    counts = Counter((_kind(member), _presence(member)) for member in members)
    exceptions = sorted((group for group in counts if group[1] != CONNECTED), key=lambda group: counts[group])
    for group in exceptions:
        hosts = [m.host for m in members if (_kind(m), _presence(m)) == group]
        yield f"  {counts[group]:,} {group[0]}s {group[1]}: {listing(hosts)}"
    for (kind, presence), count in counts.items():
        if presence == CONNECTED:
            yield f"  {count:,} {kind}s {CONNECTED}"
    yield "  --json has each member"


def _kind(member: pb.Member) -> str:
    return "parameter server" if member.parameter_server else "worker"


def _presence(member: pb.Member) -> str:
    if member.left:
        return "left"
    if member.unused:
        return "not used by the plan" if member.parameter_server else "packets by hand"
    return CONNECTED if member.connected else "absent"
