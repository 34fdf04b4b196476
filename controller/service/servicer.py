# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The service of api/netfold.proto: what operators and members ask, in the controller's terms and back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from typing import TypeVar

from netfold.api import netfold_pb2 as pb
from netfold.api import netfold_pb2_grpc as pb_grpc
from netfold.controller.core import Controller
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.lifecycle.book import UnknownJobError
from netfold.controller.lifecycle.members import NotAMemberError
from netfold.controller.planning.plan import Tree
from netfold.controller.service.connections import ends_from, ring_message
from netfold.controller.service.explain import explain
from netfold.controller.service.messages import (
    REFUSALS,
    Context,
    hosts_message,
    job_message,
    jobs_message,
    link_messages,
    progress_of,
    refuse,
    state_of,
    version,
)
from netfold.controller.service.timing import pace_of, timing_of
from netfold.controller.switches.quorum import senders_beyond

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class Service(pb_grpc.ControllerServicer):  # type: ignore[misc]
    """Every typed error becomes a status code and its message. Methods are named as in the proto."""

    # ruff: noqa: N802

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def SubmitJob(self, request: pb.SubmitJobRequest, context: Context) -> pb.Job:
        try:
            return self._job(await self._controller.submit(request.spec_yaml, queue=request.queue))
        except REFUSALS as error:
            await refuse(context, error)

    async def ListJobs(self, request: pb.ListJobsRequest, context: Context) -> pb.ListJobsResponse:
        controller = self._controller
        return jobs_message(controller.fabric, controller.book.all(), controller.presence, every=request.all)

    async def GetJob(self, request: pb.JobName, context: Context) -> pb.Job:
        return await self._answered(context, lambda: self._job(self._controller.book.get(request.name)))

    async def WatchJob(self, request: pb.JobName, context: Context) -> AsyncIterator[pb.Job]:
        last: JobRecord | None = None
        while True:
            try:
                job = self._controller.book.get(request.name)
            except UnknownJobError as error:
                await refuse(context, error)
            if job != last:
                yield self._job(job)
                last = job
                if job.state.over:
                    return
                continue
            await self._controller.pulse.wait()

    async def CancelJob(self, request: pb.JobName, context: Context) -> pb.Job:
        return await self._answered(context, lambda: self._job(self._controller.cancel(request.name)))

    async def ExplainJob(self, request: pb.JobName, context: Context) -> pb.Explanation:
        try:
            return pb.Explanation(steps=await explain(self._controller, request.name))
        except UnknownJobError as error:
            await refuse(context, error)

    async def AddWorkers(self, request: pb.AddWorkersRequest, context: Context) -> pb.Job:
        try:
            return self._job(self._controller.members.add(request.name, tuple(request.hosts)))
        except REFUSALS as error:
            await refuse(context, error)

    async def Replan(self, request: pb.ReplanRequest, context: Context) -> pb.ReplanResponse:
        try:
            return pb.ReplanResponse(moved=await self._controller.replan(request.jobs))
        except UnknownJobError as error:
            await refuse(context, error)

    async def GetStatus(self, request: pb.StatusRequest, context: Context) -> pb.Status:
        controller = self._controller
        pools = controller.book.occupancy()
        rows = []
        for name, session in controller.fleet.sessions.items():
            health = session.health
            rows.append(
                pb.SwitchStatus(
                    name=name,
                    address=session.endpoint.address,
                    ready=health.ready,
                    slots_in_use=pools[name].in_use,
                    slots=pools[name].slots,
                    repaired_entries=health.repaired,
                )
            )
        jobs = {t.tree: j.name for j in controller.book.all() for p in j.placements for t in p.trees}
        counters = [
            pb.TreeCounters(
                switch=switch,
                job=jobs.get(tree, ""),
                tree=tree,
                packets={v.label: n for v, n in counts.items() if n},
            )
            for (switch, tree), counts in controller.counters.trees.items()
        ]
        broken = [*controller.broken.switches, *("-".join(sorted(k)) for k in controller.broken.links)]
        return pb.Status(
            version=version(),
            primary=True,
            switches=rows,
            trees=counters,
            broken=sorted(broken),
            primary_address=controller.book.primary,
            links=link_messages(controller.fabric, controller.loads.all()),
        )

    async def ListHosts(self, request: pb.ListHostsRequest, context: Context) -> pb.ListHostsResponse:
        return hosts_message(self._controller.setting)

    # ---- members ---------------------------------------------------------------------------------

    async def Attend(
        self, request_iterator: AsyncIterator[pb.Attendance], context: Context
    ) -> AsyncIterator[pb.Notice]:
        first = await anext(aiter(request_iterator), None)
        if first is None:
            return
        name, host = first.job, first.host
        try:
            self._heard(first)
            if not first.epoch and self._controller.presence.was_told(name, host):
                self._controller.members.began_again(name, host)
        except (UnknownJobError, NotAMemberError) as error:
            await refuse(context, error)
        listener = asyncio.create_task(self._listen(request_iterator, name, host))
        with self._controller.presence.attending(name, host):
            try:
                async for notice in self._notices(name, host, listener):
                    yield notice
            finally:
                listener.cancel()

    async def _listen(self, requests: AsyncIterator[pb.Attendance], name: str, host: str) -> None:
        async for message in requests:
            if (message.job or name, message.host or host) != (name, host):
                raise NotAMemberError(f"this stream is of '{host}' in job '{name}', not of another member")
            message.job, message.host = name, host
            self._heard(message)

    def _heard(self, message: pb.Attendance) -> None:
        self._controller.members.check(message.job, message.host, new=not message.epoch)
        self._controller.presence.heard(message.job, message.host, progress_of(message.report))
        if message.leave:
            self._controller.members.leave(message.job, message.host)
        else:
            self._controller.members.attend(message.job, message.host, worn_epoch=message.worn_epoch)
            if message.HasField("ends"):
                self._controller.members.register(message.job, ends_from(message))

    async def _notices(self, name: str, host: str, listener: asyncio.Task[None]) -> AsyncIterator[pb.Notice]:
        """Until the job is over or the member's words end: one that left may still listen for the end of the others."""
        told, ring_told = 0, 0
        lease_ms = self._controller.book.order(name).file.lease_ms
        job = self._controller.book.get(name)
        if job.state in (JobState.QUEUED, JobState.INSTALLING) or host in job.lost:
            yield pb.Notice(lease_ms=lease_ms)
        while True:
            job = self._controller.book.get(name)
            if job.state.over or (host in job.lost and host not in job.returning):
                over = pb.JobOver(state=state_of(job), reason=job.reason)
                yield pb.Notice(over=over, lease_ms=lease_ms)
                return
            if job.state is JobState.RUNNING and job.epoch != told and self._controller.book.needs(job, host):
                yield pb.Notice(assignment=self._assignment(job, host), lease_ms=lease_ms)
                told = job.epoch
                self._controller.presence.tell(name, host)
                continue
            if job.linked == job.epoch == told != ring_told and host in job.roce:
                yield pb.Notice(ring=ring_message(self._controller.setting, job, host), lease_ms=lease_ms)
                ring_told = job.epoch
                continue
            if listener.done():
                if not listener.cancelled() and listener.exception() is not None:
                    log.info("job %s: stream of %s: %s", name, host, listener.exception())
                return
            pulse = asyncio.ensure_future(self._controller.pulse.wait(name))
            await asyncio.wait([pulse, listener], return_when=asyncio.FIRST_COMPLETED)
            pulse.cancel()

    def _assignment(self, job: JobRecord, host: str) -> pb.Assignment:
        assert job.placement is not None
        controller = self._controller
        plan, order = job.placement.plan, controller.book.order(job.name)
        workers = [w for w in order.workers if w not in job.lost]
        serves = host not in workers
        parts = []
        for planned, tree in zip(job.placement.trees, plan.trees, strict=True):
            if serves and tree.root != host:
                continue
            numbers = {e.child: n for n, e in enumerate(tree.edges)}
            senders = list(tree.children(host)) if serves else []
            if serves and planned.quorum:
                senders += [tree.edges[n].child for n in senders_beyond(tree)]
            parts.append(
                pb.TreePart(
                    tree=planned.tree,
                    share=tree.share,
                    slots=planned.slots,
                    window=planned.window,
                    child=numbers.get(host, 0),
                    destination=str(controller.setting.addresses.ip(tree.root)),
                    children=[numbers[c] for c in senders],
                    sources=[self._sources(tree, c) for c in senders],
                    own_children=len(tree.children(host)) if serves and planned.quorum else 0,
                )
            )
        numerics = order.file.numerics
        return pb.Assignment(
            job=job.name,
            epoch=job.epoch,
            udp_port=job.udp_port,
            lanes=controller.options.wire.lanes,
            rank=0 if serves else workers.index(host),
            workers=len(workers),
            elements=order.file.elements,
            rate_mbps=pace_of(controller.setting, plan, controller.options.wire) / 1e6,
            trees=parts,
            numerics=pb.Numerics(mode=numerics.mode, fraction_bits=numerics.fraction_bits),
            transport=job.transport.value,
            address=str(controller.setting.addresses.ip(host)),
            timing=pb.Timing(**asdict(timing_of(controller.setting, plan, controller.options.wire))),
            quorum=job.placement.quorum,
            quorum_deadline_s=order.file.quorum_deadline_s,
            newcomers=job.newcomers,
        )

    def _sources(self, tree: Tree, child: str) -> pb.Sources:
        """Whom the packets of a child of a parameter server come from."""
        below = tree.workers_below(child)
        return pb.Sources(addresses=[str(self._controller.setting.addresses.ip(w)) for w in below])

    # ---- helpers ---------------------------------------------------------------------------------

    def _job(self, job: JobRecord) -> pb.Job:
        return job_message(self._controller.fabric, job, self._controller.presence)

    async def _answered(self, context: Context, ask: Callable[[], Answer]) -> Answer:
        try:
            return ask()
        except REFUSALS as error:
            await refuse(context, error)
