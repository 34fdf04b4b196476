# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The subsystems of a controller: each constructor makes the objects of one subsystem from those below it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from netfold.controller.features.registry import FEATURES
from netfold.controller.health.counters import Counters
from netfold.controller.health.failure_monitor import FailureMonitor
from netfold.controller.health.link_loads import LinkLoads, metered_ports
from netfold.controller.health.link_probes import LinkProbes
from netfold.controller.health.link_room import LinkRoom
from netfold.controller.health.reroute import REROUTE_PERIOD_S, Rerouter
from netfold.controller.health.rollouts import Rollouts
from netfold.controller.health.slot_access import Recycler, SlotAccess
from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.program_records import StoredProgram
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.epochs import Epochs
from netfold.controller.lifecycle.events import LinksKnown
from netfold.controller.lifecycle.leases import Leases
from netfold.controller.lifecycle.members import Members
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.states import Lifecycle
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.observation.observer import Observer
from netfold.controller.observation.recorder import PERIOD_S, EventLog, Recorder
from netfold.controller.recording.history import MAX_BYTES
from netfold.controller.recording.lines import RecordingSource, fabric_line
from netfold.controller.scheduling.fabric_changes import FabricChanges
from netfold.controller.scheduling.job_queue import AGE_S, JobQueue
from netfold.controller.scheduling.maintenance import Maintenance
from netfold.controller.scheduling.migration_scheduler import MigrationScheduler
from netfold.controller.scheduling.placement_scheduler import PlacementScheduler
from netfold.controller.scheduling.plan_scheduler import PlanScheduler
from netfold.controller.scheduling.planning_client import PlanBackend, PlanningClient
from netfold.controller.scheduling.reconfigurations import Reconfigurations
from netfold.controller.switches.base_entries import management_entries
from netfold.controller.switches.connection import Connect
from netfold.controller.switches.desired_state import DesiredState
from netfold.controller.switches.endpoint import Endpoint, Pipeline
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.fleet import Fleet, FleetEvents, FleetOptions
from netfold.topologies.addressing import SwitchAddress
from netfold.topologies.fabric import Fabric


def _no_files(program: StoredProgram) -> Pipeline:
    raise StoreError(f"there is no folder for the files of program {program.name}")


@dataclass(frozen=True)
class Options:
    """`equip`: see FabricChanges; `pipeline_of`: see Rollouts."""

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
    equip: Callable[[Fabric], Fabric] = lambda fabric: fabric
    pipeline_of: Callable[[StoredProgram], Pipeline] = _no_files


class Switches:
    """The sessions of switches, and what is measured by them: failures, loads, counters, slots."""

    def __init__(
        self, state: ControllerState, options: Options, term: int, events: FleetEvents, connect: Connect
    ) -> None:
        config, lanes, now = state.config, state.packet_model.lanes, state.clock.monotonic_s
        endpoints = [_endpoint(config, lanes, s) for s in config.addresses.switches.values()]
        self.fleet = Fleet(endpoints, options.pipeline, term, events, options.fleet, connect=connect, now=now)
        self.loads = LinkLoads(config.fabric, state.packet_model.scale, now)
        self.link_room = LinkRoom(config.fabric, state.registry, self.loads, state.member_status)
        self.failure_monitor = FailureMonitor(
            self.fleet, state.timeouts, state.tasks.call_later, state.failures, state.events, state.clock
        )
        self.slots = SlotAccess(config, lanes, self.fleet)
        self.link_probes = LinkProbes(
            config,
            lanes,
            self.fleet,
            state.registry,
            check_forwards=self.slots.check_forwards,
            on_change=self.failure_monitor.links_changed,
            on_known=lambda: state.events.publish(LinksKnown()),
            period_s=options.probe_s,
        )
        self.counters = Counters(self.fleet, state.registry.all, state.changes.wait, options.counters_s)
        self.recycler = Recycler(state.registry, self.slots)


class Jobs:
    """States, epochs and members of jobs."""

    def __init__(self, state: ControllerState, fleet: Fleet) -> None:
        self.leases = Leases(state.events)
        self.lifecycle = Lifecycle(state, fleet, DesiredState(state.config, FEATURES), self.leases)
        self.epochs = Epochs(state, self.lifecycle)
        self.members = Members(state, self.lifecycle, self.epochs, self.leases)


class Planning:
    """Placements, migrations and re-routes of jobs; maintenance of the fabric, and rollouts of programs."""

    def __init__(
        self,
        state: ControllerState,
        switches: Switches,
        jobs: Jobs,
        plans: PlanBackend,
        options: Options,
    ) -> None:
        room, lifecycle = switches.link_room, jobs.lifecycle
        client = PlanningClient(state, plans, room.cross_traffic, switches.fleet.failure_cause)
        scheduler = PlanScheduler()
        queue = JobQueue(state.registry, state.clock.wall_s, options.age_s)
        self.placements = PlacementScheduler(state, lifecycle, client, scheduler, queue)
        self.migrations = MigrationScheduler(state, lifecycle, client, scheduler, queue)
        self.reconfigurations = Reconfigurations(state, lifecycle, jobs.epochs, client, scheduler)
        self.maintenance = Maintenance(state, self.placements, self.migrations)
        self.fabric_changes = FabricChanges(state, options.equip)
        self.rollouts = Rollouts(
            state,
            switches.fleet,
            switches.slots,
            switches.link_probes,
            self.maintenance,
            self.migrations.stays_because,
            options.pipeline_of,
            lifecycle.set_program,
        )
        self.rerouter = Rerouter(
            state.fabric,
            state.registry,
            room,
            self.migrations,
            state.clock.monotonic_s,
            options.reroute_period_s,
        )


class Observation:
    """The recording of what happens."""

    def __init__(self, state: ControllerState, switches: Switches, options: Options) -> None:
        scale = state.packet_model.scale
        self.event_log = EventLog(state.clock)
        self.recorder = Recorder(
            fabric_line(state.fabric, RecordingSource.CONTROLLER, scale=scale),
            Observer(state, switches.fleet, switches.loads, switches.counters),
            self.event_log,
            state.clock,
            state.changes.wait,
            options.recording_period_s,
            options.recording_bytes,
        )


def _endpoint(config: FabricConfig, lanes: int, known: SwitchAddress) -> Endpoint:
    device = config.device(known.name)
    return Endpoint(
        known.name,
        device.address or known.grpc_address,
        known.device_id if device.device_id is None else device.device_id,
        next(management_entries(config, known.name)).key,
        config.management_tree,
        lanes,
        device.pipeline,
        device.one_shot,
        device.tls,
        device.full_width,
        *metered_ports(config.fabric, known.name),
    )
