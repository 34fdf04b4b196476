# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of the packet level in addition to a Scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from netfold.protocol.congestion import DATA_CENTER, Timing


@dataclass(frozen=True)
class PacketOptions:
    """Times in seconds.

    timing              of the workers' engines; `timings` of single jobs by name, as a controller sends them
    paced               True: workers send at most at the plan's rate, like those of a controller
    marking_threshold   queued packets from which all packets are marked; None: the settings' `marking_bytes`, or
                        MARK_FRACTION (protocol/congestion.py) of the queue if that is less
    marking_span        0: a step, as for DCTCP; else as in RED: the probability rises from 0 at the threshold to
                        `max_marking_probability` over this many packets, and is 1 beyond
    host_queue          packets that wait in a host for its link (Linux's default)
    hosts_mark          True: those queues mark, too. Linux does not, but no host fills its own queue (TCP small queues)
    host_burst_bytes, switch_burst_bytes
                        burst of the token bucket that shapes a link, as in kernels; 0: a line rate
    loss                probability that a packet is lost on a link
    min_rto_s           of TCP (RFC 6298: 1 s; data centers: a few ms); `initial_rto_s`: before the first RTT sample
    segments_per_ack    segments that one acknowledgment confirms; it waits for them at most `delayed_ack_s`
    sample_interval_s   interval of the samples in SimulationResult.progress; 0: none
    """

    timing: Timing = DATA_CENTER
    timings: Mapping[str, Timing] = field(default_factory=dict)
    paced: bool = False
    marking_threshold: float | None = None
    marking_span: float = 0.0
    max_marking_probability: float = 1.0
    host_queue: int = 1000
    hosts_mark: bool = True
    host_burst_bytes: float = 0.0
    switch_burst_bytes: float = 0.0
    loss: float = 0.0
    min_rto_s: float = 5e-3
    initial_rto_s: float = 10e-3
    segments_per_ack: int = 2
    delayed_ack_s: float = 1e-3
    sample_interval_s: float = 0.0
