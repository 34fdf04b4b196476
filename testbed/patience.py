# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What a run waits for, and how long, by what its switches are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from netfold.topologies.network.builder import READY_TIMEOUT_S
from netfold.topologies.network.targets import TofinoModel


@dataclass(frozen=True)
class Patience:
    """Seconds, until something is taken for failed.

    start_s  until a switch that was started answers
    ready_s  from the controller's start until every switch has its program
    job_s    until a job runs, or is over
    call_s   one all-reduce
    step_s   a whole step of a run, as the training
    job      more keys of every job's file
    """

    start_s: float = READY_TIMEOUT_S
    ready_s: float = 90.0
    job_s: float = 30.0
    call_s: float = 60.0
    step_s: float = 120.0
    job: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


_USUAL = Patience()
_BY_TARGET = {
    # Five packets a second went through two models on a machine with much other work, where a call of the training has
    # 301 chunks; and members wait as the models do for what they get of the processors.
    TofinoModel.name: Patience(600.0, 600.0, 600.0, 900.0, 2700.0, MappingProxyType({"lease_ms": 300_000})),
}


def patience_with(target: str) -> Patience:
    return _BY_TARGET.get(target, _USUAL)
