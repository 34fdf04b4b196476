# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A system's network, before it starts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import netfold.testbed
from netfold.p4src.manifest import Form
from netfold.protocol.environment import Variable
from netfold.testbed.controller_command import _form_of
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.isolation import run_isolated
from netfold.testbed.network.modes import NetworkMode
from netfold.testbed.network.state import RunDirectory, State
from netfold.testbed.network.targets import choose_target
from netfold.testbed.step_timeouts import step_timeouts_of
from netfold.testbed.testbed import Testbed
from netfold.topologies.spec import load_fabric, spec_text


@pytest.mark.parametrize(("lanes", "mtu"), [(32, 1500), (256, 1500), (512, 2092)])
def test_links_carry_packets_of_all_lanes(lanes: int, mtu: int):
    network = Testbed(lanes=lanes)._network(choose_target("softswitch"))
    assert network.blueprint.mtu == mtu


@pytest.mark.parametrize(
    ("target", "scale", "expected"),
    [("softswitch", None, None), ("bmv2", None, 0.1), ("bmv2", 0.5, 0.5), ("tofino-model", None, None)],
)
def test_links_have_the_rate_that_the_target_carries_unless_one_is_chosen(
    target: str, scale: float | None, expected: float | None
):
    """Hosts of leaf-spine-2x2 have 100 Mbit/s."""
    system = Testbed("leaf-spine-2x2", target=target, scale=scale)
    assert system._scale_for(step_timeouts_of(target).link_mbps) == expected


def test_a_fabric_without_a_unit_gets_no_scale_by_itself():
    assert Testbed("inart-fig1", target="bmv2")._scale_for(10.0) is None


@pytest.mark.parametrize(
    ("target", "form"), [("bmv2", Form.BMV2), ("softswitch", Form.V1MODEL), (None, None)]
)
def test_a_controller_takes_the_form_of_its_network_s_switches(
    target: str | None, form: Form | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(Variable.RUN_DIR, str(tmp_path))
    directory = RunDirectory("formed")
    directory.prepare()
    if target is not None:
        directory.write(State("formed", "run", 0, "single", target, ready=True))
    assert _form_of("formed") is form


def test_a_fabric_comes_by_name_by_file_as_itself_or_as_a_graph(tmp_path: Path):
    single = load_fabric("single")
    file = tmp_path / "fabric.yaml"
    file.write_text(spec_text(single))
    for given in ("single", file, single, single.graph):
        assert set(Testbed(given).workers) == {f"h{n}" for n in range(1, 9)}


@pytest.mark.parametrize(
    ("target", "lanes", "expected"), [("softswitch", None, 256), ("bmv2", None, 512), ("bmv2", 64, 64)]
)
def test_the_lanes_are_the_most_of_the_target_unless_they_are_chosen(
    target: str, lanes: int | None, expected: int
):
    assert Testbed(target=target, lanes=lanes).lanes == expected


def test_all_public_names_are_there_and_on_the_page():
    page = Path("docs/reference/testbed.md").read_text()
    for name in netfold.testbed.__all__:
        assert getattr(netfold.testbed, name).__name__ == name
        assert re.search(rf":: {name}$", page, re.MULTILINE), name


def test_a_program_at_a_prompt_is_not_run_again(monkeypatch: pytest.MonkeyPatch):
    """It would begin with an empty input."""
    monkeypatch.setenv(Variable.NAMESPACE, "")
    monkeypatch.setattr(sys, "orig_argv", ["python", "-"])
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    with pytest.raises(NetworkError, match="write a script"):
        run_isolated()


def test_a_network_without_namespaces_cuts_no_link():
    network = Testbed("single", mode=NetworkMode.USERLAND)._network(choose_target("softswitch"))
    with pytest.raises(NetworkError, match="need --network mininet or rootless"):
        network.set_link("h1-s1", up=False)
