# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Three tiers of equal routes: what one switch has chosen does not decide what the next one chooses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

import pytest

from netfold.controller.switches.desired_state import desired_contents
from netfold.controller.switches.entries import Contents
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import FailedElements
from netfold.p4src.manifest import ordinary_program
from netfold.p4src.tools.tofino_golden import report_path
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import fat_tree
from tests.dataplane.conftest import V1MODEL_TARGETS, Fresh
from tests.dataplane.flow_hash import CompiledChoice, Paths, crc16, crc32, digests, flows
from tests.dataplane.frames import LANES, Ip, ethernet, udp
from tests.dataplane.test_parity import EACH_CHIP

FLOWS, WAYS, TOLERANCE = 400, 4, 0.15  # flows for each way: three and a half times their standard deviation


def _contents(fabric: Fabric) -> Mapping[str, Contents]:
    config = FabricConfig(fabric, addresses(fabric), management_tree=2000)
    return desired_contents(config, [], FailedElements())


def test_flows_of_a_rack_take_every_core_switch_alike(target: str, fresh: Fresh):
    """With the controller's entries: an edge switch, the aggregation switches of its pod, and four ways to the core."""
    fabric = fat_tree(WAYS)
    known, contents = addresses(fabric), _contents(fabric)
    paths = Paths(fabric, contents)
    first, last = fabric.hosts[0].name, fabric.hosts[-1].name
    edge = fabric.attachment(first)
    above = {port: name for name, port in fabric.ports[edge].items() if not fabric.is_host(name)}
    devices = {
        name: fresh(target, LANES, number).device for number, name in enumerate((edge, *above.values()))
    }
    for name, device in devices.items():
        device.insert(contents[name].values())
    taken: Counter[tuple[str, int]] = Counter()
    for flow in flows(known.ip(first), known.ip(last), FLOWS * WAYS):
        packet = Ip(src=str(known.ip(first)), dst=str(known.ip(last)), protocol=flow.protocol)
        frame = ethernet(packet.pack(udp(b"x" * 20, flow.src_port, flow.dst_port)))
        ((up, out),) = devices[edge].inject(fabric.ports[edge][first], frame)
        aggregation = above[up]
        ((port, _),) = devices[aggregation].inject(fabric.ports[aggregation][edge], out)
        taken[aggregation, port] += 1
        if target in V1MODEL_TARGETS:
            _, up_switch, core, *_ = paths.take(edge, flow)
            assert (aggregation, port) == (up_switch, fabric.ports[up_switch][core])
    _check_shares(taken, WAYS)


@pytest.mark.parametrize("degree", [4, 8])
def test_every_core_switch_gets_its_share(degree: int):
    """As the sources compute it, from the first racks of a fabric of three tiers to its last ones."""
    fabric = fat_tree(degree)
    known, paths = addresses(fabric), Paths(fabric, _contents(fabric))
    ways = (degree // 2) ** 2
    hosts = list({fabric.attachment(host.name): host.name for host in fabric.hosts}.values())
    for first, last in zip(hosts[:4], hosts[::-1], strict=False):
        sent = flows(known.ip(first), known.ip(last), FLOWS * ways)
        taken = Counter(tuple(paths.take(fabric.attachment(first), flow)[1:3]) for flow in sent)
        _check_shares(taken, ways)


@pytest.mark.parametrize("chip", EACH_CHIP)
def test_the_hashes_that_a_chip_s_program_was_compiled_to_share_flows_alike(chip: str):
    """The equations of the assembly, which is committed with the report of the resources."""
    report = json.loads(report_path(chip).read_text())
    if not ordinary_program(chip, report["lanes"]).seeded:
        assert not report["flow_hashes"]
        return
    choice = CompiledChoice(report["flow_hashes"])
    fabric = fat_tree(WAYS)
    known, paths = addresses(fabric), Paths(fabric, _contents(fabric), choice)
    first, last = fabric.hosts[0].name, fabric.hosts[-1].name
    sent = list(flows(known.ip(first), known.ip(last), FLOWS * WAYS))
    assert [choice.digests(flow) for flow in sent[:FLOWS]] == [digests(flow) for flow in sent[:FLOWS]]
    _check_shares(Counter(tuple(paths.take(fabric.attachment(first), flow)[1:3]) for flow in sent), WAYS)


def test_two_tiers_of_tofino_2_share_flows_by_two_hashes():
    """By one hash, each switch of the second tier would send all that it gets by one uplink."""
    fabric, uplinks = fat_tree(WAYS), WAYS // 2
    known = addresses(fabric)
    sent = flows(known.ip(fabric.hosts[0].name), known.ip(fabric.hosts[-1].name), FLOWS * WAYS)
    _check_shares(Counter((crc16(flow) % uplinks, crc32(flow) % uplinks) for flow in sent), WAYS)


def _check_shares(taken: Mapping[object, int], ways: int) -> None:
    assert len(taken) == ways, taken
    assert all(abs(packets - FLOWS) <= TOLERANCE * FLOWS for packets in taken.values()), taken
