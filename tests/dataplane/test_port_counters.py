# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Counters of ports: bytes of whole frames in and out, jobs' packets apart from all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import finsy as fy
import numpy as np
import pytest
from finsy.proto import p4r

from netfold.controller.health.link_loads import LinkLoads, metered_ports
from netfold.controller.switches.port_counters import PORT_RX, PORT_TX, PortCounts, PortReader, cell
from netfold.controller.switches.tables import CPU_PORT
from netfold.p4src.manifest import Form
from netfold.p4src.tools.p4build import Profile
from netfold.protocol.target import LaneTarget
from netfold.protocol.wire import FRAMING_BYTES, Flag, Kind
from netfold.topologies.generators import single_switch
from tests.dataplane import roce_fixtures
from tests.dataplane.device import SoftDevice, compiled
from tests.dataplane.fixtures import EPOCH, SETTINGS, SLOTS, UPLINK, inner, root, sent
from tests.dataplane.frames import LANES, Ip, ethernet, udp
from tests.dataplane.node import Owner, TreeAt
from tests.dataplane.roce_frames import Rc

FOREIGN = ethernet(Ip(dst="10.0.0.2").pack(udp(bytes(700), 1, 2)))
Counted = dict[tuple[str, int, bool], tuple[int, int]]


@pytest.fixture
def device() -> Iterator[SoftDevice]:
    with SoftDevice(compiled(Profile(LANES))[0]) as opened:
        for setting in SETTINGS:
            opened.insert(setting.entities())
        yield opened


def counted(device: SoftDevice) -> Counted:
    """(packets, bytes) by counter, port and whether they are of a job; what is 0 is left out."""
    found: Counted = {}
    for name, control in ((PORT_RX, "SwitchIngress"), (PORT_TX, "SwitchEgress")):
        for port in (1, 2, 3, UPLINK, CPU_PORT):
            for ours in (False, True):
                seen = device.pipeline.counter_read(f"{control}.{name}", cell(port, ours))
                if seen.packets:
                    found[name, port, ours] = (seen.packets, seen.bytes)
    return found


def installed(device: SoftDevice, node: TreeAt) -> None:
    device.insert(node.entities())


def test_foreign_packets_count_where_they_come_in_and_where_they_go_out(device: SoftDevice):
    for _ in range(2):
        device.inject(1, FOREIGN)
    size = len(FOREIGN)
    assert counted(device) == {(PORT_RX, 1, False): (2, 2 * size), (PORT_TX, 2, False): (2, 2 * size)}


def test_each_copy_of_a_result_counts_at_its_port(device: SoftDevice):
    installed(device, root(2))
    device.inject(1, sent(1))
    device.inject(2, sent(2))
    each = (1, len(sent(1)))
    assert counted(device) == {
        (PORT_RX, 1, True): each,
        (PORT_RX, 2, True): each,
        (PORT_TX, 1, True): each,
        (PORT_TX, 2, True): each,
    }


def test_a_sum_counts_at_the_uplink(device: SoftDevice):
    installed(device, inner(2))
    device.inject(1, sent(1))
    device.inject(2, sent(2))
    assert counted(device)[PORT_TX, UPLINK, True] == (1, len(sent(1)))


@pytest.mark.parametrize(
    ("frame", "ours"),
    [
        (sent(1, slot=SLOTS), True),
        (sent(1, epoch=EPOCH + 1), True),
        (sent(7), False),
        (sent(1)[:-1], False),
        (FOREIGN[:20], False),
    ],
    ids=["bad slot", "stale epoch", "unadmitted", "malformed", "cut short"],
)
def test_what_is_not_admitted_is_not_a_jobs(device: SoftDevice, frame: bytes, ours: bool):
    installed(device, root(2))
    device.inject(1, frame)
    assert counted(device) == {(PORT_RX, 1, ours): (1, len(frame))}


def test_roce_counts_at_its_true_ports():
    with SoftDevice(compiled(Profile(64))[0]) as device:
        for setting in roce_fixtures.settings(roce_fixtures.at_root()):
            device.insert(setting.entities())
        frames = [roce_fixtures.sent(worker, 0, Rc(lanes=[1] * 64)) for worker in (1, 2)]
        for worker in (1, 2, 1):
            device.inject(worker, frames[worker - 1])
        size = len(frames[0])
        assert counted(device) == {
            (PORT_RX, 1, True): (2, 2 * size),
            (PORT_RX, 2, True): (1, size),
            (PORT_TX, 1, True): (1, size),
            (PORT_TX, 2, True): (2, 2 * size),
        }


def test_the_controllers_own_packets_pass_for_a_jobs(device: SoftDevice):
    device.inject(CPU_PORT, (2 << 7).to_bytes(2, "big") + sent(0, kind=Kind.READ))
    packets, _ = counted(device)[PORT_TX, 2, True]
    assert packets == 1


def read_as_the_controller_does(device: SoftDevice, profile: Profile) -> PortCounts:
    """The counts of the hosts' ports: received, then sent."""
    schema = fy.P4Schema(compiled(profile)[1])
    reader = PortReader(schema, 1, profile.lanes, (1, 2, 3), (1, 2, 3))
    names = {schema.counters[c].id: schema.counters[c].name for c in ("port_rx", "port_tx", "targeted_tx")}
    answer = p4r.ReadResponse(entities=reader.request.entities)
    for entity in answer.entities:
        entry = entity.counter_entry
        seen = device.pipeline.counter_read(names[entry.counter_id], entry.index.index)
        entry.data.byte_count, entry.data.packet_count = seen.bytes, seen.packets
    return reader.counts([answer])


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("all_but", [False, True], ids=["scatter", "gather"])
def test_loads_of_a_scatter_and_a_gather_are_what_leaves(form: Form, all_but: bool):
    """Each of n workers sends and gets its part of the sums with lanes, and headers of the rest."""
    profile = Profile(LANES, form=form)
    fabric = single_switch(3, rate=100)
    (switch,) = fabric.switches
    ports = {host: number for number, host in enumerate(fabric.ports[switch.name], 1)}
    now, chunks, left = [0.0], 30, Counter[int]()
    loads = LinkLoads(fabric, 1.0, lambda: now[0])
    with SoftDevice(compiled(profile)[0], wraps=form is Form.BMV2) as device:
        for setting in (*SETTINGS, replace(root(3), owners=tuple(Owner(n, n) for n in (1, 2, 3)))):
            device.insert(setting.entities())
        loads.counted(switch.name, read_as_the_controller_does(device, profile), 0.0)
        for chunk in range(chunks):
            target = LaneTarget(chunk % 3 + 1, all_but=all_but)
            for worker in (1, 2, 3):
                gives = (worker == target.owner) is all_but
                fields = {"slot": chunk % SLOTS, "round": chunk // SLOTS, "lane_count": target.field}
                lanes, flags = ([1] * LANES, int(Flag.DATA)) if gives else ([], 0)
                for port, frame in device.inject(worker, sent(worker, lanes, flags=flags, **fields)):
                    left[port] += max(60, len(frame)) + FRAMING_BYTES
        now[0] = 1.0
        counts = read_as_the_controller_does(device, profile)
        loads.counted(switch.name, counts, now[0])
    incoming, outgoing = metered_ports(fabric, switch.name)
    assert (incoming, outgoing) == ((1, 2, 3), (1, 2, 3))
    np.testing.assert_array_equal(counts[3:], [[0, left[port]] for port in (1, 2, 3)])
    for host, port in ports.items():
        assert loads.load((switch.name, host)).jobs == pytest.approx(8 * left[port] / 1e6)
        wanted = chunks * 2 // 3 if all_but else chunks // 3
        whole = 42 + 16 + 4 * LANES + FRAMING_BYTES
        assert left[port] == wanted * whole + (chunks - wanted) * (60 + FRAMING_BYTES)
