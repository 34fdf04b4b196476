# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Timeouts of workers follow from rates, queues, delays and switches."""

from __future__ import annotations

import pytest

from netfold.controller.lifecycle.member_assignment import pace_of, timing_of
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.planning.plan import JobSpec, Plan
from netfold.controller.planning.planner import make_plan
from netfold.controller.switches.devices import Device, SwitchTarget
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.protocol.congestion import DATA_CENTER, SHARED_PROCESSORS, Timing
from netfold.topologies.addressing import addresses
from netfold.topologies.generators import single_switch

WIRE = PacketModel(256)


def planned(
    rate: float = 100.0, queue: int = 64, delay_ms: float = 0.0, chip: bool = False
) -> tuple[FabricConfig, Plan]:
    fabric = single_switch(4, rate=rate, queue=queue, delay_ms=delay_ms)
    devices = {"s1": Device(target=SwitchTarget.TOFINO)} if chip else {}
    config = FabricConfig(fabric, addresses(fabric), management_tree=2000, devices=devices)
    workers = tuple(host.name for host in fabric.hosts)
    return config, make_plan(fabric, JobSpec("job", workers, (), scheme="switchml"))


def told(rate: float = 100.0, queue: int = 64, delay_ms: float = 0.0, chip: bool = False) -> Timing:
    return timing_of(*planned(rate, queue, delay_ms, chip), WIRE)


def test_the_testbed_s_links_change_nothing():
    assert told() == SHARED_PROCESSORS


def test_where_a_packet_takes_long_a_timeout_allows_for_many():
    slow = told(rate=3.0)
    packet_s = WIRE.packet_bits / 3e6
    assert slow.min_rto_margin >= 10 * packet_s
    assert slow.initial_rto > slow.min_rto_margin
    assert slow.delay_threshold > 5 * packet_s


def test_delays_come_on_top_of_the_first_timeout():
    assert told(delay_ms=20.0).initial_rto == pytest.approx(SHARED_PROCESSORS.initial_rto + 0.04)
    assert told(delay_ms=1000.0).max_rto > 4


def test_what_goes_at_once_fits_into_the_shortest_queue():
    assert told(rate=1000.0).pacing_burst < 64 * WIRE.packet_bits / 1e9
    assert told(queue=8).pacing_burst < 8 * WIRE.packet_bits / 1e8


def test_where_all_switches_are_chips_hosts_have_nothing_else_to_do():
    assert told(rate=10_000.0, queue=1000, chip=True) == DATA_CENTER


def test_a_chip_s_links_carry_what_is_around_each_frame_too_and_emulated_ones_do_not():
    frame, around = 14 + 20 + 8 + 16 + 4 * 256, 8 + 4 + 12
    assert pace_of(*planned(), WIRE) == 100e6
    assert pace_of(*planned(chip=True), WIRE) * (frame + around) / frame == pytest.approx(100e6)


def test_slow_switches_have_a_longer_timeout_and_the_same_pace():
    setting, plan = planned()
    wire = PacketModel(256, min_rto_margin_s=1.0)
    slow, usual = timing_of(setting, plan, wire), told()
    assert slow.min_rto_margin == 1.0
    assert slow.initial_rto >= 1.0
    assert slow.max_rto >= 4 * slow.initial_rto
    assert pace_of(setting, plan, wire) == pace_of(setting, plan, WIRE)
    assert (
        slow.min_reorder_window == usual.min_reorder_window
    )  # an overtaken packet is lost, however slow switches are
