# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The states of a job: its entries are installed, it runs, it ends. Each change is one transaction in the store; the
switches' target follows from the store alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from netfold.controller.jobs.records import Ends, JobRecord, JobState
from netfold.controller.lifecycle.admission import hit
from netfold.controller.lifecycle.book import Book, over
from netfold.controller.lifecycle.leases import Leases
from netfold.controller.lifecycle.patience import Patience
from netfold.controller.lifecycle.presence import Presence
from netfold.controller.lifecycle.pulse import Pulse
from netfold.controller.lifecycle.tasks import Tasks
from netfold.controller.switches.desired import Broken, Targets
from netfold.controller.switches.fleet import Fleet
from netfold.controller.switches.roce import is_complete

log = logging.getLogger(__name__)


class Lifecycle:
    """`broken` tells what does not work now; `runs(job)` is called when a job starts to run, `room()` when one has
    ended."""

    def __init__(
        self,
        book: Book,
        fleet: Fleet,
        targets: Targets,
        leases: Leases,
        presence: Presence,
        tasks: Tasks,
        patience: Patience,
        *,
        broken: Callable[[], Broken],
        runs: Callable[[JobRecord], None],
        room: Callable[[], None],
    ) -> None:
        self.pulse = Pulse()
        self._book = book
        self._fleet = fleet
        self._targets = targets
        self._leases = leases
        self._presence = presence
        self._tasks = tasks
        self._patience = patience
        self._broken = broken
        self._runs = runs
        self._room = room
        self._learning = False
        self._awaited: dict[str, int] = {}
        """By job that is being installed: the version of the target that has its entries."""
        self._linking: dict[str, int] = {}
        """The same by RoCE job whose connections are all registered."""

    def switches_of(self, job: JobRecord) -> list[str]:
        """All switches that hold entries of a job."""
        return sorted(job.nodes & self._fleet.sessions.keys())

    def hit(self, job: JobRecord) -> bool:
        """The job's placement uses what is broken or lost."""
        return job.placement is not None and hit(job.placement.plan, self._broken(), job.lost)

    # ---- changes ----------------------------------------------------------------------------------------

    def commit(self, job: JobRecord) -> None:
        """A change that switches need not hear of."""
        with self._book.change():
            self._book.write(job)
        self.pulse.beat(job.name)

    def commit_member(self, job: JobRecord, host: str) -> None:
        """Of the job only this member is another, and the others need not hear of it."""
        with self._book.change():
            self._book.write_member(job, host)
        self.pulse.beat()

    def changed(self, *names: str) -> None:
        """These jobs were written with a new placement or epoch: the switches' target is another, and they wait for
        it."""
        version = self.retarget()
        for name in names:
            job = self._book.get(name)
            if job.state is JobState.INSTALLING:
                self._await(job, version, self._patience.install)
            elif job.state.over:
                self._forget(name)
        self.settle()
        self.pulse.beat(*names)

    def register(self, job: JobRecord, ends: Ends) -> None:
        """A RoCE worker's connections. With those of the last one the leaves get them."""
        others = tuple(e for e in job.ends if e.host != ends.host)
        job = job.model_copy(update={"ends": (*others, ends)})
        self.commit(job)
        self._link(job)
        self.settle()

    def _link(self, job: JobRecord) -> None:
        """Connections are written as soon as the job's trees are there and all workers have registered."""
        if job.state is JobState.RUNNING and job.roce and is_complete(job) and job.linked != job.epoch:
            self._linking[job.name] = self.retarget()
            seconds = self._patience.install
            self._tasks.later(seconds, self._link_late, job.name, job.epoch, seconds, job=job.name)

    def _link_late(self, name: str, epoch: int, seconds: float) -> None:
        job = self._book.get(name)
        if job.state is JobState.RUNNING and job.epoch == epoch and job.linked != epoch:
            self.end(name, JobState.FAILED, f"switches did not take its RoCE connections in {seconds:g} s")

    def retarget(self) -> int:
        return self._fleet.aim(self._targets.of(self._book.all(), self._broken()))

    async def learn_routes(self) -> None:
        """Before anything is aimed at."""
        await asyncio.to_thread(self._targets.learn, self._broken())

    def broken_changed(self) -> None:
        """Switches get routes around what is broken; of a large fabric as soon as a thread has computed them."""
        if self._targets.quick:
            self.retarget()
        elif not self._learning:
            self._learning = True
            self._tasks.spawn(self._learn(), "routes around what is broken")

    async def _learn(self) -> None:
        try:
            while not self._targets.knows(broken := self._broken()):
                await asyncio.to_thread(self._targets.learn, broken)
                self.retarget()
        finally:
            self._learning = False

    def settle(self) -> None:
        """Jobs whose switches hold all entries run; what they moved from goes."""
        settled = []
        for name, version in list(self._awaited.items()):
            job = self._book.get(name)
            if job.state is not JobState.INSTALLING:
                del self._awaited[name]
            elif all(self._fleet.holds(s, version) for s in self._new_switches(job)):
                del self._awaited[name]
                settled.append(job.model_copy(update={"state": JobState.RUNNING, "previous": None}))
        for name, version in list(self._linking.items()):
            job = self._book.get(name)
            if job.state is not JobState.RUNNING or not is_complete(job):
                del self._linking[name]
            elif all(self._fleet.holds(s, version) for s in self._new_switches(job)):
                del self._linking[name]
                self.commit(job.model_copy(update={"linked": job.epoch}))
                log.info("job %s: its RoCE connections are installed in epoch %d", name, job.epoch)
        for job in settled:
            self.commit(job)
            self._runs(job)
            log.info("job %s runs in epoch %d", job.name, job.epoch)
        if settled:
            self.retarget()

    def end(self, name: str, state: JobState, reason: str) -> None:
        """Raises UnknownJobError."""
        log.info("job %s is %s: %s", name, state, reason)
        job = self._book.get(name)
        self._forget(name)
        self.commit(over(job, state, reason))
        self._presence.keep(self._book)
        self.retarget()
        self._room()

    def resume(self, job: JobRecord) -> None:
        """After a start: whoever was installing has time to go on."""
        if job.state is JobState.INSTALLING:
            self._await(job, self._fleet.version, self._patience.start)
        self._link(job)

    # ---- installing -------------------------------------------------------------------------------------

    def _await(self, job: JobRecord, version: int, seconds: float) -> None:
        self._awaited[job.name] = version
        self._tasks.later(seconds, self._install_late, job.name, job.epoch, seconds, job=job.name)

    def _new_switches(self, job: JobRecord) -> list[str]:
        """The switches of the job's new placement."""
        return self.switches_of(job.model_copy(update={"previous": None}))

    def _install_late(self, name: str, epoch: int, seconds: float) -> None:
        job = self._book.get(name)
        if job.state is not JobState.INSTALLING or job.epoch != epoch:
            return
        version = self._awaited.get(name, 0)
        late = [s for s in self._new_switches(job) if not self._fleet.holds(s, version)]
        errors = "; ".join(f"{s}: {self._fleet.health(s).error or 'busy'}" for s in late)
        why = f"switches did not take its entries in {seconds:g} s: {errors}"
        if job.previous is not None and not hit(job.previous.plan, self._broken(), job.lost):
            self._go_back(job, why)
        else:
            self.end(name, JobState.FAILED, why)

    def _go_back(self, job: JobRecord, why: str) -> None:
        """The job has run on its previous placement all the while, and goes on there in its old epoch."""
        log.warning("job %s stays where it was: %s", job.name, why)
        self._awaited.pop(job.name, None)
        assert job.previous is not None
        there = {e.child for tree in job.previous.plan.trees for e in tree.edges}
        absent = (w for w in job.workers if w not in there)  # who was to be in from this epoch on
        stays: dict[str, object] = {"placement": job.previous, "previous": None, "state": JobState.RUNNING}
        stays["lost"] = (*job.lost, *absent)
        self.commit(job.model_copy(update={**stays, "reason": f"it stays where it was: {why}"}))
        self.retarget()
        self._room()

    def _forget(self, name: str) -> None:
        self._awaited.pop(name, None)
        self._linking.pop(name, None)
        self._leases.end_job(name)
        self._tasks.forget(name)
