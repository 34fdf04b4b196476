# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N802
"""Implements the service of a standby: it answers reads from the store that it shares with the primary, and refuses
changes with the address of the primary."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

import grpc

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.store import Store
from netfold.controller.lifecycle.job_registry import JobRegistry, UnknownJobError
from netfold.controller.lifecycle.member_status import MemberStatus
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.service.access_control import JobsService
from netfold.controller.service.events import EventFiles
from netfold.controller.service.explain import explain_from_store
from netfold.controller.service.fabric_status import fabric_status
from netfold.controller.service.messages import (
    Context,
    StandbyError,
    StandbyJoinError,
    controllers_message,
    hosts_message,
    job_message,
    jobs_message,
    refuse,
    refusing,
    usage_message,
    version,
)
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.protocol import netfold_pb2 as pb

STORE_POLL_S = 0.2
"""Seconds between two polls of the store: SQLite has no notification of changes by another process."""

Answer = TypeVar("Answer")


class StandbyService(JobsService):
    """Answers until `retire`, which ends the open streams. `config_of` makes the configuration of the fabric that the
    store has."""

    def __init__(
        self, config_of: Callable[[], FabricConfig], packet_model: PacketModel, store: Store
    ) -> None:
        self._config_of = config_of
        self._packet_model = packet_model
        self._store = store
        self._version = -1
        self._fabric = ""
        self._known: FabricConfig
        self._registry: JobRegistry
        self._no_members = MemberStatus()
        self._retired = asyncio.Event()

    @property
    def registry(self) -> JobRegistry:
        return self._current()

    def retire(self) -> None:
        self._retired.set()

    async def ListJobs(self, request: pb.ListJobsRequest, context: Context) -> pb.ListJobsResponse:
        jobs = self._current().all()
        return jobs_message(
            self._config.fabric, jobs, self._no_members, every=request.all, standby_of=self._primary()
        )

    @refusing
    async def GetJob(self, request: pb.JobName, context: Context) -> pb.Job:
        return self._job(request.name)

    async def WatchJob(self, request: pb.JobName, context: Context) -> AsyncIterator[pb.Job]:
        last: pb.Job | None = None
        while not self._retired.is_set():
            try:
                job = self._job(request.name)
                ended = self._current().get(request.name).state.is_terminal
            except UnknownJobError as error:
                await refuse(context, error)
            if job != last:
                yield job
                last = job
            if ended:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STORE_POLL_S):
                    await self._retired.wait()

    @refusing
    async def ExplainJob(self, request: pb.JobName, context: Context) -> pb.Explanation:
        steps = explain_from_store(self._config.fabric, self._current().get(request.name))
        return pb.Explanation(
            steps=[*steps, f"{self._redirection()}, with the state of switches, members and counters."]
        )

    async def GetStatus(self, request: pb.StatusRequest, context: Context) -> pb.Status:
        pools = self._current().occupancy()
        rows = [
            pb.SwitchStatus(
                name=s.name,
                address=s.grpc_address,
                slots_in_use=pools[s.name].in_use,
                slots=pools[s.name].slots,
            )
            for s in self._config.addresses.switches.values()
        ]
        withdrawn = [w.element for w in self._current().withdrawals]
        return pb.Status(
            version=version(),
            primary=False,
            switches=rows,
            primary_address=self._primary(),
            withdrawn_elements=withdrawn,
            leads_since=self._store.leads_since,
            store_fault=self._store.engine.fault,
        )

    @refusing
    async def GetFabricStatus(self, request: pb.FabricStatusRequest, context: Context) -> pb.FabricStatus:
        return fabric_status(
            self._config.fabric,
            self._current(),
            failures=None,
            stays_because=lambda job: "",
            rollout=self._store.rollout,
            standby_of=self._primary(),
        )

    @refusing
    async def ListControllers(
        self, request: pb.ListControllersRequest, context: Context
    ) -> pb.ControllerList:
        return await controllers_message(self._current())

    async def GetUsage(self, request: pb.UsageRequest, context: Context) -> pb.Usage:
        return usage_message(self._current(), standby_of=self._primary())

    async def ListHosts(self, request: pb.ListHostsRequest, context: Context) -> pb.ListHostsResponse:
        return hosts_message(self._config)

    async def WatchRecording(
        self, request: pb.WatchRecordingRequest, context: Context
    ) -> AsyncIterator[pb.RecordingLines]:
        await refuse(context, StandbyJoinError(self._redirection()))
        yield pb.RecordingLines()

    async def _refused(self, request: object, context: Context) -> Any:
        await refuse(context, StandbyError(self._redirection()))

    SubmitJob = SubmitJobFor = PlanJob = CancelJob = ReconfigureJob = AddWorkers = Replan = DebugJob = (
        _refused
    )
    WithdrawElements = GiveBackElements = ChangeFabric = RollOutProgram = CancelRollout = StepDown = _refused

    async def JoinJob(
        self, request_iterator: AsyncIterator[pb.MemberUpdate], context: Context
    ) -> AsyncIterator[pb.ControllerUpdate]:
        await refuse(context, StandbyJoinError(self._redirection()))
        yield pb.ControllerUpdate()

    # ---- helpers ---------------------------------------------------------------------------------

    def _current(self) -> JobRegistry:
        """The registry as the primary has left it."""
        newest = self._store.version()
        if newest != self._version:
            if self._fabric != (fabric := self._store.fabric):
                self._fabric, self._known = fabric, self._config_of()
            self._registry = JobRegistry(self._known, self._packet_model, self._store)
            self._version = newest
        return self._registry

    @property
    def _config(self) -> FabricConfig:
        """The configuration of the store's fabric, as the primary has left it."""
        self._current()
        return self._known

    def _job(self, name: str) -> pb.Job:
        job = self._current().get(name)
        return job_message(self._config.fabric, job, self._no_members, standby_of=self._primary())

    def _primary(self) -> str:
        return self._store.primary or "an address that is not published yet"

    def _redirection(self) -> str:
        return f"this controller is a standby; the primary serves at {self._primary()}"


class _Generation:
    """A service, until another one takes its place."""

    def __init__(self, service: JobsService) -> None:
        self.service = service
        self.ended = asyncio.Event()


class ServiceProxy(JobsService):
    """Passes each call to the current service, because the handlers of a server are fixed when it starts. A call whose
    service is replaced is made again of the next one; a stream ends with UNAVAILABLE, on which clients try again.
    `stop` ends all calls so; a server that stops before they ended would log a traceback for each."""

    def __init__(self, current: JobsService, events: EventFiles | None = None) -> None:
        self._current = _Generation(current)
        self._events = events
        self._stopped = asyncio.Event()

    @property
    def registry(self) -> JobRegistry:
        return self._current.service.registry

    def replace(self, service: JobsService) -> None:
        self._current.ended.set()
        self._current = _Generation(service)

    def stop(self) -> None:
        self._stopped.set()

    async def forward(self, name: str, request: Any, context: Context) -> Any:
        """Answer a call that has one request and one answer."""
        while True:
            current = self._current
            answer = await self._unless_replaced(_answer(current, name, request, context), current, context)
            if answer is not None:
                return answer

    async def _unless_replaced(
        self, work: Coroutine[Any, Any, Answer], current: _Generation, context: Context
    ) -> Answer | None:
        """Return the result of a part of a call; None if its service is replaced before."""
        working = asyncio.create_task(work)
        ends = [asyncio.create_task(event.wait()) for event in (current.ended, self._stopped)]
        try:
            await asyncio.wait([working, *ends], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            if self._stopped.is_set():
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the controller stops")
            return None
        finally:
            for task in (working, *ends):
                task.cancel()

    async def _stream(
        self, updates: AsyncIterator[Answer], current: _Generation, context: Context
    ) -> AsyncIterator[Answer]:
        """The updates until their end, or until the service is replaced."""
        while (update := await self._unless_replaced(_next(updates), current, context)) is not None:
            yield update

    async def _whole_stream(
        self, updates: AsyncIterator[Answer], current: _Generation, context: Context
    ) -> AsyncIterator[Answer]:
        async for update in self._stream(updates, current, context):
            yield update
        if current.ended.is_set():
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the controller starts anew")

    async def WatchJob(self, request: pb.JobName, context: Context) -> AsyncIterator[pb.Job]:
        while True:
            current = self._current
            async for job in self._stream(current.service.WatchJob(request, context), current, context):
                yield job
            if current is self._current:
                return

    async def WatchRecording(
        self, request: pb.WatchRecordingRequest, context: Context
    ) -> AsyncIterator[pb.RecordingLines]:
        current = self._current
        updates = current.service.WatchRecording(request, context)
        async for lines in self._whole_stream(updates, current, context):
            yield lines

    async def WatchEvents(
        self, request: pb.WatchEventsRequest, context: Context
    ) -> AsyncIterator[pb.EventLines]:
        """A standby has the files of the primary."""
        if self._events is None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "this process keeps no events")
        updates = self._events.read(request.since, follow=request.follow)
        async for lines in self._whole_stream(updates, self._current, context):
            yield pb.EventLines(lines=lines)

    async def JoinJob(
        self, request_iterator: AsyncIterator[pb.MemberUpdate], context: Context
    ) -> AsyncIterator[pb.ControllerUpdate]:
        current = self._current
        updates = current.service.JoinJob(request_iterator, context)
        async for update in self._whole_stream(updates, current, context):
            yield update


async def _answer(current: _Generation, name: str, request: Any, context: Context) -> Any:
    """The answer of a service. Any call may have to read the store, whose disk may be gone."""
    try:
        return await getattr(current.service, name)(request, context)
    except StoreError as error:
        await refuse(context, error)


async def _next(updates: AsyncIterator[Answer]) -> Answer | None:
    """The next update; None at the end."""
    return await anext(updates, None)


def _forwarded(name: str) -> Callable[..., Any]:
    async def forward(self: ServiceProxy, request: Any, context: Context) -> Any:
        return await self.forward(name, request, context)

    return forward


for _name in (
    "SubmitJob",
    "SubmitJobFor",
    "ListJobs",
    "GetJob",
    "CancelJob",
    "AddWorkers",
    "ReconfigureJob",
    "ExplainJob",
    "DebugJob",
    "ReadSlot",
    "Replan",
    "PlanJob",
    "GetUsage",
    "GetStatus",
    "WithdrawElements",
    "GiveBackElements",
    "GetFabricStatus",
    "ChangeFabric",
    "RollOutProgram",
    "CancelRollout",
    "StepDown",
    "ListControllers",
    "ListHosts",
):
    setattr(ServiceProxy, _name, _forwarded(_name))
