# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How people call simple_switch_grpc: options, device id 0, a JSON alone, PI's device config, half-closes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r
from kinds import config, forward
from p4runtime_client import Client, insert
from running import PROGRAMS
from softswitch.bmv2_options import loopback_of, without_ignored_options
from softswitch.p4runtime.device import device_json
from testnet import Host, Namespace, ethernet, needs_root

from softswitch import shim

# Those of BMv2 and of the target, as p4lang/tutorials, Mininet scripts and PTF runners write them.
BMV2_LINE = """
--nanolog ipc:///tmp/bm-0-log.ipc --debugger --notifications-addr ipc:///tmp/n.ipc --restore-state x --use-files 0
--dump-packet-data 10000 --thrift-port 9099 --max-port-count 8 --log-level info -- --priority-queues 8
--max-mc-groups 10 --disable-swap --drop-port 511 --cpu-port 255
"""


def test_options_of_bmv2_are_taken_and_those_without_effect_named_once(start_switch) -> None:
    switch = start_switch(None, *BMV2_LINE.split())
    said = [line for line in switch.log().splitlines() if "WARNING" in line]
    assert len(said) == 1, said
    for name in ("--nanolog", "--debugger", "--restore-state", "--use-files"):
        assert said[0].count(f"{name} (") == 1
    for name in ("--log-level", "--cpu-port", "--drop-port"):
        assert name not in said[0]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["--pcap", "-i", "1@a"], ["--pcap", ".", "-i", "1@a"]),
        (["--pcap"], ["--pcap", "."]),
        (["--pcap", "dumps", "a.json"], ["--pcap", "dumps", "a.json"]),
        (["--pcap", "a.json"], ["--pcap", ".", "a.json"]),
        (["--pcap=dumps"], ["--pcap=dumps"]),
        (["a.json", "--", "--cpu-port", "9"], ["a.json", "--cpu-port", "9"]),
        (["--nanolog", "ipc:///x", "--no-p4"], ["--no-p4"]),
        (["--nanolog=ipc:///x", "--no-p4"], ["--no-p4"]),
        (["--debugger", "a.json"], ["a.json"]),
    ],
)
def test_a_command_line_of_bmv2_in_our_terms(given: list[str], kept: list[str]) -> None:
    assert without_ignored_options(given)[0] == kept


def test_the_log_file_is_named_and_written_as_by_bmv2(start_switch, tmp_path: Path) -> None:
    switch = start_switch(None, "--log-file", tmp_path / "ss-log", "--log-flush")
    line = (tmp_path / "ss-log.txt").read_text().splitlines()[0]
    assert re.fullmatch(r"\[\d\d:\d\d:\d\d\.\d{3}\] \[bmv2\] \[[TDIWE]\] \[thread \d+\] .+", line), line
    assert switch.log() == ""


async def test_device_0_is_served_and_is_the_default(start_switch) -> None:
    switch = start_switch(None, device_id=None)
    async with Client(switch.address, device_id=0) as client:
        await client.become_primary()
        await client.push(config())
        await client.write(insert(forward(1)))
    with switch.control() as control:
        assert control.request("info")["device_id"] == 0


def legacy(json: bytes) -> bytes:
    """p4.tmp.P4DeviceConfig: reassign = 1 (bool), extras = 2 (message), device_data = 3 (bytes)."""
    length, count = b"", len(json)
    while count >= 0x80:
        length, count = length + bytes([count & 0x7F | 0x80]), count >> 7
    return b"\x08\x01" + b"\x12\x00" + b"\x1a" + length + bytes([count]) + json


async def test_the_device_config_of_pi_is_taken_as_the_json_in_it(start_switch) -> None:
    switch = start_switch(None)
    async with Client(switch.address) as client:
        await client.become_primary()
        wrapped = p4r.ForwardingPipelineConfig()
        wrapped.CopyFrom(config())
        wrapped.p4_device_config = legacy(config().p4_device_config)
        await client.push(wrapped)
        await client.write(insert(forward(1)))
        wrapped.p4_device_config = legacy(b"no json")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.push(wrapped)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("raw", [b"", b"{}", b"\n {}", b"\xff\xff", b"\x08\x01", b"\x1a\x05ab"])
def test_what_is_no_device_config_of_pi_stays_as_it_is(raw: bytes) -> None:
    assert device_json(raw) == raw


async def test_a_client_that_half_closes_leaves_the_election_id_to_the_next(start_switch) -> None:
    switch = start_switch(None)
    for _ in range(3):
        async with Client(switch.address) as client:
            await client.become_primary(1)
            assert await client.finish() is grpc.StatusCode.OK


@pytest.mark.root
@needs_root[1]
async def test_a_json_alone_runs_and_a_controller_may_push_later(
    start_switch, namespace: Namespace, hosts: list[Host]
) -> None:
    frame = ethernet(0x88B5, bytes(46))
    switch = start_switch(namespace, PROGRAMS / "wire.json", "-i", "1@sw1", "-i", "2@sw2")
    one, two = hosts
    one.send(frame)
    assert two.receive() == frame
    async with Client(switch.address) as client:
        await client.become_primary()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.write(insert(forward(1)))
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        await client.push(config("wire"))
    one.send(frame)
    assert two.receive() == frame
    assert switch.stop() == 0


@pytest.mark.slow
def test_under_bmv2s_name_it_is_the_switch(tmp_path: Path) -> None:
    (link,) = [path for path in shim.install(tmp_path) if path.name == "simple_switch_grpc"]
    assert shim.install(tmp_path)[0].exists()
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["simple_switch_grpc", "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=20)
    assert "--grpc-server-addr" in done.stdout
    for option, said in (("--version", "softswitch"), ("-v", "softswitch"), ("--json-version", "2.")):
        command = ["simple_switch_grpc", option]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=20
        )
        assert done.stdout.startswith(said)
    assert sys.executable  # the link leads to the script beside this Python
    assert link.readlink().parent == Path(sys.executable).parent


def test_scripts_of_bmv2_that_listen_everywhere_are_served_on_loopback(start_switch) -> None:
    switch = start_switch(None, "--as-bmv2", "--", "--grpc-server-addr", "0.0.0.0:0")
    assert "0.0.0.0:0 (serves 127.0.0.1:0 only" in switch.log()
    assert f"serves P4Runtime on 127.0.0.1:{switch.grpc_port}" in switch.log()
    for address in ("10.0.0.1:9559", "localhost:1", "unix:/tmp/x"):
        assert loopback_of(address) == address


def test_a_link_is_not_put_over_another_file(tmp_path: Path) -> None:
    (tmp_path / "simple_switch_grpc").write_text("BMv2 itself")
    with pytest.raises(shim.ShimError, match="File exists"):
        shim.install(tmp_path)
    assert (tmp_path / "simple_switch_grpc").read_text() == "BMv2 itself"
