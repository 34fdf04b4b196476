# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold top`: jobs, trees, switches and the fullest links, live in the terminal."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from netfold.controller.health.cross_traffic import planning_load
from netfold.protocol import netfold_pb2 as pb

LINKS = 10

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


def screen(before: Snapshot | None, now: Snapshot) -> Group:
    """All tables; rates are those since `before`."""
    return Group(
        _jobs(now),
        _trees(before, now),
        _switches(now),
        _links(now),
        *([_failed_elements(now)] if now.status.failed_elements else []),
        *([] if now.status.primary else [_standby(now)]),
    )


def document(before: Snapshot | None, now: Snapshot) -> dict[str, Any]:
    """The same as plain values, for --json."""
    rates = _rates(before, now)
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
            for row in _loads(now)
        ],
        "failed_elements": list(now.status.failed_elements),
        "primary": now.status.primary,
    }


def _jobs(now: Snapshot) -> Table:
    table = Table(
        "job",
        "state",
        "epoch",
        "scheme",
        "rate",
        "connected",
        "goodput",
        "retransmitted",
        title="jobs",
        expand=True,
    )
    for job in now.jobs:
        plan = json.loads(job.plan_json) if job.plan_json else {}
        workers = [m for m in job.members if not m.parameter_server]
        goodput = min((m.report.goodput_mbps for m in workers), default=0.0)
        retransmitted, chunks = (
            sum(m.report.retransmits for m in workers),
            sum(m.report.chunks for m in workers),
        )
        table.add_row(
            job.name,
            pb.JobState.Name(job.state).lower(),
            str(job.epoch),
            plan.get("algorithm", ""),
            f"{plan['rate']:g} {plan['unit']}" if plan else "",
            f"{sum(m.connected for m in job.members)}/{len(job.members)}",
            f"{goodput:.1f} Mbit/s" if goodput else "",
            f"{retransmitted / chunks:.2%}" if chunks else "",
        )
    return table


def _trees(before: Snapshot | None, now: Snapshot) -> Table:
    table = Table("job", "tree", "switch", "packets a second, by verdict", title="trees", expand=True)
    rows: dict[tuple[str, int, str], list[str]] = defaultdict(list)
    rates = _rates(before, now)
    for (switch, job, tree, verdict), count in sorted(now.packets.items()):
        rate = rates.get((switch, job, tree, verdict), 0.0)
        rows[job, tree, switch].append(f"{verdict} {rate:.0f}" if rate else f"[dim]{verdict} {count}[/dim]")
    for (job, tree, switch), cells in sorted(rows.items()):
        table.add_row(job or "(none)", str(tree), switch, "  ".join(cells))
    return table


def _switches(now: Snapshot) -> Table:
    table = Table("switch", "ready", "slots", "", "repaired", title="switches", expand=True)
    for switch in now.status.switches:
        bar = ProgressBar(total=max(1, switch.slots), completed=switch.slots_in_use, width=20)
        ready = "[green]yes[/green]" if switch.ready else "[red]no[/red]"
        used = f"{switch.slots_in_use}/{switch.slots}"
        table.add_row(switch.name, ready, used, bar, str(switch.repaired_entries))
    return table


def _links(now: Snapshot) -> Table:
    table = Table("link", "planned", "jobs", "cross traffic", "", title="fullest links", expand=True)
    for row in _loads(now)[:LINKS]:
        bar = ProgressBar(total=row.capacity, completed=min(row.full, row.capacity), width=20)
        measured = (f"{row.jobs:.3g}", f"{row.foreign:.3g}") if row.known else ("", "")
        table.add_row(row.link, f"{row.planned:g}/{row.capacity:g}", *measured, bar)
    return table


@dataclass
class LinkRow:
    """A link that jobs use or others send over: what is planned on it, and what is measured if that is `known`."""

    link: str
    capacity: float
    planned: float = 0.0
    jobs: float = 0.0
    foreign: float = 0.0
    known: bool = False

    @property
    def full(self) -> float:
        """What jobs were promised, and what others send."""
        return max(self.planned, self.jobs) + self.foreign


def _loads(now: Snapshot) -> list[LinkRow]:
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
            found.jobs, found.foreign, found.known = load.jobs, load.cross_traffic, True
    return sorted(rows.values(), key=lambda r: (-r.full / r.capacity, r.link))


def _failed_elements(now: Snapshot) -> Text:
    return Text("failed: " + ", ".join(now.status.failed_elements), style="red")


def _standby(now: Snapshot) -> Text:
    return Text(f"a standby answers; the primary serves at {now.status.primary_address}", style="yellow")


def _rates(before: Snapshot | None, now: Snapshot) -> dict[Cell, float]:
    if before is None or now.at <= before.at:
        return {}
    earlier = before.packets
    return {c: max(0, n - earlier.get(c, 0)) / (now.at - before.at) for c, n in now.packets.items()}
