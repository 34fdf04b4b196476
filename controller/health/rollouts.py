# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Rolls a program out to the switches of a fabric, one after the other, while jobs run.

Jobs leave a switch, or wait for it where they cannot. It gets the program, and has to pass a check. The first switch
that does not gets its own program back, and the rollout stops there. The same happens to the one under way when an
operator cancels the rollout. Each step is in the store before it has an effect, so the next controller continues where
this one ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any

from netfold.controller.health.link_probes import LinkProbes
from netfold.controller.health.slot_access import SlotAccess
from netfold.controller.jobs.program_records import (
    RolloutRecord,
    RolloutState,
    StoredProgram,
    SwitchProgram,
)
from netfold.controller.jobs.records import JobRecord
from netfold.controller.jobs.slot_allocator import BLOCK
from netfold.controller.jobs.withdrawal import Intent
from netfold.controller.lifecycle.capacity import unavoidable
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.scheduling.maintenance import Maintenance
from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.failed_elements import WithdrawalError, elements_named, link_name
from netfold.controller.switches.fleet import Fleet
from netfold.controller.switches.session import SwitchSession, SwitchUnreachableError
from netfold.p4src.manifest import Program
from netfold.protocol.listing import listing
from netfold.protocol.wire import VERSION, Kind
from netfold.topologies.fabric import SwitchRole

log = logging.getLogger(__name__)

REASON = "it gets another program"
"""Reason of the withdrawals of a rollout."""

CANCELED = "an operator has canceled it"

DRAIN_S = 60.0
"""Seconds for jobs to leave a switch. It is held then."""

READY_S = 90.0
"""Seconds for a switch to be ready with another program."""

HOLD_S = 3600.0
"""Longer than a switch takes with another program and its own one again. A rollout gives it back earlier."""

LOST_S = 1.0
"""Seconds after a check without an answer in which a lost connection becomes known."""

CHECKS = 3
"""Checks of a switch of which one has to pass: it may lose its connection meanwhile."""


class RolloutError(Exception):
    """A program cannot be rolled out now; the message has the reason and a remedy."""


class Rollouts:
    """Rolls out in `run` until it is canceled. `migration_reason(job)`: why the job could not leave what is drained.
    `pipeline_of`: the files of a program. `on_program(switch, program)` is called when a switch gets a program."""

    def __init__(
        self,
        state: ControllerState,
        fleet: Fleet,
        slots: SlotAccess,
        probes: LinkProbes,
        maintenance: Maintenance,
        migration_reason: Callable[[str], str],
        pipeline_of: Callable[[StoredProgram], Pipeline],
        on_program: Callable[[str, Program], None],
    ) -> None:
        self._state = state
        self._fleet = fleet
        self._slots = slots
        self._probes = probes
        self._maintenance = maintenance
        self._migration_reason = migration_reason
        self._pipeline_of = pipeline_of
        self._on_program = on_program
        self._step: asyncio.Task[None] | None = None
        self._store = state.registry.program_store
        self.record = _without_removed(self._store.rollout, fleet.sessions)

    # ---- requests -------------------------------------------------------------------------------------

    def start(self, program: StoredProgram) -> RolloutRecord:
        """Start a rollout to all switches that have another program of the same chip. Raises RolloutError,
        StoreError."""
        self._store.expect_final("a rollout")
        if self.record is not None and self.record.state is RolloutState.RUNNING:
            raise RolloutError(
                f"a rollout of program {self.record.name} is under way: see `netfold fabric status`"
            )
        with self._state.registry.change():
            previous = {
                s: p.digest for s, p in self._store.switch_programs().items() if s in self._fleet.sessions
            }
            found = {digest: self._store.program(digest) for digest in set(previous.values())}
            same_chip = {
                s: d for s, d in previous.items() if found[d].abilities.chip == program.abilities.chip
            }
            self._check(program, {s: found[d] for s, d in same_chip.items()})
            left = [s for s in self._order() if same_chip.get(s, program.digest) != program.digest]
            record = RolloutRecord(
                name=program.name, digest=program.digest, previous=same_chip, left=tuple(left)
            )
            self._store.put_program(program)
            self._store.put_rollout(record)
        log.warning("program %s is rolled out to %s", program.name, listing(left) or "no switch")
        self.record = record
        self._state.changes.notify()
        return record

    def cancel(self) -> None:
        """Let the switch under way get its program back, and end the rollout. Nothing happens to one that ends already.
        Raises RolloutError, StoreError."""
        record = self.record
        if record is None or record.state in (RolloutState.DONE, RolloutState.STOPPED):
            last = f": that of program {record.name} is {record.state}" if record else ""
            raise RolloutError(f"no rollout is under way{last}")
        if record.state is RolloutState.CANCELED or record.reason:
            return
        self._commit(record.model_copy(update={"reason": CANCELED, "is_canceled": True}))
        if self._step is not None:
            self._step.cancel()

    def check_free(self, names: Iterable[str]) -> None:
        """Raises WithdrawalError if one of these elements is a switch that gets another program now."""
        record = self.record
        if record is None or record.state is not RolloutState.RUNNING:
            return
        named = elements_named(self._state.fabric, names).switches
        if record.left and record.left[0] in named:
            raise WithdrawalError(
                f"{record.left[0]} gets program {record.name} now: wait until `netfold fabric status` shows it among "
                "those that are done"
            )

    def _check(self, program: StoredProgram, present: Mapping[str, StoredProgram]) -> None:
        """Raises RolloutError for a program that jobs could not continue with."""
        new, lanes = program.abilities, self._state.packet_model.lanes
        if not present:
            raise RolloutError(
                f"program {program.name} is for {new.chip or 'v1model'}, and no switch of the fabric is"
            )
        if new.wire != VERSION:
            raise RolloutError(
                f"program {program.name} takes packets of version {new.wire}, and jobs have {VERSION}: let them end, "
                "and start a controller and members of that version"
            )
        if new.lanes != lanes:
            raise RolloutError(
                f"program {program.name} has {new.lanes} lanes, and packets of jobs have {lanes}: let them end, and "
                f"start the controller with --lanes {new.lanes}"
            )
        for switch, old in present.items():
            if lost := new.lacks(old.abilities):
                raise RolloutError(
                    f"program {program.name} lacks {listing(lost)}, which jobs at switch {switch} may use: let them "
                    "end, and start the controller with --p4info, --program and another --state"
                )

    def _order(self) -> list[str]:
        """Switches that jobs can leave come first."""
        switches = self._state.fabric.switches
        return [s.name for s in sorted(switches, key=lambda s: s.role is SwitchRole.LEAF)]

    # ---- steps ----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Raises StoreError, after which it is to be called again."""
        await self._state.failures.known.wait()
        while True:
            record = self.record
            if record is None or record.state is not RolloutState.RUNNING:
                await self._state.changes.wait()
            elif not record.left:
                self._end(record)
            elif record.reason:
                await self._put_back(record, record.left[0])
            else:
                await self._until_canceled(self._advance(record, record.left[0]))

    async def _until_canceled(self, work: Coroutine[Any, Any, None]) -> None:
        """Do one step, which `cancel` ends where it waits."""
        step = self._step = asyncio.create_task(work)
        try:
            await asyncio.wait({step})
        finally:
            step.cancel()
        if not step.cancelled():
            step.result()

    async def _advance(self, record: RolloutRecord, switch: str) -> None:
        """Give the next switch the program, and check it."""
        if self._digest(switch) != record.digest:
            record = await self._free(record, switch)
            down = sorted(link_name(k) for k in self._state.failures.failed.links if switch in k)
            record = self._commit(record.model_copy(update={"down": tuple(down)}))
            self._assign(switch, record.digest)
        if fault := await self._fault(switch, record.down):
            log.error("switch %s gets its program back: %s", switch, fault)
            self._commit(record.model_copy(update={"reason": f"switch {switch}: {fault}"}))
            return
        self._give_back(record, switch)
        done = {"done": (*record.done, switch), "left": record.left[1:], "displaced": None, "down": ()}
        self._commit(record.model_copy(update=done))

    async def _free(self, record: RolloutRecord, switch: str) -> RolloutRecord:
        """Let jobs leave the switch, or hold it for those that cannot."""
        record = self._note_displaced(record, switch)
        jobs = [j for j in self._state.registry.all() if not j.state.is_terminal]
        is_bound = any(switch in unavoidable(self._state.fabric, j.workers).switches for j in jobs)
        if not is_bound:
            self._maintenance.withdraw([switch], Intent.DRAIN, REASON, is_for_rollout=True)
            await self._until(
                lambda: all(self._migration_reason(j.name) for j in self._jobs_at(switch)), DRAIN_S
            )
        if is_bound or self._jobs_at(switch):
            self._maintenance.withdraw([switch], Intent.HOLD, REASON, HOLD_S, is_for_rollout=True)
        return record

    async def _put_back(self, record: RolloutRecord, switch: str) -> None:
        """Give a switch the program back that it had, and end the rollout."""
        before = record.previous[switch]
        if self._digest(switch) != before:
            if not any(w.element == switch and w.is_for_rollout for w in self._state.registry.withdrawals):
                record = await self._free(
                    record, switch
                )  # it was given back before it could be noted as done
            self._assign(switch, before)
        session = self._fleet.sessions[switch]
        is_ready = await self._until(lambda: session.is_ready_with_pipeline, READY_S)
        if is_ready or record.displaced is not None:
            self._give_back(record, switch)
        if not is_ready:
            why = f"{record.reason}; {switch} is not ready with its own program, and stays withdrawn"
            record = record.model_copy(update={"reason": why})
        self._end(record)

    def _end(self, record: RolloutRecord) -> None:
        reason = f": {record.reason}" if record.reason else ""
        log.warning("the rollout of program %s is %s%s", record.name, record.end, reason)
        with self._state.registry.change():
            self._store.forget_unused_programs()
            ended = record.model_copy(update={"state": record.end})
            self._store.put_rollout(ended)
        self.record = ended
        self._state.changes.notify()

    # ---- withdrawals ----------------------------------------------------------------------------------

    def _jobs_at(self, switch: str) -> list[JobRecord]:
        return [j for j in self._state.registry.all() if switch in j.nodes]

    def _note_displaced(self, record: RolloutRecord, switch: str) -> RolloutRecord:
        """Note what an operator has requested for the switch, to which it returns."""
        found = [w for w in self._state.registry.withdrawals if w.element == switch and not w.is_for_rollout]
        return self._commit(record.model_copy(update={"displaced": found[0]})) if found else record

    def _give_back(self, record: RolloutRecord, switch: str) -> None:
        """Give the switch back, or withdraw it again as an operator had requested."""
        displaced = record.displaced
        if displaced is None:
            self._maintenance.give_back([switch], is_for_rollout=True)
        else:
            now = self._state.clock.wall_s()  # which may have been set back
            left_s = max(1.0, min(displaced.until - now, displaced.until - displaced.since))
            self._maintenance.withdraw([switch], displaced.intent, displaced.reason, left_s)

    # ---- programs -------------------------------------------------------------------------------------

    def _digest(self, switch: str) -> str:
        return self._store.switch_programs()[switch].digest

    def _assign(self, switch: str, digest: str) -> None:
        """Make the switch run a program of the store."""
        program = self._store.program(digest)
        pipeline = self._pipeline_of(program)
        with self._state.registry.change():
            self._store.put_switch_program(switch, SwitchProgram(digest, was_rolled_out=True))
        self._fleet.sessions[switch].replace_pipeline(pipeline)
        self._on_program(switch, program.abilities)

    async def _fault(self, switch: str, down: Collection[str]) -> str:
        """Why the switch does not work with its program; "": it does. `down`: its links that were so before."""
        session, fault = self._fleet.sessions[switch], ""
        for _ in range(CHECKS):
            await self._until(
                lambda: session.is_ready_with_pipeline or session.refused_pipelines >= CHECKS, READY_S
            )
            if not session.is_ready_with_pipeline:
                return f"it is not ready with the program: {session.health.error}"
            try:
                fault = await self._checked(session, down)
            except SwitchUnreachableError as error:
                fault = str(error)
                await self._until(lambda: not session.is_ready_with_pipeline, LOST_S)
            if not fault:
                return ""
        return fault

    async def _checked(self, session: SwitchSession, down: Collection[str]) -> str:
        """Name what is wrong with a switch that is ready. Raises SwitchUnreachableError."""
        switch = session.endpoint.name
        if not await session.has_pipeline():
            return "it reports another program than was pushed"
        await self._probes.check_links(switch, down)
        registry, slots = self._state.registry, self._state.fabric.switch(switch).slots
        free = next((block for block in range(slots // BLOCK) if registry.is_free(switch, block)), None)
        if free is None:
            await self._slots.manage(switch, Kind.READ, 0)
            return ""
        with registry.quarantine(switch, free):
            await self._slots.manage(switch, Kind.RESET, free * BLOCK)
            view = await self._slots.manage(switch, Kind.READ, free * BLOCK)
        return f"slot {view.slot} is not empty after a RESET" if view.epoch or view.bitmap else ""

    # ---- helpers --------------------------------------------------------------------------------------

    def _commit(self, record: RolloutRecord) -> RolloutRecord:
        with self._state.registry.change():
            self._store.put_rollout(record)
        self.record = record
        self._state.changes.notify()
        return record

    async def _until(self, holds: Callable[[], bool], limit_s: float) -> bool:
        """Wait until a condition holds, at most for some time. Return whether it does."""
        try:
            async with asyncio.timeout(limit_s):
                while not holds():
                    await self._state.changes.wait()
        except TimeoutError:
            return holds()
        return True


def _without_removed(record: RolloutRecord | None, switches: Collection[str]) -> RolloutRecord | None:
    """The rollout without the switches that the fabric does not have any more. It is over if the one that failed is
    among them."""
    if record is None or record.state is not RolloutState.RUNNING:
        return record
    left = tuple(switch for switch in record.left if switch in switches)
    is_removed = left[:1] != record.left[:1]
    displaced = None if is_removed else record.displaced
    state = record.end if is_removed and record.reason else record.state
    return record.model_copy(update={"left": left, "displaced": displaced, "state": state})
