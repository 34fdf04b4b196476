# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which of what the paper does not say decides how much the ring costs short flows: one assumption after the other is
changed, on 128 servers at a load of 0.8, and ring and PANAMA are put beside each other."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from rich.table import Table

from netfold.experiments.panama import SHORT, Point
from netfold.experiments.panama_rows import Row, rows_of
from netfold.simulator.scenario import Transport
from netfold.simulator.schemes.catalog import Name
from netfold.simulator.workloads.traffic import Placement

BASE = Point(Name.RING, 0.8, k=8, workers=16, seconds=1.0, replications=6)
VARIANTS: dict[str, dict[str, Any]] = {
    "as in the sweep, on 128 servers": {},
    "10 Gbit/s": {"gbit": 10.0},
    "100 Gbit/s": {"gbit": 100.0},
    "other flows 5 %": {"background": 0.05},
    "other flows 40 %": {"background": 0.4},
    "jobs of 64 workers": {"workers": 64},
    "jobs in racks": {"placement": Placement.RACK},
    "PANAMA: each tree at its own pace": {"in_step": False},
    "ring: each connection by itself": {"ring_in_step": False},
    "ring: 4 connections between two": {"parallel": 4},
    "ring: 8": {"parallel": 8},
    "ring: 16": {"parallel": 16},
    "ring: 64": {"parallel": 64},
    "ring: CUBIC, ports hold 1 MB": {"ring_transport": Transport.CUBIC, "queue_bytes": 1_000_000},
    "ring: CUBIC, ports hold 4 MB": {"ring_transport": Transport.CUBIC, "queue_bytes": 4_000_000},
    "the other flows too": {
        "ring_transport": Transport.CUBIC,
        "transport": Transport.CUBIC,
        "queue_bytes": 4_000_000,
    },
    "gradients in an open loop": {"open_loop": True},
    "that, and a load of 0.3": {"open_loop": True, "load": 0.3},
}


Pair = tuple[str, Row, Row]
"""What was changed, the ring, and PANAMA."""


def variants(seed: int = 0) -> list[Point]:
    """Ring and PANAMA of each, in turn."""
    return [
        replace(BASE, seed=seed, scheme=scheme, **changed)
        for changed in VARIANTS.values()
        for scheme in (Name.RING, Name.PANAMA)
    ]


def pairs(found: Sequence[dict[str, Any]]) -> list[Pair]:
    """`found`: results of `variants`."""
    rows = [rows_of(found[i : i + 2]) for i in range(0, len(found), 2)]
    return [(name, ring, panama) for name, (ring, panama) in zip(VARIANTS, rows, strict=True)]


def document(rows: Sequence[Pair]) -> str:
    """All values as JSON."""
    return json.dumps(
        [{"what": name, "ring": asdict(r), "panama": asdict(p)} for name, r, p in rows], indent=2
    )


def table(rows: Sequence[Pair]) -> Table:
    shown = Table(title="one assumption changed: ring over PANAMA (95 % interval)")
    shown.add_column("what")
    for name in ("p99, ms: ring", "PANAMA", *(f"up to {size / 1e6:g} MB" for size in SHORT), "large jobs"):
        shown.add_column(name, justify="right")
    for name, ring, panama in rows:
        gains = [_shown(ring.p99_gain_by_size[str(size)]) for size in SHORT]
        large = "-" if ring.large_gain is None else f"{ring.large_gain:.2f}"
        shown.add_row(name, f"{1e3 * ring.p99_s:.3g}", f"{1e3 * panama.p99_s:.3g}", *gains, large)
    return shown


def _shown(gain: tuple[float, tuple[float, float]]) -> str:
    value, (low, high) = gain
    return f"{value:.2f} ({low:.2f}-{high:.2f})"


def table_of(rows: Sequence[Pair]) -> str:
    """As CSV, a line for each variant and size of flows that counts as short."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("what", "short_bytes", "ring_p99_s", "panama_p99_s", "gain", "gain_low", "gain_high"))
    for name, ring, panama in rows:
        for size in map(str, SHORT):
            gain, interval = ring.p99_gain_by_size[size]
            writer.writerow((name, size, ring.p99_by_size[size], panama.p99_by_size[size], gain, *interval))
    return text.getvalue()
