# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Decides what a caller may do: one table of the calls, and one function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import grpc

from netfold.controller.jobs.records import JobRecord
from netfold.controller.service.identities import Identity, Role


class Right(Enum):
    """The right to make some calls."""

    HOSTS = auto()  # list the hosts of the fabric
    FOLLOW = auto()  # see one job
    JOIN = auto()  # be a member of a job
    END = auto()  # end a job
    READ = auto()  # see jobs, switches and links
    SUBMIT = auto()
    SUBMIT_FOR = auto()  # submit jobs for users of any tenant
    OWN = auto()  # change a job, or read its sums
    FABRIC = auto()  # change what all jobs use


@dataclass(frozen=True)
class Rule:
    """`job`: the field of the request that names the job; "": it names none. `changes`: the call is an event."""

    right: Right
    job: str = ""
    changes: bool = False


RULES: Mapping[str, Rule] = {
    "ListHosts": Rule(Right.HOSTS),
    "GetJob": Rule(Right.FOLLOW, "name"),
    "JoinJob": Rule(Right.JOIN, "job"),
    "CancelJob": Rule(Right.END, "name", changes=True),
    "ReconfigureJob": Rule(Right.END, "name", changes=True),
    "ListJobs": Rule(Right.READ),
    "WatchJob": Rule(Right.READ, "name"),
    "ExplainJob": Rule(Right.READ, "name"),
    "GetStatus": Rule(Right.READ),
    "ListControllers": Rule(Right.FABRIC),
    "GetFabricStatus": Rule(Right.READ),
    "GetUsage": Rule(Right.READ),
    "WatchRecording": Rule(Right.READ),
    "WatchEvents": Rule(Right.READ),
    "SubmitJob": Rule(Right.SUBMIT, changes=True),
    "SubmitJobFor": Rule(Right.SUBMIT_FOR, changes=True),
    "PlanJob": Rule(Right.SUBMIT),
    "AddWorkers": Rule(Right.OWN, "name", changes=True),
    "ReadSlot": Rule(Right.OWN, "job"),
    "DebugJob": Rule(Right.OWN, "name"),
    "Replan": Rule(Right.FABRIC, changes=True),
    "WithdrawElements": Rule(Right.FABRIC, changes=True),
    "GiveBackElements": Rule(Right.FABRIC, changes=True),
    "ChangeFabric": Rule(Right.FABRIC, changes=True),
    "RollOutProgram": Rule(Right.FABRIC, changes=True),
    "CancelRollout": Rule(Right.FABRIC, changes=True),
    "StepDown": Rule(Right.FABRIC, changes=True),
}
"""Each call of the service. A call without a rule is an operator's alone."""

_MEMBERS = frozenset({Right.HOSTS, Right.FOLLOW, Right.JOIN})
_VIEWERS = frozenset({Right.HOSTS, Right.FOLLOW, Right.READ})
RIGHTS: Mapping[Role, frozenset[Right]] = {
    Role.MEMBER: _MEMBERS,
    Role.VIEWER: _VIEWERS,
    Role.USER: _MEMBERS | _VIEWERS | {Right.END, Right.SUBMIT, Right.OWN},
    Role.OPERATOR: frozenset(Right),
}

LOCAL = Identity("", "", Role.OPERATOR)
"""The caller at a Unix socket, whose rights on disk are its guard."""


@dataclass(frozen=True)
class AccessRefusal:
    """`after_s`: seconds for which the answer is kept back; the call may be repeated then. 0: it may not."""

    code: grpc.StatusCode
    message: str
    after_s: float = 0.0


def refusal_of_call(caller: Identity, rpc: str) -> AccessRefusal | None:
    """Why the caller may not make this call for any job; None: it may for some."""
    rule = RULES.get(rpc)
    if rule is None:
        may = caller.role is Role.OPERATOR
    else:
        # The holder of a job's token can end the job in any case, by joining it as each of its hosts.
        may = rule.right in RIGHTS[caller.role] or (rule.right is Right.END and caller.job != "")
    if may:
        return None
    is_member = caller.role is Role.MEMBER
    message = (
        "a member's token joins jobs, and does no more"
        if is_member
        else f"a {caller.role} may not call {rpc}"
    )
    return AccessRefusal(grpc.StatusCode.PERMISSION_DENIED, message)


def decide(caller: Identity, rpc: str, name: str = "", job: JobRecord | None = None) -> AccessRefusal | None:
    """Why the caller may not make the call; None: it may. `name`: of the job that the request names. `job`: its record;
    None: there is none."""
    refusal = refusal_of_call(caller, rpc)
    if refusal is not None or not name:
        return refusal
    is_hidden = job is not None and not sees(caller, job)
    if caller.job and (name != caller.job or is_hidden):
        return AccessRefusal(grpc.StatusCode.PERMISSION_DENIED, f"the token is of another job than '{name}'")
    if is_hidden:
        return AccessRefusal(grpc.StatusCode.NOT_FOUND, f"there is no job '{name}'")
    return None


def sees(caller: Identity, job: JobRecord) -> bool:
    """Whether the caller may see more of the job than its load."""
    if caller.job:
        return job.name == caller.job and job.serial == caller.serial
    return caller.role is not Role.USER or job.tenant == caller.tenant


def job_in(rpc: str, request: Any) -> str:
    """The name of the job in a request; "": it has none."""
    rule = RULES.get(rpc)
    return str(getattr(request, rule.job)) if rule is not None and rule.job else ""
