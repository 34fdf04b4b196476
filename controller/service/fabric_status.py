# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Answers `netfold fabric status`: the withdrawn elements, the jobs that still use them, and why these stay. Answers
`diff` and `apply`, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from netfold.controller.jobs.records import JobRecord
from netfold.controller.jobs.withdrawal import Intent
from netfold.controller.lifecycle.capacity import unavoidable
from netfold.controller.lifecycle.failure_state import FailureState
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.scheduling.fabric_changes import FabricChange
from netfold.controller.scheduling.maintenance import WithdrawnElement, withdrawn_elements
from netfold.controller.switches.failed_elements import element_named
from netfold.controller.switches.miscabling import Miscabling
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.listing import listing
from netfold.topologies.fabric import Fabric

INTENTS = {pb.CORDON: Intent.CORDON, pb.DRAIN: Intent.DRAIN, pb.HOLD: Intent.HOLD}
"""The intents by their numbers in requests."""


def fabric_status(
    fabric: Fabric,
    registry: JobRegistry,
    *,
    failures: FailureState | None = None,
    stays_because: Callable[[str], str],
    standby_of: str = "",
) -> pb.FabricStatus:
    """`stays_because`: the reason why a job could not leave drained elements at the last attempt."""
    found = withdrawn_elements(fabric, registry.withdrawals, registry.all())
    return pb.FabricStatus(
        elements=[_element(fabric, element, stays_because) for element in found],
        failed_elements=failures.failed.names if failures else (),
        miscablings=[_miscabling(m) for m in failures.miscablings] if failures else (),
        standby_of=standby_of,
    )


def change_message(change: FabricChange, *, with_spec: bool) -> pb.FabricChange:
    return pb.FabricChange(
        elements=[
            pb.ChangedElement(
                name=e.difference.name, change=e.difference.text, jobs=e.jobs, refusal=e.refusal
            )
            for e in change.elements
        ],
        applied=change.is_applied,
        spec_json=change.spec if with_spec else "",
    )


def _element(
    fabric: Fabric, found: WithdrawnElement, stays_because: Callable[[str], str]
) -> pb.WithdrawnElement:
    intent = found.withdrawal.intent
    numbers = {known: number for number, known in INTENTS.items()}

    def reason(job: JobRecord) -> str:
        if intent is not Intent.DRAIN:
            return ""
        return _bound_to(fabric, job, found.withdrawal.element) or stays_because(job.name)

    return pb.WithdrawnElement(
        name=found.withdrawal.element,
        intent=numbers[intent],
        reason=found.withdrawal.reason,
        since=found.withdrawal.since,
        until=found.withdrawal.until if intent is Intent.HOLD else 0.0,
        jobs=[pb.StayingJob(name=job.name, reason=reason(job)) for job in found.jobs],
    )


def _miscabling(found: Miscabling) -> pb.Miscabling:
    return pb.Miscabling(**asdict(found))


def _bound_to(fabric: Fabric, job: JobRecord, element: str) -> str:
    """Why no plan of the job's workers avoids the element; "" if one may."""
    named = element_named(fabric, element)
    workers = [w for w in job.workers if not named - unavoidable(fabric, [w])]
    return f"its workers at {listing(workers)} need {element}" if workers else ""
