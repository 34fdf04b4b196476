# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers and parameter servers of jobs: they join, send heartbeats, leave, or are lost."""

from __future__ import annotations

import logging
from collections.abc import Callable

from netfold.controller.jobs.file import OnWorkerLoss
from netfold.controller.jobs.records import Connection, Ends, JobRecord, JobState, Member, Transport
from netfold.controller.lifecycle.admission import RefusedError
from netfold.controller.lifecycle.book import Book
from netfold.controller.lifecycle.leases import Leases
from netfold.controller.lifecycle.states import Lifecycle
from netfold.controller.lifecycle.tasks import Tasks
from netfold.traffic.packets.wire import COUNT_MAX

LEAST_LANES = 32
"""Who comes later is told where the others are in a chunk that has so many lanes (docs/protocol.md, 5.6)."""

log = logging.getLogger(__name__)


class NotAMemberError(Exception):
    """The host is no worker or parameter server of the job, or the job went on without it."""


def _valid(connection: Connection) -> bool:
    """QPNs 0 and 1 are the device's own."""
    pairs = (connection.out_qpn, connection.in_qpn)
    return (
        all(1 < q < 1 << 24 for q in pairs) and pairs[0] != pairs[1] and 0 <= connection.first_psn < 1 << 24
    )


class Members:
    """`repair(job, why)` moves an installed job away from a member that it lost, `admit(job)` to where those are in
    that have come (back)."""

    def __init__(
        self,
        book: Book,
        lifecycle: Lifecycle,
        leases: Leases,
        tasks: Tasks,
        repair: Callable[[str, str], None],
        admit: Callable[[str], None],
    ) -> None:
        self._book = book
        self._lifecycle = lifecycle
        self._leases = leases
        self._tasks = tasks
        self._repair = repair
        self._admit = admit

    def check(self, name: str, host: str, *, new: bool = False) -> JobRecord:
        """The job, if the host is a member of it, or may be one again: only a `new` process, which was told nothing of
        it, as an old one's calls are not the others' any more. Raises UnknownJobError, NotAMemberError."""
        job = self._book.get(name)
        if job.member(host) is None:
            members = ", ".join(m.host for m in job.members)
            raise NotAMemberError(f"'{host}' is no member of job '{name}'; its members are {members}")
        if host in job.lost and not (new and self._takes_newcomers(job, host)) and host not in job.returning:
            raise NotAMemberError(f"job '{name}' went on without '{host}'; a new worker may join there")
        return job

    def _takes_newcomers(self, job: JobRecord, host: str) -> bool:
        member = job.member(host)
        return (
            job.state.installed
            and job.transport is Transport.UDP
            and self._book.lanes >= LEAST_LANES
            and member is not None
            and not member.parameter_server
        )

    def add(self, name: str, hosts: tuple[str, ...]) -> JobRecord:
        """Further workers of a job that runs; each is in from the epoch on that begins when it attends. Raises
        UnknownJobError, RefusedError."""
        job = self._book.get(name)
        if not job.state.installed:
            raise RefusedError(f"job '{name}' is {job.state}; workers are added to one that runs")
        if job.transport is not Transport.UDP:
            raise RefusedError(
                f"job '{name}' speaks RoCE, whose rings are closed; submit it again with more workers"
            )
        if self._book.lanes < LEAST_LANES:
            raise RefusedError(f"workers are added where packets have {LEAST_LANES} lanes at least")
        if self._book.order(name).file.quorum and len(job.workers) + len(hosts) > COUNT_MAX:
            raise RefusedError(f"a job with a quorum has {COUNT_MAX} workers at most")
        for host in hosts:
            if not self._book.is_host(host):
                raise RefusedError(f"'{host}' is no host of the fabric")
            if job.member(host) is not None or hosts.count(host) > 1:
                raise RefusedError(f"'{host}' is a member of job '{name}' already")
        self._lifecycle.commit(
            job.model_copy(
                update={
                    "members": (*job.members, *(Member(host=h) for h in hosts)),
                    "added": (*job.added, *hosts),
                    "lost": (*job.lost, *hosts),
                }
            )
        )
        return self._book.get(name)

    def began_again(self, name: str, host: str) -> None:
        """The member's process is another one than that which was told its part: where the job goes on without who is
        lost, the others go on with the new one, in a new epoch. Raises UnknownJobError."""
        job = self._book.get(name)
        if host in job.lost or not self._takes_newcomers(job, host):
            return
        if self._book.order(name).file.on_worker_loss is OnWorkerLoss.CONTINUE:
            self._lifecycle.commit(job.model_copy(update={"newcomers": True}))
            if job.state is JobState.RUNNING:
                self._raise(name, f"the worker of {host} began again")

    def attend(self, name: str, host: str, worn_epoch: int = 0) -> JobRecord:
        """A heartbeat; with `worn_epoch` the member asks for a new epoch. Raises UnknownJobError, NotAMemberError."""
        job = self.check(name, host, new=True)
        member = job.member(host)
        if job.state.over or member is None or member.left:
            return job
        self._leases.renew(name, host, self.lease_s(name))
        if not member.joined:
            self._lifecycle.commit_member(job.with_member(host, joined=True), host)
        if host in job.lost and host not in job.returning:
            job = self._book.get(name)
            self._lifecycle.commit(job.model_copy(update={"returning": (*job.returning, host)}))
            self._admit(name)
        if worn_epoch and worn_epoch == job.epoch and job.state is JobState.RUNNING:
            self._raise(name, f"{host} asked for a new epoch")
        return self._book.get(name)

    def register(self, name: str, ends: Ends) -> None:
        """A RoCE worker's connections of an epoch, told once; what is of an epoch that is over is not heard. Raises
        UnknownJobError, NotAMemberError."""
        job = self.check(name, ends.host)
        if job.state.over or ends.host not in job.roce or ends.epoch != job.epoch or ends in job.ends:
            return
        wanted = [] if job.placement is None else [t.tree for t in job.placement.trees]
        if sorted(c.tree for c in ends.connections) != sorted(wanted) or not all(
            map(_valid, ends.connections)
        ):
            raise NotAMemberError(f"'{ends.host}' registers connections that are not those of job '{name}'")
        if len(ends.pairs) != 2 * len(ends.connections):
            raise NotAMemberError(f"'{ends.host}' registers a queue pair twice")
        for other in self._book.all():
            theirs = other.registered.get(ends.host)
            if theirs is None or other.name == name or not other.state.installed:
                continue
            if taken := ends.pairs & theirs.pairs:
                raise NotAMemberError(f"queue pair {min(taken)} of '{ends.host}' is job {other.name}'s")
        if ends.host in job.registered and job.linked == job.epoch:
            self._raise(name, f"{ends.host} has other connections: its worker began again")
        else:
            self._lifecycle.register(job, ends)

    def _raise(self, name: str, why: str) -> None:
        with self._book.change():
            self._book.write(self._book.raised(self._book.get(name), why))
        self._lifecycle.changed(name)

    def leave(self, name: str, host: str) -> None:
        """The member is done; with the last worker the job is."""
        job = self.check(name, host, new=True)
        self._leases.end(name, host)
        if host in job.lost:
            self.lost(name, host, f"{host} left before it was in")
            return
        job = self.attend(name, host)
        self._leases.end(name, host)
        if job.state.over:
            return
        job = job.with_member(host, left=True)
        self._lifecycle.commit_member(job, host)
        if all(m.left for m in job.members if not m.parameter_server and m.host not in job.lost):
            self._lifecycle.end(name, JobState.DONE, "every worker left")

    def lease_s(self, name: str) -> float:
        return self._book.order(name).file.lease_ms / 1000

    def resume(self, job: JobRecord) -> None:
        """After a start: who was there has a lease's time to come back."""
        for member in job.members:
            away = member.host in job.lost and member.host not in job.returning
            if member.joined and not member.left and not away:
                self._leases.renew(job.name, member.host, self.lease_s(job.name))
        self.expect(job)
        if job.returning and not job.state.over:
            self._admit(job.name)

    def expect(self, job: JobRecord) -> None:
        """All members have to join from now on within the job's `join_s`."""
        self._tasks.later(self._book.order(job.name).file.join_s, self._join_late, job.name, job=job.name)

    def lease_expired(self, name: str, host: str) -> None:
        seconds = self.lease_s(name)
        self.lost(name, host, f"the lease of {host} expired: no heartbeat for {seconds:g} s")

    def lost(self, name: str, host: str, why: str) -> None:
        """The job fails or goes on without the member, as its file says."""
        job = self._book.get(name)
        if host in job.returning:
            job = job.no_longer_returning([host])
            self._lifecycle.commit(job)
        if job.state.over or host in job.lost:
            return
        if job.state.installed and not self._book.needs(job, host):
            log.info("job %s: %s, and it is not needed", name, why)
        elif self._book.order(name).file.on_worker_loss is OnWorkerLoss.FAIL or self._book.is_last_worker(
            job, host
        ):
            self._lifecycle.end(name, JobState.FAILED, why)
        else:
            self._lifecycle.commit(job.model_copy(update={"lost": (*job.lost, host), "reason": why}))
            if job.state.installed:
                self._repair(name, why)

    def _join_late(self, name: str) -> None:
        job = self._book.get(name)
        absent = [m.host for m in job.members if not m.joined and self._book.needs(job, m.host)]
        for host in absent if job.state.installed else ():
            seconds = self._book.order(name).file.join_s
            self.lost(name, host, f"{', '.join(absent)} did not join within {seconds:g} s")
