# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The lines of a recording: JSON objects, each told apart by its `kind`. docs/reference/recording.md is the reference.

    fabric  the fabric, once at the start of each segment
    state   all of the state at a time
    change  what differs from the state before: section, key, new value; null deletes the key
    event   something that happened: its name, a text, and what it concerns

A segment starts with `fabric` and `state`, so a reader can start at any segment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from netfold.controller.planning.plan import Plan, Tree
from netfold.topologies.fabric import Fabric

VERSION = 1

Json = Any
"""A value that `json` can write."""

State = dict[str, dict[str, Json]]
"""Values by section and key."""


class LineKind(StrEnum):
    FABRIC = "fabric"
    STATE = "state"
    CHANGE = "change"
    EVENT = "event"


class StateSection(StrEnum):
    """Sections of the state, with their keys.

    switches  switch
    links     `sender->receiver`: [load of jobs, cross traffic] in the fabric's unit
    jobs      job
    members   `job host`
    packets   switch: packets a second by job and verdict
    failed    failed link (`a-b`) or switch: true
    plans     scheme: plan, in a comparison of plans
    """

    SWITCHES = "switches"
    LINKS = "links"
    JOBS = "jobs"
    MEMBERS = "members"
    PACKETS = "packets"
    FAILED = "failed"
    PLANS = "plans"


class RecordingSource(StrEnum):
    """The program that wrote a recording."""

    CONTROLLER = "controller"
    SIMULATOR = "simulator"
    PLANNER = "planner"


def fabric_line(fabric: Fabric, source: RecordingSource, *, scale: float = 1.0) -> str:
    """`scale`: rate on the wire over rate in the fabric's file."""
    return _line(
        LineKind.FABRIC,
        version=VERSION,
        source=source,
        name=fabric.name,
        unit={"name": fabric.unit.name, "bits_per_second": fabric.unit.bits_per_second * scale},
        switches=[{"name": s.name, "role": s.role, "slots": s.slots} for s in fabric.switches],
        hosts=[
            {"name": h.name, "switch": fabric.attachment(h.name), "parameter_server": h.parameter_server}
            for h in fabric.hosts
        ],
        links=[{"a": link.a, "b": link.b, "rate": link.rate} for link in fabric.links],
    )


def state_line(at: float, state: Mapping[str, Mapping[str, Json]]) -> str:
    """`at`: seconds since 1970."""
    return _line(LineKind.STATE, at=round(at, 6), state=state)


def change_line(at: float, changes: Mapping[str, Mapping[str, Json]]) -> str:
    """`changes`: new values by section and key; None deletes the key."""
    return _line(LineKind.CHANGE, at=round(at, 6), state=changes)


def event_line(at: float, event: str, text: str, **of: Json) -> str:
    """`of`: what the event concerns, such as a job."""
    return _line(LineKind.EVENT, at=round(at, 6), event=event, text=text, **of)


def starts_segment(line: str) -> bool:
    """The line describes the fabric. `line`: a JSON object."""
    return bool(json.loads(line).get("kind") == LineKind.FABRIC)


def merge(state: State, changes: Mapping[str, Mapping[str, Json]]) -> None:
    """Apply the changes of a line to `state`."""
    for section, rows in changes.items():
        known = state.setdefault(section, {})
        known.update(rows)
        for key in [key for key, value in rows.items() if value is None]:
            del known[key]


def tree_document(tree: Tree) -> dict[str, Json]:
    """A tree as the page draws it."""
    return {
        "root": tree.root,
        "share": tree.share,
        "nodes": list(tree.nodes),
        "edges": [{"child": e.child, "parent": e.parent, "path": list(e.path)} for e in tree.edges],
        "result_links": [list(pair) for pair in tree.result_links],
    }


def plan_row(plan: Plan) -> dict[str, Json]:
    """A plan's row in the section `plans`."""
    return {
        "scheme": plan.algorithm,
        "rate": plan.rate,
        "unit": plan.unit,
        "bound": plan.bound,
        "trees": [tree_document(t) for t in plan.trees],
        "links": {f"{a}->{b}": load for (a, b), load in plan.loads.links.items()},
    }


def _line(kind: LineKind, **fields: Json) -> str:
    return json.dumps({"kind": kind, **fields}, separators=(",", ":"), allow_nan=False)
