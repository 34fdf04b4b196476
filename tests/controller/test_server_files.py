# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold deploy`: systemd takes the units, and the scripts set up interfaces whose features ethtool shows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from softswitch.admin.client import ControlClient
from typer.testing import CliRunner

from netfold.controller.operator.deploy_commands import BAD_INPUT, app
from netfold.controller.operator.server_cards import ServerMachine
from tests.controller.server_tree import ICE, MLX5, ServerTree, server_tree

TIMEOUT_S = 30
OFFLOADS = {
    "generic-segmentation-offload": "on",
    "tx-udp-segmentation": "on",
    "rx-udp-gro-forwarding": "on",
    "generic-receive-offload": "on",
}


def deploy(out: Path, *arguments: object, machine: ServerMachine | None = None) -> None:
    """On a server with virtual links."""
    result = CliRunner().invoke(
        app, [*map(str, arguments), "--out", str(out)], obj=machine or virtual(out).machine
    )
    assert result.exit_code == 0, result.output


def virtual(folder: Path) -> ServerTree:
    """It has no card and 8 processors."""
    tree = ServerTree(folder / "server")
    tree.add_processors(("0-7",), threads=1)
    for name in ("sw1", "sw2", "sw1.7", "absent0"):
        tree.add_interface(name, 10000, queues=1)
    return tree


def switch_below(out: Path, *arguments: object) -> None:
    deploy(out, "switch", "-i", "sw1", "-i", "sw2", "--threads", 2, *arguments)


def shown(interface: str, space: Sequence[str]) -> dict[str, str]:
    command = [*space, "ethtool", "-k", interface]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S).stdout
    pairs = (line.strip().split(": ") for line in lines.splitlines()[1:] if ": " in line)
    return {name: state.split()[0] for name, state in pairs}


@pytest.fixture
def space() -> Iterator[list[str]]:
    """The words before a command in a network namespace with two veth links, whose offloads are off. It has no name:
    a user may not write to /run/netns."""
    hold = ["unshare", "--net", "--mount", "sh", "-ec", "mount -t sysfs sysfs /sys; echo made; exec cat"]
    with subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "made\n"
        inside = ["nsenter", "--target", str(holder.pid), "--net", "--mount"]
        script = "".join(
            f"ip link add sw{number} type veth peer name h{number}\n"
            f"ip link set h{number} mtu 4096 up\n"
            f"ethtool -K sw{number} gso off tso off gro off tx-udp-segmentation off\n"
            for number in (1, 2)
        )
        subprocess.run([*inside, "sh", "-ec", script], check=True, timeout=TIMEOUT_S)
        yield inside


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root for network namespaces")
@pytest.mark.skipif(not shutil.which("ethtool"), reason="SKIPPED: ethtool is not on PATH")
def test_the_script_of_a_switch_sets_up_its_cards(tmp_path: Path, space: list[str]):
    switch_below(tmp_path, "--mtu", 4096)
    script = tmp_path / "opt/netfold/bin/netfold-switch-cards"
    assert shown("sw1", space)["tx-udp-segmentation"] == "off", "else this tests nothing"
    done = subprocess.run([*space, script], capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    for name in ("sw1", "sw2"):
        features = shown(name, space)
        assert {feature: features[feature] for feature in OFFLOADS} == OFFLOADS
        link = subprocess.run(
            [*space, "ip", "link", "show", name], capture_output=True, text=True, check=True
        ).stdout
        assert "UP" in link
        assert "mtu 4096" in link
        assert f"not here: rings of {name}" in done.stdout, "veth has none, which is said and no error"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root for network namespaces")
@pytest.mark.skipif(not shutil.which("sysctl"), reason="SKIPPED: sysctl is not on PATH")
def test_the_script_of_a_switch_sets_up_a_card_with_a_dot_in_its_name(tmp_path: Path, space: list[str]):
    """As a VLAN's interface has."""
    deploy(tmp_path, "switch", "-i", "sw1.7")
    subprocess.run([*space, "ip", "link", "set", "sw1", "name", "sw1.7"], check=True, timeout=TIMEOUT_S)
    setting = [*space, "cat", "/proc/sys/net/ipv6/conf/sw1.7/disable_ipv6"]
    before = subprocess.run(setting, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    if before.returncode != 0:
        pytest.skip("SKIPPED: this kernel has no IPv6")
    assert before.stdout.strip() == "0", "else this tests nothing"
    script = tmp_path / "opt/netfold/bin/netfold-switch-cards"
    subprocess.run([*space, script], capture_output=True, check=True, timeout=TIMEOUT_S)
    assert subprocess.check_output(setting, text=True, timeout=TIMEOUT_S).strip() == "1"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root for network namespaces")
def test_the_script_of_a_switch_fails_without_its_card(tmp_path: Path, space: list[str]):
    deploy(tmp_path, "switch", "-i", "absent0")
    script = tmp_path / "opt/netfold/bin/netfold-switch-cards"
    done = subprocess.run([*space, script], capture_output=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode != 0


def executable(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="SKIPPED: systemd-analyze is not on PATH")
@pytest.mark.parametrize("ports", [("sw1", "sw2"), ("xdp:sw1", "sw2"), (f"dpdk:{ICE}", f"dpdk:{MLX5}")])
def test_systemd_takes_the_units(tmp_path: Path, ports: tuple[str, str]):
    tree = server_tree(tmp_path / "server")
    for name in ("sw1", "sw2"):
        tree.add_interface(name, 10000)
    deploy(tmp_path, "switch", "-i", ports[0], "-i", ports[1], "--threads", 2, machine=tree.machine)
    deploy(tmp_path, "ps", "-i", "eth1", "--controller", "ctl:9600", "--threads", 2, "--cpus", "2-3")
    executable(tmp_path / "opt/netfold/bin/softswitch")
    executable(tmp_path / "opt/netfold/bin/netfold")
    units = tmp_path / "etc/systemd/system"
    for unit in ("netfold-switch.service", "netfold-ps@.service"):
        text = (units / unit).read_text().replace("/opt/netfold", f"{tmp_path}/opt/netfold")
        (units / unit).write_text(text)
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", units / unit],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        complaints = [line for line in done.stderr.splitlines() if unit.partition(".")[0] in line]
        assert (done.returncode, complaints) == (0, []), done.stderr


def test_the_unit_runs_one_port_an_interface(tmp_path: Path):
    switch_below(tmp_path, "--listen", "127.0.0.1:9559")
    unit = (tmp_path / "etc/systemd/system/netfold-switch.service").read_text()
    assert "-i 1@sw1 -i 2@sw2 --gso --threads 2 --grpc-server-addr 127.0.0.1:9559\n" in unit


def test_a_remote_address_is_served_with_tls(tmp_path: Path):
    switch_below(tmp_path)
    unit = (tmp_path / "etc/systemd/system/netfold-switch.service").read_text()
    assert "--grpc-server-addr 0.0.0.0:9559 --tls-cert %d/cert.pem --tls-key %d/key.pem" in unit
    assert "LoadCredential=key.pem:/etc/netfold/key.pem" in unit, (
        "root's file, which the service may not open"
    )


def test_ports_of_jobs_are_steered_on_a_host(tmp_path: Path):
    deploy(tmp_path, "ps", "-i", "eth1", "--controller", "ctl:9600")
    script = (tmp_path / "opt/netfold/bin/netfold-ps-cards").read_text()
    assert "ethtool -N eth1 flow-type udp4 dst-port 61440 m 255 action 0" in script, "61440 to 61695"


def test_all_queues_of_a_card_bring_packets_to_several_threads(tmp_path: Path):
    """One queue is one processor's: it would bound all threads."""
    deploy(tmp_path, "ps", "-i", "eth1", "--controller", "ctl:9600", "--threads", 4)
    script = (tmp_path / "opt/netfold/bin/netfold-ps-cards").read_text()
    assert "action" not in script
    assert "\nspread_by_ports eth1\n" in script


def test_an_mtu_carries_the_lanes_or_the_command_says_how_many_it_does(tmp_path: Path):
    deploy(tmp_path, "ps", "-i", "eth1", "--controller", "ctl:9600", "--lanes", 512, "--mtu", 2092)
    switch_below(tmp_path, "--lanes", 512, "--mtu", 9000)
    result = CliRunner().invoke(
        app, ["switch", "-i", "eth1", "-i", "eth2", "--lanes", "512", "--mtu", "2091"]
    )
    assert result.exit_code == BAD_INPUT
    assert "eth1 and eth2: an MTU of 2091 carries at most 511 lanes" in result.output
    assert "--mtu of at least 2092" in result.output


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "opt").write_text("a file")
    words = ["switch", "-i", "sw1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, words, obj=virtual(tmp_path).machine)
    assert result.exit_code == BAD_INPUT
    assert str(tmp_path / "opt/netfold/bin/netfold-switch-cards") in result.output


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root for network namespaces")
def test_the_service_s_command_runs_on_the_cards(tmp_path: Path, space: list[str]):
    switch_below(tmp_path, "--listen", f"unix:{tmp_path}/grpc.sock")
    script = tmp_path / "opt/netfold/bin/netfold-switch-cards"
    subprocess.run([*space, script], check=True, capture_output=True, timeout=TIMEOUT_S)
    unit = (tmp_path / "etc/systemd/system/netfold-switch.service").read_text()
    line = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
    arguments = line.partition(" ")[2].split()
    reader, writer = os.pipe()
    control = tmp_path / "control.sock"
    command = [*space, sys.executable, "-c", "from softswitch.cli import main; main()", *arguments]
    command += ["--control-socket", str(control), "--ready-fd", str(writer)]
    with subprocess.Popen(command, pass_fds=[writer]) as process:
        try:
            os.close(writer)
            with os.fdopen(reader) as ready:
                assert ready.readline().startswith("ready")
            with ControlClient(control) as client:
                ports = client.request("ports")
            assert [(port["interface"], port["up"], port["merges"]) for port in ports] == [
                ("sw1", True, True),
                ("sw2", True, True),
            ]
        finally:
            process.terminate()
            process.wait(TIMEOUT_S)
