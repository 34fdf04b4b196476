# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Networks that come up, are used, fail and go down, with stand-in switches: nothing may be left behind."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from scapy.error import Scapy_Exception
from scapy.layers.inet import ICMP, IP
from scapy.utils import rdpcap
from typer.testing import CliRunner

from netfold.protocol.runtime import is_only_user, is_root
from netfold.testbed.network import cli, kernel
from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.errors import (
    AlreadyUpError,
    NetworkError,
    PortTakenError,
    SwitchFailedError,
    UnknownElementError,
)
from netfold.testbed.network.faults import Faults, request
from netfold.testbed.network.processes import SwitchProcess
from netfold.testbed.network.spawner import Spawner
from netfold.testbed.network.state import processes_of
from netfold.testbed.network.targets import Bmv2, Launch, installed_command
from netfold.topologies.fabric import Fabric, Host, Link, Switch
from tests.testbed.network.conftest import (
    FABRIC,
    PING,
    FakeTarget,
    Place,
    needs_network,
    network,
    new_place,
    ping,
)


@pytest.fixture(scope="module")
def net() -> Iterator[EmulatedNetwork]:
    with network(new_place()) as running:
        yield running


@needs_network
def test_hosts_reach_one_another_over_their_gateways(net: EmulatedNetwork) -> None:
    assert ping(net, "h1", "h2") == 0
    assert ping(net, "h1", "h4") == 0
    assert ping(net, "ps1", "h3") == 0


@needs_network
def test_a_host_is_set_up_as_promised(net: EmulatedNetwork) -> None:
    host = net.addressing.hosts["h3"]
    shown = net.run("h3", ["sh", "-c", "ip -o addr show; ip route; tc qdisc show dev eth0"], 10).stdout
    assert f"inet {host.ip}/32" in shown
    assert "inet6" not in shown
    assert f"default via {host.gateway_ip}" in shown
    assert "tbf" in shown
    assert "rate 50Mbit" in shown
    link = net.run("h3", ["ip", "link", "show", "eth0"], 10).stdout
    assert host.mac in link
    assert "mtu 1500" in link
    features = net.run("h3", ["ethtool", "-k", "eth0"], 10).stdout
    for feature in ("tx-checksumming", "rx-checksumming", "scatter-gather", "tcp-segmentation-offload"):
        assert f"{feature}: off" in features
    for feature in ("generic-segmentation-offload", "generic-receive-offload"):
        assert f"{feature}: off" in features


@needs_network
def test_switch_ports_answer_nothing_themselves(net: EmulatedNetwork) -> None:
    interface = net.interface("leaf1", "h1")
    shown = subprocess.run(
        ["ip", "-o", "addr", "show", interface], capture_output=True, text=True, check=True
    ).stdout
    assert "inet" not in shown
    flags = Path(f"/sys/class/net/{interface}/flags").read_text()
    assert int(flags, 16) & 0x80, "IFF_NOARP"


@needs_network
def test_run_and_popen(net: EmulatedNetwork) -> None:
    assert net.run("h1", ["sh", "-c", "echo out; echo err >&2; exit 7"], 10).returncode == 7
    with net.hosts["h2"].popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.communicate("hello", timeout=10)[0] == "hello"
    with pytest.raises(subprocess.TimeoutExpired):
        net.run("h1", ["sleep", "60"], 0.2)
    with pytest.raises(UnknownElementError, match="'h9' is no host of this network; expected one of h1, h2"):
        net.run("h9", ["true"], 1)
    with pytest.raises(UnknownElementError, match="neighbor of 'leaf1'"):
        net.interface("leaf1", "h3")


@needs_network
def test_processes_outlive_the_thread_that_asked_for_them(net: EmulatedNetwork) -> None:
    started: list[subprocess.Popen[str]] = []
    command = [sys.executable, "-c", "import sys; print('ready', flush=True); sys.stdin.read()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    asker = threading.Thread(target=lambda: started.append(net.hosts["h1"].popen(command, **pipes)))
    asker.start()
    asker.join()
    with started[0] as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.communicate(timeout=10)
        assert process.returncode == 0


@needs_network
@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="needs tcpdump")
def test_pcap_sees_both_directions_of_a_link(net: EmulatedNetwork, tmp_path: Path) -> None:
    file = tmp_path / "uplink.pcap"
    command = [
        installed_command("netfold"),
        "network",
        "pcap",
        "--name",
        net.name,
        "spine1-leaf1",
        "-w",
        str(file),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "listening" in process.stderr.readline()
        assert ping(net, "h1", "h4") == 0
        deadline = time.monotonic() + 20
        while len(ends := _ends_of_echoes(file)) < 2 and time.monotonic() < deadline:
            time.sleep(
                0.05
            )  # tcpdump has frames of its socket to write; the file's growth is all that shows it
        process.terminate()
    h1, h4 = (str(net.addressing.hosts[h].ip) for h in ("h1", "h4"))
    assert ends == [(h1, h4), (h4, h1)]


def _ends_of_echoes(file: Path) -> list[tuple[str, str]]:
    """Source and destination of the ICMP packets that are complete in a pcap file which may still grow."""
    try:
        return [(p[IP].src, p[IP].dst) for p in rdpcap(str(file)) if ICMP in p]
    except (OSError, EOFError, Scapy_Exception):
        return []


@needs_network
def test_link_down_and_up(net: EmulatedNetwork) -> None:
    net.set_link("leaf1-spine1", up=False)
    try:
        carrier = Path(f"/sys/class/net/{net.interface('spine1', 'leaf1')}/carrier")
        assert carrier.read_text().strip() == "0"
        assert ping(net, "h1", "h2") == 0
        assert net.run("h1", ["ping", "-n", "-c1", "-W1", net.addressing.hosts["h4"].ip], 10).returncode != 0
    finally:
        net.set_link("spine1-leaf1", up=True)
    assert carrier.read_text().strip() == "1"
    assert ping(net, "h1", "h4") == 0


@needs_network
def test_switch_killed_and_started_again(net: EmulatedNetwork) -> None:
    switch = net.switches["leaf1"]
    before = switch.pid
    switch.kill()
    assert switch.pid is None
    assert ping(net, "h3", "h4") == 0
    switch.start()
    assert ping(net, "h1", "h4") == 0
    switch.restart()
    assert switch.pid not in (None, before)


@needs_network
def test_another_network_under_the_same_name_is_refused(net: EmulatedNetwork) -> None:
    with pytest.raises(AlreadyUpError, match=f"'{net.name}' is already up .*down --name {net.name}"):
        EmulatedNetwork(FABRIC, target=FakeTarget(FABRIC), name=net.name).start()
    assert ping(net, "h1", "h2") == 0


def netfold(net: EmulatedNetwork, *words: str) -> Any:
    """A command about the network, in this process: starting an interpreter for each takes the longest."""
    own = 2 if words[0] in ("link", "faults") else 1
    return CliRunner().invoke(cli.app, [*words[:own], "--name", net.name, *words[own:]])


@needs_network
def test_cli_finds_the_network(net: EmulatedNetwork) -> None:
    command = [
        installed_command("netfold"),
        "network",
        "exec",
        "--name",
        net.name,
        "h1",
        "sh",
        "-c",
        f"{' '.join(PING)} $0 && exit 3",
    ]
    assert (
        subprocess.run([*command, str(net.addressing.hosts["h4"].ip)], timeout=60, check=False).returncode
        == 3
    )
    assert f'"run": "{net._run}"' in netfold(net, "status", "--json").output
    wrong = netfold(net, "exec", "h7", "true")
    assert wrong.exit_code == 1
    assert wrong.output.startswith("netfold: 'h7' is no host")
    assert "'leaf1-leaf2' is no link" in netfold(net, "pcap", "leaf1-leaf2").output
    assert netfold(net, "link", "down", "spine1-leaf1").exit_code == 0
    assert "leaf1-spine1 down" in netfold(net, "link", "show").output
    assert not kernel.is_up(net.interface("spine1", "leaf1"))
    assert netfold(net, "link", "up", "leaf1-spine1").exit_code == 0
    assert kernel.is_up(net.interface("spine1", "leaf1"))
    assert "supports loss only" in netfold(net, "faults", "set", "leaf1-spine1", "--corrupt", "0.1").output
    assert "'h1' is no end of" in netfold(net, "faults", "set", "leaf1-spine1", "--toward", "h1").output
    assert "loss is 2.0" in netfold(net, "faults", "set", "leaf1-spine1", "--loss", "2").output


@needs_network
def test_arp_through_the_fabric(place: Place) -> None:
    with network(place, arp="fabric") as net:
        assert ping(net, "h1", "h4") == 0
        assert net.addressing.hosts["h1"].gateway_mac in net.run("h1", ["ip", "neigh"], 5).stdout


@needs_network
def test_links_are_shaped_where_the_target_does_not(place: Place) -> None:
    with network(place, FakeTarget(FABRIC, shapes_links=False)) as net:
        interface = net.interface("spine1", "leaf2")
        shown = subprocess.run(
            ["tc", "qdisc", "show", "dev", interface], capture_output=True, text=True, check=True
        )
        assert "tbf" in shown.stdout
        assert "rate 50Mbit" in shown.stdout


@needs_network
def test_close_leaves_nothing(place: Place) -> None:
    with network(place) as net:
        sleeper = net.hosts["h1"].popen(["sleep", "1000"])
        pids = processes_of(net._run)
        assert len(pids) >= len(FABRIC.hosts) + len(FABRIC.switches) + 1
        net.close()
        assert sleeper.wait(20) != 0
        net.close()
    assert place.leftovers(net._run) == []
    assert not place.directory.owned
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@needs_network
def test_exception_leaves_nothing(place: Place) -> None:
    net = network(place)
    with pytest.raises(ZeroDivisionError), net:
        raise ZeroDivisionError
    assert place.leftovers(net._run) == []


@needs_network
def test_dead_switch_is_told_with_its_last_words(place: Place) -> None:
    net = network(place, FakeTarget(FABRIC, trouble="--fail", troubled="spine1"))
    with pytest.raises(
        SwitchFailedError, match=r"'spine1' ended with exit code 1: first line \| no such device: the moon"
    ):
        net.start()
    assert place.leftovers(net._run) == []


@needs_network
def test_mute_switch_is_told_in_time(place: Place) -> None:
    net = network(place, FakeTarget(FABRIC, trouble="--mute", troubled="leaf2"), ready_timeout_s=2.0)
    with pytest.raises(SwitchFailedError, match=r"'leaf2' did not answer at 127\.0\.0\.1:\d+ within 2 s"):
        net.start()
    assert place.leftovers(net._run) == []


@needs_network
def test_taken_port_is_told_with_its_holder(place: Place) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", place.first_grpc_port + 2))
        holder.listen()
        net = network(place)
        with pytest.raises(PortTakenError, match=rf"'spine1'\) is in use by process {os.getpid()} "):
            net.start()
    assert place.leftovers(net._run) == []


@needs_network
@pytest.mark.bmv2
@pytest.mark.skipif(shutil.which("simple_switch_grpc") is None, reason="needs simple_switch_grpc on PATH")
def test_bmv2_comes_up_with_shaped_links(place: Place) -> None:
    with network(place, Bmv2()) as net:
        with grpc.insecure_channel(net.switches["spine1"].grpc_address) as channel:
            capabilities = channel.unary_unary("/p4.v1.P4Runtime/Capabilities")
            assert b"1." in capabilities(b"", timeout=10)
        net.switches["leaf1"].restart()
        interface = net.interface("leaf1", "spine1")
        shown = subprocess.run(
            ["tc", "qdisc", "show", "dev", interface], capture_output=True, text=True, check=True
        )
        assert "rate 50Mbit" in shown.stdout
    assert place.leftovers(net._run) == []


SLOW = Fabric(
    "slow",
    (Host("h1"), Host("h2")),
    (Switch("s1"), Switch("s2")),
    (Link("h1", "s1", 10, delay_ms=3), Link("s1", "s2", 10), Link("s2", "h2", 10)),
)


def port_of(net: EmulatedNetwork, switch: str, neighbor: str) -> dict[str, Any]:
    """Returns softswitch's counters of a port."""
    [ports] = request(net.switches[switch].control_socket, [{"op": "ports"}])
    [port] = [p for p in ports if p["interface"] == net.interface(switch, neighbor)]
    found: dict[str, Any] = port
    return found


def shout(net: EmulatedNetwork) -> None:
    """Three frames out of h1; no host answers, for the switches have no program. Returns when s1 has them."""
    before = port_of(net, "s1", "h1")["link"]["rx_packets"]
    net.run("h1", ["ping", "-n", "-c", "3", "-i", "0.01", "-W", "0.01", net.addressing.hosts["h2"].ip], 10)
    deadline = time.monotonic() + 20
    while port_of(net, "s1", "h1")["link"]["rx_packets"] < before + 3:
        assert time.monotonic() < deadline, "frames did not arrive"


@needs_network
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_softswitch_emulates_delays_and_faults(place: Place) -> None:
    net = EmulatedNetwork(SLOW, target="softswitch", name=place.name, first_grpc_port=place.first_grpc_port)
    with net:
        shout(net)
        assert port_of(net, "s1", "h1")["faults"]["in"]["delayed"] == 3, "the link's own delay"
        net.set_faults("h1", "s1", Faults(loss=1))
        shout(net)
        assert port_of(net, "s1", "h1")["faults"]["in"]["lost"] == 3
        net.switches["s1"].restart()
        shout(net)
        assert port_of(net, "s1", "h1")["faults"]["in"]["lost"] == 3, "faults outlive the switch"
        assert netfold(net, "faults", "show").output.splitlines()[0] == "h1 -> s1: loss 1; 3 lost so far"
        assert netfold(net, "faults", "clear", "s1-h1").exit_code == 0
        shout(net)
        assert port_of(net, "s1", "h1")["faults"]["in"]["lost"] == 3
        assert netfold(net, "faults", "set", "s1-h1", "--loss", "1", "--toward", "s1").exit_code == 0
        shout(net)
        assert port_of(net, "s1", "h1")["faults"]["in"]["lost"] == 6
        assert port_of(net, "s1", "h1")["faults"]["out"]["lost"] == 0
        net.clear_faults()
        shout(net)
        assert port_of(net, "s1", "h1")["faults"]["in"]["lost"] == 6
        net.switches["s2"].kill()
        with pytest.raises(NetworkError, match=r"s2\.sock does not answer"):
            net.set_faults("s2", "s1", Faults(loss=0.1))
    assert place.leftovers(net._run) == []


@pytest.mark.slow
@needs_network
@pytest.mark.skipif(is_only_user() or not is_root(), reason="SKIPPED: XDP programs need the machine's root")
@pytest.mark.parametrize(("sender", "receiver"), [("h1", "leaf1"), ("leaf1", "h1"), ("leaf1", "spine1")])
def test_the_kernel_loses_frames_where_the_switches_do_not(
    net: EmulatedNetwork, sender: str, receiver: str
) -> None:
    before = net.lost_by_faults()
    assert ping(net, "h1", "h4") == 0
    assert net.lost_by_faults() == before
    net.set_faults(sender, receiver, Faults(loss=1))
    try:
        assert ping(net, "h1", "h4") == 1
        lost = {way: n - before[way] for way, n in net.lost_by_faults().items() if n > before[way]}
        assert lost.keys() == {(sender, receiver)}
    finally:
        net.clear_faults()
    assert ping(net, "h1", "h4") == 0


@needs_network
def test_faults_are_refused_where_they_cannot_be(net: EmulatedNetwork) -> None:
    with pytest.raises(NetworkError, match="target fake supports loss only; softswitch supports all"):
        net.set_faults("h1", "leaf1", Faults(loss=0.1, delay_ms=1))
    with pytest.raises(UnknownElementError, match="'h1-leaf2' is no link"):
        net.set_faults("h1", "leaf2", Faults())


class _Sleeper(FakeTarget):
    """Does nothing, and so leaves the port free."""

    def command(self, launch: Launch) -> list[str]:
        return ["sleep", "60"]


def test_a_switch_that_is_started_again_waits_until_what_it_had_started_leaves_the_port(
    tmp_path: Path,
) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        launch = Launch("s1", 1, f"127.0.0.1:{port}", (), 510, tmp_path / "s1.sock")
        spawner = Spawner("a-test")
        process = SwitchProcess(_Sleeper(FABRIC), launch, tmp_path / "s1.log", spawner)
        holder.listen()
        with pytest.raises(PortTakenError):
            process.start()
        holder.close()
        process.start()
        process.kill()
        last = socket.create_server(("127.0.0.1", port))
        threading.Timer(0.3, last.close).start()
        process.start()
        assert process.pid is not None
        process.kill()
        spawner.close()
