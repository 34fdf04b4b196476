# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The service as operators and members meet it: answers, typed refusals, streams."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import pytest

from netfold.controller.operator.top import connected_members
from netfold.controller.service.server import serving
from netfold.controller.service.servicer import service_of
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.topologies.generators import single_switch
from tests.controller.deployment import MemberStream, asked, code_of, deployed, ready, served

SPEC = "name: job\nworkers: 2\nscheme: switchml\nrate: 20\nlease_ms: 600\nnumerics: {mode: fixed, fraction_bits: 12}\n"
WITH_SERVER = "name: job\nworkers: 2\nscheme: none\nrate: 20\n"


def _service(tmp_path, *, servers: int = 0):
    return served(single_switch(3, parameter_servers=servers), tmp_path)


async def test_a_program_learns_which_hosts_there_are(tmp_path):
    async with _service(tmp_path, servers=1) as (_, stub):
        told = (await stub.ListHosts(pb.ListHostsRequest())).hosts
        assert [(h.name, h.address, h.parameter_server) for h in told] == [
            ("h1", "10.1.0.1", False),
            ("h2", "10.1.0.2", False),
            ("h3", "10.1.0.3", False),
            ("ps1", "10.1.0.4", True),
        ]


@pytest.mark.parametrize("name", ["x" * 60_000, "\N{GRINNING FACE}" * 20_000])
async def test_a_refusal_that_names_what_is_long_arrives(tmp_path, name: str):
    """gRPC drops a status message of more than 8 KiB, and the call's code with it."""
    async with _service(tmp_path) as (_, stub):
        for ask in (stub.GetJob, stub.ExplainJob):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await ask(pb.JobName(name=name))
            assert refused.value.code() is grpc.StatusCode.NOT_FOUND
            assert name[:100] in refused.value.details()
            assert "..." in refused.value.details()


async def test_a_repeated_submission_has_the_answer_of_the_first(tmp_path):
    """Its answer was lost: while it is planned, afterwards, with the controller, and until the job had ended."""

    def submitted(stub: pb_grpc.ControllerStub, request_id: str) -> Any:
        return stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC, request_id=request_id))

    async with deployed(single_switch(3), tmp_path) as deployment:
        async with asked(deployment) as stub:
            await deployment.settled()
            both = await asyncio.gather(submitted(stub, "one"), submitted(stub, "one"))
            (token,) = {job.member_token for job in both}
            for other in ("two", ""):
                assert await code_of(submitted(stub, other)) == grpc.StatusCode.ALREADY_EXISTS
        await deployment.kill()
        deployment.start()
        async with asked(deployment) as stub:
            await deployment.settled()
            assert (await submitted(stub, "one")).member_token == token
            assert await code_of(submitted(stub, "two")) == grpc.StatusCode.ALREADY_EXISTS
            await stub.CancelJob(pb.CancelJobRequest(name="job"))
            canceled = await submitted(stub, "one")
            assert (canceled.state, canceled.member_token) == (pb.CANCELED, token)
            assert (await submitted(stub, "two")).member_token != token
            assert await code_of(submitted(stub, "one")) == grpc.StatusCode.ALREADY_EXISTS


async def test_refusals_have_a_code_each(tmp_path):
    async with _service(tmp_path) as (_, stub):
        submit = lambda spec: stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec))  # noqa: E731
        await submit(SPEC)
        assert await code_of(submit(SPEC)) == grpc.StatusCode.ALREADY_EXISTS
        assert await code_of(submit("nonsense: 1\n")) == grpc.StatusCode.INVALID_ARGUMENT
        assert (
            await code_of(submit("name: b\nworkers: 2\nmin_rate: 90\n")) == grpc.StatusCode.RESOURCE_EXHAUSTED
        )
        for ask in (stub.GetJob, stub.ExplainJob):
            assert await code_of(ask(pb.JobName(name="none"))) == grpc.StatusCode.NOT_FOUND
        unknown = pb.CancelJobRequest(name="none")
        assert await code_of(stub.CancelJob(unknown)) == grpc.StatusCode.NOT_FOUND
        assert await code_of(stub.Replan(pb.ReplanRequest(jobs=["none"]))) == grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    ("job", "host", "code"),
    [("none", "h1", grpc.StatusCode.NOT_FOUND), ("job", "h3", grpc.StatusCode.PERMISSION_DENIED)],
)
async def test_strangers_cannot_attend(job, host, code, tmp_path):
    async with _service(tmp_path) as (_, stub):
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC))
        stranger = MemberStream(stub, job, host)
        await stranger.say()
        assert await code_of(stranger.call.read()) == code


async def test_a_stream_speaks_for_one_member_only(tmp_path):
    async with _service(tmp_path) as (deployment, stub):
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC))
        member = MemberStream(stub, "job", "h1")
        await member.say()
        await member.hear()
        await member.call.write(pb.MemberUpdate(job="job", host="h2", leave=True))
        assert await member.call.read() is grpc.aio.EOF
        assert not deployment.job("job").member("h2").left


async def test_members_learn_all_they_need(tmp_path):
    async with _service(tmp_path, servers=1) as (deployment, stub):
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=WITH_SERVER))
        told = {}
        for host in ("h1", "h2", "ps1"):
            member = MemberStream(stub, "job", host)
            await member.say()
            told[host] = (await member.hear()).assignment
        known = deployment.controller.state.config.addresses
        worker, server = told["h2"], told["ps1"]
        assert worker.trees[0].destination == str(known.hosts["ps1"].ip)
        assert (worker.rank, worker.workers, worker.rate_mbps) == (1, 2, pytest.approx(20))
        assert 0.04 <= worker.timing.min_rto_margin < worker.timing.max_rto
        assert list(server.trees[0].children) == [told["h1"].trees[0].child, told["h2"].trees[0].child]
        assert worker.trees[0].tree == server.trees[0].tree
        sources = [list(s.addresses) for s in server.trees[0].sources]
        assert sources == [[str(known.hosts[h].ip)] for h in ("h1", "h2")]
        assert not worker.trees[0].sources, "a worker need not know"
        assert worker.udp_port == server.udp_port in range(61440, 61696)


async def test_a_switch_root_is_addressed_by_its_loopback_and_numerics_are_told(tmp_path):
    async with _service(tmp_path) as (deployment, stub):
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC))
        member = MemberStream(stub, "job", "h1")
        await member.say()
        told = (await member.hear()).assignment
        assert told.trees[0].destination == str(
            deployment.controller.state.config.addresses.switches["s1"].loopback
        )
        assert (told.numerics.mode, told.numerics.fraction_bits) == ("fixed", 12)


async def test_a_server_that_no_tree_needs_waits_and_hears_the_end(tmp_path):
    async with _service(tmp_path, servers=1) as (deployment, stub):
        spec = "name: job\nworkers: 2\nscheme: switchml\nrate: 20\nlease_ms: 300\n"
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec))
        server = MemberStream(stub, "job", "ps1")
        await server.say()
        heard = asyncio.create_task(server.hear())
        await asyncio.sleep(0.8)  # longer than its lease
        assert not heard.done()
        await deployment.runs("job")
        await stub.CancelJob(pb.CancelJobRequest(name="job"))
        assert (await heard).ended.state == pb.CANCELED


@pytest.mark.parametrize(("scheme", "is_unused"), [("switchml", True), ("none", False)])
async def test_a_server_that_no_tree_needs_is_not_awaited(scheme: str, is_unused: bool, tmp_path):
    async with _service(tmp_path, servers=1) as (deployment, stub):
        submitted = pb.SubmitJobRequest(spec_yaml=f"name: job\nworkers: 2\nscheme: {scheme}\nrate: 30\n")
        await stub.SubmitJob(submitted)
        await deployment.runs("job")
        member = MemberStream(stub, "job", "h1")
        await member.say()
        await member.hear()
        job = await stub.GetJob(pb.JobName(name="job"))
        assert [m.unused for m in job.members] == [False, False, is_unused]
        assert connected_members(job) == ("1/2" if is_unused else "1/3")


async def test_a_member_may_ask_for_a_new_epoch_once(tmp_path):
    async with _service(tmp_path) as (deployment, stub):
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC))
        members = [MemberStream(stub, "job", h) for h in ("h1", "h2")]
        for member in members:
            await member.say()
            assert (await member.hear()).assignment.epoch == 1
        for member in members:
            await member.say(unusable_epoch=1)
        for member in members:
            assert (await member.hear()).assignment.epoch == 2
        await deployment.settled()
        assert deployment.job("job").epoch == 2
        deployment.assert_exact()


async def test_a_stream_that_breaks_may_be_opened_again_within_the_lease(tmp_path):
    async with _service(tmp_path) as (_, stub):
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC))
        members: dict[str, MemberStream] = {}
        for _ in range(3):
            for host in ("h1", "h2"):
                member = members[host] = MemberStream(stub, "job", host, members.get(host))
                await member.say(report=pb.Report(chunks=5, retransmits=1))
                assert (await member.hear()).assignment.epoch == 1
                member.call.cancel()
            await asyncio.sleep(0.2)
        job = await stub.GetJob(pb.JobName(name="job"))
        assert job.state == pb.RUNNING
        assert job.members[0].report.chunks == 5


async def test_workers_that_never_join_end_the_job(tmp_path):
    async with _service(tmp_path) as (_, stub):
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC + "join_s: 0.3\n"))
        last = [job async for job in stub.WatchJob(pb.JobName(name="job"))][-1]
        assert last.state == pb.FAILED
        assert "h1, h2 did not join within 0.3 s" in last.reason


async def test_watching_a_job_tells_each_state_until_it_is_over(tmp_path):
    async with _service(tmp_path) as (_, stub):
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC))
        states = []
        async for job in stub.WatchJob(pb.JobName(name="job")):
            if not states or states[-1] != job.state:
                states.append(job.state)
            if job.state == pb.RUNNING:
                await stub.CancelJob(pb.CancelJobRequest(name="job"))
        assert states[-2:] == [pb.RUNNING, pb.CANCELED]
        plan = json.loads(job.plan_json)
        assert plan["rate"] == 20
        assert plan["installed"][0]["bases"] == {"s1": 0}


async def test_calls_end_in_words_when_the_controller_stops(tmp_path, monkeypatch, caplog):
    """A submission, a watch and a member's stream each end without an exception in the log."""

    async def never(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    async def rest(stream: Any) -> None:
        while await stream.read() is not grpc.aio.EOF:
            pass

    async with ready(single_switch(3), tmp_path) as deployment:
        await deployment.run(SPEC)
        where = f"unix:{tmp_path}/s"
        async with grpc.aio.insecure_channel(where) as channel:
            stub = pb_grpc.ControllerStub(channel)
            async with serving(service_of(deployment.controller), where, None):
                watching = stub.WatchJob(pb.JobName(name="job"))
                await watching.read()
                joined = stub.JoinJob()
                await joined.write(pb.MemberUpdate(job="job", host="h1"))
                await joined.read()
                monkeypatch.setattr(deployment.controller.requests, "submit", never)
                submitting = stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC))
                await stub.ListJobs(pb.ListJobsRequest())
            for call in (rest(watching), rest(joined), submitting):
                with pytest.raises(grpc.aio.AioRpcError) as ending:
                    await call
                assert ending.value.code() == grpc.StatusCode.UNAVAILABLE
                assert ending.value.details() == "the controller is stopping"
    assert [r.getMessage() for r in caplog.records if r.name.startswith("grpc")] == []


async def test_why_names_the_child_that_slots_wait_for(tmp_path):
    async with _service(tmp_path) as (deployment, stub):
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC))
        await deployment.runs("job")
        tree = deployment.job("job").placement.trees[0].tree
        await deployment.until(
            lambda: ("s1", tree) in deployment.controller.switches.counters.trees, "counted from here"
        )
        deployment.switches["s1"].state.counters[tree * 32 + 17] = 3
        deployment.slot = lambda switch, slot: (1 << 20, 0b01)  # epoch 1, round 0: only the first child is in
        steps = list((await stub.ExplainJob(pb.JobName(name="job"))).steps)
        text = "\n".join(steps)
        assert "Not connected: h1, h2" in text
        assert "stale_epoch 3" in text
        assert "32 wait; they lack h2 in 32" in text


async def test_why_tells_what_a_queued_job_waits_for(tmp_path):
    async with _service(tmp_path) as (_, stub):
        for name in ("job", "late"):
            spec = f"name: {name}\nworkers: 2\nscheme: switchml\n"
            await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec, queue=True))
        steps = (await stub.ExplainJob(pb.JobName(name="late"))).steps
        assert "has nothing left of its 100 Mbit/s" in steps[0]
        assert steps[-1] == "It fits at the latest when these jobs have ended: job."


async def test_why_names_no_job_beside_which_a_queued_job_fits(tmp_path):
    """`late` asks for 60 Mbit/s, of which h1 has 40 and h2 has 10: without `first` there is enough."""
    async with _service(tmp_path) as (_, stub):
        jobs = {"first": ("h1, h2", 60), "beside": ("h2, h3", 30), "late": ("h1, h2", 60)}
        for name, (hosts, rate) in jobs.items():
            spec = f"name: {name}\nworkers: [{hosts}]\nscheme: switchml\nrate: {rate}\nmin_rate: {rate}\n"
            await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec, queue=True))
        steps = (await stub.ExplainJob(pb.JobName(name="late"))).steps
        assert steps[-1] == "It fits at the latest when these jobs have ended: first."
        assert not any("have ended" in s for s in (await stub.ExplainJob(pb.JobName(name="first"))).steps)
