# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller's timeouts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ControllerTimeouts:
    """In seconds.

    reroute   from the loss of a switch until jobs move around it
    restart   from the loss of a switch or link until jobs without another plan fail; a switch that takes connections
              and is only silent is waited for
    start     after the controller's start, until switches connect and members renew their leases
    install   for switches to take a job's entries
    plan      of a planning task, in addition to the time limit of its job
    repair    of a planning task that moves a job off failed elements. With the repairs ahead of it and one task that
              cannot be preempted any more, it bounds the time that a job stays there
    """

    reroute: float = 0.5
    restart: float = 8.0
    start: float = 15.0
    install: float = 10.0
    plan: float = 60.0
    repair: float = 20.0
