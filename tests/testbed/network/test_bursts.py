# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Links carry bursts of packets whole where kernel and switch can; else hosts send them one by one."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from netfold.testbed.network import offload_probe
from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.targets import Softswitch
from tests.testbed.network.conftest import FABRIC, FakeTarget, Place, needs_network, network

FEATURES = ("tx-checksumming", "tcp-segmentation-offload", "tx-udp-segmentation")


def features(net: EmulatedNetwork) -> list[str]:
    shown = net.run("h1", ["ethtool", "-k", "eth0"], 10).stdout.splitlines()
    return [
        line.split(": ")[1].split()[0] for name in FEATURES for line in shown if line.strip().startswith(name)
    ]


def switch_command(net: EmulatedNetwork) -> Sequence[bytes]:
    return Path(f"/proc/{net.switches['leaf1'].pid}/cmdline").read_bytes().split(b"\0")


@pytest.mark.slow
@needs_network
def test_hosts_of_softswitch_keep_their_offloads(place: Place) -> None:
    with network(place, Softswitch()) as net:
        assert features(net) == ["on"] * len(FEATURES)
        assert b"--gso" in switch_command(net)
        assert "one by one" not in net.switches["leaf1"].log.read_text()


@pytest.mark.slow
@needs_network
def test_hosts_send_single_packets_where_the_kernel_refuses_bursts(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(offload_probe, "refusal", lambda name: "Invalid argument")
    with network(place, Softswitch()) as net:
        assert features(net) == ["off"] * len(FEATURES)
        assert b"--gso" not in switch_command(net)
    assert "links carry packets one by one, with offloads off: Invalid argument" in caplog.text


@needs_network
def test_hosts_send_single_packets_to_a_switch_that_takes_nothing_else(place: Place) -> None:
    with network(place, FakeTarget(FABRIC)) as net:
        assert features(net) == ["off"] * len(FEATURES)


@needs_network
def test_the_probe_leaves_no_interface_and_names_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def interfaces() -> str:
        return subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout

    def lose(name: str) -> None:
        raise TimeoutError("a burst was lost")

    assert offload_probe.refusal("prb") is None
    assert "prb" not in interfaces()
    monkeypatch.setattr(offload_probe, "_received", lambda *arguments: lose("prb"))
    assert offload_probe.refusal("prb") == "a burst was lost"
    assert "prb" not in interfaces()
