# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The commands as an operator runs them, each a process of its own; the switches are fakes in this one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
import typer
import yaml
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from softswitch.testing.simple_switch import free_port
from typer.testing import CliRunner

from netfold.controller.operator.controller_commands import run_controller
from netfold.controller.operator.job_commands import app as job_app
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.channels import open_aio_channel
from netfold.protocol.connection import Connection, aio_channel_to
from netfold.traffic.errors import JobFailedError
from netfold.traffic.membership.membership import ControllerMembership
from tests.controller.fake_switch import FakeSwitch
from tests.traffic.tls import make_certificate

START = "from netfold.cli import main; main()"
HANGS = {
    "loop": "import signal, time; signal.signal(signal.SIGUSR1, lambda *_: time.sleep(3600)); ",
    "log": "import os, signal; signal.signal(signal.SIGUSR1, lambda *_: [os.write(2, b'x') for _ in iter(int, 1)]); ",
    "log with room for a line": "import fcntl, os, signal; pipe = os.pipe(); signal.signal(signal.SIGUSR1, lambda *_: "
    "[os.dup2(pipe[1], 2), *(os.write(2, b'x' * n) for n in (fcntl.fcntl(2, 1032) - 300, 400))]); ",
    "disk": "import time; from netfold.controller.jobs.store import Store; "
    "Store.set_primary = lambda *_: time.sleep(3600); ",
}
"""Before START: the event loop, a write to the log or a write to the store never ends. SIGUSR1 starts the first two."""
JOB = "name: job\nworkers: 2\nscheme: switchml\nrate: 30\n"


class Operator:
    """Runs netfold commands against one controller address."""

    def __init__(self, folder: Path, switch: FakeSwitch) -> None:
        self.folder = folder
        self.switch = switch
        self.address = f"unix:{folder}/c.sock"
        fabric = {"name": "one", "generate": {"single_switch": {"hosts": 4, "rate": 100}}}
        (folder / "one.yaml").write_text(yaml.safe_dump(fabric))
        (folder / "job.yaml").write_text(JOB)

    async def start(
        self, *arguments: str, prelude: str = "", variables: Mapping[str, str] | None = None, **pipes: int
    ) -> asyncio.subprocess.Process:
        environment = {**os.environ, "NETFOLD_CONTROLLER": self.address, "COLUMNS": "200"}
        for name in ("http_proxy", "https_proxy", "grpc_proxy"):  # lead to the web, not to switches
            environment[name] = "http://127.0.0.1:9"
        for name in ("no_proxy", "no_grpc_proxy"):
            environment.pop(name, None)
        environment |= variables or {}
        return await asyncio.create_subprocess_exec(
            sys.executable, "-c", prelude + START, *arguments, env=environment, cwd=self.folder, **pipes
        )

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, output, errors."""
        process = await self.start(*arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()

    @contextlib.asynccontextmanager
    async def controller(
        self, *more: str, prelude: str = "", variables: Mapping[str, str] | None = None
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """A controller process; `serves` waits until it leads."""
        process = await self.start(
            "controller", "run", "one.yaml", "--lanes", "32",
            *(() if "--listen" in more else ("--listen", self.address)),
            *(() if "--state" in more else ("--state", "state.db")),
            "--first-grpc-port", str(self.switch.port), *more, prelude=prelude, variables=variables,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def serves(self, process: asyncio.subprocess.Process) -> None:
        await self.says(process, "serving at")

    async def says(self, process: asyncio.subprocess.Process, what: str) -> str:
        """The line of its errors that has `what`."""
        assert process.stderr is not None
        lines = [""]
        async with asyncio.timeout(120):
            while what not in lines[-1]:
                lines.append((await process.stderr.readline()).decode())
                assert lines[-1], f"the controller ended with {await process.wait()}: {''.join(lines)}"
        return lines[-1]


@contextlib.asynccontextmanager
async def operating(folder: Path) -> AsyncIterator[Operator]:
    switch = FakeSwitch()
    await switch.start()
    try:
        yield Operator(folder, switch)
    finally:
        await switch.stop()


async def test_a_jobs_life_by_command_line(tmp_path):
    async with operating(tmp_path) as operator:
        metrics = free_port()
        async with operator.controller("--metrics-port", str(metrics)) as process:
            await operator.serves(process)
            code, out, _ = await operator.run("job", "submit", "job.yaml", "--wait", "--json")
            assert (code, json.loads(out)["state"]) == (0, "running")
            assert (await operator.run("job", "submit", "job.yaml"))[0] == 2
            (operator.folder / "big.yaml").write_text("name: big\nworkers: 2\nmin_rate: 90\n")
            code, _, err = await operator.run("job", "submit", "big.yaml")
            assert code == 3
            assert "binds" in err
            code, _, err = await operator.run("job", "submit", "one.yaml")
            assert code == 2
            assert "one.yaml:" in err
            assert (await operator.run("job", "explain", "other"))[0] == 5
            code, out, _ = await operator.run("controller", "top", "--iterations", "1", "--json")
            shown = json.loads(out)
            assert (code, shown["jobs"][0]["name"], shown["switches"][0]["ready"]) == (0, "job", True)
            (link,) = [link for link in shown["links"] if link["link"] == "h1->s1"]
            assert (link["load"], link["capacity"], link["jobs"]) == (30, 100, 0)
            page = await asyncio.to_thread(_get, f"http://127.0.0.1:{metrics}/metrics")
            assert 'netfold_slots_in_use{switch="s1"} ' in page
            assert 'netfold_job_epoch{job="job"} 1.0' in page
            assert 'netfold_packets_total{job="",switch="s1",verdict="unadmitted"} 0.0' in page
            code, _, err = await operator.run("job", "cancel", "job")
            assert (code, err) == (0, "")
            code, out, err = await operator.run("job", "cancel", "job")
            assert (code, "canceled by an operator" in out) == (0, True)
            assert "nothing is canceled: job 'job' has ended already (canceled)" in err
            code, out, _ = await operator.run("job", "watch", "job")
            assert code == 6
            assert "canceled by an operator" in out
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 20) == 0
        assert (await operator.run("job", "list"))[0] == 4


async def test_the_controller_goes_where_the_file_of_switches_says(tmp_path):
    async with operating(tmp_path) as operator:
        there = {"switches": {"s1": {"address": f"127.0.0.1:{operator.switch.port}"}}}
        (operator.folder / "switches.yaml").write_text(yaml.safe_dump(there))
        nowhere = str(free_port())
        async with operator.controller(
            "--first-grpc-port", nowhere, "--switches", "switches.yaml"
        ) as process:
            await operator.serves(process)
            assert (await operator.run("job", "submit", "job.yaml", "--wait"))[0] == 0
            assert operator.switch.entries()


async def test_a_submission_before_the_controller_listens_may_wait_and_is_told(tmp_path):
    async with operating(tmp_path) as operator:
        submitting = await operator.start(
            "job", "submit", "job.yaml", "--wait", stderr=asyncio.subprocess.PIPE
        )
        assert f"no controller answers at {operator.address} yet" in await operator.says(
            submitting, "netfold: "
        )
        async with operator.controller():
            assert await asyncio.wait_for(submitting.wait(), 120) == 0


def _get(url: str, accepted: int = 200) -> str:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            text: str = answer.read().decode()
    except urllib.error.HTTPError as error:
        if error.code != accepted:
            raise
        text = error.read().decode()
    return text


async def test_health_checks_tell_the_leader_from_its_standby(tmp_path):
    """Platforms probe it by grpc.health.v1."""

    async def status(address: str, service: str) -> int:
        async with grpc.aio.insecure_channel(address) as channel:
            request = HealthCheckRequest(service=service)
            return (await HealthStub(channel).Check(request, timeout=20)).status

    async with operating(tmp_path) as operator:
        other = f"unix:{tmp_path}/other.sock"
        async with operator.controller() as leader:
            await operator.serves(leader)
            async with operator.controller("--listen", other) as standby:
                await operator.says(standby, "standby at")
                for service in ("", "netfold.v1.Controller"):
                    assert await status(operator.address, service) == HealthCheckResponse.SERVING
                assert await status(other, "") == HealthCheckResponse.SERVING
                assert await status(other, "netfold.v1.Controller") == HealthCheckResponse.NOT_SERVING
                leader.kill()
                await operator.serves(standby)
                assert await status(other, "netfold.v1.Controller") == HealthCheckResponse.SERVING


@pytest.mark.slow
async def test_the_standby_goes_on_when_the_controller_is_killed(tmp_path):
    async with operating(tmp_path) as operator, operator.controller() as first:
        await operator.serves(first)
        assert (await operator.run("job", "submit", "job.yaml", "--wait"))[0] == 0
        held = operator.switch.entries()
        async with operator.controller() as standby:
            first.kill()
            await operator.serves(standby)
            code, out, _ = await operator.run("job", "show", "job", "--json")
            job = json.loads(out)
            assert (code, job["state"], job["epoch"]) == (0, "running", 1)
            assert operator.switch.entries() == held
            assert (await operator.run("job", "cancel", "job"))[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("what", HANGS)
async def test_the_standby_goes_on_when_the_controller_hangs(what, tmp_path):
    async with (
        operating(tmp_path) as operator,
        operator.controller("--watchdog-timeout", "5", prelude=HANGS[what]) as first,
    ):
        if what == "disk":
            while not (tmp_path / "state.db.lock").exists():
                await asyncio.sleep(0.1)
        else:
            await operator.serves(first)
        async with operator.controller() as standby:
            if what != "disk":
                await operator.says(standby, "standby")
                first.send_signal(signal.SIGUSR1)
            if what == "loop":
                await operator.says(first, "netfold controller: the event loop stood still for 5 s")
                await operator.says(first, "in <lambda>")
            await operator.serves(standby)
            assert first.stderr is not None
            await first.stderr.read()
            assert await asyncio.wait_for(first.wait(), 10) == 1


@pytest.mark.slow
async def test_a_controller_that_was_stopped_for_longer_than_the_limit_goes_on(tmp_path):
    async with operating(tmp_path) as operator, operator.controller("--watchdog-timeout", "1") as process:
        await operator.serves(process)
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(3)
        process.send_signal(signal.SIGCONT)
        await asyncio.sleep(2)
        assert process.returncode is None
        assert (await operator.run("job", "list"))[0] == 0


@pytest.mark.slow
async def test_without_a_limit_a_controller_that_hangs_stays_and_is_not_healthy(tmp_path):
    async with operating(tmp_path) as operator:
        port = free_port()
        options = ("--watchdog-timeout", "0", "--metrics-port", str(port))
        async with operator.controller(*options, prelude=HANGS["loop"]) as process:
            await operator.serves(process)
            health = f"http://127.0.0.1:{port}/healthz"
            assert await asyncio.to_thread(_get, health) == "leads\n"
            process.send_signal(signal.SIGUSR1)
            async with asyncio.timeout(60):
                while "stood still" not in (answer := await asyncio.to_thread(_get, health, 503)):
                    assert answer == "leads\n"
                    await asyncio.sleep(0.2)
            assert process.returncode is None


@pytest.mark.slow
async def test_a_stopped_controller_sends_systemd_nothing_and_is_followed_when_systemd_kills_it(tmp_path):
    async with operating(tmp_path) as operator:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.bind(str(tmp_path / "notify"))
            systemd.setblocking(False)
            loop = asyncio.get_running_loop()

            async def receive(wanted: bytes, timeout_s: float = 10) -> None:
                while wanted not in await asyncio.wait_for(loop.sock_recv(systemd, 4096), timeout_s):
                    pass

            service = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "900000"}
            async with operator.controller("--watchdog-timeout", "0", variables=service) as first:
                await operator.serves(first)
                await receive(b"READY=1\nSTATUS=serving at")
                async with operator.controller() as standby:
                    await operator.says(standby, "standby")
                    await receive(b"WATCHDOG=1")
                    first.send_signal(signal.SIGSTOP)
                    with pytest.raises(TimeoutError):
                        await receive(b"no such state", timeout_s=0.9)
                    first.kill()
                    await operator.serves(standby)


async def test_a_standby_with_an_address_of_its_own_shows_jobs_and_then_leads(tmp_path):
    async with operating(tmp_path) as operator:
        own = f"unix:{operator.folder}/standby.sock"
        async with operator.controller() as first:
            await operator.serves(first)
            assert (await operator.run("job", "submit", "job.yaml", "--wait"))[0] == 0
            async with operator.controller("--listen", own) as standby:
                told = await operator.says(standby, "standby at")
                assert operator.address in told
                code, out, err = await operator.run("job", "list", "--json", "--controller", own)
                assert (code, json.loads(out)[0]["state"]) == (0, "running")
                note = f"netfold: a standby answers, from what is stored; the primary serves at {operator.address}\n"
                assert err == note
                code, out, err = await operator.run("controller", "status", "--controller", own)
                assert (code, err) == (0, note)
                assert "?" in out
                code, out, err = await operator.run("job", "cancel", "job", "--controller", own)
                refusal = f"netfold: this controller is a standby; the primary serves at {operator.address}\n"
                assert (code, out, err) == (4, "", refusal)
                first.kill()
                await operator.serves(standby)
                code, out, err = await operator.run("job", "cancel", "job", "--json", "--controller", own)
                assert (code, json.loads(out)["state"], err) == (0, "canceled", "")


@pytest.mark.slow
@pytest.mark.parametrize("is_listed_first", [True, False])
async def test_commands_and_members_with_all_addresses_follow_the_leader(is_listed_first, tmp_path):
    """It dies at each address in turn, with nothing at the other address for a while."""
    async with operating(tmp_path) as operator:
        other = f"unix:{operator.folder}/other.sock"
        known = ",".join((operator.address, other) if is_listed_first else (other, operator.address))

        async def job(*words: str) -> dict[str, Any]:
            code, out, err = await operator.run("job", *words, "--json", "--controller", known)
            assert (code, err) == (0, "")
            return json.loads(out)

        async def returned() -> None:
            async with asyncio.timeout(60):
                while not any(
                    m["host"] == "h1" and m["connected"] for m in (await job("show", "job"))["members"]
                ):
                    await asyncio.sleep(0.1)  # a job's members have no stream

        async with operator.controller() as first:
            await operator.serves(first)
            await job("submit", "job.yaml", "--wait")
            member = ControllerMembership(known, "job", "h1")
            await returned()
            async with operator.controller("--listen", other) as second:
                await operator.says(second, "standby at")
                first.kill()
                await operator.serves(second)
                await returned()
                async with operator.controller() as third:
                    await operator.says(third, "standby at")
                    second.kill()
                    await operator.serves(third)
                    await returned()
                    third.kill()
        async with operator.controller("--listen", other) as last:
            await operator.serves(last)
            await returned()
            assert (await job("cancel", "job"))["state"] == "canceled"
            with pytest.raises(JobFailedError, match="canceled"):
                await asyncio.to_thread(until_it_ends, member)
        member.close()


def until_it_ends(member: ControllerMembership) -> None:
    member.wait(60)
    while True:
        member.request_new_epoch(member.current().epoch, 60)


async def test_what_ends_the_controller_from_within_is_in_its_log(tmp_path):
    async with operating(tmp_path) as operator, operator.controller() as controller:
        await operator.serves(controller)
        controller.send_signal(signal.SIGABRT)
        assert "Aborted" in await operator.says(controller, "Fatal Python error")


@pytest.mark.slow
async def test_a_standby_leads_once_the_leader_steps_down_which_leads_again_without_one(tmp_path):
    pauses = "from netfold.controller.service import leadership; leadership.STEP_DOWN_S = {}; "
    async with operating(tmp_path) as operator, operator.controller(prelude=pauses.format(600)) as first:
        await operator.serves(first)
        assert (await operator.run("job", "submit", "job.yaml", "--wait"))[0] == 0
        first_address, second_address = operator.address, f"unix:{tmp_path}/d.sock"
        async with operator.controller("--listen", second_address, prelude=pauses.format(0.5)) as second:
            await operator.says(second, f"the primary is at {first_address}")
            code, out, errors = await operator.run("controller", "step-down")
            assert (code, out) == (0, f"the controller at {second_address} leads\n"), errors
            await operator.says(first, "standby at")
            assert (await operator.run("controller", "step-down"))[0] == 4, "it is none any more"
            first.kill()
            operator.address = second_address
            _, out, _ = await operator.run("controller", "status")
            assert f"the controller at {second_address} leads since 20" in out
            code, _, errors = await operator.run("controller", "step-down")
            assert (code, f"the one at {second_address} leads again" in errors) == (3, True), errors
            code, out, _ = await operator.run("job", "show", "job", "--json")
            assert (code, json.loads(out)["state"]) == (0, "running")


async def test_a_standby_at_the_primarys_address_says_that_it_answers_no_call(tmp_path):
    async with operating(tmp_path) as operator, operator.controller() as first:
        await operator.serves(first)
        async with operator.controller() as standby:
            assert "another process listens" in await operator.says(standby, "without an address")


@pytest.mark.slow
@pytest.mark.parametrize("has_them", [True, False])
async def test_a_standby_without_the_primarys_member_tokens_says_so(has_them, tmp_path):
    tls = make_certificate(tmp_path)
    (tmp_path / "tokens").write_text("a-token-of-an-operator\n")
    (tmp_path / "member-tokens").write_text("a-token-of-a-worker\n")
    served = ("--listen", "127.0.0.1:0", "--tls-cert", str(tls.certificate), "--tls-key", str(tls.key))
    served += ("--tokens", "tokens")
    members = ("--member-tokens", "member-tokens")
    async with operating(tmp_path) as operator, operator.controller(*served, *members) as first:
        await operator.serves(first)
        async with operator.controller(*served, *(members if has_them else ())) as standby:
            await operator.says(standby, "standby at")
            if not has_them:
                assert "give both the same" in await operator.says(standby, "other tokens")
            first.kill()
            await operator.serves(standby)


async def test_many_callers_at_once_leave_the_controller_alive(tmp_path):
    tls = make_certificate(tmp_path)
    (tmp_path / "tokens").write_text("a-token-of-an-operator\n")
    served = ("--listen", "127.0.0.1:0", "--tls-cert", str(tls.certificate), "--tls-key", str(tls.key))
    async with (
        operating(tmp_path) as operator,
        operator.controller(*served, "--tokens", "tokens") as process,
    ):
        port = (await operator.says(process, "serving at")).strip().rpartition(":")[2]
        address, ca = f"127.0.0.1:{port}", tls.certificate.read_bytes()
        where = Connection(address, ca, "a-token-of-an-operator", "controller.test")

        async def call() -> None:
            async with aio_channel_to(where, address) as channel:
                with contextlib.suppress(grpc.aio.AioRpcError):  # it may be busy
                    await pb_grpc.ControllerStub(channel).GetStatus(pb.StatusRequest(), timeout=60)

        await asyncio.gather(*(call() for _ in range(400)))
        async with open_aio_channel(where, 60.0, wait_for_ready=True) as channel:
            await pb_grpc.ControllerStub(channel).GetStatus(pb.StatusRequest(), timeout=60)
        assert process.returncode is None


async def test_certificates_and_tokens_are_read_again_at_sighup(tmp_path):
    """A bad file changes nothing, and the standby is told by the store which tokens it needs."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    tls, newer = make_certificate(one), make_certificate(other)
    tokens = tmp_path / "tokens"
    tokens.write_text("the-first-operators-token\n")
    served = ("--listen", "127.0.0.1:0", "--tls-cert", str(tls.certificate), "--tls-key", str(tls.key))
    async with operating(tmp_path) as operator:

        async def state(port: str, ca: bytes, token: str) -> str:
            where = Connection(f"127.0.0.1:{port}", ca, token, "controller.test")
            try:
                async with open_aio_channel(where) as channel:
                    await pb_grpc.ControllerStub(channel).GetStatus(pb.StatusRequest(), timeout=20)
            except grpc.aio.AioRpcError as error:
                return error.code().name
            return "served"

        async def hang_up(process: asyncio.subprocess.Process, says: str) -> str:
            process.send_signal(signal.SIGHUP)
            return await operator.says(process, says)

        old_ca, new_ca = tls.certificate.read_bytes(), newer.certificate.read_bytes()
        async with operator.controller(*served, "--tokens", "tokens") as process:
            port = (await operator.says(process, "serving at")).strip().rpartition(":")[2]
            assert await state(port, old_ca, "the-first-operators-token") == "served"
            tokens.write_text("short\n")
            assert "tokens: expected at least one token" in await hang_up(process, "SIGHUP")
            assert await state(port, old_ca, "the-first-operators-token") == "served"
            tokens.write_text("the-second-operators-token\n")
            tls.certificate.write_bytes(new_ca)
            assert "private key" in await hang_up(process, "SIGHUP")
            tls.key.write_bytes(newer.key.read_bytes())
            await hang_up(process, "read again")
            assert await state(port, new_ca, "the-second-operators-token") == "served"
            assert await state(port, new_ca, "the-first-operators-token") == "UNAUTHENTICATED"
            assert await state(port, old_ca, "the-second-operators-token") in (
                "UNAVAILABLE",
                "DEADLINE_EXCEEDED",
            )
            async with operator.controller(*served, "--tokens", "tokens") as standby:
                await operator.says(standby, "standby at")
                tokens.write_text("the-third-operators-token\n")
                await hang_up(process, "read again")
                await hang_up(standby, "read again")
                tokens.write_text("the-fourth-operators-token\n")
                assert "give both the same" in await hang_up(standby, "other tokens")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("nowhere.yaml",), 2, "nor a spec of netfold"),
        (("single", "--lanes", "48"), 2, "there are programs for"),
        (("single", "--listen", "localhost:0", "--state", "own.db"), 4, "which needs --tls-cert"),
        (("single", "--tls-cert", "x"), 2, "TCP requires"),
        (("single", "--tls-cert", "a", "--tls-key", "b", "--tokens", "c"), 2, "No such file"),
        (("single", "--state", "text"), 4, "not a database"),
        (("single", "--scale", "inf"), 2, "--scale"),
        (("single", "--host-rtt-ms", "inf"), 2, "--host-rtt-ms"),
        (("single", "--probe-interval", "inf"), 2, "--probe-interval"),
        (("single", "--audit-interval", "nan"), 2, "--audit-interval"),
    ],
)
def test_bad_options_end_with_a_line_that_says_what_is_wrong(arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("no database, and long enough to be looked at " * 100)
    app = typer.Typer()
    app.command()(run_controller)
    ended = CliRunner().invoke(app, [*arguments])
    assert (ended.exit_code, message in " ".join(ended.stderr.split())) == (code, True), ended.stderr


def test_a_job_file_that_is_not_there(tmp_path):
    ended = CliRunner().invoke(job_app, ["submit", str(tmp_path / "nowhere.yaml")])
    assert ended.exit_code == 2
    assert "nowhere.yaml" in ended.stderr
