# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sentences below the tables of a simulation: they name what the ideal leaves out, and why trees are not faster
than a ring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from netfold.simulator.command.show import SimulationRun
from netfold.simulator.command.simulation_spec import Level, SimulationSpec
from netfold.simulator.flow.layout import TREE_SHARE_BESIDE_TCP
from netfold.simulator.schemes.catalog import SchemeName

RINGS = (SchemeName.RING, SchemeName.HIERARCHICAL_RING)
FASTER = 0.95
"""A scheme is faster than another one if its iterations take at most this part of the other's."""

IDEAL = (
    "ideal is a bound, not a scheme: every worker sends and receives the gradient once at its link's rate. It uses "
    "no link: it leaves out other jobs, background flows, queues, congestion control and the capacities of switches."
)


def notes(spec: SimulationSpec, runs: Sequence[SimulationRun]) -> Iterator[str]:
    schemes = list(dict.fromkeys(r.scheme for r in runs))
    if SchemeName.IDEAL in schemes:
        yield IDEAL
    rings = {name: seconds for name in RINGS if name in schemes and (seconds := _iteration_s(name, runs))}
    if not rings:
        return
    ring = min(rings, key=lambda name: rings[name])
    for scheme in schemes:
        seconds = _iteration_s(scheme, runs)
        if (
            scheme in (*RINGS, SchemeName.DOUBLE_BINARY_TREE, SchemeName.IDEAL)
            or seconds is None
            or seconds <= FASTER * rings[ring]
        ):
            continue
        yield f"{scheme} is not faster than {ring}: {' '.join(_reasons(spec))}"


def _iteration_s(scheme: str, runs: Sequence[SimulationRun]) -> float | None:
    times = [job["iteration_s"] for r in runs if r.scheme == scheme for job in r.found["jobs"]]
    known = [t for t in times if t is not None]
    return float(np.mean(known)) if known else None


def _reasons(spec: SimulationSpec) -> Iterator[str]:
    if spec.background.load:
        share = f"{TREE_SHARE_BESIDE_TCP:g} of" if spec.level is Level.FLOW else "less than"
        yield (
            f"on a full link the trees of a job get {share} what a TCP flow gets, a ring's connection as much as a "
            "flow, and the most loaded link sets the rate of a whole tree."
        )
    if spec.training.model is not None:
        yield "Iterations contain the compute time, during which buckets are reduced; compare the all-reduce times."
    yield (
        "Without congestion a tree sends each byte once where a ring of n workers sends it 2 (n - 1) / n times: a tree "
        "is at most twice as fast, less if its plan's rate is below that of the workers' links."
    )
