# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks that withdrawn elements do no harm: no job breaks or ends, none is placed there, none stays there that has
another plan, and no intent is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from netfold.controller.core import Controller
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.jobs.withdrawal import Intent, Withdrawal
from netfold.controller.lifecycle.capacity import unavoidable, uses_failed
from netfold.controller.scheduling.migration_scheduler import LEAVES
from netfold.controller.switches.failed_elements import NO_ELEMENTS, FailedElements, element_named
from netfold.topologies.fabric import Fabric

ASK_AGAIN_S = 1.0
"""The operator asks again, where no controller has answered."""


@dataclass
class Wish:
    """An operator's intent for an element; None: it is given back. `hold_s`: for how long it is held. `is_answered`:
    a controller has said that it is so."""

    intent: Intent | None
    hold_s: float = 0.0
    is_answered: bool = False


class Operator:
    """Wants elements withdrawn, and calls until a controller has answered, one call for an element at a time. `call`
    starts a task that makes a request, and does something with its answer."""

    def __init__(self, call: Callable[[str, Wish, Callable[[], None]], asyncio.Task[Any]]) -> None:
        self._call = call
        self._wishes: dict[str, Wish] = {}
        self._calls: dict[str, asyncio.Task[Any]] = {}

    def want(self, element: str, intent: Intent | None, hold_s: float = 0.0) -> None:
        wish = self._wishes[element] = Wish(intent, hold_s)
        self._ask(element, wish)

    def want_all_back(self) -> None:
        for element, wish in list(self._wishes.items()):
            if wish.intent is not None or not wish.is_answered:
                self.want(element, None)

    def on_restore(self) -> None:
        """The store is an older one: what was answered may be gone."""
        for element, wish in list(self._wishes.items()):
            self.want(element, wish.intent, wish.hold_s)

    def forget_others(self, is_element: Callable[[str], bool]) -> None:
        """Elements are gone, and with them what was wanted for them."""
        self._wishes = {element: wish for element, wish in self._wishes.items() if is_element(element)}

    def lost(self, stored: Iterable[Withdrawal]) -> str:
        """Name an answered intent that is not in the store; empty: there is none. What a rollout has withdrawn returns
        to it."""
        found = list(stored)
        intents = {w.element: w.intent for w in found}
        under_way = {w.element for w in found if w.is_for_rollout}
        for element, wish in self._wishes.items():
            if wish.is_answered and element not in under_way and intents.get(element) != wish.intent:
                return f"{element} is {intents.get(element)}, and the answer was {wish.intent}"
        return ""

    def _ask(self, element: str, wish: Wish) -> None:
        if self._wishes.get(element) is not wish or wish.is_answered:
            return

        def answered() -> None:
            wish.is_answered = True

        if element not in self._calls or self._calls[element].done():
            self._calls[element] = self._call(element, wish, answered)
        asyncio.get_running_loop().call_later(ASK_AGAIN_S, self._ask, element, wish)


def check_written(
    fabric: Fabric,
    stored: Collection[Withdrawal],
    failed: FailedElements,
    now: float,
    before: JobRecord | None,
    after: JobRecord,
) -> str:
    """Returns the fault of a job that was just written; empty: none. `now`: wall clock."""
    for w in stored:
        if (
            w.until > now
            and before is not None
            and (wrong := _lost_by_hold(fabric, w.element, before, after))
        ):
            return wrong
    if after.reason.startswith("there is no place for") and "(withdrawn)" in after.reason:
        return f"{after.name} refuses a worker for what is withdrawn alone"
    if after.state is not JobState.INSTALLING or after.placement is None:
        return ""
    drained, withdrawn = NO_ELEMENTS, NO_ELEMENTS
    for w in stored:
        withdrawn |= element_named(fabric, w.element)
        if w.intent is Intent.DRAIN:
            drained |= element_named(fabric, w.element)
    is_first = before is None or before.state is JobState.QUEUED
    if is_first and uses_failed(after.placement.plan, withdrawn, ()):
        return f"{after.name} is placed over withdrawn elements"
    if before is not None and before.reason == LEAVES and _gives_up(before, after, failed):
        return f"{after.name} was leaving drained elements, and is broken though it might stay there"
    if before is None or before.placement is None or after.reason != LEAVES or before.epoch == after.epoch:
        return ""
    if not uses_failed(before.placement.plan, drained, ()):
        return f"{after.name} leaves what is not drained"
    if after.previous is None:
        return f"{after.name} is broken to leave drained elements"
    return ""


def _lost_by_hold(fabric: Fabric, switch: str, before: JobRecord, after: JobRecord) -> str:
    """Returns what a job has lost because a switch is away that is held; empty: nothing."""
    if after.state is JobState.FAILED and not before.state.is_terminal:
        links = (f"link {'-'.join(sorted((switch, near)))} is down" for near in fabric.neighbors[switch])
        if any(why in after.reason for why in (f"switch {switch} is unreachable", *links)):
            return f"{after.name} failed, though {switch} is held: {after.reason}"
    for host in (h for h in fabric.neighbors[switch] if fabric.is_host(h)):
        is_late = any(why in after.reason for why in (f"the lease of {host} expired", f"{host} did not join"))
        if is_late and (host in after.excluded) > (host in before.excluded):
            return f"{after.name} has lost {host}, though {switch} is held"
        if is_late and after.state is JobState.FAILED and not before.state.is_terminal:
            return f"{after.name} failed, though {switch} is held: {after.reason}"
    return ""


def _gives_up(before: JobRecord, after: JobRecord, failed: FailedElements) -> bool:
    """A move gives up the placement from which the job moved before, which works."""
    assert before.placement is not None
    assert after.placement is not None
    if before.previous is None or after.previous is not None:
        return False
    has_moved = before.placement.plan != after.placement.plan
    return has_moved and not uses_failed(before.previous.plan, failed, after.excluded)


def over_drained(controller: Controller, jobs: Iterable[JobRecord]) -> list[tuple[JobRecord, FailedElements]]:
    """The running jobs over drained elements that their workers can do without, and what a plan has to avoid."""
    failures, fabric = controller.state.failures, controller.state.fabric
    found = []
    for job in jobs:
        if job.state is JobState.RUNNING and job.placement is not None:
            bound = unavoidable(fabric, job.workers)
            if uses_failed(job.placement.plan, failures.drained - bound, ()):
                found.append((job, failures.of(job.name) | (failures.withdrawn - bound)))
    return found
