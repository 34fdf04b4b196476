# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What the packet level has to know beside a Scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from netfold.traffic.membership.assignment import DATA_CENTER, Timing


@dataclass(frozen=True)
class Details:
    """Times in seconds.

    timing          of workers' engines; `timings` of those of single jobs, by name, as a controller tells each
    paced           whether workers send no faster than the plan's rate, as those of a controller do
    marking_packets from so many waiting packets on all are marked; None: the settings'
                    `marking_bytes`, or traffic/congestion.py's MARK_FRACTION of the queue where that is less
    marking_span    0: a step, as DCTCP wants it; else as RED: from `marking_packets` on a share that grows over so many
                    packets to `marking_share`, and all behind them
    host_queue      packets that wait in a host for its link (Linux's own default), and whether those are marked too:
    hosts_mark      no host does so, but none fills the queue before its own link either (TCP small queues)
    host_burst_bytes, switch_burst_bytes
                    what leaves at once behind a token bucket, as where kernels shape links; 0: a line proper
    loss            the share of packets that get lost on each line, at random
    least_timeout   of TCP (RFC 6298 says 1 s; data centers set it to a few milliseconds), and `first_timeout` before a
                    round trip is known
    sample_s        how often to note what flows have got through (Result.progress); 0: never
    delayed         segments for one acknowledgment, which waits for them at most `delay`
    """

    timing: Timing = DATA_CENTER
    timings: Mapping[str, Timing] = field(default_factory=dict)
    paced: bool = False
    marking_packets: float | None = None
    marking_span: float = 0.0
    marking_share: float = 1.0
    host_queue: int = 1000
    hosts_mark: bool = True
    host_burst_bytes: float = 0.0
    switch_burst_bytes: float = 0.0
    loss: float = 0.0
    least_timeout: float = 5e-3
    first_timeout: float = 10e-3
    delayed: int = 2
    delay: float = 1e-3
    sample_s: float = 0.0
