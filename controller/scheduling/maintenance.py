# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Maintenance requests of operators: cordon, drain and hold elements of the fabric, and give them back.

An intent is in the store before it has an effect, and stays there until it is taken back. Whether a drained element is
free follows from the placements of jobs, and is not stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from netfold.controller.jobs.records import JobRecord
from netfold.controller.jobs.withdrawal import Intent, Withdrawal
from netfold.controller.lifecycle.capacity import uses_failed
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.events import CapacityFreed, FailuresChanged
from netfold.controller.scheduling.migration_scheduler import MigrationScheduler
from netfold.controller.scheduling.placement_scheduler import PlacementScheduler
from netfold.controller.switches.failed_elements import (
    NO_ELEMENTS,
    FailedElements,
    WithdrawalError,
    element_named,
)
from netfold.protocol.listing import listing
from netfold.topologies.fabric import Fabric

MAX_HOLD_S = 24 * 3600.0


@dataclass(frozen=True)
class WithdrawnElement:
    """A withdrawn element, and the installed jobs that use it. One without jobs is free."""

    withdrawal: Withdrawal
    jobs: tuple[JobRecord, ...]


class Maintenance:
    """Publishes FailuresChanged when other elements are withdrawn than before, and CapacityFreed when one is given
    back."""

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

    def withdraw(self, names: Iterable[str], intent: Intent, reason: str = "", hold_s: float = 0.0) -> None:
        """Cordon, drain or hold elements; the last intent for an element counts. `hold_s`: for how long switches are
        held. Raises WithdrawalError, StoreError."""
        elements, now = self._named(names), self._state.clock.wall_s()
        if intent is Intent.HOLD:
            self._check_hold(elements, hold_s)
        until = now + hold_s if intent is Intent.HOLD else 0.0
        with self._state.registry.change():
            for name in elements.names:
                self._state.registry.withdraw(
                    Withdrawal(element=name, intent=intent, reason=reason, since=now, until=until)
                )
        self._apply()
        self._state.events.publish(FailuresChanged())
        self._migrations.leave_drained()
        self._placements.try_queue()

    def give_back(self, names: Iterable[str]) -> None:
        """Let plans, jobs and routes use elements again. Raises WithdrawalError, StoreError."""
        elements = self._named(names)
        with self._state.registry.change():
            for name in elements.names:
                self._state.registry.give_back(name)
        self._apply()
        self._state.events.publish(FailuresChanged())
        self._state.events.publish(CapacityFreed())

    def _named(self, names: Iterable[str]) -> FailedElements:
        """All these elements. Raises WithdrawalError."""
        elements = NO_ELEMENTS
        for name in names:
            elements |= element_named(self._state.fabric, name)
        return elements

    def _check_hold(self, elements: FailedElements, hold_s: float) -> None:
        """Raises WithdrawalError."""
        switches = {s.name for s in self._state.fabric.switches}
        others = [name for name in elements.names if name not in switches]
        if others:
            raise WithdrawalError(f"{listing(others)} cannot be held: only switches can")
        if not 0 < hold_s <= MAX_HOLD_S:
            raise WithdrawalError(f"a switch is held for at most {MAX_HOLD_S:g} s, and not for {hold_s:g}")

    def _apply(self) -> None:
        """Make plans and routes avoid what the store has."""
        chosen, stored = dict.fromkeys(Intent, NO_ELEMENTS), self._state.registry.withdrawals
        for withdrawal in stored:
            chosen[withdrawal.intent] |= element_named(self._state.fabric, withdrawal.element)
        held = {w.element: w.until for w in stored if w.intent is Intent.HOLD}
        self._state.failures.withdraw(chosen, held)


def withdrawn_elements(
    fabric: Fabric, withdrawals: Iterable[Withdrawal], jobs: Iterable[JobRecord]
) -> list[WithdrawnElement]:
    """The withdrawn elements with the jobs that still use them, also while these move away."""
    installed = [j for j in jobs if j.state.is_installed]

    def using(elements: FailedElements) -> tuple[JobRecord, ...]:
        return tuple(j for j in installed if any(uses_failed(p.plan, elements, ()) for p in j.placements))

    return [WithdrawnElement(w, using(element_named(fabric, w.element))) for w in withdrawals]
