# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Maintenance requests of operators and rollouts: cordon, drain and hold elements of the fabric, and give them back.

An intent is in the store before it has an effect, and stays there until it is taken back. Whether a drained element is
free follows from the placements of jobs, and is not stored."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from netfold.controller.jobs.records import JobRecord
from netfold.controller.jobs.withdrawal import Intent, Withdrawal
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.events import CapacityFreed, FailuresChanged, MaintenanceRequested
from netfold.controller.scheduling.migration_scheduler import MigrationScheduler
from netfold.controller.scheduling.placement_scheduler import PlacementScheduler
from netfold.controller.switches.failed_elements import (
    FailedElements,
    WithdrawalError,
    element_named,
    elements_named,
    united,
)
from netfold.protocol.listing import listing
from netfold.topologies.fabric import Fabric

log = logging.getLogger(__name__)

MAX_HOLD_S = 24 * 3600.0


@dataclass(frozen=True)
class WithdrawnElement:
    """A withdrawn element, and the installed jobs that use it. One without jobs is free."""

    withdrawal: Withdrawal
    jobs: tuple[JobRecord, ...]


class Maintenance:
    """Publishes MaintenanceRequested and FailuresChanged when other elements are withdrawn than before, and
    CapacityFreed when one is given back."""

    def __init__(
        self, state: ControllerState, placements: PlacementScheduler, migrations: MigrationScheduler
    ) -> None:
        self._state = state
        self._placements = placements
        self._migrations = migrations
        self._apply()

    async def resume(self) -> None:
        """Let jobs leave what was drained before the start of the controller, once it knows what works."""
        await self._state.failures.known.wait()
        self._migrations.leave_drained()

    def withdraw(
        self,
        names: Iterable[str],
        intent: Intent,
        reason: str = "",
        hold_s: float = 0.0,
        *,
        is_for_rollout: bool = False,
    ) -> None:
        """Cordon, drain or hold elements; the last intent for an element counts. `hold_s`: for how long switches are
        held. Nothing happens if all is so already. Raises WithdrawalError, StoreError."""
        elements, now = elements_named(self._state.fabric, names), self._state.clock.wall_s()
        if intent is Intent.HOLD:
            self._check_hold(elements, hold_s)
        until = now + hold_s if intent is Intent.HOLD else 0.0
        wished = (
            Withdrawal(
                element=name,
                intent=intent,
                reason=reason,
                since=now,
                until=until,
                is_for_rollout=is_for_rollout,
            )
            for name in elements.names
        )
        stored = {w.element: w for w in self._state.registry.withdrawals}
        new = [w for w in wished if not _is_so(w, stored.get(w.element))]
        if not new:
            return
        with self._state.registry.change():
            for withdrawal in new:
                self._state.registry.withdraw(withdrawal)
        held = f" for {hold_s:g} s" if intent is Intent.HOLD else ""
        names = [w.element for w in new]
        self._announce(f"{_requester(is_for_rollout)} has asked to {intent} {listing(names)}{held}", names)
        self._apply()
        self._state.events.publish(FailuresChanged())
        self._migrations.leave_drained()
        self._placements.try_queue()

    def give_back(self, names: Iterable[str], *, is_for_rollout: bool = False) -> None:
        """Let plans, jobs and routes use elements again. A rollout gives back only what is withdrawn for it. Nothing
        happens if none is withdrawn. Raises WithdrawalError, StoreError."""
        elements = elements_named(self._state.fabric, names)
        stored = {
            w.element for w in self._state.registry.withdrawals if w.is_for_rollout or not is_for_rollout
        }
        returned = [name for name in elements.names if name in stored]
        if not returned:
            return
        with self._state.registry.change():
            for name in returned:
                self._state.registry.give_back(name)
        self._announce(f"{_requester(is_for_rollout)} has given {listing(returned)} back", returned)
        self._apply()
        self._state.events.publish(FailuresChanged())
        self._state.events.publish(CapacityFreed())

    def _check_hold(self, elements: FailedElements, hold_s: float) -> None:
        """Raises WithdrawalError."""
        switches = {s.name for s in self._state.fabric.switches}
        others = [name for name in elements.names if name not in switches]
        if others:
            raise WithdrawalError(f"{listing(others)} cannot be held: only switches can")
        if not 0 < hold_s <= MAX_HOLD_S:
            raise WithdrawalError(
                f"a switch is held for more than 0 and at most {MAX_HOLD_S:g} s, and not for {hold_s:g}"
            )

    def _announce(self, text: str, elements: Iterable[str]) -> None:
        log.info("%s", text)
        self._state.events.publish(MaintenanceRequested(text, tuple(elements)))

    def _apply(self) -> None:
        """Make plans and routes avoid what the store has."""
        stored = self._state.registry.withdrawals
        chosen = {
            intent: united(element_named(self._state.fabric, w.element) for w in stored if w.intent is intent)
            for intent in Intent
        }
        self._state.failures.withdraw(chosen, (w for w in stored if w.intent is Intent.HOLD))


def _requester(is_for_rollout: bool) -> str:
    return "a rollout" if is_for_rollout else "an operator"


def _is_so(wished: Withdrawal, stored: Withdrawal | None) -> bool:
    """Whether the store has the intent already. A hold begins anew."""
    if stored is None or wished.intent is Intent.HOLD:
        return False
    return stored == wished.model_copy(update={"since": stored.since})


def withdrawn_elements(
    fabric: Fabric, withdrawals: Iterable[Withdrawal], jobs: Iterable[JobRecord]
) -> list[WithdrawnElement]:
    """The withdrawn elements with the jobs that still use them, also while these move away."""
    used = [(j, j.nodes, set[frozenset[str]]().union(*(p.links for p in j.placements))) for j in jobs]

    def using(elements: FailedElements) -> tuple[JobRecord, ...]:
        return tuple(job for job, nodes, links in used if nodes & elements.switches or links & elements.links)

    return [WithdrawnElement(w, using(element_named(fabric, w.element))) for w in withdrawals]
