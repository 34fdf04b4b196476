# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Measured cross traffic in the terms of a plan."""

from __future__ import annotations

NOISE = 0.02
"""Part of a link's rate: less cross traffic is ignored (ARP, an operator's terminal, the controller's probes)."""

MAX_SHARE = 0.9
"""Part of a link's rate: cross traffic counts for no more. It may be elastic, and then yields to a job."""


def planning_load(load: float, rate: float) -> float:
    """The cross traffic that a plan assumes where `load` is measured on a link of `rate`; 0: none."""
    return min(load, MAX_SHARE * rate) if load > NOISE * rate else 0.0
