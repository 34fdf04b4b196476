# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Access of callers: every kind of caller makes every call of the service, for the jobs of its own tenant and of
another one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace

import grpc
import pytest

from netfold.controller.jobs.store import Store
from netfold.controller.jobs.stored_fabric import fabric_text
from netfold.controller.jobs.submitter import Submitter, TenantLimits
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.job_registry import RANDOM_BYTES
from netfold.controller.service import access_control
from netfold.controller.service.access import RULES, decide
from netfold.controller.service.events import EventFiles
from netfold.controller.service.hidden_jobs import NAMELESS, HiddenJobs
from netfold.controller.service.identities import Identities, Identity, Role, digest_of
from netfold.controller.service.security import Credentials, Security
from netfold.controller.service.server import serving
from netfold.controller.service.servicer import service_of
from netfold.controller.service.standby import ServiceProxy, StandbyService
from netfold.controller.slurm.request import SlurmJob
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.stored_programs import read_pipeline
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.channels import open_aio_channel
from netfold.protocol.connection import TOO_MANY_KEY, Connection
from netfold.protocol.job_token import job_token, verified_job
from netfold.topologies.generators import single_switch
from netfold.traffic.membership.jobs import cancel_job, submit_job
from netfold.traffic.membership.membership import ControllerMembership
from tests.controller.deployment import PIPELINE, Deployment, ready
from tests.controller.deployment import code_of as refused

METHODS = pb.DESCRIPTOR.services_by_name["Controller"].methods
METHODS_BY_NAME = pb.DESCRIPTOR.services_by_name["Controller"].methods_by_name
CALLERS = ("anonymous", "stranger", "viewer", "alice", "bob", "operator", "member")
"""All callers: alice and bob are users of two tenants, and the member's token is of alice's job."""
JOBS = ("of-alice", "of-bob")

TOKENS = {"anonymous": "", "stranger": "x" * 32} | {
    name: f"the-token-of-{name}" for name in ("viewer", "alice", "bob", "operator")
}
IDENTITIES = Identities(
    {
        digest_of(TOKENS[name].encode()): Identity(name, tenant, role)
        for name, tenant, role in (
            ("viewer", "site", Role.VIEWER),
            ("alice", "vision", Role.USER),
            ("bob", "speech", Role.USER),
            ("operator", "site", Role.OPERATOR),
        )
    }
)


def spec(name: str, hosts: str) -> str:
    return f"name: {name}\nworkers: [{hosts}]\nscheme: switchml\nrate: 5\nlease_ms: 60000\n"


class Access:
    """The service over TCP, with a job of each tenant."""

    def __init__(
        self,
        address: str,
        certificate: bytes,
        deployment: Deployment,
        credentials: Credentials,
        proxy: ServiceProxy,
    ) -> None:
        self.deployment, self.credentials, self.proxy = deployment, credentials, proxy
        self.tokens = dict(TOKENS)
        self.address, self._certificate = address, certificate

    @contextlib.asynccontextmanager
    async def stub(self, caller: str):
        where = Connection(self.address, self._certificate, self.tokens[caller])
        async with open_aio_channel(where) as channel:
            yield pb_grpc.ControllerStub(channel)

    async def submit(self, caller: str, name: str, hosts: str) -> pb.Job:
        async with self.stub(caller) as stub:
            return await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec(name, hosts)), timeout=20)


@contextlib.asynccontextmanager
async def service(tmp_path, security: Security) -> AsyncIterator[Access]:
    known = Security(security.certificate, security.key, frozenset(), frozenset(), IDENTITIES)
    credentials = Credentials(known)
    async with ready(single_switch(6), tmp_path) as deployment:
        with contextlib.closing(EventFiles(tmp_path / "events")) as events:
            proxy = ServiceProxy(service_of(deployment.controller), events)
            async with serving(proxy, "localhost:0", credentials, events=events) as address:
                access = Access(address, security.certificate, deployment, credentials, proxy)
                access.tokens["member"] = (await access.submit("alice", "of-alice", "h1, h2")).member_token
                await access.submit("bob", "of-bob", "h3, h4")
                await deployment.settled()
                yield access


ENDED_DURING_WRITE = "Internal error from Core"
"""The details that grpc.aio's client makes up, in place of the server's status, when a stream ends while the client
writes to it. Members use the other client, which has no such race."""


async def code_of(stub: pb_grpc.ControllerStub, method, job: str) -> grpc.StatusCode:
    """The outcome of a call with a request that names the job, if it names any."""
    request = getattr(pb, method.input_type.name)()
    field = RULES[method.name].job
    if field:
        setattr(request, field, job)
    call = getattr(stub, method.name)(iter([request]) if method.client_streaming else request, timeout=20)
    try:
        await (call.read() if method.server_streaming else call)
    except grpc.aio.AioRpcError as error:
        if error.details() == ENDED_DURING_WRITE:
            return await code_of(stub, method, job)
        return error.code()
    finally:
        call.cancel()
    return grpc.StatusCode.OK


OPERATORS = {"operator"}
USERS = {"alice", "bob", "operator"}
READERS = {"viewer", "alice", "bob", "operator"}
MEMBERS = {"member", "alice", "bob", "operator"}
MAY_CALL = {
    "ListHosts": {"member", *READERS},
    "GetJob": {"member", *READERS},
    "JoinJob": MEMBERS,
    "CancelJob": MEMBERS,
    "ReconfigureJob": MEMBERS,
    "ListJobs": READERS,
    "WatchJob": READERS,
    "ExplainJob": READERS,
    "GetStatus": READERS,
    "GetFabricStatus": READERS,
    "WatchRecording": READERS,
    "WatchEvents": READERS,
    "GetUsage": READERS,
    "SubmitJob": USERS,
    "SubmitJobFor": OPERATORS,
    "PlanJob": USERS,
    "AddWorkers": USERS,
    "ReadSlot": USERS,
    "DebugJob": USERS,
    "Replan": OPERATORS,
    "RollOutProgram": OPERATORS,
    "CancelRollout": OPERATORS,
    "StepDown": OPERATORS,
    "ListControllers": OPERATORS,
    "WithdrawElements": OPERATORS,
    "GiveBackElements": OPERATORS,
    "ChangeFabric": OPERATORS,
}
"""The callers of each call, written out: the table of the product may be wrong."""
NAMES_A_JOB = {
    *("GetJob", "JoinJob", "CancelJob", "ReconfigureJob", "WatchJob", "ExplainJob", "AddWorkers"),
    *("ReadSlot", "DebugJob"),
}


def expected(caller: str, rpc: str, job: str) -> set[grpc.StatusCode] | None:
    """The codes of a refusal by access; None: the call reaches its handler."""
    denied, hidden = {grpc.StatusCode.PERMISSION_DENIED}, {grpc.StatusCode.NOT_FOUND}
    if caller in ("anonymous", "stranger"):
        return {grpc.StatusCode.UNAUTHENTICATED}
    if caller not in MAY_CALL[rpc]:
        return denied
    if rpc not in NAMES_A_JOB or caller in ("viewer", "operator"):
        return None
    if caller == "member":
        return None if job == "of-alice" else denied
    return None if job == f"of-{caller}" else hidden


def test_each_call_has_a_rule():
    assert set(RULES) == {method.name for method in METHODS}, "a new call needs an entry in RULES"
    assert set(MAY_CALL) == set(RULES)
    assert {name for name, rule in RULES.items() if rule.job} == NAMES_A_JOB
    for method in METHODS:
        field = RULES[method.name].job
        assert not field or field in method.input_type.fields_by_name


async def test_access_of_every_caller_to_every_call(security, tmp_path):
    REFUSED = {
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.UNIMPLEMENTED,
    }
    async with service(tmp_path, security) as access:
        for caller in CALLERS:
            async with access.stub(caller) as stub:
                for method in METHODS:
                    for job in JOBS:
                        refused = expected(caller, method.name, job)
                        own_test = ("CancelJob", "ReconfigureJob", "WatchRecording")
                        if method.name in own_test and refused is None:
                            continue  # two end the job, and the third waits for changes
                        code = await code_of(stub, method, job)
                        place = f"{caller} calls {method.name} of {job}: {code}"
                        assert (code in refused) if refused else code not in REFUSED, place
                assert access.deployment.state("of-alice").is_installed


async def test_access_to_the_end_of_a_job(security, tmp_path):
    """The reason has the identity of the caller."""
    async with service(tmp_path, security) as access:
        async with access.stub("member") as stub:
            ended = await stub.CancelJob(pb.CancelJobRequest(name="of-alice", canceled_by="a rank"))
            assert ended.reason == "canceled by a rank"
        async with access.stub("bob") as stub:
            ended = await stub.CancelJob(pb.CancelJobRequest(name="of-bob", canceled_by="operator"))
            assert ended.reason == "canceled by bob: operator"
            assert (ended.tenant, ended.submitted_by) == ("speech", "bob")


async def test_access_to_the_end_of_the_part_of_a_job_s_workers(security, tmp_path):
    """A job that does not wait for others ends."""
    async with service(tmp_path, security) as access, access.stub("member") as stub:
        request = pb.ReconfigureJobRequest(name="of-alice", interrupted_by="a rank")
        assert (await stub.ReconfigureJob(request)).reason == "canceled by a rank"


async def test_access_by_the_token_of_an_earlier_job_of_the_name(security, tmp_path):
    async with service(tmp_path, security) as access:
        async with access.stub("alice") as stub:
            await stub.CancelJob(pb.CancelJobRequest(name="of-alice"))
        await access.submit("alice", "of-alice", "h1, h2")
        async with access.stub("member") as stub:
            with pytest.raises(grpc.aio.AioRpcError, match="the token is of another job") as caught:
                await stub.GetJob(pb.JobName(name="of-alice"))
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_access_by_a_token_of_a_job_that_a_restored_store_has_not(security, tmp_path):
    """The restored store gives the name and the number of that job again."""
    async with service(tmp_path, security) as access:
        deployment = access.deployment
        store, backup = deployment.folder / "state.db", deployment.folder / "backup.db"
        with (
            contextlib.closing(sqlite3.connect(backup)) as copy,
            contextlib.closing(sqlite3.connect(store)) as found,
        ):
            found.backup(copy)
        lost = await access.submit("alice", "later", "h5, h6")
        await deployment.kill()
        for suffix in ("-wal", "-shm"):
            store.with_name(store.name + suffix).unlink(missing_ok=True)
        backup.replace(store)
        deployment.start()
        await deployment.settled()
        access.proxy.replace(service_of(deployment.controller))
        again = await access.submit("bob", "later", "h5, h6")
        for job, is_open in ((lost, False), (again, True)):
            access.tokens["member"] = job.member_token
            async with access.stub("member") as stub:
                code = await code_of(stub, METHODS_BY_NAME["GetJob"], "later")
                assert (code is grpc.StatusCode.OK) is is_open, code


async def test_no_answer_of_a_user_has_the_name_of_anothers_job(security, tmp_path):
    async with service(tmp_path, security) as access:
        controller = access.deployment.controller
        async with access.stub("alice") as stub:
            listed = await stub.ListJobs(pb.ListJobsRequest(all=True))
            assert [job.name for job in listed.jobs] == ["of-alice"]
            controller.observation.recorder.record()
            recorded = [await anext(aiter(stub.WatchRecording(pb.WatchRecordingRequest())))]
            answers = [
                listed,
                await stub.GetJob(pb.JobName(name="of-alice")),
                await stub.ExplainJob(pb.JobName(name="of-alice")),
                await stub.GetStatus(pb.StatusRequest(fresh=True)),
                await stub.GetFabricStatus(pb.FabricStatusRequest()),
                *recorded,
            ]
            assert "of-alice" in str(answers)
            assert "of-bob" not in str(answers)
            states = [json.loads(line).get("state", {}) for line in recorded[0].lines]
            assert {name for state in states for name in state.get("jobs", {})} == {"of-alice"}
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec("of-bob", "h5, h6")))
            assert caught.value.code() is grpc.StatusCode.ALREADY_EXISTS
            assert caught.value.details() == f"job '{NAMELESS}' is running; cancel it or choose another name"
        async with access.stub("viewer") as stub:
            assert len((await stub.ListJobs(pb.ListJobsRequest())).jobs) == 2


async def test_an_operator_submits_for_a_user_whose_tenant_is_charged(security, tmp_path):
    async with service(tmp_path, security) as access:
        limits = {"vision": TenantLimits(jobs=2, priority=5)}
        callers = replace(IDENTITIES, limits=limits)
        access.credentials.current = replace(access.credentials.current, identities=callers)

        async def submit(caller: str, job: str, user: str, tenant: str, more: str = "") -> pb.Job:
            submission = pb.SubmitJobRequest(spec_yaml=spec(job, "h5, h6") + more)
            request = pb.SubmitJobForRequest(submission=submission, user=user, tenant=tenant)
            async with access.stub(caller) as stub:
                return await stub.SubmitJobFor(request, timeout=20)

        job = await submit("operator", "slurm-1", "carol", "vision")
        assert (job.tenant, job.submitted_by) == ("vision", "carol")
        assert verified_job(access.proxy.registry.key, job.member_token.encode())[0] == "slurm-1"
        for refused, code, reason in (
            (
                ("alice", "slurm-2", "alice", "vision"),
                "PERMISSION_DENIED",
                "a user may not call SubmitJobFor",
            ),
            (("operator", "slurm-2", "carol", "vision"), "RESOURCE_EXHAUSTED", "its limit is jobs=2"),
            (("operator", "slurm-2", "a b", "vision"), "INVALID_ARGUMENT", "name 'a b'"),
            (("operator", "slurm-2", "carol", ""), "INVALID_ARGUMENT", "tenant ''"),
            (("operator", "of-bob", "carol", "other"), "ALREADY_EXISTS", f"job '{NAMELESS}'"),
        ):
            with pytest.raises(grpc.aio.AioRpcError, match=re.escape(reason)) as caught:
                await submit(*refused)
            assert caught.value.code().name == code
        async with access.stub("alice") as stub:
            lines = (await stub.WatchEvents(pb.WatchEventsRequest(), timeout=20).read()).lines
        own = [json.loads(line) for line in lines]
        assert [(e["caller"], e["outcome"]) for e in own if e["call"] == "SubmitJobFor"] == [
            ("operator for carol", "ok"),
            ("operator for carol", "resource_exhausted"),
        ]


async def test_a_refusal_of_a_call_too_many_shows_that_it_may_be_repeated(security, tmp_path, monkeypatch):
    async with service(tmp_path, security) as access:
        monkeypatch.setattr(access_control, "DEFAULT_CALLS_S", 1e-6)
        monkeypatch.setattr(access_control, "REFUSAL_S", 0.001)
        async with access.stub("alice") as stub:
            await stub.ListHosts(pb.ListHostsRequest())
            with pytest.raises(grpc.aio.AioRpcError, match="too many calls") as caught:
                await stub.ListHosts(pb.ListHostsRequest())
        assert TOO_MANY_KEY in dict(caught.value.trailing_metadata())
        with pytest.raises(grpc.aio.AioRpcError, match="is kept for a job of Slurm") as caught:
            await access.submit("bob", "slurm-5", "h5, h6")
        assert TOO_MANY_KEY not in dict(caught.value.trailing_metadata())


async def test_a_repeated_request_of_another_caller_has_no_token(security, tmp_path):
    """A member of another tenant may guess the identifier of a request, or read it in a log."""
    async with service(tmp_path, security) as access:
        request = pb.SubmitJobRequest(spec_yaml=spec("new", "h5, h6"), request_id="1")
        async with access.stub("alice") as stub:
            token = (await stub.SubmitJob(request)).member_token
            assert (await stub.SubmitJob(request)).member_token == token
            other = pb.SubmitJobRequest(spec_yaml=spec("new", "h5, h1"), request_id="1")
            assert await refused(stub.SubmitJob(other)) is grpc.StatusCode.ALREADY_EXISTS
        for caller in ("bob", "operator"):
            async with access.stub(caller) as stub:
                assert await refused(stub.SubmitJob(request)) is grpc.StatusCode.ALREADY_EXISTS


async def test_a_user_takes_no_name_of_a_job_of_slurm(security, tmp_path):
    async with service(tmp_path, security) as access:
        environment = {"SLURM_JOB_ID": "5", "SLURM_JOB_UID": "1000"}
        assert SlurmJob.of_environment(environment).name == "slurm-5"
        with pytest.raises(grpc.aio.AioRpcError, match="'slurm-5' is kept for a job of Slurm") as caught:
            await access.submit("alice", "slurm-5", "h5, h6")
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        for name in ("slurm", "slurm-5x", "my-slurm-5"):
            await access.submit("alice", name, "h5, h6")
        await access.submit("operator", "slurm-5", "h5, h6")


async def test_a_user_sees_the_usage_of_its_tenant_alone(security, tmp_path):
    async with service(tmp_path, security) as access:
        for caller, tenants in {
            "alice": ["vision"],
            "bob": ["speech"],
            "viewer": ["speech", "vision"],
        }.items():
            async with access.stub(caller) as stub:
                shown = await stub.GetUsage(pb.UsageRequest())
                assert [row.tenant for row in shown.tenants] == tenants
                assert all(row.installed == 1 and row.slot_seconds > 0 for row in shown.tenants)


async def test_a_plan_for_a_user_counts_other_tenants_jobs_and_shows_none(security, tmp_path):
    async with service(tmp_path, security) as access:
        whole = "name: {}\nworkers: [h3, h4]\nscheme: switchml\nmin_rate: 1\n"
        async with access.stub("alice") as stub:
            plan = (await stub.PlanJob(pb.PlanJobRequest(spec_yaml=whole.format("mine")))).plan_json
            rate = access.deployment.fabric.link("h3", "s1").rate
            assert json.loads(plan)["rate"] == rate - 5
            assert "of-bob" not in plan
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.PlanJob(pb.PlanJobRequest(spec_yaml=whole.format("of-bob")))
            assert caught.value.code() is grpc.StatusCode.ALREADY_EXISTS
        async with access.stub("operator") as stub:
            plan = (await stub.PlanJob(pb.PlanJobRequest(spec_yaml=whole.format("of-bob")))).plan_json
            assert json.loads(plan)["rate"] == rate, "in place of the job"


async def test_a_job_that_is_named_as_a_host_changes_no_text_of_another_tenant(security, tmp_path):
    """Nor do jobs whose names are words of answers."""
    async with service(tmp_path, security) as access, access.stub("alice") as stub:
        before = await stub.ExplainJob(pb.JobName(name="of-alice"))
        assert any("h1" in step for step in before.steps)
        await access.submit("bob", "h1", "h5")
        await access.submit("bob", "tenant", "h6")
        await access.deployment.settled()
        after = await stub.ExplainJob(pb.JobName(name="of-alice"))
        assert NAMELESS not in str(after.steps)
        events = await stub.WatchEvents(pb.WatchEventsRequest(), timeout=20).read()
        assert json.loads(events.lines[0])["tenant"] == "vision"


async def test_a_refusal_for_lack_of_slots_does_not_name_the_sandboxes_of_others(tmp_path):
    sandbox = "name: {}\nworkers: [h1, h2]\nscheme: switchml\nrate: 5\nsandbox: true\n"
    async with ready(single_switch(2, slots=16), tmp_path) as deployment:
        submit = deployment.controller.requests.submit
        await submit(sandbox.format("secret"), Submitter("bob", "speech"), queue=False)
        with pytest.raises(RefusedError, match="sandboxes end when they are canceled") as caught:
            await submit(sandbox.format("own"), Submitter("alice", "vision"), queue=False)
        alice = Identity("alice", "vision", Role.USER)
        shown = HiddenJobs(alice, deployment.controller.state.registry.all).text(str(caught.value))
        assert "secret" not in shown
        assert shown.endswith(f"job '{NAMELESS}'")


@pytest.mark.parametrize("caller", ["alice", "member"])
async def test_a_job_that_waits_for_another_tenants_does_not_name_it(caller, security, tmp_path):
    waiting = (
        "name: waiting\nworkers: [h3, h4]\nscheme: switchml\nrate: 1000\nmin_rate: 99\nlease_ms: 60000\n"
    )
    async with service(tmp_path, security) as access:
        async with access.stub("alice") as stub:
            job = await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=waiting, queue=True), timeout=20)
            assert job.state == pb.QUEUED
            access.tokens["member"] = job.member_token
            steps = str((await stub.ExplainJob(pb.JobName(name="waiting"))).steps)
            assert f"when these jobs have ended: {NAMELESS}." in steps
        async with access.stub(caller) as stub:
            answer = await stub.GetJob(pb.JobName(name="waiting"))
            assert "of-bob" not in f"{steps} {answer}"


async def test_a_recording_shows_no_earlier_job_of_another_tenant_with_the_name(security, tmp_path):
    async with service(tmp_path, security) as access:
        record = access.deployment.controller.observation.recorder.record
        record()
        async with access.stub("bob") as stub:
            await stub.CancelJob(pb.CancelJobRequest(name="of-bob", canceled_by="an early riser"))
        record()
        await access.submit("alice", "of-bob", "h5")
        await access.deployment.settled()
        record()
        async with access.stub("alice") as stub:
            lines = (await anext(aiter(stub.WatchRecording(pb.WatchRecordingRequest())))).lines
        assert "an early riser" not in str(lines)
        states = [json.loads(line).get("state", {}) for line in lines]
        members = {key for state in states for key, value in state.get("members", {}).items() if value}
        assert {key for key in members if key.startswith("of-bob")} == {"of-bob h5"}
        assert any(state.get("jobs", {}).get("of-bob") for state in states)


async def test_a_stream_of_a_caller_that_is_removed_ends(security, tmp_path):
    async with service(tmp_path, security) as access, access.stub("alice") as stub:
        events = stub.WatchEvents(pb.WatchEventsRequest(follow=True), timeout=20)
        assert (await events.read()).lines
        left = {d: i for d, i in IDENTITIES.by_digest.items() if i.name != "alice"}
        access.credentials.current = replace(access.credentials.current, identities=Identities(left))
        async with access.stub("operator") as other:
            await other.CancelJob(pb.CancelJobRequest(name="of-alice"))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await events.read()
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_standby_decides_by_the_same_identities_and_jobs(security, tmp_path):
    async with service(tmp_path, security) as access:
        deployment, primary = access.deployment, access.address
        store = Store(deployment.folder / "state.db", fabric_text(deployment.fabric))
        config = FabricConfig(deployment.fabric, deployment.addressing(), store.mark)
        standby = StandbyService(lambda: config, deployment.options.packet_model, store)
        async with serving(ServiceProxy(standby), "localhost:0", access.credentials) as access.address:
            for caller, own in (("alice", True), ("member", True), ("bob", False), ("anonymous", False)):
                async with access.stub(caller) as stub:
                    code = await code_of(stub, METHODS_BY_NAME["GetJob"], "of-alice")
                    assert (code is grpc.StatusCode.OK) is own, f"{caller}: {code}"
            async with access.stub("alice") as stub:
                listed = await stub.ListJobs(pb.ListJobsRequest(all=True))
                assert [job.name for job in listed.jobs] == ["of-alice"]
        store.close()
        access.address = primary


async def test_a_refusal_does_not_tell_a_hidden_job_from_none(security, tmp_path):
    async with service(tmp_path, security) as access, access.stub("alice") as stub:
        for name in ("of-bob", "of-none"):
            for call in (stub.GetJob, stub.ExplainJob):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await call(pb.JobName(name=name))
                assert caught.value.details() == f"there is no job '{name}'"


def test_members_of_one_job_see_texts_without_the_names_of_others():
    member = Identity("", "", Role.MEMBER, "own", "3")
    jobs = [
        SimpleNamespace(name=name, serial=serial, tenant="")
        for name, serial in (("own", "3"), ("other", "4"))
    ]
    hidden = HiddenJobs(member, lambda: jobs)  # type: ignore[arg-type, return-value]
    shown = hidden.answer(pb.Job(reason="job 'own' waits for job 'other', not for host 'other'"))
    assert shown.reason == f"job 'own' waits for job '{NAMELESS}', not for host 'other'"
    ended = hidden.answer(pb.ControllerUpdate(ended=pb.JobEnded(reason="no room beside job 'other'")))
    assert ended.ended.reason == f"no room beside job '{NAMELESS}'"


async def test_a_fabric_status_names_no_job_of_another_tenant(security, tmp_path):
    async with service(tmp_path, security) as access:
        async with access.stub("operator") as stub:
            await stub.WithdrawElements(pb.WithdrawElementsRequest(elements=["h3"], intent=pb.CORDON))
        async with access.stub("alice") as stub:
            (element,) = (await stub.GetFabricStatus(pb.FabricStatusRequest())).elements
            assert [job.name for job in element.jobs] == [NAMELESS]


async def test_a_rank_joins_and_cancels_by_the_token_of_its_job_alone(security, tmp_path):
    """As PyTorch's and MPI's ranks do, whose first one submits the job."""
    async with service(tmp_path, security) as access:
        own = Connection(access.address, security.certificate, TOKENS["alice"])
        keys = {"name": "ranks", "workers": ["h5"], "scheme": "switchml", "rate": 5}
        where = own.as_member(await asyncio.to_thread(submit_job, own, keys, False, 20))
        member = ControllerMembership(where, "ranks", "h5")
        try:
            assert (await asyncio.to_thread(member.wait, 20)).epoch == 1
            assert "all members are connected" in await asyncio.to_thread(member.describe_stall)
            assert await asyncio.to_thread(cancel_job, where, "ranks", "a rank at host h5", 20)
            assert not await asyncio.to_thread(cancel_job, where, "of-bob", "a rank at host h5", 20)
        finally:
            await asyncio.to_thread(member.close)


async def test_a_change_is_an_event_with_its_caller(security, tmp_path):
    """Users see the events of their tenant."""
    async with service(tmp_path, security) as access:
        async with access.stub("alice") as stub:
            with pytest.raises(grpc.aio.AioRpcError):
                await stub.CancelJob(pb.CancelJobRequest(name="of-bob"))
        async with access.stub("operator") as stub:
            await stub.CancelJob(pb.CancelJobRequest(name="of-alice"))
            own = read_pipeline(PIPELINE)
            program = pb.RollOutProgramRequest(name="next", p4info=own.p4info, blob=own.blob + b"\n")
            program.abilities = own.abilities.model_dump_json().encode()
            await stub.RollOutProgram(program)
            await stub.CancelRollout(pb.CancelRolloutRequest())
            await stub.WithdrawElements(pb.WithdrawElementsRequest(elements=["h6"], intent=pb.CORDON))
        last = {"operator": "h6", "viewer": "h6", "alice": "of-alice", "bob": "of-bob"}
        for caller, target in last.items():
            async with access.stub(caller) as stub:
                rows = await events_until(stub, target)
                if caller == "alice":
                    shown = [(r["call"], r["caller"], r["target"], r["outcome"]) for r in rows]
                    assert shown == [
                        ("SubmitJob", "alice", "of-alice", "ok"),
                        ("CancelJob", "operator", "of-alice", "ok"),
                    ]
                if caller == "operator":
                    assert [r["outcome"] for r in rows] == ["ok", "ok", "not_found", *["ok"] * 4]
                    shown = [(r["call"], r["caller"], r["target"]) for r in rows[4:6]]
                    assert shown == [
                        (call, "operator", "next") for call in ("RollOutProgram", "CancelRollout")
                    ]
                    assert all(r["source"].startswith("ipv") for r in rows)


async def events_until(stub: pb_grpc.ControllerStub, target: str) -> list[dict[str, str]]:
    """The events up to the last one of a target, which a thread may still be writing."""
    rows: list[dict[str, str]] = []
    ends = {"h6": 1, "of-alice": 2, "of-bob": 2}
    async for answer in stub.WatchEvents(pb.WatchEventsRequest(follow=True), timeout=20):
        rows += map(json.loads, answer.lines)
        if sum(row["target"] == target for row in rows) >= ends[target]:
            return rows
    return rows


KEY = b"k" * 32


def test_access_of_a_forged_token_of_a_job():
    token = job_token(KEY, "digits", "7")
    assert verified_job(KEY, token.encode()) == ("digits", "7")
    head, job, serial, proof = token.split(":")
    for forged in (
        f"{head}:other:{serial}:{proof}",
        f"{head}:{job}:8:{proof}",
        f"{head}:{job}:+7:{proof}",
        f"{head}:{job}:07:{proof}",
        f"{head}:{job}:{'9' * 5000}:{proof}",
        f"{head}:{job}:{serial}:",
        f"{head}:{job}:{serial}",
        "\N{GREEK SMALL LETTER ALPHA}",
    ):
        assert verified_job(KEY, forged.encode()) is None
    assert verified_job(KEY, b"\xff:\xff") is None
    assert verified_job(b"other" * 8, token.encode()) is None


def test_a_token_of_the_longest_name_fits_in_a_name_of_an_mpi_program():
    assert len(job_token(KEY, "j" * 64, secrets.token_urlsafe(RANDOM_BYTES))) < 128


def test_access_of_a_member_token_of_all_jobs_ends_none():
    member = Identity("", "", Role.MEMBER)
    assert decide(member, "JoinJob", "digits") is None
    assert decide(member, "CancelJob", "digits") is not None
