# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Handles members of jobs (workers and parameter servers) that join, send heartbeats, leave, or are lost."""

from __future__ import annotations

import logging
from collections import Counter

from netfold.controller.features.feature import EpochRequest, RegistrationError
from netfold.controller.features.registry import features_of
from netfold.controller.jobs.file import OnWorkerLoss, TargetsOption
from netfold.controller.jobs.records import JobRecord, JobState, Member
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.departures import departures_of, summary
from netfold.controller.lifecycle.epochs import Epochs, EpochsExhaustedError
from netfold.controller.lifecycle.events import (
    CapacityFreed,
    JobRunning,
    JobStranded,
    LeaseExpired,
    MembersRejoining,
)
from netfold.controller.lifecycle.leases import Leases
from netfold.controller.lifecycle.states import Lifecycle
from netfold.controller.lifecycle.tree_numbers import check_udp_port
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.listing import listing

MIN_LANES = 32
"""Lanes of the chunk that gives newcomers the others' call numbers (docs/reference/protocol.md, 5.6); packets need at
least as many."""

log = logging.getLogger(__name__)


class NotAMemberError(Exception):
    """The host is no worker or parameter server of the job, or the job continued without it."""


def _newcomer_problem(job: JobRecord, workers: int) -> str:
    """Why no worker may join the job, which then has that many workers; "" if one may."""
    return next((p for feature in features_of(job) if (p := feature.newcomer_problem(job, workers))), "")


class Members:
    """Tracks members. Publishes JobStranded when an installed job continues without a member, and MembersRejoining when
    a member waits for the next epoch."""

    def __init__(
        self,
        state: ControllerState,
        lifecycle: Lifecycle,
        epochs: Epochs,
        leases: Leases,
    ) -> None:
        self._fabric = state.fabric
        self._failures = state.failures
        self._registry = state.registry
        self._member_status = state.member_status
        self._tasks = state.tasks
        self._timeouts = state.timeouts
        self._events = state.events
        self._lifecycle = lifecycle
        self._epochs = epochs
        self._leases = leases

    def check(self, name: str, host: str, process: int = 0, *, new: bool = False) -> JobRecord:
        """The job, if the host is a member of it, or may become one. Only a `new` process may: it has received no
        assignment, whereas the calls of an old one no longer match those of the other workers. `process`: 0 if unknown.
        Raises UnknownJobError, NotAMemberError."""
        job = self._registry.get(name)
        member = job.member(host)
        if member is None:
            members = listing([m.host for m in job.members])
            raise NotAMemberError(f"'{host}' is no member of job '{name}'; its members are {members}")
        if job.sandbox and not member.parameter_server:
            raise NotAMemberError(
                f"job '{name}' is a sandbox, for packets made by hand: no worker joins it; expected a job without "
                "`sandbox: true`"
            )
        if not new and member.is_of_other_process(process):
            raise NotAMemberError(f"another worker of '{host}' has joined job '{name}' in its place")
        if (
            host in job.excluded
            and not (new and self._takes_newcomers(job, host))
            and host not in job.rejoining
        ):
            hope = "a new worker may join" if self._takes_newcomers(job, host) else "it takes no new worker"
            raise NotAMemberError(f"job '{name}' continued without '{host}'; {hope} there")
        return job

    def check_generation(self, name: str, host: str, generation: int) -> None:
        """Raises UnknownJobError, and NotAMemberError for a worker of another generation than the job's: its part has
        ended, whatever it has not received yet."""
        job = self._registry.get(name)
        if job.has_replaced(host, generation):
            raise NotAMemberError(
                f"job '{name}' has no workers of generation {generation} any more: {job.reason}"
            )

    def _takes_newcomers(self, job: JobRecord, host: str) -> bool:
        member = job.member(host)
        return (
            job.state.is_installed
            and not _newcomer_problem(job, len(job.workers))
            and self._registry.lanes >= MIN_LANES
            and member is not None
            and not member.parameter_server
        )

    def add(self, name: str, hosts: tuple[str, ...]) -> JobRecord:
        """Add workers to a job that runs. Each takes part from the epoch that starts when it joins. Raises
        UnknownJobError, RefusedError."""
        job = self._registry.get(name)
        if not job.state.is_installed:
            raise RefusedError(f"job '{name}' is {job.state}; workers are added to one that runs")
        if job.sandbox:
            raise RefusedError(f"job '{name}' is a sandbox, which no worker joins")
        if problem := _newcomer_problem(job, len(job.workers) + len(hosts)):
            raise RefusedError(problem)
        if self._requires_targets(name):
            raise RefusedError(
                f"job '{name}' requires targets, which end when workers come later; expected `targets: auto`"
            )
        if self._registry.lanes < MIN_LANES:
            raise RefusedError(
                f"adding workers needs packets of at least {MIN_LANES} lanes; the fabric has {self._registry.lanes}"
            )
        for host, count in Counter(hosts).items():
            if not self._registry.is_host(host):
                raise RefusedError(f"'{host}' is no host of the fabric")
            if job.member(host) is not None or count > 1:
                raise RefusedError(f"'{host}' is a member of job '{name}' already")
        check_udp_port(job, hosts, self._registry.all())
        self._lifecycle.commit(
            job.model_copy(
                update={
                    "members": (*job.members, *(Member(host=h) for h in hosts)),
                    "added": (*job.added, *hosts),
                    "excluded": (*job.excluded, *hosts),
                }
            )
        )
        return self._registry.get(name)

    def join(self, name: str, host: str, process: int = 0, *, is_new: bool) -> None:
        """Handle a stream that a member opens. A process that `is_new` and replaces one that left or had an assignment
        does not take part in an epoch of that one: packets of the replaced process would count as its own. A worker
        takes part as a newcomer in a new epoch if the job accepts newcomers, otherwise the replaced worker is lost. A
        parameter server gets a new epoch. Raises UnknownJobError, NotAMemberError."""
        job = self.check(name, host, process, new=is_new)
        member = job.member(host)
        if job.state.is_terminal or member is None or host in job.excluded:
            return
        if not is_new:
            self._member_status.set_assigned(name, host)  # by an earlier controller, if not by this one
            return
        if process and process == member.process:
            return
        continues = self._continues(job) and self._takes_newcomers(job, host)
        if member.left:
            if not continues:
                raise NotAMemberError(f"'{host}' has left job '{name}', which takes no new worker there")
            job = job.with_member(host, left=False)
            self._lifecycle.commit(job.model_copy(update={"excluded": (*job.excluded, host)}))
        elif self._registry.needs(job, host) and self._was_assigned(job, member):
            self._replace(job.with_member(host, process=process), member, continues=continues)

    def _replace(self, job: JobRecord, member: Member, *, continues: bool) -> None:
        """Handle the start of another process of the member. `continues`: the job takes it as a newcomer."""
        name, host = job.name, member.host
        if member.parameter_server:
            why = f"parameter server {host} was started again, with empty slots"
        elif continues:
            why = f"the worker of {host} was started again"
            job = job.model_copy(update={"newcomers": True})
        else:
            why = f"the worker of {host} was started again; the calls of its first process are lost"
            self.handle_loss(name, host, why)
            return
        if job.state is JobState.RUNNING or job.previous is not None:  # else no process has had the epoch
            try:
                self._epochs.start(job, why)
            except EpochsExhaustedError as error:
                self.handle_loss(name, host, str(error))
        else:
            self._lifecycle.commit(job)

    def _was_assigned(self, job: JobRecord, member: Member) -> bool:
        """Whether an earlier process of the member may have received an assignment from this controller or an earlier
        one."""
        name, host, status = job.name, member.host, self._member_status
        is_of_earlier = job.has_run and member.joined and not status.has_connected(name, host)
        return status.is_assigned(name, host) or is_of_earlier

    def _continues(self, job: JobRecord) -> bool:
        return self._on_worker_loss(job) is OnWorkerLoss.CONTINUE

    def _on_worker_loss(self, job: JobRecord) -> OnWorkerLoss:
        return self._registry.resolved_job(job.name).file.on_worker_loss

    def interrupt(self, name: str, generation: int, by: str) -> JobRecord:
        """End the part of the workers of this generation. The job waits `join_s` for the next one; one that may not be
        reconfigured, or has no place yet, is canceled. A job that has had other workers since stays as it is. Raises
        UnknownJobError."""
        job = self._registry.get(name)
        if job.state.is_terminal or job.generation != generation or job.interrupted:
            return job
        if self._on_worker_loss(job) is not OnWorkerLoss.RECONFIGURE or not job.state.is_installed:
            self._lifecycle.end(name, JobState.CANCELED, f"canceled by {by}")
        else:
            self._interrupt(job, f"interrupted by {by}")
        return self._registry.get(name)

    def _interrupt(self, job: JobRecord, why: str) -> None:
        self._lifecycle.interrupt(job.name, why)
        self._await_generation(job, self._registry.resolved_job(job.name).file.join_s)

    def _await_generation(self, job: JobRecord, seconds: float) -> None:
        """End an interrupted job that has no other workers within `seconds`."""
        self._tasks.call_later(seconds, self._generation_late, job.name, job.generation, job=job.name)

    def _generation_late(self, name: str, generation: int) -> None:
        job = self._registry.get(name)
        if job.interrupted and job.generation == generation:
            self._lifecycle.end(name, JobState.FAILED, f"{job.reason}, and no other workers came in time")

    def heartbeat(
        self,
        name: str,
        host: str,
        process: int = 0,
        *,
        unusable_epoch: int = 0,
        supports_targets: bool = True,
    ) -> JobRecord:
        """Renew the lease of a member. `unusable_epoch` requests a new epoch. Raises UnknownJobError,
        NotAMemberError."""
        job = self.check(name, host, new=True)
        member = job.member(host)
        if job.state.is_terminal or member is None or member.left:
            return job
        self._refuse_unaware(job, host, supports_targets=supports_targets)
        self.renew_lease(name, host)
        is_same = member.joined and not member.is_of_other_process(process)
        if not is_same or member.supports_targets != supports_targets:
            number = process or member.process
            joined = job.with_member(host, joined=True, process=number, supports_targets=supports_targets)
            self._commit_joined(joined, host)
        if host in job.excluded and host not in job.rejoining:
            job = self._registry.get(name)
            self._lifecycle.commit(job.model_copy(update={"rejoining": (*job.rejoining, host)}))
            self._events.publish(MembersRejoining(name))
        if unusable_epoch and unusable_epoch == job.epoch and job.state is JobState.RUNNING:
            self._replace_epoch(name, host)
        return self._registry.get(name)

    def _refuse_unaware(self, job: JobRecord, host: str, *, supports_targets: bool) -> None:
        """Raises NotAMemberError for a member that does not know the targets that its job requires."""
        if supports_targets or not self._requires_targets(job.name):
            return
        raise NotAMemberError(
            f"job '{job.name}' requires targets, and the member of '{host}' does not know them; expected a newer "
            "netfold there, or `targets: auto` in the job's file"
        )

    def _requires_targets(self, name: str) -> bool:
        return self._registry.resolved_job(name).file.targets is TargetsOption.REQUIRED

    def _commit_joined(self, job: JobRecord, host: str) -> None:
        """Store that a process of `host` has joined. If it does not know the targets of the epoch, which it has not
        been assigned yet, the next epoch has none."""
        member = job.member(host)
        if member is None or member.supports_targets or not self._epochs.has_unsupported_targets(job):
            self._lifecycle.commit_member(job, host)
            return
        try:
            self._epochs.start(job, f"the member of {host} does not know targets")
        except EpochsExhaustedError as error:
            self.handle_loss(job.name, host, str(error))

    def _replace_epoch(self, name: str, host: str) -> None:
        """Replace the epoch at the request of `host`. If workers have left, the job continues without them, on other
        trees."""
        job = self._registry.get(name)
        if self._lifecycle.is_affected(job):
            return  # a repair replaces the epoch
        if not job.departed:
            self._epochs.start_or_move(job, f"{host} asked for a new job epoch")
            return
        hosts = tuple(m.host for m in job.departed)
        why = f"{listing(hosts)} left before {host}"
        self._lifecycle.commit(job.model_copy(update={"excluded": (*job.excluded, *hosts), "reason": why}))
        self._events.publish(JobStranded(name, why))

    def register(self, name: str, host: str, update: pb.MemberUpdate) -> None:
        """Hand an update of a member to the features of its job. Raises UnknownJobError, NotAMemberError."""
        job = self._registry.get(name)
        for feature in features_of(job):
            try:
                change = feature.on_member_update(job, host, update, self._registry.all())
            except RegistrationError as error:
                raise NotAMemberError(str(error)) from error
            if isinstance(change, EpochRequest):
                self._epochs.start_or_move(job, change.reason)
            elif change is not None:
                self._lifecycle.update_feature(change, host)

    def leave(self, name: str, host: str, calls: int = 0) -> None:
        """End the membership after `calls` calls of the job; the job ends with its last worker. A parameter server that
        is a root is lost. Raises UnknownJobError, NotAMemberError, and StoreError: then the member has not left, and
        tries again."""
        job = self.check(name, host, new=True)
        if not job.state.is_terminal:
            self.renew_lease(name, host)
            self._leave(job, host, calls)
            self._leases.end(name, host)

    def _leave(self, job: JobRecord, host: str, calls: int) -> None:
        name = job.name
        if host in job.excluded:
            self.handle_loss(name, host, f"{host} left before it was in")
            return
        member = job.member(host)
        if member is not None and member.parameter_server and self._registry.needs(job, host):
            self.handle_loss(name, host, f"parameter server {host} left")
            return
        before = self._departures(job)
        job = job.with_member(host, joined=True, left=True, calls=calls)
        self._lifecycle.commit_member(job, host)
        if self._departures(job) != before:
            self._lifecycle.changes.notify(name)
        self._end_if_left(name)

    def _end_if_left(self, name: str) -> None:
        """End the job when every worker has left that was not lost before."""
        job = self._registry.get(name)
        workers = [m for m in job.members if not m.parameter_server and m.host not in job.excluded]
        if workers and all(m.left for m in workers) and not job.state.is_terminal:
            left = (m for m in job.members if m.left and not m.parameter_server)
            self._lifecycle.end(name, JobState.DONE, summary(left))

    def _departures(self, job: JobRecord) -> tuple[int, bool] | None:
        """The departures that the other members have to be sent."""
        found = departures_of(job, self._registry.resolved_job(job.name).file)
        return None if found is None else (found.call_limit, found.is_final)

    def renew_lease(self, name: str, host: str) -> None:
        self._leases.renew(name, host, self.lease_s(name))

    def lease_s(self, name: str) -> float:
        return self._registry.resolved_job(name).lease_ms / 1000

    def resume(self, job: JobRecord) -> None:
        """Resume a job after the start of the controller. Members that had joined have to reconnect within a lease, at
        least within the start timeout, because nothing received their heartbeats in between. The last one may have left
        just before the last controller died."""
        self._tasks.persist(self._end_if_left, job.name, job=job.name)
        if self._registry.get(job.name).state.is_terminal:
            return
        for member in job.members:
            away = member.host in job.excluded and member.host not in job.rejoining
            has_ended = job.has_replaced(member.host, job.generation)
            if member.joined and not member.left and not away and not has_ended:
                seconds = max(self.lease_s(job.name), self._timeouts.start)
                self._leases.renew(job.name, member.host, seconds)
        if job.interrupted:
            self._await_generation(job, self._registry.resolved_job(job.name).file.join_s)
        elif job.has_run:
            # Only the first generation's start is stored.
            ran_s = 0.0 if job.generation else self._registry.ran_for_s(job)
            left_s = self._registry.resolved_job(job.name).file.join_s - ran_s
            self._expect(job, max(left_s, self._timeouts.start))
        if job.rejoining and not job.state.is_terminal:
            self._events.publish(MembersRejoining(job.name))

    def _expect(self, job: JobRecord, seconds: float) -> None:
        """Require that all members join within `seconds`."""
        self._tasks.call_later(seconds, self._join_late, job.name, job.generation, job=job.name)

    def on_job_running(self, event: JobRunning) -> None:
        """Give the members the job's `join_s` from now on, also if the job waited for long."""
        job = self._registry.get(event.job)
        self._expect(job, self._registry.resolved_job(job.name).file.join_s)

    def on_lease_expired(self, event: LeaseExpired) -> None:
        generation = self._registry.get(event.job).generation
        self._tasks.persist(self._expire, event.job, event.host, generation, job=event.job)

    def _expire(self, name: str, host: str, generation: int) -> None:
        if self._registry.get(name).has_replaced(host, generation):
            return
        if not self._leases.held(name, host):  # it may have come back while the store refused the change
            seconds = self.lease_s(name)
            if self._held_s(host):
                self._leases.renew(name, host, seconds)
                return
            self.handle_loss(name, host, f"the lease of {host} expired: no heartbeat for {seconds:g} s")

    def _held_s(self, host: str) -> float:
        """Seconds for which the switch of the host may be away: no member there is lost until then."""
        return self._failures.held_s(self._fabric.attachment(host))

    def handle_loss(self, name: str, host: str, why: str) -> None:
        """End the job or continue it without the member, as its file says."""
        job = self._registry.get(name)
        if host in job.rejoining:
            job = job.no_longer_rejoining([host])
            self._lifecycle.commit(job)
        if job.state.is_terminal or host in job.excluded:
            return
        if job.state.is_installed and not self._registry.needs(job, host):
            log.info("job %s: %s, and it is not needed", name, why)
        elif self._can_be_reconfigured(job, host):
            self._interrupt(job, why)
        elif not self._continues(job) or self._registry.is_last_worker(job, host):
            self._lifecycle.end(name, JobState.FAILED, why)
        else:
            self._lifecycle.commit(job.model_copy(update={"excluded": (*job.excluded, host), "reason": why}))
            self._end_if_left(name)
            if self._registry.get(name).state.is_installed:
                self._events.publish(JobStranded(name, why))
            else:  # without the member it may fit
                self._events.publish(CapacityFreed())

    def _can_be_reconfigured(self, job: JobRecord, host: str) -> bool:
        """Whether the loss of the member ends no more than the part of the workers. Those that did not even come
        together are not waited for again, and no other parameter server comes."""
        member = job.member(host)
        return (
            job.state.is_installed
            and not job.interrupted
            and member is not None
            and not member.parameter_server
            and member.joined
            and self._on_worker_loss(job) is OnWorkerLoss.RECONFIGURE
        )

    def _join_late(self, name: str, generation: int) -> None:
        job = self._registry.get(name)
        if job.interrupted or job.generation != generation:
            return  # others are to join
        absent = [m.host for m in job.members if not m.joined and self._registry.needs(job, m.host)]
        if not absent or not job.state.is_installed:
            return
        seconds = self._registry.resolved_job(name).file.join_s
        if held_s := max(map(self._held_s, absent)):
            self._expect(job, min(held_s, seconds))  # the switch may be given back before
            return
        for host in absent:
            self.handle_loss(name, host, f"{listing(absent)} did not join within {seconds:g} s")
