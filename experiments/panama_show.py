# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tables, pictures, JSON and CSV of PANAMA's simulation."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from rich.table import Table

from netfold.experiments.panama import OURS, SCHEMES
from netfold.experiments.panama_rows import Claim, Row
from netfold.simulator.schemes.catalog import Name

LABELS = {
    Name.RING: "ring all-reduce",
    Name.SWITCHML_BALANCED: "SwitchML, load balanced",
    Name.PANAMA: "PANAMA",
    Name.IDEAL: "ideal",
}
COLORS = {
    Name.RING: "tab:red",
    Name.SWITCHML_BALANCED: "tab:green",
    Name.PANAMA: "tab:blue",
    Name.IDEAL: "tab:gray",
}
PUBLISHED = (
    "Published are the order of the curves (ring above SwitchML above PANAMA above ideal, slide 20) and two factors, "
    "4.5 and 1.34; the values of the curves are not."
)


def document(rows: Sequence[Row], claims: Sequence[Claim]) -> str:
    """All values as JSON."""
    return json.dumps(
        {
            "paper": "panama",
            "rows": [asdict(r) for r in rows],
            "claims": [{**asdict(c), "verdict": c.verdict} for c in claims],
            "ours": OURS,
            "published": PUBLISHED,
        },
        indent=2,
    )


def table_of(rows: Sequence[Row]) -> str:
    """The rows as CSV; an interval is two columns."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ("scheme", "load", "p99_s", "p99_low_s", "p99_high_s", "mean_s", "short_flows", "large_s")
    )
    for r in rows:
        writer.writerow((r.scheme, r.load, r.p99_s, *r.p99_interval, r.mean_s, r.short_flows, r.large_s))
    return text.getvalue()


def curves(rows: Sequence[Row]) -> Table:
    """Each load's 99th percentiles in milliseconds, and what the ring takes over PANAMA."""
    table = Table(title="PANAMA, slide 20: 99 % of the short flows are over within, ms (95 % interval)")
    table.add_column("load", justify="right")
    for scheme in SCHEMES:
        table.add_column(LABELS[scheme], justify="right")
    for name in ("ring / PANAMA", "SwitchML / PANAMA", "large jobs: ring / PANAMA"):
        table.add_column(name, justify="right")
    at = {(r.load, r.scheme): r for r in rows}
    for load in sorted({r.load for r in rows}):
        own = [at[load, s] for s in SCHEMES]
        cells = [
            f"{1e3 * r.p99_s:.3g} ({1e3 * r.p99_interval[0]:.3g}-{1e3 * r.p99_interval[1]:.3g})" for r in own
        ]
        gains = [_gain(r.p99_gain, r.p99_gain_interval) for r in own[:2]]
        table.add_row(f"{load:.2f}", *cells, *gains, _gain(own[0].large_gain, own[0].large_gain_interval))
    return table


def _gain(gain: float | None, interval: tuple[float, float] | None) -> str:
    return "-" if gain is None or interval is None else f"{gain:.2f} ({interval[0]:.2f}-{interval[1]:.2f})"


def verdict(claim: Claim) -> str:
    low, high = claim.interval
    return (
        f"{claim.what}, ring over PANAMA: published up to {claim.published:g}, ours up to {claim.ours:.2f} "
        f"({low:.2f} to {high:.2f}) at a load of {claim.load:.2f}: {claim.verdict}"
    )


def plot(rows: Sequence[Row], file: Path) -> None:
    """The four curves with their intervals, and the factors over PANAMA beside the published ones."""
    chart, (left, right) = plt.subplots(1, 2, figsize=(12.0, 4.8), layout="constrained")
    for scheme in SCHEMES:
        own = sorted((r for r in rows if r.scheme == scheme), key=lambda r: r.load)
        x = [r.load for r in own]
        left.plot(x, [r.p99_s for r in own], "o-", ms=3, color=COLORS[scheme], label=LABELS[scheme])
        bounds = [[r.p99_interval[i] for r in own] for i in range(2)]
        left.fill_between(x, *bounds, color=COLORS[scheme], alpha=0.2, lw=0)
        if scheme in (Name.RING, Name.SWITCHML_BALANCED):
            gains = [r.p99_gain for r in own]
            right.plot(
                x, gains, "o-", ms=3, color=COLORS[scheme], label=f"{LABELS[scheme]}: short flows' p99"
            )
        if scheme is Name.RING:
            large = [(r.load, r.large_gain) for r in own if r.large_gain is not None]
            right.plot(
                *zip(*large, strict=True), "s:", ms=3, color="tab:purple", label="ring: large jobs' iteration"
            )
    right.axhline(4.5, color="black", ls="--", lw=1, label="published, p99: up to 4.5")
    right.axhline(1.34, color="tab:purple", ls="--", lw=1, label="published, training: up to 1.34")
    left.set_yscale("log")
    left.set_ylabel("99 % of the short flows are over within, s")
    right.set_ylabel("times PANAMA's")
    for axes in (left, right):
        axes.set_xlabel("aggregation load")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    chart.savefig(file, dpi=130)
    plt.close(chart)
