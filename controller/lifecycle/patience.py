# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How long the controller waits for what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """In seconds.

    reroute   for a switch to come back before jobs move around it
    restart   for a switch to come back before jobs that cannot do without it fail
    start     for switches to connect after the controller's own start
    install   for switches to take a job's entries
    plan      for a plan, beside the time limit that its job names
    repair    for a plan that moves a job off what is broken: with the repairs before it, and one plan of another
              kind that has made way for long enough, the bound of its stay there
    """

    reroute: float = 0.5
    restart: float = 8.0
    start: float = 15.0
    install: float = 10.0
    plan: float = 60.0
    repair: float = 20.0
