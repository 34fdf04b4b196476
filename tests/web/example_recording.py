# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A recording of a minute, made up: a job, a queued one, a full link, a switch that is lost, a straggler."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from netfold.controller.jobs.lookup import default_job
from netfold.controller.planning.planner import make_plan
from netfold.controller.recording.lines import (
    RecordingSource,
    change_line,
    event_line,
    fabric_line,
    state_line,
    tree_document,
)
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import load_fabric

START_S = 1_700_000_000.0
FULL_AT, LOST_AT, MOVED_AT, SECONDS = 20, 30, 35, 60
FULL_LINK = ("leaf1", "spine1")
LOST_SWITCH = "spine1"


def job_row(trees: list[dict[str, Any]], workers: list[str], **more: Any) -> dict[str, Any]:
    return {
        "state": "running",
        "reason": "",
        "epoch": 1,
        "sequence": 1,
        "submitted": START_S,
        "transport": "udp",
        "workers": workers,
        "parameter_servers": [],
        "excluded": [],
        "rejoining": [],
        "moving": False,
        "trees": trees,
        "scheme": "panama",
        "rate": 100.0,
        "unit": "Mbit/s",
        "quorum": 0,
        "straggler": None,
        **more,
    }


def member_row(second: int, host: str, *, slow: bool = False) -> dict[str, Any]:
    moving = LOST_AT <= second < MOVED_AT
    return {
        "connected": True,
        "goodput_mbps": 0.0 if moving else 70.0 + 5 * ((second + len(host)) % 3),
        "chunks": second * 1000,
        "retransmits": second,
        "reencoded_chunks": 0,
        "trees": [
            {
                "tree": 1,
                "results": 1000,
                "marked": 0.3 if FULL_AT <= second < LOST_AT else 0.02,
                "retransmitted": 0.05 if moving else 0.001,
                "rtt_ms": 0.8 if slow else 3.0 + (second % 4) / 2,
                "min_rtt_ms": 0.4,
                "window": 64 if second < FULL_AT else 24,
            }
        ],
    }


def switch_row(*, ready: bool = True, slots_in_use: int = 1024) -> dict[str, Any]:
    error = "" if ready else "no answer within 2 s"
    return {
        "ready": ready,
        "reached": ready,
        "error": error,
        "repaired": 0,
        "slots_in_use": slots_in_use,
        "slots": 4096,
    }


def example(fabric: Fabric | None = None) -> list[str]:
    """Its lines."""
    fabric = fabric or load_fabric("leaf-spine-2x2")
    plan = make_plan(fabric, replace(default_job(fabric).spec, scheme="panama"))
    trees = [
        {**tree_document(t), "tree": n, "slots": 512, "window": 256} for n, t in enumerate(plan.trees, 1)
    ]
    left = [t for t in trees if t["root"] != LOST_SWITCH]
    assert 0 < len(left) < len(trees), "the example wants a tree that is lost, and one that is left"
    workers = [h.name for h in fabric.hosts if not h.parameter_server]
    job = job_row(trees, workers)
    queued = job_row(
        [], [], state="queued", epoch=0, sequence=2, reason="no slots are left at leaf1 for 2 trees"
    )
    loads = {}
    for link in fabric.links:
        for pair in ((link.a, link.b), (link.b, link.a)):
            planned = plan.loads.links.get(pair, 0.0)
            loads["->".join(pair)] = [0.3 * min(planned, link.rate), 0.0]
    state = {
        "switches": {s.name: switch_row() for s in fabric.switches},
        "jobs": {"training": job, "waiting": queued},
        "links": loads,
        "members": {f"training {h}": member_row(0, h) for h in workers},
        "packets": {
            s.name: {"training": {"accumulated": 8000.0, "result_sent": 2000.0}} for s in fabric.switches
        },
        "failed": {},
    }
    lines = [
        fabric_line(fabric, RecordingSource.CONTROLLER),
        state_line(START_S, state),
        event_line(START_S, "epoch", "running", job="training", epoch=1),
        event_line(START_S + 1, "job", queued["reason"], job="waiting", epoch=0),
    ]
    full = "->".join(FULL_LINK)
    for second in range(1, SECONDS + 1):
        at, changes = START_S + second, {}
        changes["members"] = {
            f"training {h}": member_row(second, h, slow=second >= 50 and h == workers[2]) for h in workers
        }
        if second == FULL_AT:
            changes["links"] = {full: [loads[full][0], 0.95 * fabric.link(*FULL_LINK).rate - loads[full][0]]}
        if second == LOST_AT:
            changes["links"] = {full: None}
            changes["switches"] = {LOST_SWITCH: switch_row(ready=False)}
            changes["failed"] = {LOST_SWITCH: True}
            lines.append(event_line(at, "elements_failed", f"switch {LOST_SWITCH} is unreachable"))
        if second == MOVED_AT:
            reason = f"moved: switch {LOST_SWITCH} is unreachable"
            changes["jobs"] = {"training": {**job, "epoch": 2, "reason": reason, "trees": left}}
            lines.append(event_line(at, "epoch", reason, job="training", epoch=2))
        if second == 50:
            straggling = {"epoch": 2, "trees": left, "straggler": workers[2]}
            changes["jobs"] = {"training": {**job, **straggling}}
        lines.append(change_line(at, changes))
    return lines
