# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The fabric's file changes while jobs run: over the service, and by commands with a real controller."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
from pathlib import Path

import grpc
import pytest
from typer.testing import CliRunner

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.withdrawal import Intent
from netfold.controller.operator.fabric_file_commands import pin
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.channels import open_aio_channel
from netfold.protocol.connection import Connection
from netfold.topologies.address_assignment import numbered
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import load_fabric, parse_fabric
from tests.controller.deployment import MemberStream, code_of, served
from tests.controller.test_processes import operating

FILE = """# the rack in the cellar
name: one
defaults: {link: {rate: 100}}
switches:
  s1: {role: leaf, capacity: 400}  # fans replaced
hosts:
  h1: {at: s1}
  h2:
    at: s1   # the slow one
  h3: {at: s1}
"""
OUTSIDE = FILE.replace("leaf,", "leaf, prefix: 10.7.0.0/24,").replace("h3: {", "h3: {address: 10.8.0.1, ")
HUGE = "name: x\ngenerate: {leaf_spine: {leaves: 65000, spines: 65000, hosts_per_leaf: 9}}"
WIDE = "name: one\ngenerate: {single_switch: {hosts: 510, rate: 100}}"
JOB = "name: job\nworkers: 2\nscheme: switchml\nrate: 30\nlease_ms: 600000\n"


def _one(text: str = FILE) -> Fabric:
    return numbered(parse_fabric(text, "one.yaml"))


def _request(text: str, *, dry_run: bool = False) -> pb.ChangeFabricRequest:
    return pb.ChangeFabricRequest(spec_yaml=text, source="/etc/one.yaml", dry_run=dry_run)


@pytest.mark.parametrize(
    ("old", "new", "name", "change", "refusal"),
    [
        ("  h1: {at: s1}\n", "", "h1", "goes", "used by job: wait for the end, or cancel"),
        ("capacity: 400", "capacity: 300", "s1", "capacity 400 -> 300", "`netfold fabric drain s1` first"),
        ("rate: 100", "rate: 90", "h1-s1", "rate 100 -> 90", "used by job"),
        ("h1: {at: s1}", "h1: {at: s1, address: 10.1.0.9}", "h1", "address 10.1.0.1 -> 10.1.0.9", "used by job"),
        ("name: one", "name: two", "", "name one -> two", "the store is of fabric 'one'"),
        ("name: one", "name: one\nunit: Gbit/s", "", "unit Mbit/s -> Gbit/s", "job: cancel"),
        ("role: leaf,", "role: leaf, loopback: 10.9.9.9,", "s1", "loopback 10.255.0.1 -> 10.9.9.9", "used by job"),
    ],
)  # fmt: skip
async def test_what_a_job_uses_neither_goes_nor_shrinks(tmp_path, old, new, name, change, refusal):
    async with served(_one(), tmp_path) as (deployment, stub):
        await deployment.run(JOB)
        before = deployment.store.fabric
        for dry_run in (True, False):
            answer = await stub.ChangeFabric(_request(FILE.replace(old, new), dry_run=dry_run))
            found = next(e for e in answer.elements if (e.name, e.change) == (name, change))
            assert refusal in found.refusal
            assert (list(found.jobs), answer.applied) == (["job"], False)
        assert deployment.store.fabric == before
        assert deployment.state("job") is JobState.RUNNING


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "/etc/one.yaml:1:1: the file is empty"),
        ("name: [", ": not YAML"),
        (FILE.replace("h2:\n    at: s1", "h1:\n    at: s1"), "'h1' is given twice; the first is in line 7"),
        (FILE.replace("h3:", "s1:"), "the name 's1' is used twice"),
        (FILE.replace("h3: {at: s1}", "h3: {at: s1, address: 10.1.0.1}\n  h4: {at: s1, address: 10.1.0.1}"), ":11:"),
        (OUTSIDE, "is outside of 10.7.0.0/24"),
        (HUGE, "a generator makes at most 250,000"),
        (WIDE, "'s1' has 510 neighbors; a switch has at most 509 ports"),
        ("name: &a [" + "*a," * 10 + "]", "/etc/one.yaml:"),
        ("name: one\nswitches: {" + "".join(f"s{i}: {{}}, " for i in range(210_000)) + "}", "more than 200000 values"),
        ("a: " + "[" * 100_000, "nested more than 64 deep"),
    ],
    ids=["empty", "no-yaml", "twice", "both", "address", "outside", "generator", "ports", "loop", "huge", "deep"],
)  # fmt: skip
async def test_a_hostile_file_is_refused_and_changes_nothing(tmp_path, text, message):
    async with served(_one(), tmp_path) as (deployment, stub):
        await deployment.run(JOB)
        before = deployment.store.fabric
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.ChangeFabric(_request(text))
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert message in (refused.value.details() or "")
        assert deployment.store.fabric == before
        assert deployment.state("job") is JobState.RUNNING


async def test_a_full_disk_leaves_the_fabric_as_it_was(tmp_path, monkeypatch):
    async with served(_one(), tmp_path) as (deployment, stub):
        before = deployment.store.fabric

        def fail(*_: object) -> None:
            raise StoreError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(deployment.store, "withdrawals", fail)
            assert await code_of(stub.ChangeFabric(_request(FILE + "  h4: {at: s1}\n"))) == (
                grpc.StatusCode.UNAVAILABLE
            )
        assert (deployment.store.fabric, deployment.store.numbers) == (before, "")
        assert (await stub.ChangeFabric(_request(FILE + "  h4: {at: s1}\n"))).applied


async def test_a_withdrawal_leaves_with_its_element_and_a_name_with_two_meanings_is_refused(tmp_path):
    async with served(_one(), tmp_path) as (deployment, stub):
        deployment.controller.planning.maintenance.withdraw(["h1-s1", "h3"], Intent.CORDON)
        answer = await stub.ChangeFabric(_request(FILE + "  h1-s1: {at: s1}\n"))
        assert not answer.applied
        assert any("two meanings" in e.refusal for e in answer.elements)
        assert (await stub.ChangeFabric(_request(FILE.replace("  h3: {at: s1}\n", "")))).applied
        assert [w.element for w in deployment.store.withdrawals()] == ["h1-s1"]


@pytest.mark.slow
async def test_jobs_go_on_while_a_real_controller_takes_another_file(tmp_path):
    """The commands, the members' streams and the files of an operator."""

    async with operating(tmp_path) as operator:
        file = operator.folder / "one.yaml"
        file.write_text(FILE)
        async with (
            operator.controller() as process,
            open_aio_channel(Connection(operator.address), 60.0, wait_for_ready=True) as channel,
        ):
            stub = pb_grpc.ControllerStub(channel)
            await operator.serves(process)
            (operator.folder / "job.yaml").write_text(JOB)
            assert (await operator.run("job", "submit", "job.yaml", "--wait"))[0] == 0
            members = [MemberStream(stub, "job", host) for host in ("h1", "h2")]
            for member in members:
                await member.say()
                assert (await member.hear()).assignment.epoch == 1
            watching = stub.WatchJob(pb.JobName(name="job"))
            assert (await watching.read()).state == pb.RUNNING
            hosts = await _hosts(stub)
            updates = operator.switch.updates

            file.write_text(FILE.replace("hosts:\n", "hosts:\n  h0: {at: s1, queue: 99}\n"))
            code, out, _ = await operator.run("fabric", "diff", "one.yaml", "--json")
            assert (code, [e["name"] for e in json.loads(out)["elements"]]) == (0, ["h0", "h0-s1"])
            code, out, _ = await operator.run("fabric", "apply", "one.yaml")
            assert (code, "applied" in out) == (0, True), out
            await operator.says(process, "serving at")
            assert (await operator.run("fabric", "diff", "one.yaml"))[1] == "the fabric in use is the same\n"
            assert {**await _hosts(stub), "h0": None} == {**hosts, "h0": None}
            assert "h0" in await _hosts(stub)

            for old in members:
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await old.drain()
                assert await old.call.code() is grpc.StatusCode.UNAVAILABLE
            again = [MemberStream(stub, "job", m.host, process_of=m) for m in members]
            for member in again:
                await member.say(epoch=1)
                assert (await member.hear()).assignment.epoch == 1
            assert operator.switch.updates > updates, "the host's own entries"
            code, out, _ = await operator.run("job", "submit", "job.yaml")
            assert code == 2, "it is there"
            assert (await stub.GetJob(pb.JobName(name="job"))).epoch == 1

            file.write_text(FILE.replace("  h1: {at: s1}\n", ""))
            code, out, _ = await operator.run("fabric", "apply", "one.yaml")
            assert (code, "refused; nothing is changed" in out) == (3, True)
            watching.cancel()

        async with operator.controller() as process:
            assert await asyncio.wait_for(process.wait(), 30) == 4
            assert process.stderr is not None
            assert b"netfold fabric diff" in await process.stderr.read()
        async with operator.controller("--stored-fabric") as process:
            await operator.serves(process)
            async with open_aio_channel(Connection(operator.address)) as channel:
                assert "h0" in await _hosts(pb_grpc.ControllerStub(channel))
            file.write_text(FILE.replace("hosts:\n", "hosts:\n  h0: {at: s1, queue: 99}\n"))
            assert (await operator.run("fabric", "pin", "one.yaml"))[0] == 0
            text = file.read_text()
            assert all(line.split("#")[-1] in text for line in FILE.splitlines() if "#" in line)
            assert "10.1.0.4" in text.splitlines()[[*text.splitlines()].index("hosts:") + 1], text
            assert (await operator.run("fabric", "diff", "one.yaml"))[1] == "the fabric in use is the same\n"
            assert (await operator.run("fabric", "pin", "one.yaml"))[1] == "one.yaml has all numbers\n"
        assert numbered(load_fabric(file)) == load_fabric(file)


async def _hosts(stub: pb_grpc.ControllerStub) -> dict[str, object]:
    answer = await stub.ListHosts(pb.ListHostsRequest())
    return {h.name: h.SerializeToString() for h in answer.hosts}


def test_a_file_that_cannot_be_written_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, link = tmp_path / "one.yaml", tmp_path / "link.yaml"
    file.write_text(FILE)
    file.chmod(0o640)
    link.symlink_to(file)

    def fail(path: Path, data: bytes) -> int:
        with path.open("wb") as part:
            part.write(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", fail)
        full = CliRunner().invoke(pin, [str(link), "--offline"])
    assert (full.exit_code, file.read_text()) == (2, FILE)
    assert CliRunner().invoke(pin, [str(link), "--offline"]).exit_code == 0
    assert numbered(load_fabric(file)) == load_fabric(file)
    assert (link.is_symlink(), file.stat().st_mode & 0o777) == (True, 0o640)
    assert {*tmp_path.iterdir()} == {file, link}
