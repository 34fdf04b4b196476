# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Shares of a link between a job and TCP flows or another job, and completion times of short flows beside a job."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from netfold.controller.drawing.chart import legend, reference
from netfold.controller.drawing.palette import BLUE, VERMILION
from netfold.controller.drawing.plot import Plot
from netfold.evaluation.core.command import Quick
from netfold.evaluation.core.experiment import Column, Experiment, Notify, table
from netfold.evaluation.core.progress import one_by_one
from netfold.evaluation.testbed.fairness import mininet, shares, short_flows
from netfold.evaluation.testbed.fairness.shares import SharesRow
from netfold.evaluation.testbed.fairness.short_flows import ShortFlowsRow
from netfold.evaluation.testbed.shared_link import DATA_CENTER, TESTBED, EndlessJob, SharedLink, shortened
from netfold.simulator.scenario import TcpVariant
from netfold.traffic.congestion import Congestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = 4
"""Number of panels in a row of the plot."""

SMOOTHED = 10
"""Samples of a moving mean in the plot."""

FairnessRow = SharesRow | ShortFlowsRow


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


SHARES_COLUMNS = (
    Column[SharesRow]("link", lambda r: r.link, is_text=True),
    Column[SharesRow]("beside", lambda r: r.against, is_text=True),
    Column[SharesRow]("flows", lambda r: r.flows),
    Column[SharesRow]("a job", lambda r: _mean(r.shares[: r.jobs]), ".2f"),
    Column[SharesRow]("a flow", lambda r: _mean(r.shares[r.jobs :]), ".2f"),
    Column[SharesRow]("Jain", lambda r: r.jain, ".3f"),
    Column[SharesRow]("min share", lambda r: r.min_share, ".2f"),
)
SHORT_FLOWS_COLUMNS = (
    Column[ShortFlowsRow]("link", lambda r: r.link, is_text=True),
    Column[ShortFlowsRow]("TCP", lambda r: r.transport, is_text=True),
    Column[ShortFlowsRow]("beside", lambda r: r.beside, is_text=True),
    Column[ShortFlowsRow]("flows", lambda r: r.flows),
    Column[ShortFlowsRow]("incomplete", lambda r: r.unfinished),
    Column[ShortFlowsRow]("p50 ms", lambda r: r.p50_ms, ".3g"),
    Column[ShortFlowsRow]("p99 ms", lambda r: r.p99_ms, ".3g"),
)


@dataclass(frozen=True)
class Fairness(Experiment[FairnessRow]):
    """A job beside TCP flows on one link, and beside another job; short flows beside a job.

    Jain's index is 1 where all shares are equal. "min share": the smallest share, relative to a fair one."""

    name = "measure-fairness"
    in_mininet: Annotated[
        bool,
        typer.Option("--testbed", help="In Mininet with this kernel's TCP; default: at the packet level."),
    ] = False
    quick: Quick = False
    mbps: Annotated[float, typer.Option(min=1, help="In Mininet, rate of the link.")] = mininet.MBPS
    seconds: Annotated[float | None, typer.Option(min=2, help="In Mininet, for each case.")] = None

    @property
    def needs_namespaces(self) -> bool:
        return self.in_mininet

    def rows(self, notify: Notify) -> Iterator[FairnessRow]:
        if not self.in_mininet:
            return self._simulated(notify)
        cases = mininet.QUICK if self.quick else mininet.CASES
        return mininet.measured(self.mbps, self.seconds or (8.0 if self.quick else 20.0), cases, notify)

    def tables(self, rows: Sequence[FairnessRow]) -> Iterable[Table]:
        own, short = _split(rows)
        idle = {(r.link, r.transport): r.p99_ms for r in short if r.beside == "nothing"}

        def of_idle(row: ShortFlowsRow) -> float:
            return row.p99_ms / idle.get((row.link, row.transport), math.nan)

        columns = (*SHORT_FLOWS_COLUMNS, Column[ShortFlowsRow]("of idle", of_idle, ".1f"))
        yield table("Shares of one link, of its rate on the wire", SHARES_COLUMNS, own)
        yield table("Completion of flows of 20 kB, and p99 relative to an idle network", columns, short)

    def document(self, rows: Sequence[FairnessRow]) -> dict[str, Any]:
        own, short = _split(rows)
        return {"shares": [r.to_dict() for r in own], "short_flows": [r.to_dict() for r in short]}

    def plots(self, rows: Sequence[FairnessRow]) -> Iterable[Plot]:
        own, short = _split(rows)
        lines = math.ceil(len(own) / PANELS)
        size = (3.2 * PANELS + 1.5, 2.3 * lines + 0.8)
        return [
            Plot(lambda figure: _draw_shares(figure, own), size),
            Plot(lambda figure: _draw_short_flows(figure, short), suffix="short-flows"),
        ]

    def _simulated(self, notify: Notify) -> Iterator[FairnessRow]:
        job, other = EndlessJob(), EndlessJob(workers=("w3", "w4"))
        long = list(product(TcpVariant, (1,) if self.quick else (1, 2, 4)))
        brief = list(
            product(
                (TcpVariant.CUBIC, TcpVariant.CUBIC_ECN, TcpVariant.DCTCP),
                (None, job, EndlessJob(Congestion.FIXED)),
            )
        )
        for link in (shortened(TESTBED),) if self.quick else (TESTBED, DATA_CENTER):

            def label(case: tuple[TcpVariant, object], link: SharedLink = link) -> str:
                return f"{link.name}: {case[0]}"

            for transport, flows in one_by_one(long, label, notify):
                yield shares.simulated(link, transport, flows, [job])
            yield shares.simulated(link, TcpVariant.CUBIC, 0, [job, other])
            for transport, beside in one_by_one(brief, label, notify):
                yield short_flows.simulated(link, transport, beside)


def _split(rows: Sequence[FairnessRow]) -> tuple[list[SharesRow], list[ShortFlowsRow]]:
    own = [r for r in rows if isinstance(r, SharesRow)]
    return own, [r for r in rows if isinstance(r, ShortFlowsRow)]


def _draw_shares(figure: Figure, rows: Sequence[SharesRow]) -> None:
    """A panel for each case: each job's and each flow's share over time, smoothed: a job's bucket counts when it is
    reduced."""
    lines = math.ceil(len(rows) / PANELS)
    axes = list(figure.subplots(lines, PANELS, squeeze=False, sharey=True).flat)
    for axis, row in zip(axes, rows, strict=False):
        for n, values in enumerate(zip(*row.series, strict=True)):
            is_job = n < row.jobs
            label, color = ("job", BLUE) if is_job else ("TCP flow", VERMILION)
            style = "-" if is_job else "--"
            shown = moving_mean(values)
            axis.plot(row.times[: len(shown)], shown, style, label=label, color=color, linewidth=1.2)
        axis.axhline(1 / len(row.shares), label="fair share", **reference(linestyle=":"))
        beside = f"{row.flows} x {row.against}" if row.flows else "another job"
        axis.set_title(f"{row.link}\njob and {beside}")
        axis.set_ylim(0, 1)
    for axis in axes[len(rows) :]:
        axis.set_visible(False)
    figure.supxlabel("seconds")
    figure.supylabel("share of the link's rate")
    legend(figure, axes[: len(rows)])


def moving_mean(values: Sequence[float]) -> list[float]:
    """Over SMOOTHED values."""
    count = min(SMOOTHED, len(values))
    return [sum(values[i : i + count]) / count for i in range(len(values) - count + 1)]


def _draw_short_flows(figure: Figure, rows: Sequence[ShortFlowsRow]) -> None:
    """A group of bars for each link and transport. Bars with incomplete flows are cut off at three times the others."""
    axis = figure.subplots()
    groups = list(dict.fromkeys((r.link, r.transport) for r in rows))
    kinds = list(dict.fromkeys(r.beside for r in rows))
    width = 0.8 / max(1, len(kinds))
    finite = [r.p99_ms for r in rows if math.isfinite(r.p99_ms)] or [1.0]
    top = 3 * max(finite)
    for number, beside in enumerate(kinds):
        own = [r for r in rows if r.beside == beside]
        x = [groups.index((r.link, r.transport)) + (number - (len(kinds) - 1) / 2) * width for r in own]
        heights = [min(r.p99_ms, top) for r in own]
        axis.bar(x, heights, width, label=f"beside {beside}", zorder=2)
        for at, row, height in zip(x, own, heights, strict=True):
            note = f"{row.unfinished} of {row.flows}\nincomplete" if row.unfinished else f"{row.p99_ms:.3g}"
            axis.annotate(note, (at, height), ha="center", va="bottom", fontsize=7)
    axis.set_xticks(range(len(groups)), [f"{transport}\n{link}" for link, transport in groups], fontsize=7)
    axis.set(
        ylim=(0, 1.15 * max(min(r.p99_ms, top) for r in rows)),
        ylabel="p99 completion time, ms",
        title="Flows of 20 kB",
    )
    legend(figure, [axis])
