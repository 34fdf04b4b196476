# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated deployment: switches, links, the disk, the controller's process, programs and their members."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from netfold.controller.core import Controller
from netfold.controller.features.registry import FEATURES
from netfold.controller.health.link_loads import Link
from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.records import JobRecord, JobState, Placement, Transport
from netfold.controller.jobs.store import SCHEMA_BEFORE, Store
from netfold.controller.jobs.stored_fabric import fabric_text
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.scheduling.fabric_changes import FabricChanges
from netfold.controller.service.access import LOCAL
from netfold.controller.service.identities import Identity
from netfold.controller.service.leadership import Leadership
from netfold.controller.service.servicer import service_of
from netfold.controller.subsystems import Options
from netfold.controller.switches.connection import ConnectionRequest, SwitchConnection
from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import WithdrawalError, element_named
from netfold.controller.switches.fleet import FleetOptions
from netfold.controller.switches.tree_entities import tree_entities
from netfold.controller.switches.tree_feature import InstalledTree
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import fabric_from_spec
from tests.simulation.cluster import Cluster
from tests.simulation.connection import SimulatedConnection
from tests.simulation.disk import Disk, SimulatedStore
from tests.simulation.fabric_file import FabricFile
from tests.simulation.faults import Draws
from tests.simulation.history import History
from tests.simulation.loop import LoopClock, VirtualLoop
from tests.simulation.member import UNHEARD, Member
from tests.simulation.plans import SimulatedPlans
from tests.simulation.process import Process
from tests.simulation.program import JobSpec, Program
from tests.simulation.rolled_out import (
    RolloutOperator,
    check_push,
    devices_of,
    pipeline_of,
    use_as_before,
)
from tests.simulation.scenario import Way
from tests.simulation.server import RpcError, Server
from tests.simulation.stores import FileStores, Stores
from tests.simulation.switch import PACKET_BYTES, SimulatedSwitch
from tests.simulation.withdrawn import Operator, Wish, check_written

CALL_LIMIT_S = 150.0
"""No call of an operator may take longer."""

RECORDING_BYTES = 1 << 20
"""Far below the default: memory grows until the recording is full."""

AGE_S = 10.0
"""So short that jobs gain priority while there are faults."""

NO_AGE_S = 1e6
"""So long that they gain none."""

BUSY_AFTER_S = 30.0
"""After the machine was busy, for what was put off."""

MAX_REPLACED_S = 0.5
"""The longest time that a controller runs when its store has another fabric."""

NO_PIPELINE = Pipeline(Path("/nonexistent"), Path("/nonexistent"))


class ViolationError(Exception):
    """The controller was wrong."""


class World:
    def __init__(
        self,
        fabric: Fabric,
        folder: Path,
        draws: Draws,
        history: History,
        *,
        probe_s: float,
        slow_plans: bool = False,
        has_aging: bool = True,
        timeouts: ControllerTimeouts | None = None,
        controllers: int = 0,
        way: Way | None = None,
    ) -> None:
        self.fabric = fabric
        """The one that the controller started with."""
        self.draws = draws
        self.history = history
        self.probe_s = probe_s
        self.disk = Disk()
        self.plans = SimulatedPlans(fabric, draws, is_slow=slow_plans)
        self.switches: dict[str, SimulatedSwitch] = {}
        self._add_switches(fabric)
        self.operator = Operator(self._withdraw)
        self.rollouts = RolloutOperator(self.call)
        self.starts_as_before = False
        """The next controller is one of the version before, if it can use the store."""
        self.file = FabricFile(fabric, self._apply_file)
        self.cut: set[frozenset[str]] = set()
        self.cut_off: set[str] = set()
        """Leaves whose hosts do not reach the controller."""
        self.changed_at: dict[object, float] = {}
        """When a link or switch last failed, or came back, or was failing."""
        self.has_faults = False
        """Whether a link or switch has failed, and not only got another program."""
        self.busy_until = 0.0
        """When the machine has been fast again for long enough that nothing is late any more."""
        self.programs: dict[str, Program] = {}
        self.violations: list[str] = []
        self.observers: list[Callable[[JobRecord], None]] = []
        """Get each change of a job that was committed."""
        self.started_at = 0.0
        self.age_s = AGE_S if has_aging else NO_AGE_S
        self.aging_s = AGE_S if has_aging else 0.0
        """For less than that a job is ahead of another one by its age, and behind it again."""
        self.cross_traffic: dict[tuple[str, str], float] = {}
        """By direction; the fabric's unit."""
        self._must_restore = False
        self._allocations: dict[tuple[str, int], int] = {}
        self._backed_up: dict[tuple[str, int], int] = {}
        self._numbers = itertools.count()
        self._qpns = itertools.count(2)
        self._store: Store | None = None
        self._leadership: Leadership | None = None
        self._options = Options(
            PacketModel(64),
            NO_PIPELINE,
            timeouts or ControllerTimeouts(),
            FleetOptions(audit_s=10.0, counter_poll_s=2.0),
            probe_s,
            counters_s=5.0,
            recording_period_s=5.0,
            recording_bytes=RECORDING_BYTES,
            reroute_period_s=1.0,
            age_s=self.age_s,
            pipeline_of=pipeline_of,
        )
        self.clock = LoopClock()
        self.process: Process | None = None
        self.controller: Controller | None = None
        self._server: Server | None = None
        self._following: asyncio.Task[None] | None = None
        self._starts = 0
        self.on_change: Callable[[Process, SimulatedSwitch], None] = lambda process, switch: None
        """Gets each change of a switch that is sent."""
        self.cluster = Cluster(self, controllers, way or Way()) if controllers else None
        self.stores: Stores = FileStores(folder) if self.cluster is None else self.cluster.stores
        self.calls: dict[asyncio.Task[Any], None] = {}

    # ---- the controller -------------------------------------------------------------------------------

    def start(self) -> None:
        if self.cluster is not None:
            self._put_backup()
            self.cluster.start()
            return
        if self.process is not None:
            return
        self._starts += 1
        self._put_backup()
        process = self.process = Process(f"controller {self._starts}")
        try:
            store = self._store = self._open_store()
        except StoreError as error:
            self.violations.append(f"{process.name} does not start: {error}")
            self.process = None
            return
        leadership = self._leadership = Leadership(store, now=LoopClock().wall_s)
        term = leadership.try_lead()
        assert term is not None, "the dead controller still leads"
        try:
            self.controller = process.context.copy().run(lambda: self.make_controller(process, store, term))
        except Exception as error:
            self.violations.append(f"{process.name} does not start: {error!r}")
            raise
        server = Server(service_of(self.controller), process, self.draws)
        asyncio.get_running_loop().call_later(self.start_delay_s(), lambda: self.serve(process, server))
        follow = self._follow_fabric(process, self.controller.planning.fabric_changes)
        self._following = asyncio.get_running_loop().create_task(follow, context=contextvars.Context())
        running = process.spawn(self.controller.run())
        running.add_done_callback(lambda task: self._on_end(process, task), context=contextvars.Context())

    def make_controller(
        self, process: Process, store: Store, term: int, may_write: Callable[[], bool] = lambda: True
    ) -> Controller:
        """The controller of a process that leads from now on."""
        self._take_fabric(fabric_from_spec(store.fabric))
        as_before, self.starts_as_before = self.starts_as_before and use_as_before(store), False
        devices = devices_of(store, self.fabric, as_before=as_before)
        config = FabricConfig(self.fabric, addresses(self.fabric), store.mark, devices=devices)

        def connect(request: ConnectionRequest) -> SwitchConnection:
            process.check()
            switch, port = self.switches[request.endpoint.name], config.device(request.endpoint.name).cpu_port
            connection = SimulatedConnection(switch, request, process, port, may_write)
            connection.on_push = lambda switch, pipeline: self._on_push(store, switch, pipeline)
            connection.on_change = lambda: self.on_change(process, switch)
            return connection

        disk = SimulatedStore(
            store, self.disk, process, lambda before, after: self._on_written(store, disk, before, after)
        )
        plans, clock = self.plans.of(process), LoopClock()
        self.started_at = asyncio.get_running_loop().time()
        self.history.add("world", f"{process.name} starts with term {term}")
        return Controller(config, disk, self._options, term, plans, clock=clock, connect=connect)

    def start_delay_s(self) -> float:
        """On a busy machine a controller serves late."""
        return 0.0 if self.draws.is_calm else self.draws.of("start").choice((0.0, 0.0, 0.5, 8.0))

    def serve(self, process: Process, server: Server | None) -> None:
        if process.is_alive:
            self._server = server

    def lead(self, process: Process, store: Store) -> None:
        """Let this process of a cluster be the leader, as far as the world sees it."""
        self.process, self._store, self.controller, self._server = process, store, None, None

    def end_lead(self, process: Process) -> None:
        if self.process is process:
            self.process = self.controller = self._store = self._server = None

    def _on_push(self, store: Store, switch: SimulatedSwitch, pipeline: Pipeline) -> None:
        if wrong := check_push(switch, pipeline, self.switches.values(), store):
            self.violations.append(wrong)
        if switch.pipeline not in (None, pipeline):
            self._note_time(switch.name)

    def keep_for_before(self) -> None:
        """The store is one of the version before, unless a rollout has begun."""
        with contextlib.closing(self._open_store()) as store, store.change():
            if store.rollout is None:
                store.set_number("schema", SCHEMA_BEFORE)

    def finalize(self) -> None:
        """An operator ends the upgrade, also while the controller runs."""
        with contextlib.closing(self._open_store()) as store, store.change():
            store.finalize()
        self.history.add("world", "the store is final")

    def _add_switches(self, fabric: Fabric) -> None:
        """They are there before the fabric's file has them."""
        for name in (s.name for s in fabric.switches if s.name not in self.switches):
            self.switches[name] = SimulatedSwitch(name, self.draws, self.history)
            self.switches[name].deliver = self._deliver

    def _take_fabric(self, fabric: Fabric) -> None:
        if wrong := self.file.wrong(fabric):
            self.violations.append(wrong)
        self.fabric = self.plans.fabric = fabric
        self.operator.forget_others(self.has_element)

    def has_element(self, name: str) -> bool:
        try:
            element_named(self.fabric, name)
        except WithdrawalError:
            return False
        return True

    async def _follow_fabric(self, process: Process, changes: FabricChanges) -> None:
        """Another controller takes the place of one whose fabric has changed, as in the daemon."""
        await changes.applied.wait()
        await asyncio.sleep(self.draws.of("new fabric").uniform(0.01, MAX_REPLACED_S))
        if self.process is process and process.is_alive:
            self._following = None
            self.kill()
            asyncio.get_running_loop().call_later(0.01, self.start)

    def change_fabric(self, kind: str, where: float | str) -> None:
        if (wanted := self.file.edit(kind, where)) is not None:
            self.history.add("world", f"the fabric's file changes: {kind}")
            self._add_switches(wanted)

    def _apply_file(self, text: str, answered: Callable[[pb.FabricChange], None]) -> asyncio.Task[Any]:
        request = pb.ChangeFabricRequest(spec_yaml=text, source="fabric.yaml")
        return self.call("apply the fabric's file", "ChangeFabric", request, answered)

    def _open_store(self) -> Store:
        return self.stores.open(fabric_text(self.fabric))

    def kill(self) -> None:
        """At once, from anywhere, also from the controller's own code."""
        if self.cluster is not None:
            self.cluster.kill()
            return
        process, store, leadership = self.process, self._store, self._leadership
        if process is None or not process.is_alive:
            return
        assert store is not None
        assert leadership is not None
        self.history.add("world", f"{process.name} is killed")
        process.die()
        self._server = None
        if self._following is not None:
            self._following.cancel()
        self.drop_connections(process)

        def bury() -> None:
            process.unwind()
            store.close()
            leadership.release()
            self.process = self.controller = self._store = self._leadership = None

        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.call_next(bury)

    def drop_connections(self, process: Process) -> None:
        """It has died."""
        for switch in self.switches.values():
            for connection in [c for c in switch.connections if c._process is process]:
                connection.drop()
            if switch.is_up:
                switch.arbitrate()

    @property
    def store(self) -> Store:
        assert self._store is not None
        return self._store

    def note_busy(self, lasts_s: float) -> None:
        """Something is slow from now on, for so long."""
        until = asyncio.get_running_loop().time() + lasts_s + BUSY_AFTER_S
        self.busy_until = max(self.busy_until, until)

    def allocation(self, job: str, epoch: int) -> int:
        """A number that is the allocation's own: after the store was restored, the same epoch may be given again."""
        return self._allocations.setdefault((job, epoch), next(self._numbers))

    def stored_rows(self) -> dict[str, int]:
        """Returns the number of rows of each table of the store."""
        return self.stores.rows()

    # ---- backups --------------------------------------------------------------------------------------

    @property
    def has_backup(self) -> bool:
        return self.stores.has_backup

    def back_up(self) -> None:
        if self.stores.exists:
            self.stores.back_up()
            with contextlib.closing(self.stores.open_backup(fabric_text(self.fabric))) as backup:
                for job in backup.jobs():  # also those of a controller that is dead now
                    for placement in job.placements:
                        self.allocation(job.name, placement.epoch)
            self._backed_up = dict(self._allocations)
            self.history.add("world", "the store is backed up")

    def restore(self) -> None:
        """The next controller starts with the backup. What became of jobs since is lost, so any of them may end."""
        self._must_restore = True

    def _put_backup(self) -> None:
        if not self._must_restore:
            return
        self._must_restore = False
        self._allocations = dict(self._backed_up)
        self.stores.restore()
        if self.cluster is not None:
            self.cluster.leaders.on_restore()
        self.history.add("world", "the store is restored")
        self.operator.on_restore()
        self.rollouts.on_restore()
        for program in self.programs.values():
            program.on_restore()
        for switch in self.switches:
            self.note_change(switch)

    def _on_end(self, process: Process, task: asyncio.Task[None]) -> None:
        if process.is_alive:
            error = None if task.cancelled() else task.exception()
            self.violations.append(f"{process.name} ended by itself: {error!r}")

    # ---- operators ------------------------------------------------------------------------------------

    def call(
        self,
        what: str,
        name: str,
        request: Any,
        then: Callable[[Any], None] = lambda answer: None,
        caller: Identity = LOCAL,
    ) -> asyncio.Task[Any]:
        """A call of an operator, beside all else; it has to end within CALL_LIMIT_S."""
        task = asyncio.create_task(self._call(what, name, request, then, caller))
        self.calls[task] = None
        task.add_done_callback(lambda t: self.calls.pop(t, None))
        return task

    async def _call(
        self, what: str, name: str, request: Any, then: Callable[[Any], None], caller: Identity
    ) -> None:
        self.history.add("operator", what)
        server = self._server
        if server is None:
            self.history.add("operator", f"{what}: no controller")
            return
        try:
            async with asyncio.timeout(CALL_LIMIT_S):
                then(await server.call(name, request, caller))
            self.history.add("operator", f"{what}: done")
        except RpcError as error:
            self.history.add("operator", f"{what}: {error}")
            if error.is_lost_by_controller:
                self.violations.append(f"'{what}' has no answer, and the controller lives")
        except TimeoutError:
            self.violations.append(f"'{what}' did not end within {CALL_LIMIT_S:g} s")
        except Exception as error:
            # gRPC answers UNKNOWN; the operator sees the exception's text
            self.history.add("operator", f"{what}: {error!r}")

    def _withdraw(self, element: str, wish: Wish, answered: Callable[[], None]) -> asyncio.Task[Any]:
        if wish.intent is None:
            name, request = "GiveBackElements", pb.GiveBackElementsRequest(elements=[element])
        else:
            name, intent = "WithdrawElements", pb.Intent.Value(wish.intent.name)
            request = pb.WithdrawElementsRequest(elements=[element], intent=intent, hold_s=wish.hold_s)
        return self.call(f"{wish.intent or 'give back'} {element}", name, request, lambda _: answered())

    def _on_written(
        self, store: Store, writer: SimulatedStore, before: JobRecord | None, after: JobRecord
    ) -> None:
        if self._store is not store or self.controller is None:
            return
        if self.controller.state.registry.fabric_store is not writer:
            self.violations.append(f"{after.name} is written by a controller that has ended")
        if self.controller.planning.fabric_changes.applied.is_set():
            self.violations.append(f"{after.name} is written by the controller of a fabric that was replaced")
        for observe in self.observers:
            observe(after)
        failed = self.controller.state.failures.failed
        if wrong := check_written(
            self.fabric, store.withdrawals(), failed, LoopClock().wall_s(), before, after
        ):
            self.violations.append(wrong)

    # ---- programs -------------------------------------------------------------------------------------

    def submit(self, spec: JobSpec) -> None:
        program = self.programs[spec.name] = Program(spec, work_left_s=spec.work_s)
        if spec.max_s:
            program.excuses.append("its time was over")

        def acknowledged(_: Any) -> None:
            program.is_acknowledged = True
            servers = [h.name for h in self.fabric.hosts if h.parameter_server]
            for host in (*spec.workers, *servers):
                delay = self.draws.of("start of members").uniform(0, 3)
                asyncio.get_running_loop().call_later(delay, self.start_member, spec.name, host)

        request = pb.SubmitJobRequest(spec_yaml=spec.text, queue=spec.queue)
        what = f"submit {spec.name} on {', '.join(spec.workers)}"
        self.call(what, "SubmitJob", request, acknowledged, spec.caller)

    def forget_programs(self) -> None:
        """Those that have ended. What is kept of them is only to be compared with what comes later."""
        self.programs = {n: p for n, p in self.programs.items() if p.alive}
        self._allocations = {k: n for k, n in self._allocations.items() if k[0] in self.programs}

    def start_member(self, job: str, host: str, *, is_second: bool = False) -> None:
        """A process of the host, unless there is one. `is_second`: beside that."""
        program = self.programs.get(job)
        if program is None or not program.is_acknowledged or program.work_left_s <= 0:
            return
        first = program.members.get(host)
        if host in program.absent or (first is not None and first.is_alive and not is_second):
            return
        if first is not None and first.is_alive:
            program.replaced.append(first)
        if first is not None and first.outcome.startswith(UNHEARD):
            program.excuses.append(f"{host} left unheard, and was started again")
        member = Member(job, host, lambda: self._server_of(host), self._qpns, self.history)
        member.on_assignment = self._on_assignment
        program.members[host] = member
        member.start()

    def _server_of(self, host: str) -> Server | None:
        """The controller, as the host reaches it."""
        is_cut_off = self.fabric.is_host(host) and self.fabric.attachment(host) in self.cut_off
        return None if is_cut_off else self._server

    def _on_assignment(self, member: Member) -> None:
        """Note the placement that belongs to the epoch, also of a job that moves on while the message is on its way."""
        assert member.assignment is not None
        program, epoch = self.programs[member.job], member.assignment.epoch
        self._check_process(program, member)
        if (
            epoch in program.placements
            or self.controller is None
            or member.job not in self.controller.state.registry
        ):
            return
        job = self.controller.state.registry.get(member.job)
        for placement in (p for p in (job.placement, job.previous) if p is not None and p.epoch == epoch):
            program.placements[epoch] = placement
            program.entities[epoch] = list(self._entities(job, placement))
            program.allocations[epoch] = self.allocation(job.name, epoch)
            program.losses[epoch] = {name: s.losses for name, s in self.switches.items()}
            self._check_installed(program, epoch)

    def _check_process(self, program: Program, member: Member) -> None:
        """No two processes of a host take part in one epoch: what the first has sent, or holds, counts as the second
        one's. A second one of a worker takes part only where the others learn that it is in no call."""
        assert member.assignment is not None
        host, epoch = member.host, member.assignment.epoch
        if program.in_epoch.setdefault((host, epoch), member) is not member:
            self._note_wrong_process(program, member, "which an earlier process had")
            return
        took_part = program.took_part.setdefault(host, {member})
        if member in took_part or host not in program.workers:
            return
        took_part.add(member)
        if not program.spec.is_elastic or program.spec.transport is not Transport.UDP:
            self._note_wrong_process(program, member, "which takes no newcomers")
        elif not member.assignment.allow_newcomers:
            self._note_wrong_process(program, member, "without a word to the others")

    def _note_wrong_process(self, program: Program, member: Member, why: str) -> None:
        assert member.assignment is not None
        self.violations.append(
            f"{member.host} began again, and takes part in epoch {member.assignment.epoch} of "
            f"{program.spec.name}, {why}"
        )

    def _check_installed(self, program: Program, epoch: int) -> None:
        """Members have an epoch only when the switches hold its entries: all that nothing has happened to."""
        assert self.controller is not None
        job = self.controller.state.registry.get(program.spec.name)
        has_changed = (
            job.state is not JobState.RUNNING or job.epoch != epoch
        )  # while the message was on its way
        if self.draws.intensity.is_noisy or has_changed:
            return
        for name, entity in program.entities[epoch]:
            if name not in self.changed_at and self.switches[name].contents.get(entity.key) != entity:
                self.violations.append(
                    f"{program.spec.name} runs in epoch {epoch}, and {name} lacks {entity}"
                )
                return

    def _entities(self, job: JobRecord, placement: Placement) -> Any:
        for numbers, tree in zip(placement.trees, placement.plan.trees, strict=True):
            installed = InstalledTree(self.fabric, numbers, tree, placement.epoch, job.udp_port, job)
            yield from tree_entities(installed, FEATURES)

    # ---- links ----------------------------------------------------------------------------------------

    def _deliver(self, switch: str, port: int, payload: bytes) -> None:
        sender = self.switches[switch]
        sender.tx[port] = sender.tx.get(port, 0) + PACKET_BYTES
        near = next((n for n, p in self.fabric.ports.get(switch, {}).items() if p == port), None)
        if near in self.switches and frozenset((switch, near)) not in self.cut:
            receiver = self.switches[near]
            asyncio.get_running_loop().call_later(
                0.0001, receiver.receive, self.fabric.ports[near][switch], payload
            )

    def set_cross_traffic(self, a: str, b: str, share: float) -> None:
        """It takes this part of the link's rate from `a` to `b`, if the fabric has it still."""
        if not self.fabric.has_link(a, b):
            return
        self.cross_traffic[(a, b)] = rate = share * self.fabric.link(a, b).rate
        bytes_per_s = rate * self.fabric.unit.bits_per_second / 8
        for switch, arrives, near in ((a, False, b), (b, True, a)):
            self.switches[switch].set_cross_traffic((arrives, self.fabric.ports[switch][near]), bytes_per_s)

    def note_change(self, element: object) -> None:
        self.has_faults = True
        self._note_time(element)

    def _note_time(self, element: object) -> None:
        self.changed_at[element] = asyncio.get_running_loop().time()

    def links(self) -> list[Link]:
        """Between switches."""
        pairs = [(k.a, k.b) for k in self.fabric.links]
        return [p for p in pairs if p[0] in self.switches and p[1] in self.switches]
