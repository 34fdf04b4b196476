# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A gradient by hand: refused before it is sent, and through real switches, verdict by verdict."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager

import grpc
import pytest
from typer.testing import CliRunner

from netfold.controller.jobs.file import JobError, resolve_job
from netfold.controller.service.server import serving
from netfold.controller.service.servicer import service_of
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.environment import Variable
from netfold.testbed.network.targets import installed_command
from netfold.testbed.send_command import send
from netfold.testbed.testbed import Testbed
from netfold.topologies.generators import single_switch
from tests.controller.deployment import code_of, served

SANDBOX = "name: sandbox\nworkers: [h1, h2]\nscheme: switchml\nsandbox: true\n"
WITH_WORKERS = "name: digits\nworkers: [h1, h2]\nscheme: switchml\nrate: 20\n"


@asynccontextmanager
async def in_service(tmp_path, monkeypatch):
    """A controller of fake switches, whose address the commands know."""
    async with served(single_switch(3), tmp_path) as (deployment, stub):
        await deployment.run(SANDBOX)
        await deployment.run(WITH_WORKERS)
        async with serving(service_of(deployment.controller), f"unix:{tmp_path}/socket", None) as address:
            monkeypatch.setenv(Variable.CONTROLLER, address)
            monkeypatch.setenv(Variable.RUN_DIR, str(tmp_path / "run"))
            yield deployment, stub


async def answer(*arguments: str) -> tuple[int, str]:
    done = await asyncio.to_thread(CliRunner().invoke, send, list(arguments))
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--job", "none", "--host", "h1"), 5, "there is no job 'none'"),
        (
            ("--job", "sandbox", "--host", "h3"),
            3,
            "'h3' is no worker of job 'sandbox'; its workers are h1, h2",
        ),
        (("--job", "digits", "--host", "h1"), 3, "job 'digits' is no sandbox"),
        (("--job", "sandbox", "--host", "h1", "--tree", "99"), 3, "job 'sandbox' has no tree 99"),
        (
            ("--job", "sandbox", "--host", "h\x1b[31m"),
            3,
            r"'h\x1b[31m' is no worker of job 'sandbox'",
        ),
        (("--job", "sandbox", "--host", "h1", "--chunk", str(2**40)), 3, f" has no chunk {2**40}: "),
        (("--job", "sandbox", "--host", "h1", "--timeout", "1e10"), 2, "86400"),
        (("--job", "sandbox", "--host", "h1", "--timeout", "inf"), 2, "86400"),
        (("--job", "sandbox", "--host", "h1", "--timeout", "nan"), 2, "86400"),
        (("--job", "sandbox", "--host", "h1"), 6, "of h1, and network 'nf' is not up"),
    ],
)
async def test_a_packet_is_refused_with_the_reason(tmp_path, monkeypatch, arguments, code, said):
    async with in_service(tmp_path, monkeypatch) as (_, _):
        found = await answer(*arguments)
        assert (found[0], said in found[1]) == (code, True), found


async def test_a_job_that_has_ended_takes_no_packet(tmp_path, monkeypatch):
    async with in_service(tmp_path, monkeypatch) as (_, stub):
        await stub.CancelJob(pb.CancelJobRequest(name="sandbox"))
        code, output = await answer("--job", "sandbox", "--host", "h1")
        assert code == 3
        assert "job 'sandbox' has ended (canceled: canceled by an operator)" in output


async def test_no_worker_joins_a_sandbox_and_it_waits_for_none(tmp_path, monkeypatch):
    async with in_service(tmp_path, monkeypatch) as (_, stub):
        job = await stub.GetJob(pb.JobName(name="sandbox"))
        assert job.sandbox
        assert [m.unused for m in job.members] == [True, True]
        steps = (await stub.ExplainJob(pb.JobName(name="sandbox"))).steps
        assert any(step.startswith("It is a sandbox") for step in steps)
        assert not any("targets" in step for step in steps), "it has no workers"
        joining = stub.JoinJob(iter([pb.MemberUpdate(job="sandbox", host="h1")]))
        assert "is a sandbox" in (await refusal(joining))
        added = stub.AddWorkers(pb.AddWorkersRequest(name="sandbox", hosts=["h3"]))
        assert (await code_of(added)).name == "RESOURCE_EXHAUSTED"


async def refusal(call) -> str:
    try:
        async for _ in call:
            raise AssertionError("the member joined")
    except Exception as error:
        return str(error.details())
    return ""


def test_a_sandbox_reserves_little_of_its_links():
    fabric = single_switch(3)
    rate = fabric.link("h1", "s1").rate
    assert resolve_job(SANDBOX, fabric).file.rate == pytest.approx(rate / 1000)
    assert resolve_job(SANDBOX + "rate: 5\n", fabric).file.rate == 5


async def test_a_full_switch_names_the_sandboxes_that_hold_its_slots(tmp_path, monkeypatch):
    async with in_service(tmp_path, monkeypatch) as (_, stub):

        async def fill():
            for number in itertools.count():
                named = SANDBOX.replace("name: sandbox", f"name: sandbox{number}") + "slots: 512\n"
                await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=named))

        with pytest.raises(
            grpc.aio.AioRpcError, match="when they are canceled: job 'sandbox', job 'sandbox0', "
        ):
            await fill()


def test_a_sandbox_is_udp():
    with pytest.raises(JobError, match="a RoCE job is no sandbox"):
        resolve_job(SANDBOX + "transport: roce\n", single_switch(3))


@pytest.fixture(scope="module")
def system() -> Iterator[Testbed]:
    with Testbed(target="softswitch", lanes=64, name="send", first_grpc_port=9880) as running:
        running.submit("sandbox", workers=["h1", "h2", "h5"], scheme="panama", sandbox=True)
        yield running


@pytest.fixture
def by_hand(system: Testbed) -> Callable[..., list[str]]:
    """Send a packet of a host; the words of each line, the node first."""

    def sent(host: str, *options: str) -> list[str]:
        command = [installed_command("netfold"), "host", "send", "--job", "sandbox", "--host", host, *options]
        command += ["--controller", system.controller.address, "--name", "send"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        assert not done.returncode, done.stdout + done.stderr
        return [" ".join(line.split()) for line in done.stdout.splitlines()]

    return sent


@pytest.mark.root
@pytest.mark.mininet
def test_three_gradients_by_hand_make_a_sum_that_each_retransmission_brings_again(by_hand):
    first = by_hand("h1", "--value", "5")
    assert first[0].startswith("h1 sends GRADIENT of chunk 0")
    assert first[1].startswith("leaf1 accumulated: claims slot 0; adds it to the sum. Its sum has h1")
    assert "receives no RESULT" in first[-1]
    assert by_hand("h1", "--value", "5")[1].startswith("leaf1 duplicate: drops it")

    verdicts = [line.split()[1] for line in by_hand("h2", "--value", "7")[1:-1]]
    assert verdicts[0] == "sum_sent:"
    last = by_hand("h5", "--value", "30")
    assert "result_sent:" in last[-2]
    assert last[-1] == "h5 receives RESULT of chunk 0: 64 lanes [42, 42, 42, 42, ...]"
    again = by_hand("h1", "--value", "5")
    assert "result_resent:" in again[-2]
    assert again[-1] == "h1 receives RESULT of chunk 0: 64 lanes [42, 42, 42, 42, ...]"


@pytest.mark.root
@pytest.mark.mininet
@pytest.mark.parametrize(
    ("options", "verdict"),
    [(("--epoch", "4000"), "stale_epoch"), (("--child", "9"), "unadmitted")],
)
def test_a_switch_refuses_a_wrong_field(by_hand, options, verdict):
    assert by_hand("h2", "--chunk", "3", *options)[1].startswith(f"leaf1 {verdict}: refuses it")


@pytest.mark.root
@pytest.mark.mininet
def test_a_newer_chunk_claims_the_slot_and_the_older_one_is_stale(by_hand):
    by_hand("h1", "--chunk", "5")
    assert "claims slot 5, which held chunk 5;" in by_hand("h1", "--chunk", "21")[1]
    assert by_hand("h2", "--chunk", "5")[1].startswith("leaf1 stale_chunk: refuses it")
