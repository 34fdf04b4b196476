# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller: jobs in the store, their contents in the switches, and what happens when something breaks.

A change is one transaction in the store; the switches' target follows from the store alone. So a controller that dies
anywhere and starts again computes the same target, and the sessions do the rest. Planning takes long and runs in a
thread, one plan at a time; all else is done at once in the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field

import finsy as fy

from netfold.controller.health.counters import Counters
from netfold.controller.health.links import LinkProbes
from netfold.controller.health.outages import Outages, Patience, Uses
from netfold.controller.health.recycle import Recycler
from netfold.controller.jobs.file import JobOrder, OnWorkerLoss, read_order
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.jobs.store import Store
from netfold.controller.lifecycle.admission import RefusedError, Wire, plan_order
from netfold.controller.lifecycle.book import Book, UnknownJobError, over
from netfold.controller.lifecycle.leases import Leases
from netfold.controller.lifecycle.presence import Presence
from netfold.controller.planning.plan import Plan
from netfold.controller.pulse import Pulse
from netfold.controller.switches.desired import Broken, Setting, Targets, management
from netfold.controller.switches.endpoint import Endpoint, Pipeline
from netfold.controller.switches.fleet import Fleet, FleetOptions
from netfold.topologies.addressing import SwitchAddress
from netfold.topologies.fabric import Fabric, FabricError

log = logging.getLogger(__name__)

WORTH_MOVING = 1.05
"""What a job has to gain before `replan` moves it."""


class JobExistsError(Exception):
    """A job of that name is not over yet."""


class NotAMemberError(Exception):
    """The host is no worker or parameter server of the job, or the job went on without it."""


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

    def __init__(self, setting: Setting, store: Store, options: Options, term: int) -> None:
        self.setting = setting
        self.options = options
        self.book = Book(setting, options.wire, store)
        self.pulse = Pulse()
        self.leases = Leases(self._lease_expired)
        self.fleet = Fleet(_endpoints(setting), options.pipeline, term, self, options.fleet)
        self.outages = Outages(self.fleet, options.patience, self._later, self)
        self.links = LinkProbes(
            setting, options.wire.lanes, self.fleet, self.outages.links_changed, options.probe_s
        )
        self.presence = Presence()
        self.counters = Counters(self.fleet, self.book.all, self.pulse.wait, options.counters_s)
        self._targets = Targets(setting)
        self._installing: dict[str, int] = {}
        self._planning = asyncio.Lock()
        self.recycler = Recycler(self.book, self.links, self._planning)
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()

    @property
    def fabric(self) -> Fabric:
        return self.setting.fabric

    def switches_of(self, job: JobRecord) -> list[str]:
        """All switches that hold entries of a job."""
        return sorted(n for n in job.nodes if not self.fabric.is_host(n))

    async def run(self) -> None:
        self._retarget()
        for job in self.book.all():
            try:
                self._resume(job)
            except FabricError as error:  # its file was good when it was submitted, to another version
                self._end(job.name, JobState.FAILED, f"its job file cannot be read any more: {error}")
        self.outages.start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.fleet.run())
                group.create_task(self.links.run())
                group.create_task(self.counters.run())
                group.create_task(self.recycler.run())
        finally:
            for timer in self._timers:
                timer.cancel()
            for task in self._tasks:
                task.cancel()

    # ---- operators --------------------------------------------------------------------------------------

    async def submit(self, text: str, *, queue: bool) -> JobRecord:
        """Admit a job. Raises JobError for a bad file, JobExistsError, RefusedError (unless it may wait)."""
        order = read_order(text, self.fabric)
        name = order.file.name
        async with self._planning:
            if self.book.has_live(name):
                state = self.book.get(name).state
                raise JobExistsError(f"job '{name}' is {state}; cancel it or choose another name")
            self.presence.forget(name)
            try:
                plan = await self._plan(order, frozenset())
                with self.book.change():
                    self.book.write(self.book.placed(self.book.new(order), order, plan))
            except RefusedError as error:
                if not queue:
                    raise
                with self.book.change():
                    self.book.write(self.book.new(order).model_copy(update={"reason": f"waits: {error}"}))
            self._after_change()
        return self.book.get(name)

    def cancel(self, name: str) -> JobRecord:
        """Raises UnknownJobError."""
        if not self.book.get(name).state.over:
            self._end(name, JobState.CANCELED, "canceled by an operator")
        return self.book.get(name)

    async def replan(self, names: Iterable[str]) -> list[str]:
        """Plan again, job by job; those that gain enough move. Raises UnknownJobError."""
        named = [self.book.get(n) for n in names]
        chosen = named or [j for j in self.book.all() if j.state is JobState.RUNNING]
        moved = [j.name for j in chosen if await self._move(j.name, "replanned", only_if_better=True)]
        self.room()
        return moved

    # ---- members ----------------------------------------------------------------------------------------

    def attend(self, name: str, host: str, worn_epoch: int = 0) -> JobRecord:
        """A heartbeat; with `worn_epoch` the member asks for a new epoch. Raises UnknownJobError,
        NotAMemberError."""
        job = self.book.get(name)
        member = job.member(host)
        if member is None:
            members = ", ".join(m.host for m in job.members)
            raise NotAMemberError(f"'{host}' is no member of job '{name}'; its members are {members}")
        if host in job.lost:
            raise NotAMemberError(f"job '{name}' went on without '{host}'")
        if job.state.over or member.left:
            return job
        self.leases.renew(name, host, self.lease_s(name))
        if not member.joined:
            self._commit(job.with_member(host, joined=True))
        if worn_epoch and worn_epoch == job.epoch and job.state is JobState.RUNNING:
            with self.book.change():
                raised = self.book.raised(self.book.get(name), f"{host} asked for a new epoch")
                self.book.write(raised)
            self._after_change()
        return self.book.get(name)

    def leave(self, name: str, host: str) -> None:
        """The member is done; with the last worker the job is."""
        job = self.attend(name, host)
        self.leases.end(name, host)
        if job.state.over:
            return
        job = job.with_member(host, left=True)
        self._commit(job)
        if all(m.left for m in job.members if not m.parameter_server and m.host not in job.lost):
            self._end(name, JobState.DONE, "every worker left")

    def lease_s(self, name: str) -> float:
        return self.book.order(name).file.lease_ms / 1000

    def _lease_expired(self, name: str, host: str) -> None:
        seconds = self.lease_s(name)
        self._member_lost(name, host, f"the lease of {host} expired: no heartbeat for {seconds:g} s")

    def _join_late(self, name: str) -> None:
        try:
            job = self.book.get(name)
        except UnknownJobError:
            return
        absent = [m.host for m in job.members if not m.joined and self.book.needs(job, m.host)]
        for host in absent if job.state.installed else ():
            seconds = self.book.order(name).file.join_s
            self._member_lost(name, host, f"{', '.join(absent)} did not join within {seconds:g} s")

    def _member_lost(self, name: str, host: str, why: str) -> None:
        job = self.book.get(name)
        if job.state.over:
            return
        if job.state.installed and not self.book.needs(job, host):
            log.info("job %s: %s, and it is not needed", name, why)
        elif self.book.order(name).file.on_worker_loss is OnWorkerLoss.FAIL or self.book.is_last_worker(
            job, host
        ):
            self._end(name, JobState.FAILED, why)
        else:
            self._commit(job.model_copy(update={"lost": (*job.lost, host), "reason": why}))
            if job.state.installed:
                self._spawn(self._avoid(name, why, fail=True))

    # ---- FleetEvents ------------------------------------------------------------------------------------

    async def registers_lost(self, switch: str) -> None:
        """Sums of the switch's trees are gone: their jobs begin a new epoch on the same trees."""
        hit = [j for j in self.book.all() if any(switch in t.bases for p in j.placements for t in p.trees)]
        with self.book.change():
            self.book.registers_empty(switch)
            for job in hit:
                self.book.write(self.book.raised(job, f"switch {switch} lost its registers"))
        if hit:
            self._after_change()

    def switch_changed(self, switch: str) -> None:
        self.outages.switch_changed(switch)
        if self.fleet.health(switch).ready:
            self._settle()
        self.pulse.beat()

    def packet_in(self, switch: str, packet: fy.P4PacketIn) -> None:
        self.links.packet_in(switch, packet)

    def port_changed(self, switch: str, port: int, down: bool) -> None:
        near = next((n for n, p in self.fabric.ports[switch].items() if p == port), None)
        if near is not None:
            self.links.reported(switch, near, down)

    # ---- OutageEvents -----------------------------------------------------------------------------------

    @property
    def broken(self) -> Broken:
        return self.outages.broken

    def broken_changed(self) -> None:
        self._retarget()

    def give_way(self, uses: Uses, why: str, fail: bool) -> None:
        for job in self.book.all():
            if uses(job):
                self._spawn(self._avoid(job.name, why, fail=fail))

    def room(self) -> None:
        if any(j.state is JobState.QUEUED for j in self.book.all()):
            self._spawn(self._try_queue())

    # ---- planning ---------------------------------------------------------------------------------------

    async def _plan(self, order: JobOrder, without: frozenset[str]) -> Plan:
        others = [j for j in self.book.all() if j.name != order.file.name]
        return await asyncio.to_thread(plan_order, self.fabric, order, others, self.broken, without)

    async def _avoid(self, name: str, why: str, *, fail: bool) -> None:
        try:
            await self._move(name, why, fail=fail)
        except UnknownJobError:
            log.debug("job %s is forgotten", name)

    async def _move(self, name: str, why: str, *, only_if_better: bool = False, fail: bool = True) -> bool:
        """Plan an installed job again and move it by a new epoch. Without a plan it fails, if `fail`."""
        async with self._planning:
            job = self.book.get(name)
            if job.placement is None or not job.state.installed or not (only_if_better or self._hit(job)):
                return False
            order = self.book.order(name)
            try:
                plan = await self._plan(order, frozenset(job.lost))
                if only_if_better and plan.rate < WORTH_MOVING * job.placement.plan.rate:
                    return False
                with self.book.change():
                    job = self.book.get(name)
                    if not job.state.installed:
                        return False
                    moved = self.book.placed(job, order, plan)
                    update = {"previous": job.previous or job.placement, "reason": why}
                    self.book.write(moved.model_copy(update=update))
            except RefusedError as error:
                log.warning("job %s: %s, and cannot move: %s", name, why, error)
                if fail and not only_if_better:
                    self._end(name, JobState.FAILED, f"{why}, and there is no other plan: {error}")
                return False
            self._after_change()
        return True

    def _hit(self, job: JobRecord) -> bool:
        """The job's placement uses what is broken or lost: an earlier move may have seen to it already."""
        if job.placement is None:
            return False
        nodes = {n for link in job.placement.links for n in link}
        return bool(
            nodes & self.broken.switches or job.placement.links & self.broken.links or nodes & set(job.lost)
        )

    async def _try_queue(self) -> None:
        """Higher priority first, then older first."""
        waiting = [j for j in self.book.all() if j.state is JobState.QUEUED]
        for job in sorted(waiting, key=lambda j: (-self.book.order(j.name).file.priority, j.seq)):
            async with self._planning:
                await self._try_waiting(job.name)

    async def _try_waiting(self, name: str) -> None:
        job, order = self.book.get(name), self.book.order(name)
        if job.state is not JobState.QUEUED:
            return
        try:
            plan = await self._plan(order, frozenset(job.lost))
            job = self.book.get(name)
            if job.state is JobState.QUEUED:
                with self.book.change():
                    self.book.write(self.book.placed(job, order, plan))
                self._after_change()
        except RefusedError as error:
            if self.book.get(name).state is JobState.QUEUED:
                self._commit(self.book.get(name).model_copy(update={"reason": f"waits: {error}"}))

    # ---- changes ----------------------------------------------------------------------------------------

    def _commit(self, job: JobRecord) -> None:
        with self.book.change():
            self.book.write(job)
        self.pulse.beat()

    def _after_change(self) -> None:
        """The switches' target is another; jobs that were placed wait for it."""
        version = self._retarget()
        for job in self.book.all():
            if job.state is JobState.INSTALLING:
                self._installing[job.name] = version
                self._later(self.options.patience.install, self._install_late, job.name, job.epoch)
            elif job.state.over:
                self.leases.end_job(job.name)
        self._settle()
        self.pulse.beat()

    def _retarget(self) -> int:
        return self.fleet.aim(self._targets.of(self.book.all(), self.broken))

    def _settle(self) -> None:
        """Jobs whose switches hold all entries run; what they moved from goes."""
        settled = []
        for name, version in list(self._installing.items()):
            job = self.book.get(name)
            if job.state is not JobState.INSTALLING:
                del self._installing[name]
            elif all(self.fleet.holds(s, version) for s in self._awaited(job)):
                del self._installing[name]
                settled.append(job.model_copy(update={"state": JobState.RUNNING, "previous": None}))
        for job in settled:
            self._commit(job)
            self._later(self.book.order(job.name).file.join_s, self._join_late, job.name)
            log.info("job %s runs in epoch %d", job.name, job.epoch)
        if settled:
            self._retarget()

    def _awaited(self, job: JobRecord) -> list[str]:
        """The switches of the job's new placement."""
        new = job.model_copy(update={"previous": None})
        return self.switches_of(new)

    def _install_late(self, name: str, epoch: int) -> None:
        try:
            job = self.book.get(name)
        except UnknownJobError:
            return
        if job.state is not JobState.INSTALLING or job.epoch != epoch:
            return
        version = self._installing.get(name, 0)
        late = [s for s in self._awaited(job) if not self.fleet.holds(s, version)]
        errors = "; ".join(f"{s}: {self.fleet.health(s).error or 'busy'}" for s in late)
        seconds = self.options.patience.install
        self._end(name, JobState.FAILED, f"switches did not take its entries in {seconds:g} s: {errors}")

    def _end(self, name: str, state: JobState, reason: str) -> None:
        log.info("job %s is %s: %s", name, state, reason)
        self.leases.end_job(name)
        self._commit(over(self.book.get(name), state, reason))
        self._retarget()
        self.room()

    def _resume(self, job: JobRecord) -> None:
        """After a start: who was there has a lease's time to come back."""
        if job.state.over:
            return
        if job.state is JobState.INSTALLING:
            self._installing[job.name] = self.fleet.version
            self._later(self.options.patience.start, self._install_late, job.name, job.epoch)
        for member in job.members:
            if member.joined and not member.left and member.host not in job.lost:
                self.leases.renew(job.name, member.host, self.lease_s(job.name))
        self._later(self.book.order(job.name).file.join_s, self._join_late, job.name)
        if job.state.installed and self._hit(job):  # the last controller died before the job had moved
            self._spawn(self._avoid(job.name, job.reason, fail=True))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _later(self, seconds: float, call: Callable[..., None], *args: object) -> None:
        timer: asyncio.TimerHandle

        def fire() -> None:
            self._timers.discard(timer)
            call(*args)

        timer = asyncio.get_running_loop().call_later(seconds, fire)
        self._timers.add(timer)


def _endpoints(setting: Setting) -> list[Endpoint]:
    return [_endpoint(setting, s) for s in setting.addresses.switches.values()]


def _endpoint(setting: Setting, known: SwitchAddress) -> Endpoint:
    device = setting.device(known.name)
    return Endpoint(
        known.name,
        device.address or known.grpc_address,
        device.device_id or known.device_id,
        next(management(setting, known.name)).key,
        device.pipeline,
        device.one_shot,
    )
