# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Converts measured cross traffic to the load that a plan assumes."""

from __future__ import annotations

NOISE = 0.02
"""Fraction of a link's rate below which cross traffic is ignored (ARP, an operator's terminal, the controller's
probes)."""

MAX_SHARE = 0.9
"""Maximum fraction of a link's rate that cross traffic counts for. It may be elastic, and then yields to a job."""


def planning_load(load: float, rate: float) -> float:
    """The cross traffic that a plan assumes if `load` is measured on a link of `rate`; 0: none."""
    return min(load, MAX_SHARE * rate) if load > NOISE * rate else 0.0
