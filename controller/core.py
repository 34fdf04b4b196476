# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Wires the subsystems of the controller together, runs them, and passes on the reports of switches.

Life of a job: `OperatorRequests.submit` (scheduling) resolves its file (jobs.file), `PlacementScheduler` plans and
places it, `Lifecycle` (lifecycle.states) writes that into the store and turns the store into the desired state of every
switch (switches.desired_state), the sessions (switches.fleet) write the difference, and when all switches have it the
job runs. `Members` keeps its leases. `FailureMonitor` (health) collects failures; affected jobs are re-planned around
them.

A change is one transaction in the store; the desired state of the switches follows from the store alone. So a
controller that dies anywhere and starts again computes the same state, and the sessions write the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import finsy as fy

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.jobs.revisions import Revision
from netfold.controller.lifecycle.background_tasks import STORE_RETRY_S
from netfold.controller.lifecycle.clock import Clock, SystemClock
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.events import (
    CapacityFreed,
    ElementsFailed,
    EpochsExhausted,
    FailuresChanged,
    JobRunning,
    JobStranded,
    LeaseExpired,
    LinksKnown,
    MaintenanceRequested,
    MembersRejoining,
    MoveFailed,
)
from netfold.controller.lifecycle.job_store import JobStore
from netfold.controller.scheduling.operator_requests import OperatorRequests
from netfold.controller.scheduling.planning_client import PlanBackend
from netfold.controller.subsystems import Jobs, Observation, Options, Planning, Switches
from netfold.controller.switches.connection import Connect
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.finsy_adapter import FinsyConnection
from netfold.controller.switches.management import slot_view
from netfold.controller.switches.port_counters import PortCounts
from netfold.topologies.fabric import FabricError

log = logging.getLogger(__name__)


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
        state = ControllerState(config, options.packet_model, options.timeouts, store, clock or SystemClock())
        self.state = state
        self.switches = Switches(state, options, term, self, connect)
        self.jobs = Jobs(state, self.switches.fleet)
        self.planning = Planning(state, self.switches, self.jobs, plans, options)
        self.observation = Observation(state, self.switches, options)
        self.requests = OperatorRequests(
            state, self.jobs.lifecycle, self.planning.placements, self.planning.migrations
        )
        self._subscribe()

    def _subscribe(self) -> None:
        """Connect all events between packages, from publisher to subscriber."""
        on, recorded = self.state.events.subscribe, self.observation.event_log
        jobs, planning = self.jobs, self.planning
        on(ElementsFailed, recorded.on_elements_failed)  # FailureMonitor
        on(MaintenanceRequested, recorded.on_maintenance)  # Maintenance
        on(JobRunning, recorded.on_job_running)  # Lifecycle
        on(LeaseExpired, recorded.on_lease_expired)  # Leases
        on(JobStranded, recorded.on_job_stranded)  # Lifecycle, Members
        on(
            FailuresChanged, self.switches.failure_monitor.on_failures_changed
        )  # Maintenance; before the others
        on(FailuresChanged, jobs.lifecycle.on_failures_changed)  # FailureMonitor
        on(FailuresChanged, planning.migrations.on_failures_changed)  # FailureMonitor
        on(ElementsFailed, planning.migrations.on_elements_failed)  # FailureMonitor
        on(ElementsFailed, planning.placements.on_elements_failed)  # FailureMonitor
        on(CapacityFreed, planning.placements.on_capacity_freed)  # FailureMonitor, Lifecycle, Epochs, Members
        on(CapacityFreed, planning.migrations.on_capacity_freed)  # FailureMonitor, Lifecycle, Epochs, Members
        on(MoveFailed, planning.migrations.on_move_failed)  # Lifecycle
        on(JobRunning, jobs.members.on_job_running)  # Lifecycle
        on(JobRunning, planning.migrations.on_job_running)  # Lifecycle
        on(LeaseExpired, jobs.members.on_lease_expired)  # Leases
        on(EpochsExhausted, planning.migrations.on_epochs_exhausted)  # Epochs
        on(JobStranded, planning.migrations.on_job_stranded)  # Lifecycle, Members
        on(MembersRejoining, planning.migrations.on_members_rejoining)  # Members
        on(LinksKnown, self.requests.on_links_known)  # LinkProbes

    async def run(self) -> None:
        await self._read_files()
        lifecycle, switches = self.jobs.lifecycle, self.switches
        await lifecycle.compute_routes()
        lifecycle.retarget()
        for job in self.state.registry.all():
            if not job.state.is_terminal:
                self._resume(job)
        switches.failure_monitor.start()
        self.planning.placements.try_queue()
        self.state.tasks.spawn(self.planning.maintenance.resume(), "jobs over what was drained before")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(switches.fleet.run())
                group.create_task(self._keep_running(switches.link_probes.run))
                group.create_task(switches.counters.run())
                group.create_task(self._keep_running(switches.recycler.run))
                group.create_task(self.planning.rerouter.run())
                group.create_task(self._keep_running(self.planning.rollouts.run))
                group.create_task(self.observation.recorder.run())
        finally:
            self.end()

    def end(self) -> None:
        """Change nothing any more, also where `run` was canceled before it began: calls may have come in."""
        self.state.registry.retire()
        self.state.tasks.stop()
        self.jobs.leases.stop()

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
        registry = self.state.registry
        unreadable: list[JobRecord] = []
        for job in registry.all():
            try:
                if not job.state.is_terminal:
                    await asyncio.to_thread(registry.resolved_job, job.name)  # a large one takes seconds
            except FabricError as error:
                why = f"its job file cannot be read any more: {error}"
                unreadable.append(registry.with_end_state(job, JobState.FAILED, why))
        if unreadable:
            with registry.change():
                for job in unreadable:
                    registry.write(job)

    def _resume(self, job: JobRecord) -> None:
        """Resume a job that the last controller left."""
        lifecycle = self.jobs.lifecycle
        self.jobs.members.resume(job)
        lifecycle.resume(job)
        if job.state.is_installed and lifecycle.is_affected(job):  # it died before the job had moved
            self.planning.migrations.repair(job.name, job.reason)

    # ---- FleetEvents ------------------------------------------------------------------------------------

    async def registers_lost(self, switch: str) -> None:
        """Give the jobs of the switch new epochs, and return when the store has them."""
        done = set[str]()
        while True:
            try:
                await self.jobs.epochs.on_registers_lost(switch, done)
            except StoreError as error:
                log.error("new epochs after switch %s lost its registers: %s", switch, error)
                await asyncio.sleep(STORE_RETRY_S)
            else:
                return

    def has_revision(self, switch: str, revision: Revision) -> bool:
        return self.state.registry.has_revision(switch, revision)

    def switch_changed(self, switch: str) -> None:
        self.switches.failure_monitor.switch_changed(switch)
        if self.switches.fleet.health(switch).ready:
            self.jobs.lifecycle.settle()
        self.state.changes.notify()

    def packet_in(self, switch: str, packet: fy.P4PacketIn) -> None:
        view = slot_view(packet)
        if view is None or view.tree != self.state.config.management_tree:
            return
        if not self.switches.slots.on_answer(switch, view):
            self.switches.link_probes.on_answer(switch, view)

    def port_changed(self, switch: str, port: int, down: bool) -> None:
        near = next((n for n, p in self.state.fabric.ports[switch].items() if p == port), None)
        if near is not None:
            self.switches.link_probes.reported(switch, near, down)

    def ports_counted(self, switch: str, counts: PortCounts, requested_at: float) -> bool:
        return self.switches.loads.counted(switch, counts, requested_at)
