# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A system's network, before it starts."""

from __future__ import annotations

import pytest

from netfold.testbed.deployment import Deployment, Setup
from netfold.testbed.network.targets import choose_target


@pytest.mark.parametrize(("lanes", "mtu"), [(32, 1500), (256, 1500), (512, 2092)])
def test_links_carry_packets_of_all_lanes(lanes: int, mtu: int):
    network = Deployment(Setup(lanes=lanes))._network(choose_target("softswitch"))
    assert network.blueprint.mtu == mtu
