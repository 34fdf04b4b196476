# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Planned rates of several schemes on a fabric, and the rates that their workers reach in Mininet.

The schemes run one after the other on the same network. Several jobs divide the workers and the parameter servers among
them and run at the same time; a later job is planned on the residual capacity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.table import Table

from netfold.controller.jobs.lookup import default_job
from netfold.evaluation.core.command import Lanes, Target, Words, words
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, packet_bytes
from netfold.testbed.errors import RunError
from netfold.testbed.testbed import Testbed
from netfold.topologies.cli import FabricArgument


@dataclass(frozen=True)
class PlanRow(Row):
    """One job under one scheme. Rates are those of a worker: `rate` and `published` in the fabric's unit, `..._mbps` on
    the wire with headers. `iteration_ms`: median all-reduce of one array at the slowest worker."""

    scheme: str
    job: str
    rate: float
    unit: str
    published: float | None
    planned_mbps: float
    measured_mbps: float
    iteration_ms: float
    wrong_elements: int
    retransmits: int

    @property
    def of_plan(self) -> float:
        return self.measured_mbps / self.planned_mbps


COLUMNS = (
    Column[PlanRow]("scheme", lambda r: r.scheme, is_text=True),
    Column[PlanRow]("job", lambda r: r.job, is_text=True),
    Column[PlanRow]("plan", lambda r: f"{r.rate:.4g} {r.unit}"),
    Column[PlanRow]("published", lambda r: r.published, "g"),
    Column[PlanRow]("plan Mbit/s", lambda r: r.planned_mbps, ".2f"),
    Column[PlanRow]("measured", lambda r: r.measured_mbps, ".2f"),
    Column[PlanRow]("of plan", lambda r: r.of_plan, ".1%"),
    Column[PlanRow]("all-reduce ms", lambda r: r.iteration_ms, ".1f"),
)


@dataclass(frozen=True)
class Plans(Experiment[PlanRow]):
    """Run each scheme's plan on a fabric in Mininet: planned and measured rates side by side.

    Choose a scale at which processors are no limit, or "of plan" shows the machine, and arrays that take seconds:
    on two cores some 10 Mbit/s for each of eight workers where no switch aggregates (grid-fig1: 0.003 to 0.01,
    inart-fig1: 3, leaf-spine-4x2 with two jobs: 0.03)."""

    name = "measure-plans"
    needs_namespaces = True
    fabric: FabricArgument
    schemes: Annotated[Words, words("Planners to compare.")] = Words(("none", "atp", "grid", "inart"))
    base: Annotated[str, typer.Option(help="Scheme that reductions of time refer to.")] = "none"
    target: Target = "auto"
    lanes: Lanes = 256
    scale: Annotated[
        float | None,
        typer.Option(
            help="Rates on the wire over those of the fabric's file: 0.01 makes 30 Mbit/s of 3 Gbit/s."
        ),
    ] = None
    size: Annotated[int, typer.Option(min=4, help="Bytes of the arrays.")] = 1 << 20
    iterations: Annotated[int, typer.Option(min=1, help="All-reduces of each job.")] = 4
    jobs: Annotated[
        int, typer.Option(min=1, help="Jobs that run at the same time and divide the fabric's workers.")
    ] = 1
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds for the jobs of one scheme.")
    ] = 300.0

    def rows(self, notify: Notify) -> Iterator[PlanRow]:
        """A row for each scheme and job. Raises RunError, netfold.testbed.network.errors.NetworkError."""
        testbed = Testbed(self.fabric, target=self.target, lanes=self.lanes, scale=self.scale, on_step=notify)
        published, shares = self._divide(testbed)
        with testbed:
            for scheme in self.schemes:
                yield from self._measure(testbed, scheme, shares, published.get(scheme), notify)

    def tables(self, rows: Sequence[PlanRow]) -> Iterable[Table]:
        saved = reductions(rows, self.base)
        reduction = Column[PlanRow](f"time saved over {self.base}", lambda r: saved.get(r.scheme), ".1%")
        title = f"{self.fabric}: planned and measured rate of a worker"
        return [table(title, (*COLUMNS, reduction), rows)]

    def has_failed(self, rows: Sequence[PlanRow]) -> bool:
        return any(r.wrong_elements for r in rows)

    def document(self, rows: Sequence[PlanRow]) -> dict[str, Any]:
        return {**super().document(rows), "reduction": reductions(rows, self.base), "base": self.base}

    def _divide(self, testbed: Testbed) -> tuple[Mapping[str, float], list[dict[str, Any]]]:
        """Published rates by scheme, and the keys of each job's file: the fabric's example job, or its share of it."""
        fabric = testbed.fabric
        job = default_job(fabric)
        workers, servers = job.spec.workers, job.spec.parameter_servers
        if self.jobs > min(len(workers), max(1, len(servers))):
            raise RunError(
                f"{fabric.name} has {len(workers)} workers and {len(servers)} servers: too few for {self.jobs} jobs"
            )
        options = dict(job.spec.options)
        return job.published, [
            {
                "workers": workers[n :: self.jobs],
                "parameter_servers": list(servers[n :: self.jobs]),
                "options": options,
            }
            for n in range(self.jobs)
        ]

    def _measure(
        self,
        testbed: Testbed,
        scheme: str,
        shares: Sequence[Mapping[str, Any]],
        published: float | None,
        notify: Notify,
    ) -> Iterator[PlanRow]:
        flags = ["--workload", "sizes", "--sizes", self.size, "--iterations", self.iterations]
        running = []
        for number, share in enumerate(shares, start=1):
            notify(f"{scheme}: job {number} of {len(shares)}")
            keys = {**share, "scheme": scheme, "elements": self.size // 4}
            running.append(testbed.submit(f"{scheme}-{number}", flags, keys.pop("workers"), **keys))
        mbps_per_unit = testbed.fabric.unit.bits_per_second * (self.scale or 1.0) / 1e6
        for job in running:
            results = list(job.result(self.timeout_s).values())
            yield PlanRow(
                scheme=scheme,
                job=job.name,
                rate=job.plan.rate,
                unit=job.plan.unit,
                published=published,
                planned_mbps=job.plan.rate * mbps_per_unit,
                measured_mbps=min(r["algbw_mbps"] for r in results) * wire_factor(self.lanes),
                iteration_ms=max(r["allreduce_ms_p50"] for r in results),
                wrong_elements=sum(r["wrong_elements"] for r in results),
                retransmits=sum(r["retransmits"] for r in results),
            )


def wire_factor(lanes: int) -> float:
    """Bytes on the wire for each byte of payload."""
    return (packet_bytes(lanes) + FRAME_OVERHEAD_BYTES) / (4 * lanes)


def reductions(rows: Sequence[PlanRow], base: str) -> dict[str, float]:
    """Return by which fraction each scheme's communication time is shorter than the base's; means over the jobs."""
    means: dict[str, float] = {}
    for scheme in dict.fromkeys(r.scheme for r in rows):
        times = [r.iteration_ms for r in rows if r.scheme == scheme]
        means[scheme] = sum(times) / len(times)
    return {} if base not in means else {s: 1 - m / means[base] for s, m in means.items()}
