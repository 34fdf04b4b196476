# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A standby answers what the store tells, refuses the rest, and hands its address on when it leads."""

from __future__ import annotations

import asyncio
import contextlib

import grpc
import pytest

from netfold.controller.jobs.store import Store
from netfold.controller.jobs.stored_fabric import fabric_text
from netfold.controller.jobs.withdrawal import Intent
from netfold.controller.service.server import serving
from netfold.controller.service.servicer import service_of
from netfold.controller.service.standby import ServiceProxy, StandbyService
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.topologies.generators import single_switch
from netfold.traffic.errors import JobFailedError
from netfold.traffic.membership.membership import ControllerMembership
from tests.controller.deployment import deployed

SPEC = "name: {}\nworkers: 2\nscheme: switchml\nrate: 20\n"
PRIMARY = "unix:/run/first.sock"


@contextlib.asynccontextmanager
async def _standby(deployment):
    """A stub of a standby on the same store, its front, and the service behind it."""
    store = Store(deployment.folder / "state.db", fabric_text(deployment.fabric))
    config = FabricConfig(deployment.fabric, deployment.addressing(), store.mark)
    service = StandbyService(lambda: config, deployment.options.packet_model, store)
    front = ServiceProxy(service)
    where = f"unix:{deployment.folder}/standby"
    try:
        async with serving(front, where, None), grpc.aio.insecure_channel(where) as channel:
            yield pb_grpc.ControllerStub(channel), front, service
    finally:
        store.close()


def _join(where):
    """Not by an asynchronous stub: its call is an internal error where the refusal overtakes the request."""
    updates = iter([pb.MemberUpdate(job="a", host="h1")])
    with grpc.insecure_channel(where) as channel:
        next(pb_grpc.ControllerStub(channel).JoinJob(updates, timeout=20))


@contextlib.asynccontextmanager
async def _standing_by(tmp_path):
    async with deployed(single_switch(3), tmp_path) as deployment:
        with deployment.store.change():
            deployment.store.set_primary(PRIMARY, tokens="")
        await deployment.settled()
        async with _standby(deployment) as (stub, front, service):
            yield deployment, stub, front, service


async def test_it_shows_jobs_as_the_primary_has_left_them(tmp_path):
    async with _standing_by(tmp_path) as (deployment, stub, _, _):
        assert not (await stub.ListJobs(pb.ListJobsRequest())).jobs
        await deployment.run(SPEC.format("a"))
        listed = await stub.ListJobs(pb.ListJobsRequest())
        assert [(j.name, j.state) for j in listed.jobs] == [("a", pb.RUNNING)]
        assert listed.standby_of == PRIMARY
        shown = await stub.GetJob(pb.JobName(name="a"))
        assert (shown.standby_of, shown.epoch, [m.host for m in shown.members]) == (PRIMARY, 1, ["h1", "h2"])
        assert '"rate": 20' in shown.plan_json
        why = list((await stub.ExplainJob(pb.JobName(name="a"))).steps)
        assert why[0] == "The job is running."
        assert why[-1].startswith(f"this controller is a standby; the primary serves at {PRIMARY}")
        status = await stub.GetStatus(pb.StatusRequest())
        assert (status.primary, status.primary_address) == (False, PRIMARY)
        assert status.switches[0].slots_in_use == shown_slots(deployment)
        deployment.controller.planning.maintenance.withdraw(["s1"], Intent.DRAIN, "new fans")
        fabric = await stub.GetFabricStatus(pb.FabricStatusRequest())
        [element] = fabric.elements
        assert (element.name, element.intent, element.reason) == ("s1", pb.DRAIN, "new fans")
        assert ([j.name for j in element.jobs], fabric.standby_of) == (["a"], PRIMARY)
        told = (await stub.ListHosts(pb.ListHostsRequest())).hosts
        assert [(h.name, h.address) for h in told] == [(f"h{n}", f"10.1.0.{n}") for n in (1, 2, 3)]
        deployment.controller.requests.cancel("a")
        assert not (await stub.ListJobs(pb.ListJobsRequest())).jobs
        assert (await stub.ListJobs(pb.ListJobsRequest(all=True))).jobs[0].state == pb.CANCELED


def shown_slots(deployment) -> int:
    return deployment.controller.state.registry.occupancy()["s1"].in_use


async def test_changes_are_refused_and_the_primary_is_named(tmp_path):
    async with _standing_by(tmp_path) as (deployment, stub, _, _):
        await deployment.controller.requests.submit(SPEC.format("a"), queue=False)
        for call in (
            stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC.format("b"))),
            stub.CancelJob(pb.CancelJobRequest(name="a")),
            stub.Replan(pb.ReplanRequest()),
            stub.WithdrawElements(pb.WithdrawElementsRequest(elements=["s1"], intent=pb.DRAIN)),
            stub.GiveBackElements(pb.GiveBackElementsRequest(elements=["s1"])),
            stub.ChangeFabric(pb.ChangeFabricRequest(spec_yaml="name: a")),
            stub.RollOutProgram(pb.RollOutProgramRequest(name="a")),
            stub.CancelRollout(pb.CancelRolloutRequest()),
            stub.StepDown(pb.StepDownRequest()),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
            assert caught.value.details() == f"this controller is a standby; the primary serves at {PRIMARY}"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetJob(pb.JobName(name="none"))
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND
        assert [j.name for j in deployment.store.jobs() if not j.state.is_terminal] == ["a"]


async def test_a_recording_is_refused_until_it_leads(tmp_path):
    async with _standing_by(tmp_path) as (deployment, stub, front, _):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.WatchRecording(pb.WatchRecordingRequest()).read()
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        assert PRIMARY in caught.value.details()
        front.replace(service_of(deployment.controller))
        first = await stub.WatchRecording(pb.WatchRecordingRequest()).read()
        assert '"kind":"fabric"' in first.lines[0]


async def test_a_member_that_comes_to_it_tries_again_until_it_leads(tmp_path):
    async with _standing_by(tmp_path) as (deployment, _, front, service):
        await deployment.controller.requests.submit(SPEC.format("a"), queue=False)
        with pytest.raises(grpc.RpcError) as caught:
            await asyncio.to_thread(_join, f"unix:{deployment.folder}/standby")
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        assert PRIMARY in caught.value.details()
        member = ControllerMembership(f"unix:{deployment.folder}/standby", "a", "h1")
        try:
            waiting = asyncio.create_task(asyncio.to_thread(member.wait, 20))
            service.retire()
            front.replace(service_of(deployment.controller))
            assert (await waiting).epoch == 1
            deployment.controller.requests.cancel("a")
            assert await asyncio.to_thread(member.request_new_epoch, 1, 20)
            with pytest.raises(JobFailedError, match="canceled"):
                member.current()
        finally:
            await asyncio.to_thread(member.close)


async def test_a_watcher_of_a_job_continues_when_it_leads(tmp_path):
    async with _standing_by(tmp_path) as (deployment, stub, front, service):
        await deployment.run(SPEC.format("a"))
        watching = stub.WatchJob(pb.JobName(name="a"))
        first = await watching.read()
        assert (first.state, first.standby_of) == (pb.RUNNING, PRIMARY)
        service.retire()
        front.replace(service_of(deployment.controller))
        second = await watching.read()
        assert (second.state, second.standby_of) == (pb.RUNNING, "")
        deployment.controller.requests.cancel("a")
        assert (await watching.read()).state == pb.CANCELED
        assert await watching.read() is grpc.aio.EOF


async def test_it_reports_the_changes_of_the_primary_to_watchers(tmp_path):
    async with _standing_by(tmp_path) as (deployment, stub, _, _):
        await deployment.run(SPEC.format("a"))
        watching = stub.WatchJob(pb.JobName(name="a"))
        assert (await watching.read()).state == pb.RUNNING
        deployment.controller.requests.cancel("a")
        assert (await watching.read()).reason == "canceled by an operator"
        assert await watching.read() is grpc.aio.EOF


async def test_a_controller_that_stops_ends_streams_and_calls_with_a_code_to_try_again_on(tmp_path):
    """Before its server stops, which would log a traceback for each."""

    class NoJobs(dict[str, object]):
        all = dict.values

    class Never(pb_grpc.ControllerServicer):
        registry = NoJobs()

        async def GetStatus(self, request, context):  # noqa: N802
            await asyncio.Event().wait()

        async def WatchJob(self, request, context):  # noqa: N802
            yield pb.Job(name=request.name)
            await asyncio.Event().wait()

        async def JoinJob(self, request_iterator, context):  # noqa: N802
            async for update in request_iterator:
                yield pb.ControllerUpdate(lease_ms=len(update.job))
            await asyncio.Event().wait()

    proxy, where = ServiceProxy(Never()), f"unix:{tmp_path}/s"
    async with serving(proxy, where, None), grpc.aio.insecure_channel(where) as channel:
        stub = pb_grpc.ControllerStub(channel)
        member, watcher = stub.JoinJob(), stub.WatchJob(pb.JobName(name="job"))
        await member.write(pb.MemberUpdate(job="job"))
        assert (await member.read()).lease_ms == 3
        assert (await watcher.read()).name == "job"
        asking = asyncio.ensure_future(_code_of(stub.GetStatus(pb.StatusRequest())))
        await asyncio.sleep(0)
        proxy.stop()
        codes = [await asking, await member.code(), await watcher.code()]
        assert codes == [grpc.StatusCode.UNAVAILABLE] * 3


async def _code_of(call) -> grpc.StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK
