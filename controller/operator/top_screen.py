# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold controller top` in a terminal: four tables in as many lines as it has."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from netfold.controller.operator.top import LinkRow, Snapshot, connected_members, link_rows, packet_rates
from netfold.protocol import netfold_pb2 as pb

BAR_WIDTH = 10
Row = tuple[RenderableType, ...]


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
