# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Mininet's prompt of `netfold network up`: what it says before a controller runs, and how it names interfaces."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from netfold.protocol.environment import Variable
from netfold.testbed.network import namespaces, supervisor
from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.kernel import VethPair, create_veth_pairs
from netfold.testbed.network.state import delete_interfaces, interfaces_of
from netfold.testbed.network.targets import installed_command
from netfold.topologies.spec import load_fabric
from tests.testbed.network.conftest import FABRIC, FakeTarget, Place, needs_network
from tests.testbed.network.terminal import Terminal


@needs_network
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_the_prompt_says_that_a_controller_is_needed(tmp_path: Path, place: Place) -> None:
    options = ["--name", place.name, "--first-grpc-port", str(place.first_grpc_port)]
    terminal = Terminal(
        [installed_command("netfold"), "network", "up", "single", "--foreground", "--scale", "100", *options],
        tmp_path,
    )
    try:
        said = terminal.until("mininet>")
        assert "The switches have no program yet" in said
        assert f"netfold controller run single --name {place.name} --scale 100 --first-grpc-port" in said
        terminal.type("exit")
        assert terminal.process.wait(30) == 0
    finally:
        terminal.close()
        supervisor.stop(place.directory)


def test_interfaces_have_mininets_names_in_a_namespace_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str) -> list[str]:
        net = EmulatedNetwork(FABRIC, target=FakeTarget(FABRIC), name=name)
        return [x.interface_b for x in net.blueprint.links()]

    monkeypatch.delenv(Variable.NAMESPACE, raising=False)
    assert all(name.startswith("nf") for name in found("nf")), "beside other networks"
    monkeypatch.setenv(Variable.NAMESPACE, str(namespaces.identity("net")))
    switches = {s.name for s in FABRIC.switches}
    assert all(name.rpartition("-eth")[0] in switches for name in found("nf"))
    assert all(name.startswith("other") for name in found("other")), "two networks in one namespace"


def test_a_name_that_is_too_long_for_linux_is_netfolds() -> None:
    blueprint = EmulatedNetwork(load_fabric("leaf-spine-2x2"), target=FakeTarget(FABRIC), name="nf").blueprint
    assert replace(blueprint, alone=True).interface("leaf1", 1) == "leaf1-eth1"
    assert replace(blueprint, alone=True).interface("leaf1", 1_000_000) == "nf1-1000000"


@needs_network
def test_remains_with_mininets_names_are_found() -> None:
    create_veth_pairs([VethPair("remains-eth1", "remains-eth2")], 1500)
    known = {"remains-eth1", "remains-eth2"}
    try:
        assert set(interfaces_of("nf", known)) == known
        assert not set(interfaces_of("nf")) & known
    finally:
        delete_interfaces(["remains-eth1"])
