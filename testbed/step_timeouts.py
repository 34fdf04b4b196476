# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Timeouts of the steps of a run, and the rate of its links, by switch target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from netfold.controller.switches.devices import V1MODEL_LANES
from netfold.testbed.network.network import READY_TIMEOUT_S
from netfold.testbed.network.targets import Bmv2, TofinoModel


@dataclass(frozen=True)
class StepTimeouts:
    """Seconds until a step counts as failed.

    start_s  until a started switch answers
    ready_s  from the controller's start until every switch has its program, which softswitch compiles once
    job_s    until a job runs, or has ended
    call_s   one all-reduce
    step_s   a whole step of a run, as the training
    job      further keys of every job file

    What the switches carry:

    link_mbps   the fastest host link without an explicit scale; None: as the fabric says
    lanes       most lanes of a packet without an explicit number; links carry the packets
    controller  options of the controller
    """

    start_s: float = READY_TIMEOUT_S
    ready_s: float = 150.0
    job_s: float = 30.0
    call_s: float = 60.0
    step_s: float = 120.0
    job: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    link_mbps: float | None = None
    lanes: int = V1MODEL_LANES
    controller: tuple[str, ...] = ()


_DEFAULT = StepTimeouts()
_BY_TARGET = {
    # Two models carried five packets a second on a busy machine; a call of the training has 301 chunks. Members share
    # the processors with the models.
    TofinoModel.name: StepTimeouts(
        600.0, 600.0, 600.0, 900.0, 2700.0, MappingProxyType({"lease_ms": 300_000})
    ),
    # A packet takes BMv2 a tenth of a millisecond of a processor, whatever its size, and a chunk twelve times that. On
    # a busy machine a switch is not scheduled for seconds: a packet or a probe that waits for it is not lost. Two
    # trees of 32 chunks in flight fit into a queue of 64 packets, BMv2's own and a link's.
    Bmv2.name: StepTimeouts(
        ready_s=300.0,
        job_s=120.0,
        call_s=600.0,
        step_s=1200.0,
        job=MappingProxyType({"lease_ms": 60_000}),
        link_mbps=10.0,
        lanes=512,
        controller=(
            *("--host-rtt-ms", "100", "--min-rto-ms", "1000"),
            *("--probe-interval", "5", "--counter-interval", "5"),
            *("--rpc-timeout", "30", "--switch-restart-timeout", "60"),
        ),
    ),
}


def step_timeouts_of(target: str) -> StepTimeouts:
    return _BY_TARGET.get(target, _DEFAULT)
