# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines the congestion parameters that the controller chooses: the marking threshold of queues, and a sender's
timers."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

MARK_FRACTION = 11 / 64
"""Default marking threshold, as a fraction of the queue. A job alone still fills its link at this threshold; at a
higher one, short flows wait longer next to a job (docs/decisions/0024)."""


@dataclass(frozen=True)
class Timing:
    """A sender's timers, in seconds; the defaults allow for hosts and switches that share a processor. Raises
    ValueError.

    initial_rto         before the first RTT sample
    min_rto_margin      lower limit of 4 * RTTVAR in the RTO
    min_reorder_window  lower limit of the slack before an overtaken chunk counts as lost
    delay_threshold     without ECN, queueing delay that counts as congestion
    pacing_burst        depth of the token bucket, as time at the pacing rate
    ack_coalescing      longest delay of a socket read, so that one wakeup takes several results
    """

    initial_rto: float = 0.05
    min_rto_margin: float = 0.04
    max_rto: float = 1.0
    min_reorder_window: float = 0.0005
    delay_threshold: float = 0.025
    pacing_burst: float = 0.004
    ack_coalescing: float = 0.001

    def __post_init__(self) -> None:
        for item in fields(self):
            seconds = getattr(self, item.name)
            least = 0.0 if item.name in ("ack_coalescing", "min_reorder_window") else 1e-9
            if not (math.isfinite(seconds) and seconds >= least):
                raise ValueError(
                    f"{item.name} is {seconds} s; it must be {'0 or more' if not least else 'above 0'}"
                )


SHARED_PROCESSORS = Timing()

DATA_CENTER = Timing(
    initial_rto=2e-3,
    min_rto_margin=2e-4,
    max_rto=0.1,
    min_reorder_window=5e-6,
    delay_threshold=1e-3,
    pacing_burst=20e-6,
    ack_coalescing=0.0,
)
"""Timing of a network whose round trips take microseconds and whose hosts have nothing else to do."""
