# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Fewer steps that fail alike: delta debugging over the steps of a scenario, then its noise."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tests.simulation.faults import Intensity
from tests.simulation.run import run
from tests.simulation.scenario import Scenario


def kind_of(violation: str) -> str:
    """A violation without names, numbers and reasons."""
    words = re.sub(r"\([^)]*\)|\b\S*\d\S*", "", violation).split()
    return " ".join(words[:6])


def shrink(scenario: Scenario, fails: Callable[[Scenario], bool] | None = None) -> Scenario:
    """A scenario that still `fails`, in which no step can be left out. Default: it has a violation of the same
    kind."""
    kind = kind_of(run(scenario).violation)
    fails = fails or (lambda s: kind_of(run(s).violation) == kind)
    for calmer in (
        replace(scenario, intensity=Intensity(max_delay_s=scenario.intensity.max_delay_s)),
        replace(scenario, reorder=0.0),
        replace(scenario, probe_s=0.0),
    ):
        if fails(calmer):
            scenario = calmer
    size = max(1, len(scenario.steps) // 2)
    while True:
        first = 0
        while first < len(scenario.steps):
            fewer = scenario.with_steps(scenario.steps[:first] + scenario.steps[first + size :])
            if fails(fewer):
                scenario = fewer
            else:
                first += size
        if size == 1:
            return scenario
        size = max(1, size // 2)
