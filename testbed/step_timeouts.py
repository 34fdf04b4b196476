# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Timeouts of the steps of a run, by switch target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from netfold.testbed.network.network import READY_TIMEOUT_S
from netfold.testbed.network.targets import TofinoModel


@dataclass(frozen=True)
class StepTimeouts:
    """Seconds until a step counts as failed.

    start_s  until a started switch answers
    ready_s  from the controller's start until every switch has its program, which softswitch compiles once
    job_s    until a job runs, or has ended
    call_s   one all-reduce
    step_s   a whole step of a run, as the training
    job      further keys of every job file
    """

    start_s: float = READY_TIMEOUT_S
    ready_s: float = 150.0
    job_s: float = 30.0
    call_s: float = 60.0
    step_s: float = 120.0
    job: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


_DEFAULT = StepTimeouts()
_BY_TARGET = {
    # Two models carried five packets a second on a busy machine; a call of the training has 301 chunks. Members share
    # the processors with the models.
    TofinoModel.name: StepTimeouts(
        600.0, 600.0, 600.0, 900.0, 2700.0, MappingProxyType({"lease_ms": 300_000})
    ),
}


def step_timeouts_of(target: str) -> StepTimeouts:
    return _BY_TARGET.get(target, _DEFAULT)
