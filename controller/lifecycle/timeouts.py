# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller's timeouts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ControllerTimeouts:
    """Timeouts in seconds.

    reroute   from the loss of a switch until jobs move around it
    restart   from the loss of a switch or link until jobs without another plan fail; the controller waits for a switch
              that takes connections and is only silent
    start     from the controller's start until switches have connected and members have renewed their leases
    install   for switches to take the entries of a job
    plan      for a planning task, in addition to the time limit of its job
    repair    for a planning task that moves a job off failed elements. Together with the repairs ahead of it and one
              task that can no longer be preempted, it bounds the time that a job stays there
    """

    reroute: float = 0.5
    restart: float = 8.0
    start: float = 15.0
    install: float = 10.0
    plan: float = 60.0
    repair: float = 20.0
