# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs `netfold controller run`: stand by until the leadership is free, then lead until it is lost, or a signal comes.
Where the fabric changes, another controller leads in the same process."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import functools
import gc
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from grpc_health.v1.health import aio as health_service  # type: ignore[attr-defined]  # its stubs lack it
from grpc_health.v1.health_pb2 import HealthCheckResponse

from netfold.controller.core import Controller
from netfold.controller.jobs.engine import NotLeaderError, StoreEngine, StoreError, StoreUnavailableError
from netfold.controller.jobs.store import Store
from netfold.controller.jobs.stored_fabric import check_same, fabric_text
from netfold.controller.recording.recording_file import RecordingFile
from netfold.controller.scheduling.plan_process import PlanProcess
from netfold.controller.service.access_control import JobsService
from netfold.controller.service.connection_limits import raise_file_limit
from netfold.controller.service.events import EventFiles
from netfold.controller.service.leadership import End, Leadership, has_tokens_of, lead_until_end, take_turns
from netfold.controller.service.listening import ListenError
from netfold.controller.service.metrics import ControllerCollector, metrics_server
from netfold.controller.service.security import Credentials, Security, SecurityFileError
from netfold.controller.service.server import published_address, serving
from netfold.controller.service.servicer import service_of
from netfold.controller.service.standby import ServiceProxy, StandbyService
from netfold.controller.service.watchdog import SystemdNotifier, Watchdog, watched_loop
from netfold.controller.subsystems import Options
from netfold.controller.switches.devices import Device
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.finsy_adapter import FinsyConnection
from netfold.controller.switches.programs import check_lanes, programs_of, with_programs
from netfold.controller.switches.stored_programs import ProgramFiles, note_programs, with_stored_programs
from netfold.protocol.congestion import MARK_FRACTION
from netfold.protocol.netfold_pb2 import DESCRIPTOR
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric, FabricError
from netfold.topologies.spec import fabric_from_spec

PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""Environment variables by which gRPC would connect to switches through a web proxy. finsy's channels have no option
to ignore them."""

SERVICE = DESCRIPTOR.services_by_name["Controller"].full_name
"""The service in health checks: that of the process itself has no name."""

GC_THRESHOLDS = (100_000, 3, 80)
"""Collections of garbage, by number of new objects and of collections of younger ones. A thousand jobs are millions of
objects: with Python's own thresholds the entries of switches take three times as long, and so does the start of a
leader. A collection stops all threads, also that of the lease. One of a million objects takes 0.7 s of a processor,
and took longer than a lease on a busy machine: those of the younger ones are small, and Survivors makes one of all
rare."""

_OTHER_TOKENS = (
    "the primary takes other tokens, whose holders this standby refuses once it leads: "
    "give both the same --tokens, --member-tokens and --identities"
)


@dataclass(frozen=True)
class DaemonOptions:
    """Options of the daemon. `engine` keeps the store; `files` begins the paths of this machine's own files.
    `metrics_port` 0 serves none; `metrics_descriptor` is of a socket that listens there; `record` is the file of the
    recording. `mark_fraction` is of the queue of each port. `watchdog_s` limits the time that the event loop stands
    still; 0: no limit. `has_stored_fabric`: the fabric is the store's, whatever the file says. `devices` and
    `controller` are of one fabric."""

    engine: StoreEngine
    files: Path
    listen: str
    credentials: Credentials | None
    controller: Options
    first_grpc_port: int
    metrics_port: int = 0
    metrics_descriptor: int | None = None
    record: Path | None = None
    mark_fraction: float = MARK_FRACTION
    watchdog_s: float = 0.0
    has_stored_fabric: bool = False
    devices: Mapping[str, Device] = field(default_factory=dict)


Equip = Callable[[Fabric], tuple[Fabric, DaemonOptions]]
"""Returns a fabric as its switches are, and the options for it. Raises FabricError."""


class Survivors:
    """Keeps objects that have survived a full collection of garbage out of later ones, until there are twice as many:
    what has become garbage among them is found then."""

    def __init__(self) -> None:
        self._limit = 0
        self._has_all = True
        """Whether the next full collection looks at all objects."""

    def on_collection(self, phase: str, info: Mapping[str, int]) -> None:
        """See gc.callbacks."""
        if phase != "stop" or info["generation"] < 2:
            return
        gc.freeze()
        survivors = gc.get_freeze_count()
        if self._has_all:
            self._limit, self._has_all = 2 * survivors, False
        elif survivors > self._limit:
            gc.unfreeze()
            self._has_all = True


async def run(fabric: Fabric, equip: Equip, report: Callable[[str], None]) -> None:
    """Run until SIGINT or SIGTERM. `report` receives a line when the process serves, as the primary or a standby.
    Raises FabricError, StoreError and ListenError."""
    if sys.__stderr__ is not None:  # a fault in C leaves its place in the log
        faulthandler.enable(sys.__stderr__)
    fabric, options = equip(fabric)
    for variable in PROXIES:
        os.environ.pop(variable, None)
    raise_file_limit()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.callbacks.append(Survivors().on_collection)
    notifier = SystemdNotifier()

    def announce(what: str) -> None:
        report(what)
        notifier.announce(what)

    with contextlib.closing(notifier), watched_loop(options.watchdog_s, notifier) as watchdog:
        await _run(fabric, options, equip, announce, watchdog)


async def _run(
    fabric: Fabric, options: DaemonOptions, equip: Equip, report: Callable[[str], None], watchdog: Watchdog
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    _with_programs(fabric, options)
    store = Store(options.engine, fabric_text(fabric))
    watchdog.progress = lambda: store.ended_changes
    leadership = Leadership(store, progress=watchdog.counts)
    if options.credentials is not None:
        reload = functools.partial(_reload, options.credentials, leadership, store, report)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)
    try:
        if not options.has_stored_fabric:
            check_same(store, fabric)
        async with contextlib.AsyncExitStack() as stack:
            events = EventFiles(options.files.with_name(f"{options.files.name}.events"))
            stack.callback(events.close)
            listener = Listener(stack, options, events)

            async def stand_by(pause_s: float) -> int | None:
                return await _stand_by(equip, options, store, leadership, listener, report, stop, pause_s)

            async def lead(term: int) -> End:
                return await _lead(equip, store, leadership, term, listener, report, stop, watchdog.idle_s)

            await take_turns(leadership, stop, stand_by, lead, report)
    finally:
        store.close()
        leadership.release()


def _configured(store: Store, equip: Equip) -> tuple[FabricConfig, DaemonOptions]:
    """The configuration of the store's fabric. Raises FabricError, StoreError."""
    fabric, options = equip(fabric_from_spec(store.fabric))
    pipeline, files = options.controller.pipeline, _program_files(options)
    devices = with_stored_programs(store, fabric, pipeline, options.devices, files)
    options = replace(options, devices=devices)
    assigned = addresses(fabric, options.first_grpc_port)
    limited = _with_programs(fabric, options)
    packets = options.controller.packet_model
    config = FabricConfig(
        limited,
        assigned,
        store.mark,
        options.mark_fraction,
        options.devices,
        packets.frame_bits / packets.scale,
    )
    return config, options


def _program_files(options: DaemonOptions) -> ProgramFiles:
    return ProgramFiles(options.files.with_name(f"{options.files.name}.programs"))


def _with_programs(fabric: Fabric, options: DaemonOptions) -> Fabric:
    """The fabric as the programs of its switches limit it. Raises FabricError."""
    programs = programs_of(fabric, options.controller.pipeline, options.devices)
    check_lanes(programs, options.controller.packet_model.lanes)
    return with_programs(fabric, programs)


def _equipped(fabric: Fabric, equip: Equip, lanes: int) -> Fabric:
    """A new fabric as its switches are. Raises FabricError if this controller cannot run it."""
    found, options = equip(fabric)
    _with_programs(found, options)
    if (others := options.controller.packet_model.lanes) != lanes:
        raise FabricError(
            f"{fabric.name}: packets would have {others} lanes, and those of jobs have {lanes}; "
            f"start the controller with --lanes {lanes}"
        )
    return found


def _reload(
    credentials: Credentials, leadership: Leadership, store: Store, report: Callable[[str], None]
) -> None:
    """Take the certificate and the tokens that are in the files now. Streams that are open continue."""
    try:
        credentials.reload()
    except SecurityFileError as error:
        report(f"SIGHUP: {error}; what was read before stays in use")
        return
    report("the certificate and the tokens were read again")
    try:
        leadership.publish_tokens(credentials.current)
    except StoreError as error:
        report(f"a standby cannot compare its tokens with the new ones: {error}")
    else:
        if not has_tokens_of(credentials.current, store.primary_tokens):
            report(_OTHER_TOKENS)


class Listener:
    """The address on which this process serves. The service behind it changes when a standby becomes the leader."""

    def __init__(self, stack: contextlib.AsyncExitStack, options: DaemonOptions, events: EventFiles) -> None:
        self._stack = stack
        self._options = options
        self._events = events
        self._proxy: ServiceProxy | None = None
        self._health = health_service.HealthServicer()
        self.address = ""

    async def serve(self, service: JobsService, *, leads: bool = True) -> None:
        """Direct all calls to `service` from now on. Health checks of the service succeed while this process `leads`.
        Raises ListenError."""
        await self._health.set(
            SERVICE, HealthCheckResponse.SERVING if leads else HealthCheckResponse.NOT_SERVING
        )
        if self._proxy is not None:
            self._proxy.replace(service)
            return
        proxy = ServiceProxy(service, self._events)
        options = self._options
        self.address = await self._stack.enter_async_context(
            serving(proxy, options.listen, options.credentials, events=self._events, health=self._health)
        )
        self._stack.callback(proxy.stop)  # before the server stops
        self._proxy = proxy


async def _stand_by(
    equip: Equip,
    options: DaemonOptions,
    store: Store,
    leadership: Leadership,
    listener: Listener,
    report: Callable[[str], None],
    stop: asyncio.Event,
    pause_s: float,
) -> int | None:
    """Answer reads from the store until this process leads, at the earliest after `pause_s`. Return its term; None if
    it stops before."""
    service = StandbyService(lambda: _configured(store, equip)[0], options.controller.packet_model, store)
    try:
        await listener.serve(service, leads=False)
        with contextlib.suppress(NotLeaderError, StoreUnavailableError):  # it waits for the store below
            await store.follow()
        primary = store.primary or "an address that is not published yet"
        report(f"standby at {listener.address}; the primary is at {primary}")
    except ListenError as error:
        report(f"standby without an address of its own: {error}")
    if not has_tokens_of(_security(options), store.primary_tokens):
        report(_OTHER_TOKENS)
    term = await leadership.wait_until_leader(stop, pause_s, published_address(listener.address))
    service.retire()
    return term


async def _lead(
    equip: Equip,
    store: Store,
    leadership: Leadership,
    term: int,
    listener: Listener,
    report: Callable[[str], None],
    stop: asyncio.Event,
    idle_s: Callable[[], float],
) -> End:
    """Lead with the store's fabric until a signal or a request ends it, or until the store has another one. Raises
    NotLeaderError if this process does not lead any more."""
    config, options = _configured(store, equip)
    lanes = options.controller.packet_model.lanes
    own = replace(
        options.controller,
        equip=lambda fabric: _equipped(fabric, equip, lanes),
        pipeline_of=_program_files(options).pipeline,
    )
    switches = (s.name for s in config.fabric.switches)
    with store.change():
        note_programs(store, {s: config.device(s).pipeline or own.pipeline for s in switches})
    plans = PlanProcess(config.fabric)
    connect = functools.partial(FinsyConnection, may_write=lambda: store.engine.is_held)
    controller = Controller(config, store, own, term, plans, connect=connect)
    if options.record is not None:
        controller.observation.recorder.file = RecordingFile(options.record)
    collector = ControllerCollector(controller.state, controller.switches, controller.planning)
    await plans.start()

    async def serve() -> None:
        await listener.serve(service_of(controller))
        leadership.publish(published_address(listener.address), _security(options))
        report(f"serving at {listener.address}")

    try:
        with metrics_server(collector, options.metrics_port, idle_s, options.metrics_descriptor):
            return await lead_until_end(controller, store, stop, serve)
    finally:
        await plans.close()


def _security(options: DaemonOptions) -> Security | None:
    return None if options.credentials is None else options.credentials.current
