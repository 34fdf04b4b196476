# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""PANAMA (MLSys 2021), slides 19 and 20: completion of short flows beside training jobs, by scheme and load."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from netfold.controller.drawing.chart import legend, log_y
from netfold.controller.drawing.palette import BLUE, GREEN, MUTED, PURPLE, TEXT, VERMILION
from netfold.controller.drawing.plot import Plot
from netfold.evaluation.core.experiment import Column, Experiment, Notify, finite, table
from netfold.evaluation.papers.panama import simulation
from netfold.evaluation.papers.panama.bootstrap import Interval
from netfold.evaluation.papers.panama.rows import (
    FLOWS_CLAIM,
    TRAINING_CLAIM,
    Claim,
    LoadRow,
    claims_of,
    rows_of,
)
from netfold.evaluation.papers.panama.simulation import ASSUMPTIONS, SCHEMES
from netfold.simulator.command.options import Seed, SweepOptions
from netfold.simulator.schemes.catalog import SchemeName

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    SchemeName.RING: "ring all-reduce",
    SchemeName.SWITCHML_BALANCED: "SwitchML, load balanced",
    SchemeName.PANAMA: "PANAMA",
    SchemeName.IDEAL: "ideal",
}
STYLES: dict[SchemeName, dict[str, Any]] = {
    SchemeName.RING: {"color": VERMILION, "marker": "s"},
    SchemeName.SWITCHML_BALANCED: {"color": GREEN, "marker": "D"},
    SchemeName.PANAMA: {"color": BLUE, "marker": "o"},
    SchemeName.IDEAL: {"color": MUTED, "marker": "v"},
}
PUBLISHED = (
    "Published are the order of the curves (ring above SwitchML above PANAMA above ideal, slide 20) and two factors, "
    "4.5 and 1.34; the values of the curves are not."
)


@dataclass(frozen=True)
class Panama(SweepOptions, Experiment[LoadRow]):
    """PANAMA (MLSys 2021): completion of short flows beside training jobs and the training itself, by four schemes and
    the jobs' load."""

    name = "reproduce-panama"
    seed: Seed = 0
    quick: Annotated[bool, typer.Option("--quick", help="Five loads, and 128 servers in place of 1,024.")] = (
        False
    )

    def rows(self, notify: Notify) -> Iterator[LoadRow]:
        """Raises SweepError."""
        points = simulation.points(self.seed, self.quick)
        yield from rows_of(list(self.sweep(simulation.point, points, "simulating PANAMA's cluster")))

    def tables(self, rows: Sequence[LoadRow]) -> Iterable[Table]:
        by_load: dict[float, dict[str, LoadRow]] = {}
        for row in rows:
            by_load.setdefault(row.load, {})[row.scheme] = row
        yield table(
            "PANAMA, slide 20: 99 % of the short flows are complete within, ms (95 % interval)",
            (
                Column[dict[str, LoadRow]]("load", lambda own: own[SchemeName.RING].load, ".2f"),
                *map(_p99_column, SCHEMES),
                _gain_column("ring / PANAMA", SchemeName.RING),
                _gain_column("SwitchML / PANAMA", SchemeName.SWITCHML_BALANCED),
                Column[dict[str, LoadRow]](
                    "large jobs: ring / PANAMA",
                    lambda own: _gain(
                        own[SchemeName.RING].large_gain, own[SchemeName.RING].large_gain_interval
                    ),
                ),
            ),
            [by_load[load] for load in sorted(by_load)],
        )
        columns = (
            Column[Claim]("ring over PANAMA", lambda c: c.what, is_text=True),
            Column[Claim]("published up to", lambda c: c.published, "g"),
            Column[Claim]("ours up to", lambda c: _gain(c.ours, c.interval)),
            Column[Claim]("at a load of", lambda c: c.load, ".2f"),
            Column[Claim]("verdict", lambda c: c.verdict, is_text=True),
        )
        yield table("The paper's two factors (95 % interval)", columns, claims_of(rows))

    @property
    def notes(self) -> Sequence[str]:
        return (PUBLISHED, *ASSUMPTIONS)

    def document(self, rows: Sequence[LoadRow]) -> dict[str, Any]:
        return {
            "paper": "panama",
            **super().document(rows),
            "claims": [{**finite(asdict(c)), "verdict": c.verdict} for c in claims_of(rows)],
            "assumptions": ASSUMPTIONS,
            "published": PUBLISHED,
        }

    def csv_rows(self, rows: Sequence[LoadRow]) -> Sequence[Mapping[str, object]]:
        return [
            {
                "scheme": r.scheme,
                "load": r.load,
                "p99_s": r.p99_s,
                "p99_low_s": r.p99_interval[0],
                "p99_high_s": r.p99_interval[1],
                "mean_s": r.mean_s,
                "short_flows": r.short_flows,
                "large_s": r.large_s,
            }
            for r in rows
        ]

    def plots(self, rows: Sequence[LoadRow]) -> Iterable[Plot]:
        return [Plot(lambda figure: _draw(figure, rows), (13.0, 4.8))]


def _p99_column(scheme: SchemeName) -> Column[dict[str, LoadRow]]:
    def cell(own: dict[str, LoadRow]) -> str:
        row = own[scheme]
        low, high = row.p99_interval
        return f"{1e3 * row.p99_s:.3g} ({1e3 * low:.3g}-{1e3 * high:.3g})"

    return Column(LABELS[scheme], cell)


def _gain_column(head: str, scheme: SchemeName) -> Column[dict[str, LoadRow]]:
    return Column(head, lambda own: _gain(own[scheme].p99_gain, own[scheme].p99_gain_interval))


def _gain(gain: float | None, interval: Interval | None) -> str | None:
    return None if gain is None or interval is None else f"{gain:.2f} ({interval[0]:.2f}-{interval[1]:.2f})"


def _draw(figure: Figure, rows: Sequence[LoadRow]) -> None:
    """The four curves with their intervals, and the factors over PANAMA beside the published ones."""
    times, factors = figure.subplots(1, 2)
    for scheme in SCHEMES:
        own = sorted((r for r in rows if r.scheme == scheme), key=lambda r: r.load)
        loads, style = [r.load for r in own], {"markersize": 4, **STYLES[scheme]}
        times.plot(loads, [r.p99_s for r in own], label=LABELS[scheme], **style)
        bounds = [[r.p99_interval[i] for r in own] for i in range(2)]
        times.fill_between(loads, *bounds, color=style["color"], alpha=0.2, lw=0)
        if scheme in (SchemeName.RING, SchemeName.SWITCHML_BALANCED):
            factors.plot(loads, [r.p99_gain for r in own], label=LABELS[scheme], **style)
        if scheme is SchemeName.RING:
            large = [(r.load, r.large_gain) for r in own if r.large_gain is not None]
            training = {"color": PURPLE, "marker": "P", "linestyle": ":", "markersize": 4}
            factors.plot(*zip(*large, strict=True), label="ring: large jobs' iteration", **training)
    factors.axhline(FLOWS_CLAIM, color=TEXT, ls="--", lw=1, label=f"published, p99: up to {FLOWS_CLAIM:g}")
    factors.axhline(
        TRAINING_CLAIM, color=PURPLE, ls="--", lw=1, label=f"published, training: up to {TRAINING_CLAIM:g}"
    )
    log_y(times)
    times.set(ylabel="p99 completion time of short flows, s", xlabel="aggregation load")
    factors.set(ylabel="times PANAMA's value", xlabel="aggregation load")
    legend(figure, (times, factors))
