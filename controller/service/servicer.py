# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Implements the service of protocol/netfold.proto: each request becomes a call of the part of the controller that
handles it. Streams of members are in member_service.py."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from netfold.controller.core import Controller
from netfold.controller.jobs.records import JobRecord
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.job_registry import JobRegistry, UnknownJobError
from netfold.controller.planning.document import plan_document
from netfold.controller.recording.history import History
from netfold.controller.scheduling.operator_requests import OperatorRequests
from netfold.controller.service.access_control import JobsService, hidden_jobs_of, submitter_of
from netfold.controller.service.debug import Debugger
from netfold.controller.service.explain import Explainer
from netfold.controller.service.fabric_status import INTENTS, change_message, fabric_status, program_in
from netfold.controller.service.member_service import MemberService
from netfold.controller.service.messages import (
    Context,
    controllers_message,
    hosts_message,
    job_message,
    jobs_message,
    link_messages,
    packet_fields,
    refuse,
    refusing,
    usage_message,
    version,
)
from netfold.controller.service.slot_reading import read_slot
from netfold.controller.subsystems import Jobs, Planning, Switches
from netfold.controller.switches.failed_elements import WithdrawalError
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.job_token import job_token

LINES_A_MESSAGE = 100


class Service(JobsService):
    """The service. Every typed error becomes a status code and its message. Methods are named as in the proto."""

    # ruff: noqa: N802

    def __init__(
        self,
        requests: OperatorRequests,
        state: ControllerState,
        switches: Switches,
        jobs: Jobs,
        planning: Planning,
        history: History,
    ) -> None:
        self._requests = requests
        self._state = state
        self._switches = switches
        self._members = jobs.members
        self._maintenance = planning.maintenance
        self._rollouts = planning.rollouts
        self._fabric_changes = planning.fabric_changes
        self._migrations = planning.migrations
        self._reconfigurations = planning.reconfigurations
        self._history = history
        self._member_service = MemberService(state, jobs.members)
        self._explainer = Explainer(state, switches, jobs.lifecycle, planning)
        self._debugger = Debugger(state, switches, jobs.lifecycle)

    @property
    def registry(self) -> JobRegistry:
        return self._state.registry

    @refusing
    async def SubmitJob(self, request: pb.SubmitJobRequest, context: Context) -> pb.Job:
        job = await self._requests.submit(
            request.spec_yaml,
            submitter_of(context),
            queue=request.queue,
            source=request.source,
            request_id=request.request_id,
        )
        message = self._job(job)
        message.member_token = job_token(self.registry.key, job.name, job.serial)
        return message

    async def SubmitJobFor(self, request: pb.SubmitJobForRequest, context: Context) -> pb.Job:
        return await self.SubmitJob(request.submission, context)

    async def ListJobs(self, request: pb.ListJobsRequest, context: Context) -> pb.ListJobsResponse:
        state = self._state
        return jobs_message(state.fabric, state.registry.all(), state.member_status, every=request.all)

    @refusing
    async def GetJob(self, request: pb.JobName, context: Context) -> pb.Job:
        job = self._state.registry.get(request.name)
        message = self._job(job)
        if job.placement is not None and job.state.is_installed:
            message.packets.CopyFrom(packet_fields(self._state.config, job, self._state.packet_model.lanes))
        return message

    async def WatchJob(self, request: pb.JobName, context: Context) -> AsyncIterator[pb.Job]:
        last: JobRecord | None = None
        while True:
            try:
                job = self._state.registry.get(request.name)
            except UnknownJobError as error:
                await refuse(context, error)
            if job != last:
                yield self._job(job)
                last = job
                if job.state.is_terminal:
                    return
                continue
            await self._state.changes.wait()

    @refusing
    async def CancelJob(self, request: pb.CancelJobRequest, context: Context) -> pb.Job:
        by = ": ".join(filter(None, (submitter_of(context).name, request.canceled_by)))
        return self._job(self._requests.cancel(request.name, by))

    @refusing
    async def ReconfigureJob(self, request: pb.ReconfigureJobRequest, context: Context) -> pb.Job:
        name, generation = request.name, request.generation
        by = ": ".join(filter(None, (submitter_of(context).name, request.interrupted_by)))
        if not request.workers:
            return self._job(self._members.interrupt(name, generation, by or "an operator"))
        return self._job(
            await self._reconfigurations.reconfigure(
                name, generation, tuple(request.workers), request.request_id
            )
        )

    @refusing
    async def ExplainJob(self, request: pb.JobName, context: Context) -> pb.Explanation:
        shown = hidden_jobs_of(context).name
        return pb.Explanation(steps=await self._explainer.explain(request.name, shown))

    @refusing
    async def DebugJob(self, request: pb.JobName, context: Context) -> pb.Diagnosis:
        return await self._debugger.debug(request.name)

    @refusing
    async def ReadSlot(self, request: pb.ReadSlotRequest, context: Context) -> pb.SlotContents:
        job = self._state.registry.get(request.job)
        return await read_slot(self._state.fabric, self._switches.slots, job, request)

    @refusing
    async def AddWorkers(self, request: pb.AddWorkersRequest, context: Context) -> pb.Job:
        self.registry.check_workers(submitter_of(context), request.name, len(request.hosts))
        return self._job(self._members.add(request.name, tuple(request.hosts)))

    @refusing
    async def Replan(self, request: pb.ReplanRequest, context: Context) -> pb.ReplanResponse:
        return pb.ReplanResponse(moved=await self._requests.replan(request.jobs))

    @refusing
    async def PlanJob(self, request: pb.PlanJobRequest, context: Context) -> pb.JobPlan:
        plan = await self._requests.plan(
            request.spec_yaml,
            submitter_of(context),
            source=request.source,
            without=request.without,
            is_hidden=hidden_jobs_of(context).hides,
        )
        return pb.JobPlan(plan_json=json.dumps(plan_document(self._state.fabric, plan)))

    async def GetUsage(self, request: pb.UsageRequest, context: Context) -> pb.Usage:
        return usage_message(self.registry)

    async def GetStatus(self, request: pb.StatusRequest, context: Context) -> pb.Status:
        state, fleet, counters = self._state, self._switches.fleet, self._switches.counters
        if request.fresh:
            await counters.refresh()
        pools = state.registry.occupancy()
        rows = []
        for name, session in fleet.sessions.items():
            health = session.health
            rows.append(
                pb.SwitchStatus(
                    name=name,
                    address=session.endpoint.address,
                    ready=health.ready,
                    slots_in_use=pools[name].in_use,
                    slots=pools[name].slots,
                    repaired_entries=health.repaired,
                    reason=fleet.not_ready_because(name),
                )
            )
        trees = [
            pb.TreeCounters(
                switch=switch,
                job=counters.jobs.get((switch, tree), ""),
                tree=tree,
                packets={v.label: n for v, n in counts.items() if n},
            )
            for (switch, tree), counts in counters.trees.items()
        ]
        return pb.Status(
            version=version(),
            primary=True,
            switches=rows,
            trees=trees,
            failed_elements=state.failures.failed.names,
            primary_address=state.registry.primary,
            links=link_messages(state.fabric, self._switches.loads.all()),
            withdrawn_elements=state.failures.withdrawn.names,
            leads_since=state.registry.leads_since,
        )

    @refusing
    async def WithdrawElements(
        self, request: pb.WithdrawElementsRequest, context: Context
    ) -> pb.FabricStatus:
        intent = INTENTS.get(request.intent)
        if intent is None:
            raise WithdrawalError("an element is withdrawn with the intent CORDON, DRAIN or HOLD")
        self._rollouts.check_free(request.elements)
        self._maintenance.withdraw(request.elements, intent, request.reason, request.hold_s)
        return self._fabric_status()

    @refusing
    async def GiveBackElements(
        self, request: pb.GiveBackElementsRequest, context: Context
    ) -> pb.FabricStatus:
        self._rollouts.check_free(request.elements)
        self._maintenance.give_back(request.elements)
        return self._fabric_status()

    @refusing
    async def GetFabricStatus(self, request: pb.FabricStatusRequest, context: Context) -> pb.FabricStatus:
        return self._fabric_status()

    @refusing
    async def ChangeFabric(self, request: pb.ChangeFabricRequest, context: Context) -> pb.FabricChange:
        source, dry_run = request.source or "fabric", request.dry_run
        change = await self._fabric_changes.change(request.spec_yaml, source, dry_run=dry_run)
        return change_message(change, with_spec=dry_run)

    @refusing
    async def RollOutProgram(self, request: pb.RollOutProgramRequest, context: Context) -> pb.FabricStatus:
        self._rollouts.start(program_in(request))
        return self._fabric_status()

    @refusing
    async def CancelRollout(self, request: pb.CancelRolloutRequest, context: Context) -> pb.FabricStatus:
        self._rollouts.cancel()
        return self._fabric_status()

    @refusing
    async def ListControllers(
        self, request: pb.ListControllersRequest, context: Context
    ) -> pb.ControllerList:
        return await controllers_message(self._state.registry)

    async def StepDown(self, request: pb.StepDownRequest, context: Context) -> pb.StepDownResponse:
        self._state.steps_down.set()
        return pb.StepDownResponse()

    def _fabric_status(self) -> pb.FabricStatus:
        state = self._state
        return fabric_status(
            state.fabric,
            state.registry,
            failures=state.failures,
            stays_because=self._migrations.stays_because,
            rollout=self._rollouts.record,
        )

    async def WatchRecording(
        self, request: pb.WatchRecordingRequest, context: Context
    ) -> AsyncIterator[pb.RecordingLines]:
        history = self._history
        number = history.segment_start if request.latest else 0
        while not history.closed:
            await history.wait(number)
            lines, number = history.read(number, LINES_A_MESSAGE)
            if lines:
                yield pb.RecordingLines(lines=lines)

    async def ListHosts(self, request: pb.ListHostsRequest, context: Context) -> pb.ListHostsResponse:
        return hosts_message(self._state.config)

    def JoinJob(
        self, request_iterator: AsyncIterator[pb.MemberUpdate], context: Context
    ) -> AsyncIterator[pb.ControllerUpdate]:
        return self._member_service.join(request_iterator, context)

    def _job(self, job: JobRecord) -> pb.Job:
        return job_message(self._state.fabric, job, self._state.member_status)


def service_of(controller: Controller) -> Service:
    return Service(
        controller.requests,
        controller.state,
        controller.switches,
        controller.jobs,
        controller.planning,
        controller.observation.recorder.history,
    )
