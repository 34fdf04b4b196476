# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Contents of `netfold controller top`: jobs, trees, switches and links, as values. top_screen.py renders them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from netfold.controller.health.link_loads import planning_load
from netfold.protocol import netfold_pb2 as pb

Cell = tuple[str, str, int, str]
"""Switch, job, tree, verdict."""


@dataclass(frozen=True)
class Snapshot:
    """The controller's status at one time (seconds of a monotonic clock)."""

    at: float
    jobs: tuple[pb.Job, ...]
    status: pb.Status

    @property
    def packets(self) -> dict[Cell, int]:
        return {(t.switch, t.job, t.tree, v): n for t in self.status.trees for v, n in t.packets.items()}


def document(before: Snapshot | None, now: Snapshot) -> dict[str, Any]:
    """All as plain values, for --json; rates are those since `before`."""
    rates = packet_rates(before, now)
    return {
        "jobs": [
            {"name": j.name, "state": pb.JobState.Name(j.state).lower(), "epoch": j.epoch} for j in now.jobs
        ],
        "trees": [
            {
                "switch": s,
                "job": j,
                "tree": t,
                "verdict": v,
                "packets": n,
                "per_second": rates.get((s, j, t, v), 0.0),
            }
            for (s, j, t, v), n in sorted(now.packets.items())
        ],
        "switches": [
            {"name": s.name, "ready": s.ready, "slots_in_use": s.slots_in_use, "slots": s.slots}
            for s in now.status.switches
        ],
        "links": [
            {
                "link": row.link,
                "load": row.planned,
                "capacity": row.capacity,
                "jobs": row.jobs,
                "cross_traffic": row.foreign,
            }
            for row in link_rows(now)
        ],
        "failed_elements": list(now.status.failed_elements),
        "primary": now.status.primary,
    }


@dataclass
class LinkRow:
    """A direction of a link that jobs or cross traffic use, in the fabric's unit. `jobs` and `foreign` are rates of its
    counters if `is_measured`, otherwise 0."""

    link: str
    capacity: float
    planned: float = 0.0
    jobs: float = 0.0
    foreign: float = 0.0
    is_measured: bool = False

    @property
    def full(self) -> float:
        """Rates that jobs were promised, and rates of other traffic."""
        return max(self.planned, self.jobs) + self.foreign


def link_rows(now: Snapshot) -> list[LinkRow]:
    """The fullest first."""
    rows: dict[str, LinkRow] = {}
    for job in now.jobs:
        if job.state not in (pb.INSTALLING, pb.RUNNING) or not job.plan_json:
            continue
        for link, row in json.loads(job.plan_json)["loads"]["links"].items():
            rows.setdefault(link, LinkRow(link, row["capacity"])).planned += row["load"]
    for load in now.status.links:
        link = f"{load.sender}->{load.receiver}"
        if link in rows or planning_load(load.cross_traffic, load.capacity):
            found = rows.setdefault(link, LinkRow(link, load.capacity))
            found.jobs, found.foreign, found.is_measured = load.jobs, load.cross_traffic, True
    return sorted(rows.values(), key=lambda r: (-r.full / r.capacity, r.link))


def connected_members(job: pb.Job) -> str:
    """Connected members of those that the job needs: "3/4". Of a sandbox none is a worker."""
    if job.sandbox:
        return "sandbox"
    needed = [m for m in job.members if not (m.unused or m.left)]
    return f"{sum(m.connected for m in needed)}/{len(needed)}"


def packet_rates(before: Snapshot | None, now: Snapshot) -> dict[Cell, float]:
    """Packets a second since `before`; empty without it."""
    if before is None or now.at <= before.at:
        return {}
    earlier = before.packets
    return {c: max(0, n - earlier.get(c, 0)) / (now.at - before.at) for c, n in now.packets.items()}
