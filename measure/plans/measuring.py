# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold measure plans`: what each scheme plans on a fabric, and what its workers then get on the wire.

The schemes run one after the other on the same network. With several jobs, each takes a part of the workers and of the
parameter servers, and all run at once; a later job is planned on what the earlier ones leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from netfold.controller.jobs.lookup import default_job
from netfold.testbed.deployment import Deployment, Setup
from netfold.testbed.errors import RunError
from netfold.traffic.packets.wire import FRAME_OVERHEAD_BYTES, packet_bytes


@dataclass(frozen=True)
class Experiment:
    """What to measure. `size` is in bytes; `jobs` share the fabric's workers evenly."""

    setup: Setup
    schemes: Sequence[str]
    size: int = 1 << 20
    iterations: int = 4
    jobs: int = 1
    timeout_s: float = 300.0


@dataclass(frozen=True)
class Measurement:
    """One job under one scheme. Rates are per worker, headers included, in Mbit/s on the wire; `rate` is the plan's in
    the fabric's unit. `iteration_ms` is the all-reduce of one array at the slowest worker (median)."""

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

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "of_plan": self.of_plan}


class Measuring:
    """One experiment; `run` gives a row for each scheme and job, in their order."""

    def __init__(self, experiment: Experiment, tell: Callable[[str], None]) -> None:
        self._experiment = experiment
        self._tell = tell
        self._system = Deployment(experiment.setup, tell)
        self._orders = self._divide()

    def run(self) -> list[Measurement]:
        """Raises RunError, netfold.topologies.network.errors.NetworkError."""
        with self._system:
            return [row for scheme in self._experiment.schemes for row in self._measure(scheme)]

    def _divide(self) -> list[Mapping[str, Any]]:
        """The keys of each job's file: the example of the fabric's name, or its share of the hosts."""
        fabric, jobs = self._system.fabric, self._experiment.jobs
        job = default_job(fabric)
        self._published = job.published
        workers, servers = job.spec.workers, job.spec.parameter_servers
        if jobs > min(len(workers), max(1, len(servers))):
            raise RunError(
                f"{fabric.name} has {len(workers)} workers and {len(servers)} servers: too few for {jobs} jobs"
            )
        options = dict(job.spec.options)
        return [
            {"workers": workers[n::jobs], "parameter_servers": list(servers[n::jobs]), "options": options}
            for n in range(jobs)
        ]

    def _measure(self, scheme: str) -> list[Measurement]:
        experiment, system = self._experiment, self._system
        flags = ["--workload", "sizes", "--bytes", experiment.size, "--iterations", experiment.iterations]
        running = []
        for number, order in enumerate(self._orders, start=1):
            name = f"{scheme}-{number}"
            self._tell(f"{scheme}: job {number} of {len(self._orders)}")
            keys = {**order, "scheme": scheme, "elements": experiment.size // 4}
            running.append(system.start_job(name, flags, keys.pop("workers"), **keys))
        rows = []
        for job in running:
            results = list(system.finish(job, experiment.timeout_s).values())
            algbw = min(r["algbw_mbps"] for r in results)
            rows.append(
                Measurement(
                    scheme=scheme,
                    job=job.name,
                    rate=job.plan.rate,
                    unit=job.plan.unit,
                    published=self._published.get(scheme),
                    planned_mbps=job.plan.rate * self._mbps_of_one(),
                    measured_mbps=algbw * self._wire_factor(),
                    iteration_ms=max(r["allreduce_ms_p50"] for r in results),
                    wrong_elements=sum(r["wrong_elements"] for r in results),
                    retransmits=sum(r["retransmits"] for r in results),
                )
            )
        return rows

    def _mbps_of_one(self) -> float:
        """Mbit/s on the wire of one of the fabric's unit."""
        scale = self._experiment.setup.scale or 1.0
        return self._system.fabric.unit.bits_per_second * scale / 1e6

    def _wire_factor(self) -> float:
        lanes = self._experiment.setup.lanes
        return (packet_bytes(lanes) + FRAME_OVERHEAD_BYTES) / (4 * lanes)


def reductions(rows: Sequence[Measurement], base: str) -> dict[str, float]:
    """By how much each scheme's communication time is below the base's, as a fraction; means over the jobs."""
    means: dict[str, float] = {}
    for scheme in dict.fromkeys(r.scheme for r in rows):
        times = [r.iteration_ms for r in rows if r.scheme == scheme]
        means[scheme] = sum(times) / len(times)
    return {} if base not in means else {s: 1 - m / means[base] for s, m in means.items()}
