# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What each port took in and sent out, in bytes of whole frames, jobs' packets apart from all others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from netfold.controller.switches.port_counters import PORT_RX, PORT_TX, cell
from netfold.controller.switches.tables import CPU_PORT
from netfold.p4src.tools.p4build import Profile
from netfold.protocol.wire import Kind
from tests.dataplane import roce_fixtures
from tests.dataplane.device import SoftDevice, compiled
from tests.dataplane.fixtures import EPOCH, SETTINGS, SLOTS, UPLINK, inner, root, sent
from tests.dataplane.frames import LANES, Ip, ethernet, udp
from tests.dataplane.node import TreeAt
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
