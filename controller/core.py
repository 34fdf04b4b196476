# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller: it wires the rooms together. What operators and members ask comes in here, and what switches say.

A job's way: `submit` reads its file (jobs.file), `Planner` (lifecycle.placing) finds it a place when its turn comes,
`Lifecycle` (lifecycle.states) writes that into the store and turns the store into what every switch should hold
(switches.desired), the sessions (switches.fleet) write the difference, and when all switches have it the job runs.
`Members` keeps its leases, `Outages` (health) hears what breaks and lets jobs give way, by new plans.

A change is one transaction in the store; the switches' target follows from the store alone. So a controller that dies
anywhere and starts again computes the same target, and the sessions do the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

import finsy as fy

from netfold.controller.health.counters import Counters
from netfold.controller.health.link_loads import LinkLoads, metered_ports
from netfold.controller.health.links import LinkProbes
from netfold.controller.health.outages import Outages, Uses
from netfold.controller.health.recycle import Recycler
from netfold.controller.health.reroute import Rerouter
from netfold.controller.jobs.file import read_order
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.jobs.store import Store
from netfold.controller.lifecycle.admission import Wire
from netfold.controller.lifecycle.book import Book, over
from netfold.controller.lifecycle.drafts import Plans
from netfold.controller.lifecycle.leases import Leases
from netfold.controller.lifecycle.members import Members
from netfold.controller.lifecycle.patience import Patience
from netfold.controller.lifecycle.placing import Planner
from netfold.controller.lifecycle.presence import Presence
from netfold.controller.lifecycle.states import Lifecycle
from netfold.controller.lifecycle.tasks import Tasks
from netfold.controller.planning.plan import Loads
from netfold.controller.switches.desired import Broken, Setting, Targets, management
from netfold.controller.switches.endpoint import Endpoint, Pipeline
from netfold.controller.switches.fleet import Fleet, FleetOptions
from netfold.controller.switches.port_counters import PortCounts
from netfold.topologies.addressing import SwitchAddress
from netfold.topologies.fabric import Fabric, FabricError


@dataclass(frozen=True)
class Options:
    wire: Wire
    pipeline: Pipeline
    patience: Patience = field(default_factory=Patience)
    fleet: FleetOptions = field(default_factory=FleetOptions)
    probe_s: float = 0.3
    counters_s: float = 2.0


class Controller:
    """Leads from the moment it is made: `term` is the election id. `run` serves until canceled."""

    def __init__(self, setting: Setting, store: Store, options: Options, term: int, plans: Plans) -> None:
        self.setting = setting
        self.options = options
        self.book = Book(setting, options.wire, store)
        self.tasks = Tasks()
        self.presence = Presence()
        self.fleet = Fleet(_endpoints(setting), options.pipeline, term, self, options.fleet)
        self.loads = LinkLoads(setting.fabric, options.wire.scale)
        self.outages = Outages(self.fleet, options.patience, self.tasks.later, self)
        self.links = LinkProbes(
            setting, options.wire.lanes, self.fleet, self.book, self.outages.links_changed, options.probe_s
        )
        leases = Leases(self._lease_expired)
        self.lifecycle = Lifecycle(
            self.book,
            self.fleet,
            Targets(setting),
            leases,
            self.presence,
            self.tasks,
            options.patience,
            broken=lambda: self.broken,
            runs=self._runs,
            room=self.room,
        )
        self.pulse = self.lifecycle.pulse
        self.planner = Planner(
            setting.fabric,
            self.book,
            self.lifecycle,
            plans,
            self.tasks,
            options.patience,
            lambda: self.broken,
            self._foreign,
        )
        self.rerouter = Rerouter(setting.fabric, self.book, self.loads, self.planner, self.presence)
        self.members = Members(
            self.book, self.lifecycle, leases, self.tasks, self.planner.repair, self.planner.admit
        )
        self.counters = Counters(self.fleet, self.book.all, self.pulse.wait, options.counters_s)
        self.recycler = Recycler(self.book, self.links)

    @property
    def fabric(self) -> Fabric:
        return self.setting.fabric

    @property
    def broken(self) -> Broken:
        """What does not work now."""
        return self.outages.broken

    async def run(self) -> None:
        await self._read_files()
        await self.lifecycle.learn_routes()
        self.lifecycle.retarget()
        for job in self.book.all():
            if not job.state.over:
                self._resume(job)
        self.outages.start()
        self.room()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.fleet.run())
                group.create_task(self.links.run())
                group.create_task(self.counters.run())
                group.create_task(self.recycler.run())
                group.create_task(self.rerouter.run())
        finally:
            self.tasks.stop()

    async def _read_files(self) -> None:
        """Of all jobs that the last controller left. A file that was good when it was submitted, to another version of
        netfold, ends its job."""
        unreadable: list[JobRecord] = []
        for job in self.book.all():
            try:
                if not job.state.over:
                    await asyncio.to_thread(self.book.order, job.name)  # a large one takes seconds
            except FabricError as error:
                why = f"its job file cannot be read any more: {error}"
                unreadable.append(over(job, JobState.FAILED, why))
        with self.book.change():
            for job in unreadable:
                self.book.write(job)

    def _resume(self, job: JobRecord) -> None:
        """What the last controller left."""
        self.members.resume(job)
        self.lifecycle.resume(job)
        if job.state.installed and self.lifecycle.hit(job):  # it died before the job had moved
            self.planner.repair(job.name, job.reason)

    def _lease_expired(self, job: str, host: str) -> None:
        self.members.lease_expired(job, host)

    def _foreign(self) -> Loads:
        return self.rerouter.foreign()

    def _runs(self, job: JobRecord) -> None:
        self.members.expect(job)

    # ---- operators --------------------------------------------------------------------------------------

    async def submit(self, text: str, *, queue: bool) -> JobRecord:
        """Admit a job; soon after a start only when all switches are connected or given up. Raises JobError for a bad
        file, JobExistsError, RefusedError (unless it may wait)."""
        order = await asyncio.to_thread(read_order, text, self.fabric)
        await self.outages.all_known()
        if not self.book.has_live(order.file.name):
            self.presence.forget(order.file.name)
        return await self.planner.submit(order, queue=queue)

    def cancel(self, name: str) -> JobRecord:
        """Raises UnknownJobError."""
        if not self.book.get(name).state.over:
            self.lifecycle.end(name, JobState.CANCELED, "canceled by an operator")
        return self.book.get(name)

    async def replan(self, names: Iterable[str]) -> list[str]:
        """Plan again, job by job; those that gain enough move. Raises UnknownJobError."""
        chosen = [self.book.get(n) for n in names] or self.book.all()
        moved = [j.name for j in chosen if await self.planner.replan(j.name)]
        self.room()
        return moved

    # ---- FleetEvents ------------------------------------------------------------------------------------

    async def registers_lost(self, switch: str) -> None:
        """Sums of the switch's trees are gone: their jobs begin a new epoch on the same trees."""
        hit = [j for j in self.book.all() if any(switch in t.bases for p in j.placements for t in p.trees)]
        with self.book.change():
            self.book.registers_empty(switch)
            for job in hit:
                self.book.write(self.book.raised(job, f"switch {switch} lost its registers"))
        if hit:
            self.lifecycle.changed(*(j.name for j in hit))

    def switch_changed(self, switch: str) -> None:
        self.outages.switch_changed(switch)
        if self.fleet.health(switch).ready:
            self.lifecycle.settle()
        self.pulse.beat()

    def packet_in(self, switch: str, packet: fy.P4PacketIn) -> None:
        self.links.packet_in(switch, packet)

    def port_changed(self, switch: str, port: int, down: bool) -> None:
        near = next((n for n, p in self.fabric.ports[switch].items() if p == port), None)
        if near is not None:
            self.links.reported(switch, near, down)

    def ports_counted(self, switch: str, counts: PortCounts, asked: float) -> bool:
        return self.loads.counted(switch, counts, asked)

    # ---- OutageEvents -----------------------------------------------------------------------------------

    def broken_changed(self) -> None:
        self.lifecycle.broken_changed()

    def give_way(self, uses: Uses, why: str, fail: bool) -> None:
        for job in self.book.all():
            if uses(job):
                self.planner.repair(job.name, why, fail=fail)

    def room(self) -> None:
        self.planner.try_queue()


def _endpoints(setting: Setting) -> list[Endpoint]:
    return [_endpoint(setting, s) for s in setting.addresses.switches.values()]


def _endpoint(setting: Setting, known: SwitchAddress) -> Endpoint:
    device = setting.device(known.name)
    return Endpoint(
        known.name,
        device.address or known.grpc_address,
        known.device_id if device.device_id is None else device.device_id,
        next(management(setting, known.name)).key,
        device.pipeline,
        device.one_shot,
        device.tls,
        device.full_width,
        *metered_ports(setting.fabric, known.name),
    )
