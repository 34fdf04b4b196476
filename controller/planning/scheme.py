# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines the input of a scheme: a Task, with typed readers of the job's options."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from netfold.controller.planning.formulation import FixedShares, Solution
from netfold.controller.planning.layout import Draft, Report
from netfold.controller.planning.plan import JobSpec, Plan, PlanningError
from netfold.controller.planning.residual_network import ResidualNetwork

OPTIONS = ("roundings", "trees_per_server", "trees", "time_limit", "atp_variant", "switchml_variant")
"""All options that some scheme reads."""


Split = tuple[tuple[str, ...], tuple[float, ...]]


@dataclass(frozen=True)
class Rounded:
    """The best repaired rounding of a relaxation, the relaxation's rate, and the bound on any plan."""

    drafts: tuple[Draft, ...]
    relaxed_rate: float
    bound: float


@dataclass(frozen=True)
class Task:
    """One planning problem: a job on a residual network. `began` is perf_counter() at the start."""

    network: ResidualNetwork
    job: JobSpec
    seed: int = 0
    began: float = field(default_factory=time.perf_counter)
    relaxations: dict[Split, tuple[FixedShares, Solution]] = field(default_factory=dict)
    """Solved relaxations by servers and shares. Schemes that are compared (as `auto` does) share them."""
    roundings: dict[tuple[Split, int, int], Rounded] = field(default_factory=dict)
    """Roundings by servers and shares, number of roundings, and number of trees for each server."""

    @property
    def workers(self) -> tuple[str, ...]:
        return self.job.workers

    def servers(self) -> tuple[str, ...]:
        """The job's parameter servers with ingress left; PlanningError if there is none."""
        job, network = self.job, self.network
        if not job.parameter_servers:
            raise PlanningError(f"job '{job.name}' names no parameter server, which this scheme needs")
        usable = tuple(s for s in job.parameter_servers if network.capacity[network.server_id[s]] > 0)
        if not usable:
            raise PlanningError(
                f"job '{job.name}': no parameter server has ingress left; name another or wait"
            )
        return usable

    def relaxed(self, servers: Sequence[str], shares: Sequence[float]) -> tuple[FixedShares, Solution]:
        """The relaxation at fixed shares over all switches that can add up, solved once."""
        key = (tuple(servers), tuple(shares))
        if key not in self.relaxations:
            model = FixedShares(self.network, self.workers, servers, self.network.aggregators(), shares)
            self.relaxations[key] = (model, model.solve())
        return self.relaxations[key]

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """An integer option of the job within [low, high]."""
        value = self.job.options.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise PlanningError(
                f"job '{self.job.name}': option '{name}' is {value!r}; expected a number from {low} to {high}"
            )
        return value

    def real(self, name: str, default: float) -> float:
        """A positive real option of the job."""
        value = self.job.options.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise PlanningError(
                f"job '{self.job.name}': option '{name}' is {value!r}; expected a number above 0"
            )
        return float(value)

    def word(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        """An option of the job that is one of a few words."""
        value = self.job.options.get(name, default)
        if value not in allowed:
            raise PlanningError(
                f"job '{self.job.name}': option '{name}' is {value!r}; expected one of {', '.join(allowed)}"
            )
        return str(value)

    def report(
        self,
        algorithm: str,
        bound: float | None = None,
        rounded: float | None = None,
        *,
        seeded: bool = False,
    ) -> Report:
        seed = self.seed if seeded else None
        return Report(algorithm, bound, rounded, seed, time.perf_counter() - self.began)

    def with_options(self, **options: str | float | int | bool) -> Task:
        return replace(self, job=replace(self.job, options={**self.job.options, **options}))


Scheme = Callable[[Task], Plan]
"""A scheme plans a task; its plan has rates and loads in the unit of the network."""
