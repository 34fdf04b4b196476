# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Values of hang.py: views of a job's members, slots and switches, and the diagnosis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from netfold.controller.lifecycle.member_status import CallStatus
from netfold.controller.service.slot_reading import OpenSlots
from netfold.controller.switches.failed_elements import link_name
from netfold.protocol import netfold_pb2 as pb


class Cause(StrEnum):
    ENDED = "job ended"
    QUEUED = "job queued"
    ABSENT = "worker absent"
    PROCESS = "process gone"
    STOPPED = "process stopped"
    LEFT = "worker left"
    SWITCH = "switch not ready"
    NOT_CALLED = "rank never called"
    OTHER_CALL = "rank calls another collective"
    NO_CALL = "no worker calls"
    LINK = "link loses"
    REFUSED = "switch refuses"
    SLOW = "slow"
    NONE = "nothing wrong"
    UNCLEAR = "unclear"


def path_name(path: Sequence[str]) -> str:
    """The name of a link; that of a longer path has all nodes, from child to parent."""
    return link_name(path) if len(path) == 2 else "-".join(path)


@dataclass(frozen=True)
class MemberView:
    """A member, by its last update. `update_age_s`: seconds since then; None: it has sent none to this controller.
    `answered`: whether it answered the request of its calls. `call`: None: it does not report calls.
    `moved`, `retransmitted`: whether it got results, and its retransmissions, between two looks."""

    host: str
    rank: int = 0
    parameter_server: bool = False
    joined: bool = True
    connected: bool = True
    left: bool = False
    answered: bool = True
    update_age_s: float | None = 0.0
    silent_s: float = 0.0
    next_call: int = 0
    call: CallStatus | None = None
    moved: bool = False
    retransmitted: int = 0
    losses: float = 0.0
    calls: Sequence[pb.CallRecord] = ()
    location: str = ""

    @property
    def waits(self) -> bool:
        return self.call is not None and self.call.in_call

    @property
    def last(self) -> pb.CallRecord | None:
        """The record of the call that it is in, or was in last."""
        return self.calls[-1] if self.calls else None


@dataclass(frozen=True)
class Refusal:
    """Packets that a switch does not add up, between two looks."""

    switch: str
    verdict: str
    per_second: float
    meaning: str


@dataclass(frozen=True)
class JobView:
    """`state`: the job's, as text. `lease_s`: of its members. `unready`: switches that are not ready, and why.
    `failed`: elements of its trees that have failed. `glimpses`: slots that workers waited for, at several moments.
    `attachments`: the switch of each host."""

    name: str
    state: str
    reason: str
    lease_s: float
    members: Sequence[MemberView] = ()
    unready: Mapping[str, str] = field(default_factory=dict)
    failed: Sequence[str] = ()
    slots: Sequence[OpenSlots] = ()
    glimpses: Sequence[OpenSlots] = ()
    refusals: Sequence[Refusal] = ()
    attachments: Mapping[str, str] = field(default_factory=dict)

    @property
    def workers(self) -> list[MemberView]:
        """The workers whose calls are known."""
        return [m for m in self.members if not m.parameter_server and not m.left and m.call is not None]

    @property
    def moves(self) -> bool:
        return any(m.moved for m in self.members)


@dataclass(frozen=True)
class Diagnosis:
    """`finding`: what holds the job up, in one line. `elements`: the ranks' hosts, switches or links (a-b) that do."""

    cause: Cause
    finding: str
    elements: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
