# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A system's network, before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from netfold.p4src.manifest import Form
from netfold.protocol.environment import Variable
from netfold.testbed.controller_command import _form_of
from netfold.testbed.deployment import Deployment, Setup
from netfold.testbed.network.state import RunDirectory, State
from netfold.testbed.network.targets import choose_target
from netfold.testbed.step_timeouts import step_timeouts_of


@pytest.mark.parametrize(("lanes", "mtu"), [(32, 1500), (256, 1500), (512, 2092)])
def test_links_carry_packets_of_all_lanes(lanes: int, mtu: int):
    network = Deployment(Setup(lanes=lanes))._network(choose_target("softswitch"))
    assert network.blueprint.mtu == mtu


@pytest.mark.parametrize(
    ("target", "scale", "expected"),
    [("softswitch", None, None), ("bmv2", None, 0.1), ("bmv2", 0.5, 0.5), ("tofino-model", None, None)],
)
def test_links_have_the_rate_that_the_target_carries_unless_one_is_chosen(
    target: str, scale: float | None, expected: float | None
):
    """Hosts of leaf-spine-2x2 have 100 Mbit/s."""
    system = Deployment(Setup("leaf-spine-2x2", target, scale=scale))
    assert system._scale_for(step_timeouts_of(target).link_mbps) == expected


def test_a_fabric_without_a_unit_gets_no_scale_by_itself():
    assert Deployment(Setup("inart-fig1", "bmv2"))._scale_for(10.0) is None


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
