# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The service's addresses, and its clients over TCP: TLS, tokens of operators and of members."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys

import grpc
import pytest
from grpc_health.v1.health import aio as health_service
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from typer.testing import CliRunner

from netfold.controller.operator.job_commands import app as job_app
from netfold.controller.service import access_control
from netfold.controller.service.listening import ListenError, tcp_reason
from netfold.controller.service.metrics import listen_for_scrapes
from netfold.controller.service.security import Credentials
from netfold.controller.service.server import published_address, serving
from netfold.controller.service.servicer import service_of
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.channels import open_aio_channel
from netfold.protocol.connection import Connection
from netfold.topologies.generators import single_switch
from netfold.traffic.membership.jobs import cancel_job
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.numerics import Fixed
from tests.controller.deployment import MemberStream, code_of, ready

SPEC = "name: job\nworkers: 2\nscheme: switchml\nrate: 20\nlease_ms: 600\nnumerics: {mode: fixed, fraction_bits: 12}\n"


@pytest.mark.parametrize("token", ["", "an-unknown-token-0", "a-token-of-an-operato"])
async def test_tcp_refuses_a_caller_without_a_token(token, security, tmp_path):
    async with (
        ready(single_switch(3), tmp_path) as deployment,
        serving(service_of(deployment.controller), "localhost:0", Credentials(security)) as address,
    ):
        where = Connection(address, security.certificate, token)
        async with open_aio_channel(where) as channel:
            stub = pb_grpc.ControllerStub(channel)
            assert await code_of(stub.ListJobs(pb.ListJobsRequest())) == grpc.StatusCode.UNAUTHENTICATED
            stream = MemberStream(stub, "job", "h1")
            assert await code_of(stream.call.read()) == grpc.StatusCode.UNAUTHENTICATED


async def test_a_stream_of_a_member_without_a_message_ends(security, tmp_path, monkeypatch):
    monkeypatch.setattr(access_control, "HANDSHAKE_S", 0.1)
    async with (
        ready(single_switch(3), tmp_path) as deployment,
        serving(service_of(deployment.controller), "localhost:0", Credentials(security)) as address,
    ):
        where = Connection(address, security.certificate, "a-token-of-a-worker")
        async with open_aio_channel(where) as channel:
            await MemberStream(pb_grpc.ControllerStub(channel), "job", "h1").drain()


async def test_tcp_serves_a_caller_with_a_token(security, tmp_path):
    async with (
        ready(single_switch(3), tmp_path) as deployment,
        serving(service_of(deployment.controller), "localhost:0", Credentials(security)) as address,
    ):
        where = Connection(address, security.certificate, "a-token-of-an-operator")
        async with open_aio_channel(where) as channel:
            stub = pb_grpc.ControllerStub(channel)
            assert (await stub.GetStatus(pb.StatusRequest())).primary
        async with grpc.aio.insecure_channel(address) as channel:
            plain = pb_grpc.ControllerStub(channel).ListJobs(pb.ListJobsRequest(), timeout=2)
            assert await code_of(plain) in (
                grpc.StatusCode.UNAVAILABLE,
                grpc.StatusCode.DEADLINE_EXCEEDED,
            )


async def test_a_members_token_does_no_more_than_join_jobs(security, tmp_path):
    """Each call of the service, those of the future too."""
    async with ready(single_switch(3), tmp_path) as deployment:
        await deployment.controller.requests.submit(SPEC, queue=False)
        async with serving(
            service_of(deployment.controller), "localhost:0", Credentials(security)
        ) as address:
            where = Connection(address, security.certificate, "a-token-of-a-worker")
            async with open_aio_channel(where) as channel:
                stub = pb_grpc.ControllerStub(channel)
                refused = set()
                for method in pb.DESCRIPTOR.services_by_name["Controller"].methods:
                    request = getattr(pb, method.input_type.name)()
                    call = getattr(stub, method.name)(
                        iter([request]) if method.client_streaming else request, timeout=20
                    )
                    try:
                        await (call.read() if method.server_streaming else call)
                    except grpc.aio.AioRpcError as error:
                        if error.code() is grpc.StatusCode.PERMISSION_DENIED:
                            refused.add(method.name)
                assert refused == {
                    *(
                        "SubmitJob",
                        "SubmitJobFor",
                        "ListJobs",
                        "WatchJob",
                        "CancelJob",
                        "AddWorkers",
                        "ReconfigureJob",
                        "ExplainJob",
                        "ReadSlot",
                    ),
                    *(
                        "Replan",
                        "PlanJob",
                        "GetUsage",
                        "GetStatus",
                        "WatchRecording",
                        "WatchEvents",
                        "DebugJob",
                    ),
                    *("WithdrawElements", "GiveBackElements", "GetFabricStatus", "ChangeFabric"),
                    *("RollOutProgram", "CancelRollout", "StepDown", "ListControllers"),
                }
                assert {h.name for h in (await stub.ListHosts(pb.ListHostsRequest())).hosts} >= {"h1"}
                assert (await stub.GetJob(pb.JobName(name="job"))).name == "job"


async def test_what_a_members_token_refuses_is_said_in_words(security, tmp_path, monkeypatch, caplog):
    """By a command, and by a rank that cancels the job of its program."""
    for name, content in (("ca", security.certificate), ("token", b"a-token-of-a-worker")):
        (tmp_path / name).write_bytes(content)
    monkeypatch.setenv("NETFOLD_TLS_CA", str(tmp_path / "ca"))
    monkeypatch.setenv("NETFOLD_TOKEN_FILE", str(tmp_path / "token"))
    async with ready(single_switch(3), tmp_path) as deployment:
        await deployment.controller.requests.submit(SPEC, queue=False)
        async with serving(
            service_of(deployment.controller), "localhost:0", Credentials(security)
        ) as address:
            monkeypatch.setenv("NETFOLD_CONTROLLER", address)
            listed = await asyncio.to_thread(CliRunner().invoke, job_app, ["list"])
            assert listed.exit_code != 0
            assert f"the controller at {address} refuses the call: a member's token" in listed.stderr
            where = Connection(address, security.certificate, "a-token-of-a-worker")
            assert not await asyncio.to_thread(cancel_job, where, "job", "a rank", 20)
            assert "job job goes on: canceling it needs its own token" in caplog.text


async def test_a_health_check_needs_no_token_and_a_stream_of_them_does(security, tmp_path):
    async with ready(single_switch(3), tmp_path) as deployment:
        health = health_service.HealthServicer()
        async with (
            serving(
                service_of(deployment.controller), "localhost:0", Credentials(security), health=health
            ) as address,
            open_aio_channel(Connection(address, security.certificate, "")) as channel,
        ):
            answer = await HealthStub(channel).Check(HealthCheckRequest(), timeout=20)
            assert answer.status == HealthCheckResponse.SERVING
            stream = HealthStub(channel).Watch(HealthCheckRequest(), timeout=20)
            assert await code_of(stream.read()) == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("token", "code"),
    [
        ("a-token-of-an-operator", grpc.StatusCode.UNIMPLEMENTED),
        ("", grpc.StatusCode.UNAUTHENTICATED),
        ("a-token-of-a-worker", grpc.StatusCode.PERMISSION_DENIED),
    ],
)
async def test_a_method_of_another_version_is_refused_as_what_it_is(token, code, security, tmp_path):
    async with (
        ready(single_switch(3), tmp_path) as deployment,
        serving(service_of(deployment.controller), "localhost:0", Credentials(security)) as address,
        open_aio_channel(Connection(address, security.certificate, token)) as channel,
    ):
        call = channel.unary_unary("/netfold.v1.Controller/Unheard")(b"", timeout=20)
        assert await code_of(call) == code


async def test_a_worker_attends_over_tcp_and_gets_a_new_epoch_when_it_asks(security, tmp_path):
    async with (
        ready(single_switch(3), tmp_path) as deployment,
        serving(service_of(deployment.controller), "localhost:0", Credentials(security)) as address,
    ):
        await deployment.controller.requests.submit(SPEC, queue=False)
        where = Connection(address, security.certificate, "a-token-of-a-worker")
        member = ControllerMembership(where, "job", "h1")
        try:
            first = await asyncio.to_thread(member.wait, 20)
            assert (first.epoch, first.numerics) == (1, Fixed(12))
            assert await asyncio.to_thread(member.request_new_epoch, 1, 20)
            assert member.current().epoch == 2
            assert deployment.job("job").reason == "h1 asked for a new job epoch"
        finally:
            await asyncio.to_thread(member.close)


async def test_tcp_needs_tls(tmp_path):
    async with ready(single_switch(3), tmp_path) as deployment:
        with pytest.raises(ListenError, match="needs --tls-cert"):
            async with serving(service_of(deployment.controller), "localhost:0", None):
                pass


async def test_a_socket_that_answers_is_not_taken_over(tmp_path):
    async with ready(single_switch(3), tmp_path) as deployment:
        where = f"unix:{tmp_path}/taken"
        async with serving(service_of(deployment.controller), where, None):
            with pytest.raises(ListenError, match="another process listens"):
                async with serving(service_of(deployment.controller), where, None):
                    pass


async def test_a_tcp_port_in_use_is_named_with_its_holder_and_a_remedy(security, tmp_path):
    async with ready(single_switch(3), tmp_path) as deployment:
        with socket.create_server(("127.0.0.1", 0)) as other:
            where = f"127.0.0.1:{other.getsockname()[1]}"
            found = rf"cannot listen at {where}: this process listens there; end it, .* by --listen"
            with pytest.raises(ListenError, match=found):
                async with serving(service_of(deployment.controller), where, Credentials(security)):
                    pass


def test_a_metrics_port_in_use_is_named_with_its_holder_and_a_remedy():
    script = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        port = int(other.stdout.readline())
        with pytest.raises(
            ListenError, match=rf"127\.0\.0\.1:{port}: process {other.pid} \(.*--metrics-port"
        ):
            listen_for_scrapes(port)
        other.communicate("\n")


def test_an_address_of_another_machine_is_named_with_a_remedy():
    assert tcp_reason("192.0.2.1:9600", "--listen").endswith("choose another address by --listen")


@pytest.mark.parametrize("listened", ["0.0.0.0:9600", "[::]:9600"])
def test_a_primary_on_all_interfaces_is_named_by_its_host(listened):
    assert published_address(listened) == f"{socket.gethostname()}:9600"


@pytest.mark.parametrize("listened", ["ctl:9600", "127.0.0.1:9600", "[fd00::1]:9600", "unix:/run/c.sock"])
def test_a_primary_at_one_address_is_named_by_it(listened):
    assert published_address(listened) == listened
