# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Clients that others wrote: finsy, and p4runtime-shell in its own environment. And TLS."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import finsy as fy
import grpc
import pytest
from kinds import config, forward
from p4runtime_client import Client, insert
from running import PROGRAMS
from softswitch.cli import app
from testnet import DEADLINE_S, Host, Namespace, ethernet, needs_root
from typer.testing import CliRunner

SHELL_PYTHON = Path(__file__).parents[2] / ".venv-p4rt-shell" / "bin" / "python"
DATA = 0x1234


@pytest.mark.root
@pytest.mark.skipif(needs_root[1].args[0], reason="SKIPPED: needs root for network namespaces")
async def test_finsy_drives_a_switch_that_forwards(
    start_switch, namespace: Namespace, hosts: list[Host]
) -> None:
    switch = start_switch(namespace, "-i", "1@sw1", "-i", "2@sw2")
    await asyncio.wait_for(finsy_session(switch.address, hosts), 30)


def steered() -> fy.P4TableEntry:
    """A new one each time: finsy marks what it has sent."""
    match, action = fy.Match({"hdr.ethernet.dst": 5}), fy.Action("send", port=2)
    return fy.P4TableEntry("forward", match=match, action=action)


async def finsy_session(address: str, hosts: list[Host]) -> None:
    stem = PROGRAMS / "kinds"
    options = fy.SwitchOptions(
        p4info=stem.with_name("kinds.p4info.txtpb"), p4blob=stem.with_name("kinds.json"), fail_fast=True
    )
    async with fy.Switch("sw1", address, options) as switch:
        assert switch.is_primary
        await switch.write([+steered(), +fy.P4MulticastGroupEntry(3, replicas=(1, 2))])
        frame = ethernet(DATA, bytes(46), dst=5)
        hosts[0].send(frame)
        assert await asyncio.to_thread(hosts[1].receive) == frame

        entries = [held async for held in switch.read(fy.P4TableEntry("forward"))]
        assert [list(held.match.values()) for held in entries] == [[5]]
        with pytest.raises(fy.P4ClientError) as refused:
            await switch.write([+steered()])
        assert refused.value.details[0].canonical_code is fy.GRPCStatusCode.ALREADY_EXISTS

        await switch.write([~fy.P4RegisterEntry("totals", index=4, data=77)])
        assert [held.data async for held in switch.read(fy.P4RegisterEntry("totals", index=4))] == [77]

        await switch.write([fy.P4PacketOut(frame, egress_port=1, unused=0)])
        assert await asyncio.to_thread(hosts[0].receive) == frame
        async with asyncio.timeout(DEADLINE_S):
            async for packet in _packets(switch, hosts[1]):
                assert packet.payload == ethernet(DATA, bytes(46), dst=99)
                assert packet["ingress_port"] == 2
                break
        await switch.write([~fy.P4TableEntry("forward", is_default_action=True, action=fy.Action("drop"))])
        await switch.delete_all()
        assert [held async for held in switch.read(fy.P4TableEntry("forward"))] == []


async def _packets(switch: fy.Switch, host: Host):
    reader = switch.read_packets()
    next_packet = asyncio.ensure_future(anext(reader))
    await asyncio.sleep(0)
    host.send(ethernet(DATA, bytes(46), dst=99))
    yield await next_packet


SHELL_SCRIPT = """
import sys
import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeWriteException

address, p4info, device_config = sys.argv[1:]
config = sh.FwdPipeConfig(p4info, device_config)
sh.setup(device_id=1, grpc_addr=address, election_id=(0, 9), config=config, verbose=False)
try:
    entry = sh.TableEntry("KindsIngress.forward")(action="KindsIngress.send")
    entry.match["hdr.ethernet.dst"] = "02:00:00:00:00:07"
    entry.action["port"] = "3"
    entry.insert()
    held = list(sh.TableEntry("KindsIngress.forward").read())
    assert [int.from_bytes(e.action["port"].value, "big") for e in held] == [3], held
    ternary = sh.TableEntry("KindsIngress.police_table")(action="KindsIngress.police")
    ternary.match["std.ingress_port"] = "1&&&0xf"
    ternary.match["hdr.ethernet.type"] = "0x800..0x900"
    ternary.priority = 5
    ternary.meter_config.cir = 10
    ternary.meter_config.pir = 20
    ternary.insert()
    group = sh.MulticastGroupEntry(1)
    group.add(1, 1).add(2, 2)
    group.insert()
    sh.CloneSessionEntry(5).add(510).insert()
    member = sh.ActionProfileMember("KindsIngress.spread")(member_id=1, action="KindsIngress.set_port")
    member.action["port"] = "1"
    member.insert()
    counter = sh.CounterEntry("KindsIngress.ports")
    counter.index = 3
    counter.data
    counter.packet_count = 6
    counter.modify()
    counter.read()
    assert counter.packet_count == 6
    default = sh.TableEntry("KindsIngress.forward")(action="KindsIngress.drop", is_default=True)
    default.modify()
    try:
        entry.insert()
    except P4RuntimeWriteException as refused:
        assert "ALREADY_EXISTS" in str(refused), refused
    else:
        raise AssertionError("a second insert was accepted")
finally:
    sh.teardown()  # or its threads keep the process
"""


@pytest.mark.skipif(
    not SHELL_PYTHON.exists(), reason=f"SKIPPED: p4runtime-shell is not in {SHELL_PYTHON.parents[1].name}"
)
def test_p4runtime_shell_writes_and_reads(start_switch) -> None:
    switch = start_switch(None, "--grpc-server-addr", "127.0.0.1:0")
    done = subprocess.run(
        [
            *(SHELL_PYTHON, "-c", SHELL_SCRIPT, f"127.0.0.1:{switch.grpc_port}"),
            *(PROGRAMS / "kinds.p4info.txtpb", PROGRAMS / "kinds.json"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def certificate(folder: Path, name: str, issuer: str | None = None) -> tuple[Path, Path]:
    """A key and a certificate, by `issuer` or by itself."""
    key, made = folder / f"{name}.key", folder / f"{name}.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-keyout", key, "-out", made, "-days", "2", "-subj", f"/CN={name}"]
    if issuer is not None:
        command += ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
        command += ["-CA", folder / f"{issuer}.pem", "-CAkey", folder / f"{issuer}.key"]
    subprocess.run([str(part) for part in command], check=True, capture_output=True, timeout=DEADLINE_S)
    return key, made


@pytest.mark.skipif(shutil.which("openssl") is None, reason="SKIPPED: openssl is not on PATH")
async def test_tls_lets_in_clients_with_a_certificate_and_no_others(start_switch, tmp_path: Path) -> None:
    _, ca = certificate(tmp_path, "ca")
    server_key, server = certificate(tmp_path, "server", "ca")
    client_key, client = certificate(tmp_path, "client", "ca")
    _, other_ca = certificate(tmp_path, "other")
    stranger_key, stranger = certificate(tmp_path, "stranger", "other")
    switch = start_switch(
        *(
            None,
            "--grpc-server-addr",
            "127.0.0.1:0",
            "--tls-cert",
            server,
            "--tls-key",
            server_key,
            "--tls-ca",
            ca,
        )
    )
    address = f"127.0.0.1:{switch.grpc_port}"

    def credentials(root: Path, *pair: Path) -> grpc.ChannelCredentials:
        return grpc.ssl_channel_credentials(root.read_bytes(), *(path.read_bytes() for path in pair))

    async def session(chosen: grpc.ChannelCredentials | None) -> None:
        async with Client(address, credentials=chosen) as one:
            await one.become_primary()
            await one.push(config())
            await one.write(insert(forward(1)))

    await session(credentials(ca, client_key, client))
    for wrong in (
        None,
        credentials(ca),
        credentials(ca, stranger_key, stranger),
        credentials(other_ca, client_key, client),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await session(wrong)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-i", "veth0"], "PORT@IFACE"),
        (["-i", "1@a", "-i", "1@b"], "twice"),
        (["-i", "x@a"], "expected a number"),
        (["--port-rate", "1=fast"], "100mbit"),
        (["--port-rate", "1"], "PORT=VALUE"),
        (["--port-queue", "1=5"], "no --port-rate"),
        (["--tls-cert", __file__], "TLS requires"),
        (["--device-id", "-1"], "--device-id"),
        (["--log-console", "--log-file", "x"], "exclude each other"),
        (["--grpc-server-ssl"], "TLS requires"),
        (["--no-p4", "--", "--cpu-port", "x"], "--cpu-port"),
    ],
)
def test_a_wrong_command_line_is_explained(arguments: list[str], words: str) -> None:
    done = CliRunner().invoke(app, arguments, terminal_width=200)
    assert done.exit_code == 2
    assert words in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--grpc-server-addr", "256.0.0.1:1"], "cannot listen"),
        (["--tls-cert", __file__, "--tls-key", __file__], "not a certificate and its key"),
        (["--control-socket", "/nonexistent/socket"], "control socket /nonexistent/socket: No such file"),
        ([str(PROGRAMS / "kinds.json"), "--p4info", str(PROGRAMS / "wire.json")], "expected P4Info"),
        (
            [str(PROGRAMS / "wire.json"), "--p4info", str(PROGRAMS / "kinds.p4info.txtpb")],
            "not that of the device config",
        ),
    ],
)
def test_a_start_that_fails_is_explained(start_switch, arguments: list[str], words: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(words)) as failed:
        start_switch(None, *arguments)
    assert "Traceback" not in str(failed.value)
