# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Computes the timeouts and the sending rate of a job's workers, from the kinds of its switches and the time that links
hold packets. docs/reference/protocol.md, sections 5.2 and 5.4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from netfold.controller.lifecycle.allocation import longest_delay_s
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.planning.plan import Plan, Tree
from netfold.controller.switches.devices import SwitchTarget
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.protocol.congestion import DATA_CENTER, SHARED_PROCESSORS, Timing
from netfold.topologies.fabric import Link

_PACKETS = 16
"""Extra packets that a timeout allows for, so that a slow software switch is not mistaken for a silent one."""

_BURST_OF_QUEUE = 0.75
"""Part of the shortest queue on the paths that a burst may fill; the rest is for the burst of another sender."""


def timing_of(config: FabricConfig, plan: Plan, packet_model: PacketModel) -> Timing:
    """The timing of a job, the same for all its workers. A switch that is a program shares a processor with others."""
    links = [link for tree in plan.trees for link in _links(config, tree)]
    switches = {node for tree in plan.trees for node in _switches(config, tree)}
    chips = all(config.device(s).target is not SwitchTarget.V1MODEL for s in switches)
    base = DATA_CENTER if chips else SHARED_PROCESSORS
    packet = packet_model.packet_bits / packet_model.bits_per_second(config.fabric, plan.rate)
    delay = 2 * max(longest_delay_s(config.fabric, tree) for tree in plan.trees)
    queue = min(
        x.queue * packet_model.packet_bits / packet_model.bits_per_second(config.fabric, x.rate)
        for x in links
    )
    variance = max(base.min_rto_margin, _PACKETS * packet, packet_model.min_rto_margin_s)
    first = base.initial_rto + delay + (variance - base.min_rto_margin)
    return replace(
        base,
        initial_rto=first,
        min_rto_margin=variance,
        max_rto=max(base.max_rto, 4 * first),
        delay_threshold=max(base.delay_threshold, _PACKETS / 2 * packet),
        pacing_burst=min(base.pacing_burst, _BURST_OF_QUEUE * queue),
    )


def pace_of(config: FabricConfig, plan: Plan, packet_model: PacketModel) -> float:
    """Bits per second, counted in whole frames, that a worker may send."""
    bits = packet_model.bits_per_second(
        config.fabric, plan.rate if plan.pacing_rate is None else plan.pacing_rate
    )
    return bits * frame_part(config, plan, packet_model)


def link_rate_of(config: FabricConfig, packet_model: PacketModel, host: str) -> float:
    """Bits per second of the link of the host."""
    link = config.fabric.link(host, config.fabric.attachment(host))
    return packet_model.bits_per_second(config.fabric, link.rate)


def frame_part(config: FabricConfig, plan: Plan, packet_model: PacketModel) -> float:
    """Fraction of a link's time that frames take: the link of a chip also sends preamble and gap, an emulated one does
    not."""
    switches = {node for tree in plan.trees for node in _switches(config, tree)}
    ethernet = any(config.device(s).target is not SwitchTarget.V1MODEL for s in switches)
    return packet_model.frame_bits / packet_model.packet_bits if ethernet else 1.0


def _links(config: FabricConfig, tree: Tree) -> Iterator[Link]:
    for edge in tree.edges:
        yield from (config.fabric.link(a, b) for a, b in pairwise(edge.path))


def _switches(config: FabricConfig, tree: Tree) -> Iterator[str]:
    for edge in tree.edges:
        yield from (node for node in edge.path if not config.fabric.is_host(node))
