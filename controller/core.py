# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Wires the packages of the controller together. Requests of operators and members, and reports of switches, arrive
here.

Life of a job: `submit` resolves its file (jobs.file), `PlacementScheduler` (scheduling) plans and places it,
`Lifecycle` (lifecycle.states) writes that into the store and turns the store into the desired state of every switch
(switches.desired_state), the sessions (switches.fleet) write the difference, and when all switches have it the job
runs. `Members` keeps its leases. `FailureMonitor` (health) collects failures; affected jobs are re-planned around them.

A change is one transaction in the store; the desired state of the switches follows from the store alone. So a
controller that dies anywhere and starts again computes the same state, and the sessions write the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import finsy as fy

from netfold.controller.features.registry import FEATURES
from netfold.controller.health.counters import Counters
from netfold.controller.health.failure_monitor import FailureMonitor
from netfold.controller.health.link_loads import LinkLoads, metered_ports
from netfold.controller.health.link_probes import LinkProbes
from netfold.controller.health.link_room import LinkRoom
from netfold.controller.health.reroute import REROUTE_PERIOD_S, Rerouter
from netfold.controller.health.slot_access import Recycler, SlotAccess
from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.jobs.revisions import Revision
from netfold.controller.jobs.store import StoreError
from netfold.controller.lifecycle.background_tasks import STORE_RETRY_S, BackgroundTasks
from netfold.controller.lifecycle.clock import Clock, SystemClock
from netfold.controller.lifecycle.events import (
    CapacityFreed,
    ElementsFailed,
    EpochsExhausted,
    EventBus,
    FailuresChanged,
    JobRunning,
    JobStranded,
    LeaseExpired,
    MembersRejoining,
)
from netfold.controller.lifecycle.failure_state import FailureState
from netfold.controller.lifecycle.job_registry import JobRegistry, UnknownJobError
from netfold.controller.lifecycle.job_store import JobStore
from netfold.controller.lifecycle.leases import Leases
from netfold.controller.lifecycle.member_status import MemberStatus
from netfold.controller.lifecycle.members import Members
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.states import Lifecycle
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.observation.event_log import EventLog
from netfold.controller.observation.observer import Observer
from netfold.controller.observation.recorder import PERIOD_S, Recorder
from netfold.controller.recording.history import MAX_BYTES
from netfold.controller.recording.lines import RecordingSource, fabric_line
from netfold.controller.scheduling.job_queue import AGE_S, JobQueue
from netfold.controller.scheduling.migration_scheduler import MigrationScheduler
from netfold.controller.scheduling.placement_scheduler import PlacementScheduler
from netfold.controller.scheduling.plan_scheduler import PlanScheduler
from netfold.controller.scheduling.planning_client import PlanBackend, PlanningClient
from netfold.controller.switches.base_entries import management_entries
from netfold.controller.switches.connection import Connect
from netfold.controller.switches.desired_state import DesiredState
from netfold.controller.switches.endpoint import Endpoint, Pipeline
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.finsy_adapter import FinsyConnection
from netfold.controller.switches.fleet import Fleet, FleetOptions
from netfold.controller.switches.management import slot_view
from netfold.controller.switches.port_counters import PortCounts
from netfold.topologies.addressing import SwitchAddress
from netfold.topologies.fabric import Fabric, FabricError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    packet_model: PacketModel
    pipeline: Pipeline
    timeouts: ControllerTimeouts = field(default_factory=ControllerTimeouts)
    fleet: FleetOptions = field(default_factory=FleetOptions)
    probe_s: float = 0.3
    counters_s: float = 2.0
    recording_period_s: float = PERIOD_S
    recording_bytes: int = MAX_BYTES
    reroute_period_s: float = REROUTE_PERIOD_S
    age_s: float = AGE_S


class Controller:
    """A controller that leads from its creation: `term` determines the election id. `run` serves until it is canceled.

    Outside it are the store, the plan backend, the clock, the connections to switches (`connect`) and the event loop
    with its timers and threads. A simulation replaces them (tests/simulation)."""

    def __init__(
        self,
        config: FabricConfig,
        store: JobStore,
        options: Options,
        term: int,
        plans: PlanBackend,
        *,
        clock: Clock | None = None,
        connect: Connect = FinsyConnection,
    ) -> None:
        clock = self.clock = clock or SystemClock()
        self.config = config
        self.options = options
        self.registry = JobRegistry(config, options.packet_model, store, clock)
        self.tasks = BackgroundTasks()
        self._left = {j.name for j in self.registry.all()}
        """Names of the jobs that the last controller left."""
        self.member_status = MemberStatus()
        self.events = EventBus()
        self.failures = FailureState()
        self.fleet = Fleet(
            _endpoints(config),
            options.pipeline,
            term,
            self,
            options.fleet,
            connect=connect,
            now=clock.monotonic_s,
        )
        self.loads = LinkLoads(config.fabric, options.packet_model.scale, clock.monotonic_s)
        self.link_room = LinkRoom(config.fabric, self.registry, self.loads, self.member_status)
        self.failure_monitor = FailureMonitor(
            self.fleet, options.timeouts, self.tasks.call_later, self.failures, self.events, clock
        )
        self.slots = SlotAccess(config, options.packet_model.lanes, self.fleet)
        self.link_probes = LinkProbes(
            config,
            options.packet_model.lanes,
            self.fleet,
            self.registry,
            self.slots.check_forwards,
            self.failure_monitor.links_changed,
            self._plan_early_jobs_again,
            options.probe_s,
        )
        leases = Leases(self.events)
        self.lifecycle = Lifecycle(
            self.registry,
            self.fleet,
            DesiredState(config, FEATURES),
            leases,
            self.member_status,
            self.tasks,
            options.timeouts,
            self.failures,
            self.events,
        )
        self.changes = self.lifecycle.changes
        planning = PlanningClient(
            config.fabric,
            self.registry,
            plans,
            options.timeouts,
            self.failures,
            self.link_room.cross_traffic,
            self.fleet.failure_cause,
        )
        plan_scheduler = PlanScheduler()
        queue = JobQueue(self.registry, clock.wall_s, options.age_s)
        self.placements = PlacementScheduler(
            config.fabric,
            self.registry,
            self.lifecycle,
            planning,
            plan_scheduler,
            queue,
            self.tasks,
            self.failures,
        )
        self.migrations = MigrationScheduler(
            self.registry, self.lifecycle, planning, plan_scheduler, queue, self.tasks, self.failures
        )
        self.rerouter = Rerouter(
            config.fabric,
            self.registry,
            self.link_room,
            self.migrations,
            clock.monotonic_s,
            options.reroute_period_s,
        )
        self.members = Members(
            self.registry,
            self.lifecycle,
            leases,
            self.member_status,
            self.tasks,
            options.timeouts,
            self.events,
        )
        self.counters = Counters(self.fleet, self.registry.all, self.changes.wait, options.counters_s)
        self.recycler = Recycler(self.registry, self.slots)
        self.event_log = EventLog(clock)
        observer = Observer(
            self.registry,
            self.fleet,
            self.member_status,
            self.failures,
            self.loads,
            self.counters,
            clock.monotonic_s,
            options.packet_model.lanes,
        )
        self.recorder = Recorder(
            fabric_line(config.fabric, RecordingSource.CONTROLLER, scale=options.packet_model.scale),
            observer,
            self.event_log,
            clock,
            self.changes.wait,
            options.recording_period_s,
            options.recording_bytes,
        )
        self._subscribe()

    def _subscribe(self) -> None:
        """Connect all events between packages, from publisher to subscriber."""
        on = self.events.subscribe
        on(ElementsFailed, self.event_log.on_elements_failed)  # FailureMonitor
        on(JobRunning, self.event_log.on_job_running)  # Lifecycle
        on(LeaseExpired, self.event_log.on_lease_expired)  # Leases
        on(JobStranded, self.event_log.on_job_stranded)  # Lifecycle, Members
        on(FailuresChanged, self.lifecycle.on_failures_changed)  # FailureMonitor
        on(FailuresChanged, self.migrations.on_failures_changed)  # FailureMonitor
        on(ElementsFailed, self.migrations.on_elements_failed)  # FailureMonitor
        on(ElementsFailed, self.placements.on_elements_failed)  # FailureMonitor
        on(CapacityFreed, self.placements.on_capacity_freed)  # FailureMonitor, Lifecycle, Members
        on(JobRunning, self.members.on_job_running)  # Lifecycle
        on(LeaseExpired, self.members.on_lease_expired)  # Leases
        on(EpochsExhausted, self.migrations.on_epochs_exhausted)  # Lifecycle, Members
        on(JobStranded, self.migrations.on_job_stranded)  # Lifecycle, Members
        on(MembersRejoining, self.migrations.on_members_rejoining)  # Members

    @property
    def fabric(self) -> Fabric:
        return self.config.fabric

    async def run(self) -> None:
        await self._read_files()
        await self.lifecycle.compute_routes()
        self.lifecycle.retarget()
        for job in self.registry.all():
            if not job.state.is_terminal:
                self._resume(job)
        self.failure_monitor.start()
        self.placements.try_queue()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.fleet.run())
                group.create_task(self._keep_running(self.link_probes.run))
                group.create_task(self.counters.run())
                group.create_task(self._keep_running(self.recycler.run))
                group.create_task(self.rerouter.run())
                group.create_task(self.recorder.run())
        finally:
            self.tasks.stop()

    async def _keep_running(self, work: Callable[[], Awaitable[None]]) -> None:
        """Restart `work` after a StoreError: a full disk does not end the controller. Work may end by itself (as link
        probes do if they are off)."""
        while True:
            try:
                await work()
            except StoreError as error:
                log.error("%s", error)
                await asyncio.sleep(STORE_RETRY_S)
            else:
                return

    async def _read_files(self) -> None:
        """Read the files of all jobs that the last controller left. A job ends if its file was accepted by another
        version of netfold and this version cannot read it."""
        unreadable: list[JobRecord] = []
        for job in self.registry.all():
            try:
                if not job.state.is_terminal:
                    await asyncio.to_thread(self.registry.resolved_job, job.name)  # a large one takes seconds
            except FabricError as error:
                why = f"its job file cannot be read any more: {error}"
                unreadable.append(self.registry.with_end_state(job, JobState.FAILED, why))
        if unreadable:
            with self.registry.change():
                for job in unreadable:
                    self.registry.write(job)

    def _resume(self, job: JobRecord) -> None:
        """Resume a job that the last controller left."""
        self.members.resume(job)
        self.lifecycle.resume(job)
        if job.state.is_installed and self.lifecycle.is_affected(job):  # it died before the job had moved
            self.migrations.repair(job.name, job.reason)

    # ---- operators --------------------------------------------------------------------------------------

    async def submit(self, text: str, *, queue: bool, source: str = "") -> JobRecord:
        """Admit a job; shortly after a start only when all switches are connected or given up. `source`: name of the
        file in messages. Raises JobError for a bad file, JobExistsError, RefusedError (unless it may wait)."""
        resolved = await asyncio.to_thread(resolve_job, text, self.fabric, source or "job")
        await self.failure_monitor.all_known()
        if not self.registry.has_live(resolved.file.name):
            self.member_status.forget(resolved.file.name)
        return await self.placements.submit(resolved, queue=queue)

    def cancel(self, name: str, canceled_by: str = "") -> JobRecord:
        """Cancel a job. Raises UnknownJobError."""
        if not self.registry.get(name).state.is_terminal:
            self.lifecycle.end(name, JobState.CANCELED, f"canceled by {canceled_by or 'an operator'}")
        return self.registry.get(name)

    async def replan(self, names: Iterable[str]) -> list[str]:
        """Plan these jobs again, one by one; those that gain enough move. Raises UnknownJobError."""
        chosen = [self.registry.get(n) for n in names] or self.registry.all()
        moved = [j.name for j in chosen if await self.migrations.replan(j.name)]
        self.placements.try_queue()
        return moved

    def _plan_early_jobs_again(self) -> None:
        """Plan jobs again that this controller placed before all links had answered a probe: their plans could not use
        the whole fabric."""
        early = [j.name for j in self.registry.all() if j.state.is_installed and j.name not in self._left]
        self.tasks.spawn(self._replan_running(early), "jobs that were planned before all links were known")

    async def _replan_running(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(UnknownJobError):
                while self.registry.get(name).state is JobState.INSTALLING:
                    await self.changes.wait(name)
                await self.migrations.replan(name)

    # ---- FleetEvents ------------------------------------------------------------------------------------

    async def registers_lost(self, switch: str) -> None:
        """Give the jobs of the switch new epochs, and return when the store has them."""
        while True:
            try:
                self.lifecycle.on_registers_lost(switch)
            except StoreError as error:
                log.error("new epochs after switch %s lost its registers: %s", switch, error)
                await asyncio.sleep(STORE_RETRY_S)
            else:
                return

    def has_revision(self, switch: str, revision: Revision) -> bool:
        return self.registry.has_revision(switch, revision)

    def switch_changed(self, switch: str) -> None:
        self.failure_monitor.switch_changed(switch)
        if self.fleet.health(switch).ready:
            self.lifecycle.settle()
        self.changes.notify()

    def packet_in(self, switch: str, packet: fy.P4PacketIn) -> None:
        view = slot_view(packet)
        if view is None or view.tree != self.config.management_tree:
            return
        if not self.slots.on_answer(switch, view):
            self.link_probes.on_answer(switch, view)

    def port_changed(self, switch: str, port: int, down: bool) -> None:
        near = next((n for n, p in self.fabric.ports[switch].items() if p == port), None)
        if near is not None:
            self.link_probes.reported(switch, near, down)

    def ports_counted(self, switch: str, counts: PortCounts, requested_at: float) -> bool:
        return self.loads.counted(switch, counts, requested_at)


def _endpoints(config: FabricConfig) -> list[Endpoint]:
    return [_endpoint(config, s) for s in config.addresses.switches.values()]


def _endpoint(config: FabricConfig, known: SwitchAddress) -> Endpoint:
    device = config.device(known.name)
    return Endpoint(
        known.name,
        device.address or known.grpc_address,
        known.device_id if device.device_id is None else device.device_id,
        next(management_entries(config, known.name)).key,
        config.management_tree,
        device.pipeline,
        device.one_shot,
        device.tls,
        device.full_width,
        *metered_ports(config.fabric, known.name),
    )
