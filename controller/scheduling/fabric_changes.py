# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Changes of the fabric's file while jobs run.

A change is refused while a job uses what goes or gives less. Else it is one transaction of the store, after which
another controller is made in the place of this one: it starts with the new fabric, and finds everything else as it
was."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from netfold.controller.jobs.records import JobRecord
from netfold.controller.jobs.stored_fabric import known_numbers
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.job_registry import resolved_with
from netfold.controller.switches.failed_elements import FailedElements, WithdrawalError, element_named
from netfold.protocol.listing import listing
from netfold.topologies.address_assignment import Numbers, numbered
from netfold.topologies.differences import Difference, differences
from netfold.topologies.fabric import Fabric, FabricError
from netfold.topologies.spec import fabric_from_spec, parse_fabric, spec_text

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChangedElement:
    """A difference to the store's fabric. `jobs`: those that use the element. `refusal`: why the difference cannot be
    applied, and what makes it possible; "" if it can."""

    difference: Difference
    jobs: tuple[str, ...] = ()
    refusal: str = ""


@dataclass(frozen=True)
class FabricChange:
    """A new fabric with all its numbers, and what it changes. `is_applied`: the store has it."""

    spec: str
    numbers: Numbers
    elements: tuple[ChangedElement, ...]
    is_applied: bool = False

    @property
    def is_refused(self) -> bool:
        return any(element.refusal for element in self.elements)

    @property
    def removed(self) -> FailedElements:
        """The switches, hosts and links that the new fabric lacks."""
        found = [e.difference for e in self.elements if e.difference.text == "goes"]
        return FailedElements(
            frozenset(d.link for d in found if d.end), frozenset(d.element for d in found if not d.end)
        )


class FabricChanges:
    """`applied` is set when the store has another fabric than this controller. `equip` checks that the controller can
    run a fabric, and returns it as its switches are; it raises FabricError."""

    def __init__(self, state: ControllerState, equip: Callable[[Fabric], Fabric]) -> None:
        self._state = state
        self._equip = equip
        self.applied = asyncio.Event()

    async def change(self, text: str, source: str, *, dry_run: bool) -> FabricChange:
        """Compare a file with the store's fabric, and make it the store's unless an element is refused or this is a
        dry run. Raises FabricError for a bad file, and StoreError."""
        registry = self._state.registry
        stored = registry.fabric_store
        old = await asyncio.to_thread(fabric_from_spec, stored.fabric)
        known = known_numbers(stored.numbers, old)
        new = await asyncio.to_thread(self._read, text, source, known)
        spec = await asyncio.to_thread(spec_text, new)
        unfit: dict[str, str] = {}
        while unread := [j for j in registry.all() if not j.state.is_terminal and j.name not in unfit]:
            unfit |= await asyncio.to_thread(lambda: {j.name: _unfit_because(j, new) for j in unread})
        # Nothing is awaited from here on, so no job changes between the check and the store.
        live = [j for j in registry.all() if not j.state.is_terminal]
        elements = tuple(self._checked(old, new, live, unfit))
        change = FabricChange(spec, known | Numbers.of(new), elements)
        if dry_run or change.is_refused or not elements:
            return change
        registry.replace_fabric(change.spec, change.numbers.text, change.removed)
        log.warning("the fabric has changed: %s", listing([str(e.difference) for e in elements]))
        self.applied.set()
        return replace(change, is_applied=True)

    def _read(self, text: str, source: str, known: Numbers) -> Fabric:
        return numbered(self._equip(parse_fabric(text, source)), known)

    def _checked(
        self, old: Fabric, new: Fabric, live: list[JobRecord], unfit: dict[str, str]
    ) -> Iterator[ChangedElement]:
        found = differences(old, new)
        hit: set[str] = set()
        for difference in found:
            jobs = tuple(j.name for j in live if _uses(j, difference, old))
            hit.update(jobs if difference.takes else ())
            yield ChangedElement(difference, jobs, _refusal(difference, jobs, old))
        for name in (j.name for j in live if found and j.name not in hit):
            if why := unfit[name]:
                yield ChangedElement(Difference("", f"job {name} would not fit", takes=True), (name,), why)
        for withdrawal in self._state.registry.withdrawals if found else ():
            yield from _unclear(new, withdrawal.element, {d.name for d in found if d.text == "goes"})


def _uses(job: JobRecord, difference: Difference, old: Fabric) -> bool:
    """Whether the job has a worker there, or installed entries. A link's number of a host is that of its port."""
    hosts = {m.host for m in job.members}
    if not difference.element:
        return True
    if not difference.end:
        at = {old.attachment(host) for host in hosts if old.is_host(host)}
        return difference.element in hosts or difference.element in job.nodes | at
    if not hosts.isdisjoint(difference.link):
        return True
    return any(difference.link in placement.links for placement in job.placements)


def _refusal(difference: Difference, jobs: tuple[str, ...], old: Fabric) -> str:
    if not difference.takes:
        return ""
    if difference.text.startswith("name "):
        return f"the store is of fabric '{old.name}'; give another --state to another fabric"
    if not jobs:
        return ""
    names = listing(jobs)
    if not difference.element:
        return f"{names}: cancel, or wait for the end"
    hosts = [n for n in (difference.element, difference.end) if n and old.is_host(n)]
    if hosts:
        return f"used by {names}: wait for the end, or cancel"
    return f"used by {names}: `netfold fabric drain {difference.name}` first"


def _unfit_because(job: JobRecord, fabric: Fabric) -> str:
    """Why the fabric cannot have the job; "" if it can."""
    missing = [m.host for m in job.members if not fabric.is_host(m.host)]
    if missing:
        return f"the fabric has no {listing(missing)}: wait for its end, or cancel it"
    try:
        resolved_with(job, fabric)
    except FabricError as error:
        return f"{error}: wait for its end, or cancel it"
    return ""


def _unclear(new: Fabric, withdrawn: str, removed: Iterable[str]) -> Iterator[ChangedElement]:
    """A name that is withdrawn has to mean one element of the new fabric, too."""
    if withdrawn in removed:
        return
    try:
        element_named(new, withdrawn)
    except WithdrawalError as error:
        why = f"{error}: `netfold fabric undrain {withdrawn}` first"
        yield ChangedElement(Difference(withdrawn, "is withdrawn", takes=True), (), why)
