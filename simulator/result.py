# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The results of a Scenario, of the same form from both levels. Times are seconds since the scenario's start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Iteration:
    """One iteration of a job. `reduced`: for each bucket when it was ready and when its sum was at all workers."""

    start: float
    end: float
    reduced: tuple[tuple[float, float], ...]

    @property
    def duration(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class JobResult:
    """Iterations that are complete at the scenario's end. `carried`: bytes of gradients reduced until then, the
    current iteration included (flow level)."""

    name: str
    iterations: tuple[Iteration, ...]
    carried: float = 0.0

    @property
    def end(self) -> float | None:
        return self.iterations[-1].end if self.iterations else None

    @property
    def all_reduce_s(self) -> tuple[float, ...]:
        """Returns the time of every bucket of every iteration: from ready to the sum at all workers. Waiting for
        earlier buckets of the job is included."""
        return tuple(done - ready for i in self.iterations for ready, done in i.reduced)


@dataclass(frozen=True)
class LinkResult:
    """Queues of a directed link in bytes: mean over time, and maximum."""

    bytes: float
    utilization: float
    queue_mean: float
    queue_max: float


@dataclass(frozen=True)
class SlotResult:
    """Slots of a switch that held a chunk, mean over time and peak, and those that jobs have reserved."""

    mean: float
    peak: float
    reserved: int


@dataclass(frozen=True)
class SimulationResult:
    """completions  for each flow, in the scenario's order: seconds from its start to its last byte's arrival; None:
                 incomplete
    events       number of simulated events
    progress     for each sample (PacketOptions.sample_interval_s) the acknowledged bytes of each flow
    """

    jobs: tuple[JobResult, ...]
    completions: tuple[float | None, ...]
    links: Mapping[tuple[str, str], LinkResult]
    switches: Mapping[str, SlotResult] = field(default_factory=dict)
    end: float = 0.0
    events: int = 0
    progress: tuple[tuple[float, ...], ...] = ()

    def job(self, name: str) -> JobResult:
        return next(j for j in self.jobs if j.name == name)
