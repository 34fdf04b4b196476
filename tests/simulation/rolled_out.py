# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Rollouts of programs: an operator rolls one out, or cancels it, and a switch gets no other program than that of the
store, nor one that fails while others have it, nor any while jobs may use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from netfold.controller.health.rollouts import CANCELED
from netfold.controller.jobs.program_records import RolloutState, StoredProgram, SwitchProgram
from netfold.controller.jobs.store import SCHEMA_BEFORE, Store
from netfold.controller.switches.devices import Device
from netfold.controller.switches.endpoint import Pipeline
from netfold.p4src.manifest import Program
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.fabric import Fabric
from tests.simulation.switch import MUTE, REFUSED, SimulatedSwitch

ASK_AGAIN_S = 2.0
"""The operator asks again, where no controller has answered."""

FIRST, NEXT = "first", "next"
"""Programs that work: that of all switches at the start, and another one."""

BAD = (REFUSED, MUTE)


def program(name: str) -> StoredProgram:
    return StoredProgram(name, name.encode(), name.encode(), Program(lanes=64, children=32, timed=True))


def pipeline_of(found: StoredProgram) -> Pipeline:
    return Pipeline(Path(found.name), Path(found.name))


def devices_of(store: Store, fabric: Fabric, *, as_before: bool) -> dict[str, Device]:
    """The programs of switches, as the daemon notes them. `as_before`: by the version before, which has one program,
    and does not read those of the store."""
    own = program(FIRST)
    if as_before:
        return {s.name: Device(pipeline=pipeline_of(own)) for s in fabric.switches}
    known = store.switch_programs()
    with store.change():
        store.put_program(own)
        for switch in (s.name for s in fabric.switches if s.name not in known):
            store.put_switch_program(switch, SwitchProgram(own.digest, was_rolled_out=False))
    chosen = store.switch_programs()
    return {
        s.name: Device(pipeline=pipeline_of(store.program(chosen[s.name].digest))) for s in fabric.switches
    }


class RolloutOperator:
    """Rolls programs out, one after the other. `call` starts a task that makes a request, and does something with its
    answer."""

    def __init__(self, call: Callable[..., asyncio.Task[Any]]) -> None:
        self._call = call
        self._wanted = ""
        self._request: asyncio.Task[Any] | None = None
        self.answered = ""
        """The program of the last rollout of which a controller has said that it has begun."""
        self.requested: set[str] = set()
        """That program, and those of later requests: one without an answer may have begun, too."""
        self.canceled = ""
        """The program of the last rollout of which a controller has said that it is canceled."""

    @property
    def waits(self) -> bool:
        return bool(self._wanted)

    def want(self, name: str) -> None:
        """Begin a rollout. One that is under way is left alone."""
        if not self._wanted:
            self._wanted = name
            self._ask(name)

    def _ask(self, name: str) -> None:
        if self._wanted != name:
            return
        found = program(name)
        request = pb.RollOutProgramRequest(
            name=name,
            p4info=found.p4info,
            blob=found.blob,
            abilities=found.abilities.model_dump_json().encode(),
        )

        def answered(answer: pb.FabricStatus) -> None:
            self.answered, self._wanted = answer.rollout.program, ""
            self.requested = {self.answered}

        self.requested.add(name)
        self.canceled = ""
        if self._request is None or self._request.done():
            self._request = self._call(f"roll out {name}", "RollOutProgram", request, answered)
        asyncio.get_running_loop().call_later(ASK_AGAIN_S, self._ask, name)

    def cancel(self) -> None:
        """Cancel the rollout that is under way, if a controller answers and has one."""

        def answered(answer: pb.FabricStatus) -> None:
            if answer.rollout.reason == CANCELED and not self._wanted:
                self.canceled = answer.rollout.program

        self._call("cancel the rollout", "CancelRollout", pb.CancelRolloutRequest(), answered)

    def on_restore(self) -> None:
        """The store is an older one: what was answered may be gone."""
        self.answered = self.canceled = ""

    def give_up(self) -> None:
        self._wanted = ""


def check_push(
    switch: SimulatedSwitch, pipeline: Pipeline, others: Iterable[SimulatedSwitch], store: Store
) -> str:
    """Name what is wrong with a push of another program; empty: nothing."""
    name = pipeline.p4info.name
    if name != FIRST and not store.is_final:
        return f"{switch.name} gets program {name}, and the version before may use the store"
    withdrawn = {w.element: w.reason for w in store.withdrawals()}
    has_other = switch.pipeline not in (None, pipeline)
    if has_other and switch.name not in withdrawn and store.is_final:
        return f"{switch.name} gets program {name}, and jobs may use it"
    if name in BAD and any(s is not switch and s.pipeline == pipeline for s in others):
        return f"{switch.name} gets program {name}, which has failed at another switch"
    return ""


def wrong_at_rest(
    store: Store,
    switches: Mapping[str, SimulatedSwitch],
    fabric: Fabric,
    operator: RolloutOperator,
    *,
    has_worked: bool,
) -> str:
    """Name what is wrong when all has been well for a while; empty: nothing. `has_worked`: all switches have worked all
    the time."""
    rollout, known = store.rollout, store.switch_programs()
    if rollout is not None and rollout.state is RolloutState.RUNNING:
        return f"the rollout of {rollout.name} does not end"
    if operator.answered and (rollout is None or rollout.name not in operator.requested):
        return f"the rollout of {operator.answered} is lost"
    for name in (s.name for s in fabric.switches):
        has = switches[name].pipeline
        wanted = pipeline_of(store.program(known[name].digest))
        if has != wanted:
            return f"{name} has {has}, and the store {wanted}"
        if wanted.p4info.name in BAD:
            return f"{name} stays with program {wanted.p4info.name}"
    if rollout is not None and rollout.name == operator.canceled and not rollout.is_canceled:
        return f"the rollout of {operator.canceled} was canceled, and is {rollout.state}"
    if rollout is not None and rollout.is_canceled:
        for name in (s.name for s in fabric.switches if s.name in rollout.left):
            if known[name].digest != rollout.previous[name]:
                return f"{name} has another program than before the canceled rollout"
    if any(w.is_for_rollout for w in store.withdrawals()):
        return "a switch stays withdrawn after its rollout"
    if rollout is not None and rollout.state is RolloutState.DONE and rollout.name in BAD:
        return f"the rollout of {rollout.name} is done"
    if has_worked and rollout is not None and rollout.name == NEXT and rollout.state is RolloutState.STOPPED:
        return f"the rollout of {rollout.name} has stopped: {rollout.reason}"
    return ""


def use_as_before(store: Store) -> bool:
    """Whether the version before can use the store."""
    return store.number("schema") == SCHEMA_BEFORE
