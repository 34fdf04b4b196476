# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold controller top`: jobs, trees, switches and links as values, and as four tables in as many lines as a
terminal has."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from netfold.controller.health.link_loads import planning_load
from netfold.protocol import netfold_pb2 as pb

Cell = tuple[str, str, int, str]
"""Switch, job, tree, verdict."""

BAR_WIDTH = 10

Row = tuple[RenderableType, ...]


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


@dataclass(frozen=True)
class Section:
    """A table: `rows` by importance."""

    heads: Sequence[str]
    rows: Sequence[Row]

    def table(self, limit: int) -> Table:
        """Its first `limit` rows; the last of them counts the rest if there are more."""
        table = Table(*self.heads, box=None, expand=True, header_style="bold reverse", padding=(0, 1, 0, 0))
        for column in table.columns:
            column.no_wrap, column.overflow = True, "ellipsis"
        is_cut = len(self.rows) > limit
        for row in self.rows[: max(0, limit - 1) if is_cut else limit]:
            table.add_row(*row)
        if is_cut:
            table.add_row(f"[dim]{len(self.rows) - max(0, limit - 1)} more[/dim]")
        return table


def screen(before: Snapshot | None, now: Snapshot, height: int | None = None) -> Group:
    """All tables, in at most `height` lines (None: all rows); packet rates are those since `before`."""
    sections = [_jobs(now), _links(now), _switches(now), _trees(before, now)]
    notes = _notes(now)
    wants = [len(section.rows) for section in sections]
    limits = wants if height is None else share_lines(height - len(sections) - len(notes), wants)
    tables = [section.table(limit) for section, limit in zip(sections, limits, strict=True)]
    return Group(*notes, *tables)


def share_lines(lines: int, wants: Sequence[int]) -> list[int]:
    """Max-min fair shares of `lines`, at least one for each that wants any."""
    shares = [min(want, 1) for want in wants]
    while sum(shares) < lines and shares != list(wants):
        hungry = [i for i, want in enumerate(wants) if shares[i] < want]
        shares[min(hungry, key=lambda i: shares[i])] += 1
    return shares


def _jobs(now: Snapshot) -> Section:
    heads = ("job", "state", "epoch", "scheme", "rate", "connected", "goodput", "resent")
    return Section(heads, [_job_row(job) for job in now.jobs])


def _job_row(job: pb.Job) -> Row:
    plan = json.loads(job.plan_json) if job.plan_json else {}
    workers = [m for m in job.members if not m.parameter_server]
    goodput = min((m.report.goodput_mbps for m in workers), default=0.0)
    retransmitted, chunks = (
        sum(m.report.retransmits for m in workers),
        sum(m.report.chunks for m in workers),
    )
    return (
        Text(job.name),
        pb.JobState.Name(job.state).lower(),
        str(job.epoch),
        plan.get("algorithm", ""),
        f"{plan['rate']:g} {plan['unit']}" if plan else "",
        connected_members(job),
        f"{goodput:.1f} Mbit/s" if goodput else "",
        f"{retransmitted / chunks:.2%}" if chunks else "",
    )


def _links(now: Snapshot) -> Section:
    heads = ("link", "planned", "jobs", "cross traffic", "load", "")
    return Section(heads, [_link_row(row) for row in link_rows(now)])


def _link_row(row: LinkRow) -> Row:
    load = row.jobs + row.foreign if row.is_measured else row.planned
    bar = ProgressBar(total=row.capacity, completed=min(load, row.capacity), width=BAR_WIDTH)
    measured = (f"{row.jobs:.3g}", f"{row.foreign:.3g}") if row.is_measured else ("", "")
    share = f"{load / row.capacity:.0%}" + ("" if row.is_measured else " planned")
    return row.link, f"{row.planned:g}/{row.capacity:g}", *measured, share, bar


def _switches(now: Snapshot) -> Section:
    rows: list[Row] = []
    for switch in sorted(now.status.switches, key=lambda s: s.ready):  # those that are not ready first
        bar = ProgressBar(total=max(1, switch.slots), completed=switch.slots_in_use, width=BAR_WIDTH)
        ready = "[green]yes[/green]" if switch.ready else "[red]no[/red]"
        used = f"{switch.slots_in_use}/{switch.slots}"
        rows.append((switch.name, ready, used, bar, str(switch.repaired_entries)))
    return Section(("switch", "ready", "slots in use", "", "entries repaired"), rows)


def _trees(before: Snapshot | None, now: Snapshot) -> Section:
    """Rates since `before`; in the first iteration, totals."""
    rates = packet_rates(before, now)
    counts = {cell: f"{rate:.0f}" for cell, rate in rates.items() if rate} if before else now.packets
    cells: dict[tuple[str, int, str], list[str]] = defaultdict(list)
    for switch, job, tree, verdict in sorted(now.packets):
        own = cells[job, tree, switch]
        if count := counts.get((switch, job, tree, verdict)):
            own.append(f"{verdict} {count}")
    what = "packets a second, by verdict" if before else "packets in total, by verdict"
    rows = [
        (job or "(none)", str(tree), switch, "  ".join(own) or "-")
        for (job, tree, switch), own in sorted(cells.items())
    ]
    return Section(("job", "tree", "switch", what), rows)


def _notes(now: Snapshot) -> list[Text]:
    notes = []
    if now.status.failed_elements:
        notes.append(Text("failed: " + ", ".join(now.status.failed_elements), style="red"))
    if not now.status.primary:
        where = now.status.primary_address
        notes.append(Text(f"a standby answers; the primary serves at {where}", style="yellow"))
    return notes
