# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A network without namespaces: what its processes inherit, that other users reach nothing of it, and that nothing is
left. Runs without root."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from netfold.protocol.environment import Variable
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.faults import Faults
from netfold.testbed.network.isolation import pick_mode
from netfold.testbed.network.modes import NetworkMode
from netfold.testbed.network.processes import open_channel, wait_ready
from netfold.testbed.network.state import processes_of
from netfold.testbed.network.targets import Bmv2, installed_command
from netfold.testbed.network.userland_network import UserlandNetwork
from netfold.topologies.spec import load_fabric
from tests.testbed.network.conftest import new_place

DEADLINE_S = 60
FABRIC = load_fabric("leaf-spine-2x2")

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="SKIPPED: needs gcc")


@pytest.fixture(scope="module")
def net() -> Iterator[UserlandNetwork]:
    with UserlandNetwork(FABRIC, name=new_place().name) as network:
        yield network


def folder(net: UserlandNetwork) -> Path:
    return net.work.parent


def test_switches_serve_at_sockets_that_are_this_users_alone(net: UserlandNetwork) -> None:
    assert {s.name for s in FABRIC.switches} == set(net.switches)
    for switch in net.switches.values():
        assert switch.grpc_address.startswith(f"unix:{folder(net)}/")
        assert switch.pid is not None
        assert not listening_ports(switch.pid), "a port of loopback is open to all users"
    assert folder(net).stat().st_mode & 0o777 == 0o700


def listening_ports(pid: int) -> list[str]:
    """Local addresses of TCP sockets of the process that listen."""
    own = {os.readlink(f) for f in Path(f"/proc/{pid}/fd").iterdir() if f.exists()}  # noqa: PTH115 (no path)
    rows = [
        row.split()
        for t in ("tcp", "tcp6")
        for row in Path(f"/proc/{pid}/net/{t}").read_text().splitlines()[1:]
    ]
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]


def netfold(net: UserlandNetwork, *words: str) -> subprocess.CompletedProcess[str]:
    """In a second terminal."""
    command = [installed_command("netfold"), "network", *words]
    environment = {**os.environ, Variable.NAME: net.name}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


@pytest.mark.slow
def test_a_second_terminal_sees_its_state_and_what_it_lacks(net: UserlandNetwork) -> None:
    shown = netfold(net, "status")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count(" yes ") == len(FABRIC.switches)
    assert "down:" not in shown.stdout
    for words in ("exec h1 -- true", "pcap h1-leaf1", "link down h1-leaf1", "link show"):
        refused = netfold(net, *words.split())
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"netfold: network '{net.name}' is userland: ")
        assert len(refused.stderr.splitlines()) == 1


def test_a_host_has_its_end_of_the_link_and_its_name(net: UserlandNetwork) -> None:
    script = "import os, json; print(os.environ['NETFOLD_LINK']); print(os.environ['NETFOLD_HOST'])"
    done = net.run("h1", [sys.executable, "-c", script], DEADLINE_S)
    link, host = done.stdout.splitlines()
    address = net.addressing.hosts["h1"]
    described = json.loads(link)
    assert host == "h1"
    assert (described["address"], described["mac"]) == (str(address.ip), address.mac)
    assert described["rate_bps"] == net.rate_bps("h1", "leaf1")


def test_what_a_host_sends_reaches_its_switch_and_is_counted_there(net: UserlandNetwork) -> None:
    before = net.link_bytes()
    script = (
        "import os, json, socket; link = json.loads(os.environ['NETFOLD_LINK']); "
        "socket.socket(fileno=link['descriptor']).send(bytes(100))"
    )
    assert net.run("h1", [sys.executable, "-c", script], DEADLINE_S).returncode == 0
    while net.link_bytes()["h1", "leaf1"] < before["h1", "leaf1"] + 100:  # pytest's timeout ends it
        pass
    assert net.link_bytes()["h2", "leaf1"] == before["h2", "leaf1"]


def test_a_killed_switch_starts_again_on_the_same_links(net: UserlandNetwork) -> None:
    leaf = net.switches["leaf1"]
    net.set_faults("h1", "leaf1", Faults(loss=1.0, seed=3))
    leaf.kill()
    assert leaf.pid is None
    leaf.start()
    with open_channel(leaf.grpc_address):
        wait_ready([leaf._process], DEADLINE_S)
    assert net.lost_by_faults()["h1", "leaf1"] == 0
    assert ("h1", "leaf1") in net.link_bytes()


@pytest.mark.slow
def test_nothing_is_left_at_the_end() -> None:
    place = new_place()
    with UserlandNetwork(FABRIC, name=place.name) as net:
        host = net.hosts["h1"].popen(["sleep", "1000"])
        run = net._run
        descriptors = [end.fileno() for end in net._ends.values()]
        assert processes_of(run)
    assert host.wait(DEADLINE_S) == -signal.SIGTERM
    assert place.leftovers(run) == []
    for descriptor in descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_it_has_softswitch_only() -> None:
    with pytest.raises(NetworkError, match="softswitch only"):
        UserlandNetwork(FABRIC, target=Bmv2())


def test_a_folder_that_is_too_long_for_sockets_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETFOLD_RUN_DIR", str(tmp_path / ("x" * 100)))
    with pytest.raises(NetworkError, match="NETFOLD_RUN_DIR"):
        UserlandNetwork(FABRIC, name="long").start()


def test_commands_that_need_namespaces_say_so() -> None:
    with pytest.raises(NetworkError, match="only `netfold run`"):
        pick_mode(NetworkMode.USERLAND)
    assert pick_mode(NetworkMode.USERLAND, allow_userland=True) is NetworkMode.USERLAND


RUN = ["run", "--network", "userland", "single", "--lanes", "64", "--epochs", "400"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    place = new_place()
    hidden = ("NETFOLD_NAMESPACE", "NETFOLD_NAME", "NETFOLD_NETWORK_MODE")
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    netfold = Path(sys.executable).with_name("netfold")
    run = subprocess.Popen(
        # Where pytest runs in the background of a script, SIGINT is ignored.
        ["env", "--default-signal=INT", netfold, *RUN, "--name", place.name, "--out", tmp_path / "out"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert run.stdout is not None
    for line in run.stdout:
        if "job of 8 workers" in line:
            break
    else:
        pytest.fail("the run ended before its job")
    state = place.directory.read()
    assert state is not None
    run.send_signal(number)
    run.stdout.read()  # its last process has closed it
    run.wait(DEADLINE_S)
    while place.directory.owned or place.leftovers(state.run):  # pytest's timeout ends it
        pass
    assert run.returncode in (-number, 128 + number)
