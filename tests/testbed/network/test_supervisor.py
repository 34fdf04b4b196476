# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Networks whose holder is a process of its own, ends by a signal or crashes: the next command cleans up, and
nothing may be left behind."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner

from netfold.testbed.network import cli, supervisor
from netfold.testbed.network.errors import NotUpError
from netfold.testbed.network.state import processes_of
from netfold.testbed.network.switch_requests import serving
from tests.testbed.network.conftest import FABRIC, FakeTarget, Place, needs_network, network, ping

PROGRAM = """
import signal, subprocess, sys
from tests.testbed.network.conftest import FABRIC, FakeTarget
from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.signals import wait_for_signal

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the parent may ignore it (nohup)
signal.signal(signal.SIGINT, signal.default_int_handler)  # or this one (a shell's background job)
with EmulatedNetwork(FABRIC, target=FakeTarget(FABRIC), name=sys.argv[1], first_grpc_port=int(sys.argv[2])) as net:
    command = ["sh", "-c", "echo up; exec sleep 1000"]
    sleeper = net.hosts["h1"].popen(command, stdout=subprocess.PIPE)
    sleeper.stdout.readline()
    (net.work / "kept").touch()
    print(net._run, flush=True)
    wait_for_signal()
"""


def start_holder(place: Place) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), place.name, str(place.first_grpc_port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    run = process.stdout.readline().strip()
    assert run, "the holder did not come up"
    return process, run


@needs_network
@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, *(pytest.param(n, marks=pytest.mark.slow) for n in (signal.SIGINT, signal.SIGHUP))],
    ids=lambda n: n.name,
)
def test_signals_leave_nothing(place: Place, number: signal.Signals) -> None:
    process, run = start_holder(place)
    assert len(processes_of(run)) > len(FABRIC.hosts)
    process.send_signal(number)
    assert process.wait(20) != 0
    assert place.leftovers(run) == []


@needs_network
def test_switches_and_host_commands_end_with_their_parent(place: Place) -> None:
    process, run = start_holder(place)
    commands = {p: Path(f"/proc/{p}/cmdline").read_bytes() for p in processes_of(run)}
    orphans = [os.pidfd_open(p) for p, c in commands.items() if b"fake_switch" in c or b"1000\0" in c]
    process.kill()
    process.wait()
    try:
        assert len(orphans) == len(FABRIC.switches) + 1
        for orphan in orphans:
            assert select.select([orphan], [], [], 20)[0], "it lives on"
    finally:
        for orphan in orphans:
            os.close(orphan)
        supervisor.stop(place.directory)
    assert place.leftovers(run) == []


@pytest.mark.slow
@needs_network
def test_next_run_cleans_up_after_a_crash(place: Place) -> None:
    process, run = start_holder(place)
    process.kill()
    process.wait()
    assert not place.directory.owned
    with pytest.raises(NotUpError):
        place.directory.up()
    with network(place) as net:
        assert processes_of(run) == []
        assert ping(net, "h1", "h3") == 0
    assert place.leftovers(net._run) == []


@needs_network
def test_down_cleans_up_after_a_crash(place: Place) -> None:
    process, run = start_holder(place)
    process.kill()
    process.wait()
    assert supervisor.stop(place.directory) == "removed the remains of a crashed run"
    assert place.leftovers(run) == []
    assert supervisor.stop(place.directory) == "no network was up"


@needs_network
def test_the_supervisor_holds_the_network_until_it_is_taken_down(place: Place) -> None:
    options = {"target": FakeTarget(FABRIC), "name": place.name, "first_grpc_port": place.first_grpc_port}
    supervisor.start(FABRIC, options)
    state = place.directory.up()
    assert state.owner != os.getpid()
    assert set(state.hosts) == {h.name for h in FABRIC.hosts}
    assert "is down" in supervisor.stop(place.directory)
    assert place.leftovers(state.run) == []


@pytest.mark.slow
@needs_network
def test_the_supervisor_starts_beside_calls_of_grpc(place: Place) -> None:
    options = {"target": FakeTarget(FABRIC), "name": place.name, "first_grpc_port": place.first_grpc_port}
    with (
        socket.create_server(("127.0.0.1", 0)) as mute,
        grpc.insecure_channel(f"127.0.0.1:{mute.getsockname()[1]}") as channel,
    ):
        calls = [channel.unary_unary("/never/Answered").future(b"", timeout=60) for _ in range(4)]
        supervisor.start(FABRIC, options)
        assert not any(c.done() for c in calls)
    assert "is down" in supervisor.stop(place.directory)


@needs_network
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_up_and_down_from_the_command_line(place: Place, tmp_path: Path) -> None:
    spec = tmp_path / "two.yaml"
    spec.write_text("name: two\ngenerate: {single_switch: {hosts: 2, rate: 10}}\n")

    def netfold(command: str, *words: object) -> Any:
        return CliRunner().invoke(cli.app, [command, *(str(w) for w in words), "--name", place.name])

    options = [
        "--target",
        "softswitch",
        "--first-grpc-port",
        place.first_grpc_port,
        "--pcap",
        tmp_path / "pcaps",
    ]
    up = netfold("up", spec, *options)
    assert up.exit_code == 0, up.output
    assert f"127.0.0.1:{place.first_grpc_port}" in up.output
    run = place.directory.up().run
    again = netfold("up", spec, *options)
    assert again.exit_code == 1
    assert "is already up" in again.output
    assert "is down" in netfold("down").output
    assert place.leftovers(run) == []
    assert {p.name for p in (tmp_path / "pcaps").iterdir()} >= {f"{place.name}1-1_in.pcap"}
    assert "no network was up" in netfold("down").output


@needs_network
def test_a_switch_is_killed_and_started_again_from_the_command_line(place: Place) -> None:
    def switch(action: str, name: str) -> Any:
        return CliRunner().invoke(cli.app, ["switch", action, name, "--name", place.name])

    options = {"target": FakeTarget(FABRIC), "name": place.name, "first_grpc_port": place.first_grpc_port}
    supervisor.start(FABRIC, options)
    try:
        state = place.directory.up()
        host, port = state.switch("leaf1").grpc_address.split(":")
        assert "switch 'leaf1' runs already" in switch("start", "leaf1").output
        assert switch("kill", "leaf1").exit_code == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)))
        again = switch("kill", "leaf1")
        assert (again.exit_code, "switch 'leaf1' does not run" in again.output) == (1, True)
        assert "expected one of leaf1" in switch("kill", "leaf9").output
        assert switch("start", "leaf1").exit_code == 0
        socket.create_connection((host, int(port))).close()
        assert switch("kill", "leaf2").exit_code == 0
    finally:
        supervisor.stop(place.directory)
    assert place.leftovers(state.run) == []
    assert "is not up" in switch("start", "leaf2").output


@needs_network
def test_requests_for_switches_are_checked(place: Place) -> None:
    """The socket is for its user's commands alone, and it takes what any program of that user writes."""
    answers = []
    with network(place) as net, serving(net, place.directory.owner_socket):
        for line in (b"", b"\n", b"kill\n", b"halt leaf1\n", b"kill \xff\n", b"x" * 4096 + b"\n"):
            with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
                connection.connect(str(place.directory.owner_socket))
                connection.sendall(line)
                connection.shutdown(socket.SHUT_WR)
                answers.append(connection.makefile().readline())
        assert all(len(answer) > 1 for answer in answers), answers
        assert net.switch("leaf1").pid is not None
    assert place.leftovers(net._run) == []


@needs_network
def test_the_supervisors_failure_is_told_to_its_parent(place: Place) -> None:
    target = FakeTarget(FABRIC, trouble="--fail", troubled="leaf1")
    options = {"target": target, "name": place.name, "first_grpc_port": place.first_grpc_port}
    with pytest.raises(Exception, match="switch 'leaf1' ended with exit code 1"):
        supervisor.start(FABRIC, options)
    assert place.leftovers() == []
