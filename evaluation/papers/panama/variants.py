# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""PANAMA's simulation with one assumption changed after the other: ring and PANAMA at one load, on 128 servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table

from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.papers.panama.bootstrap import Interval
from netfold.evaluation.papers.panama.rows import LoadRow, rows_of
from netfold.evaluation.papers.panama.simulation import SHORT, LoadPoint, point
from netfold.simulator.command.options import Seed, SweepOptions
from netfold.simulator.scenario import TcpVariant
from netfold.simulator.schemes.catalog import SchemeName
from netfold.simulator.workloads.traffic import WorkerPlacement

BASE = LoadPoint(SchemeName.RING, 0.8, k=8, workers=16, seconds=1.0, replications=6)
VARIANTS: dict[str, dict[str, Any]] = {
    "as in the sweep, on 128 servers": {},
    "10 Gbit/s": {"gbit": 10.0},
    "100 Gbit/s": {"gbit": 100.0},
    "other flows 5 %": {"background": 0.05},
    "other flows 40 %": {"background": 0.4},
    "jobs of 64 workers": {"workers": 64},
    "jobs in racks": {"placement": WorkerPlacement.RACK},
    "PANAMA: each tree at its own pace": {"lockstep": False},
    "ring: each connection by itself": {"ring_lockstep": False},
    "ring: 4 connections between two": {"parallel": 4},
    "ring: 8": {"parallel": 8},
    "ring: 16": {"parallel": 16},
    "ring: 64": {"parallel": 64},
    "ring: CUBIC, ports hold 1 MB": {"ring_transport": TcpVariant.CUBIC, "queue_bytes": 1_000_000},
    "ring: CUBIC, ports hold 4 MB": {"ring_transport": TcpVariant.CUBIC, "queue_bytes": 4_000_000},
    "the other flows too": {
        "ring_transport": TcpVariant.CUBIC,
        "transport": TcpVariant.CUBIC,
        "queue_bytes": 4_000_000,
    },
    "gradients in an open loop": {"open_loop": True},
    "that, and a load of 0.3": {"open_loop": True, "load": 0.3},
}


@dataclass(frozen=True)
class VariantRow(Row):
    """`what` names the changed assumption."""

    what: str
    ring: LoadRow
    panama: LoadRow


@dataclass(frozen=True)
class PanamaVariants(SweepOptions, Experiment[VariantRow]):
    """PANAMA with one assumption changed after the other: ring beside PANAMA on 128 servers."""

    name = "reproduce-panama-vary"
    seed: Seed = 0

    def rows(self, notify: Notify) -> Iterator[VariantRow]:
        """Raises SweepError."""
        results = list(self.sweep(point, self.points(), "simulating PANAMA's cluster"))
        for what, ring, panama in zip(VARIANTS, results[::2], results[1::2], strict=True):
            yield VariantRow(what, *rows_of([ring, panama]))

    def points(self) -> list[LoadPoint]:
        """Ring and PANAMA of each variant, in turn."""
        return [
            replace(BASE, seed=self.seed, scheme=scheme, **changed)
            for changed in VARIANTS.values()
            for scheme in (SchemeName.RING, SchemeName.PANAMA)
        ]

    def tables(self, rows: Sequence[VariantRow]) -> Iterable[Table]:
        def gain(size: int) -> Column[VariantRow]:
            return Column(f"up to {size / 1e6:g} MB", lambda r: _shown(r.ring.p99_gain_by_size[str(size)]))

        columns = (
            Column[VariantRow]("what", lambda r: r.what, is_text=True),
            Column[VariantRow]("p99, ms: ring", lambda r: 1e3 * r.ring.p99_s, ".3g"),
            Column[VariantRow]("PANAMA", lambda r: 1e3 * r.panama.p99_s, ".3g"),
            *map(gain, SHORT),
            Column[VariantRow]("large jobs", lambda r: r.ring.large_gain, ".2f"),
        )
        return [table("one assumption changed: ring over PANAMA (95 % interval)", columns, rows)]

    def csv_rows(self, rows: Sequence[VariantRow]) -> Sequence[Mapping[str, object]]:
        """A line for each variant and size up to which flows count as short."""
        return [_csv_row(row, str(size)) for row in rows for size in SHORT]


def _csv_row(row: VariantRow, size: str) -> dict[str, object]:
    gain, (low, high) = row.ring.p99_gain_by_size[size]
    return {
        "what": row.what,
        "short_bytes": size,
        "ring_p99_s": row.ring.p99_by_size[size],
        "panama_p99_s": row.panama.p99_by_size[size],
        "gain": gain,
        "gain_low": low,
        "gain_high": high,
    }


def _shown(gain: tuple[float, Interval]) -> str:
    value, (low, high) = gain
    return f"{value:.2f} ({low:.2f}-{high:.2f})"
