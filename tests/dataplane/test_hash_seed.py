# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Three tiers of equal routes: what one switch has chosen does not decide what the next one chooses."""

from __future__ import annotations

from collections import Counter

from netfold.controller.switches.desired_state import desired_contents
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import FailedElements
from netfold.topologies.addressing import addresses
from netfold.topologies.generators import fat_tree
from tests.dataplane.conftest import Fresh
from tests.dataplane.frames import LANES, UDP, Ip, ethernet, udp

FLOWS, WAYS, TOLERANCE = 400, 4, 0.15  # flows for each way: three and a half times their standard deviation


def test_flows_of_a_rack_take_every_core_switch_alike(target: str, fresh: Fresh):
    """With the controller's entries: an edge switch, the aggregation switches of its pod, and four ways to the core."""
    fabric = fat_tree(4)
    known = addresses(fabric)
    contents = desired_contents(FabricConfig(fabric, known, management_tree=2000), [], FailedElements())
    first, last = fabric.hosts[0].name, fabric.hosts[-1].name
    edge = fabric.attachment(first)
    above = {port: name for name, port in fabric.ports[edge].items() if not fabric.is_host(name)}
    devices = {
        name: fresh(target, LANES, number).device for number, name in enumerate((edge, *above.values()))
    }
    for name, device in devices.items():
        device.insert(contents[name].values())
    taken: Counter[tuple[str, int]] = Counter()
    for flow in range(FLOWS * WAYS):
        packet = Ip(src=str(known.ip(first)), dst=str(known.ip(last)), protocol=UDP)
        frame = ethernet(packet.pack(udp(b"x" * 20, 20_000 + flow, 5001)))
        ((up, out),) = devices[edge].inject(fabric.ports[edge][first], frame)
        aggregation = above[up]
        ((port, _),) = devices[aggregation].inject(fabric.ports[aggregation][edge], out)
        taken[aggregation, port] += 1
    assert len(taken) == WAYS, taken
    assert all(abs(packets - FLOWS) <= TOLERANCE * FLOWS for packets in taken.values()), taken
