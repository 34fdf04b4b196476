# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Counters of a run: verdicts of the switches, read over P4Runtime, and the mean loads of links."""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from finsy.proto import p4r, p4r_grpc

from netfold.controller.planning.plan import Loads
from netfold.controller.switches.port_counters import PORT_RX, cell
from netfold.protocol.wire import Verdict
from netfold.testbed.network.network import Network
from netfold.testbed.network.processes import open_channel
from netfold.testbed.network.switch_entries import read_p4info

VERDICTS_PER_TREE = 32
_TIMEOUT_S = 10.0


def read_verdicts(net: Network) -> dict[str, dict[str, int]]:
    """Packets by switch and verdict, over all trees (docs/reference/protocol.md, section 4). Omits a switch that does
    not answer."""
    names = {int(v): v.label for v in Verdict}
    found = {}
    for switch, cells in _read(net, "verdicts").items():
        totals = dict.fromkeys(names.values(), 0)
        for index, packets in cells.items():
            if (verdict := index % VERDICTS_PER_TREE) in names:
                totals[names[verdict]] += packets
        found[switch] = {name: count for name, count in totals.items() if count}
    return found


def read_contributions(net: Network) -> dict[str, int]:
    """Packets of jobs that each host sent to its leaf; for a RoCE worker the SENDs of its connections."""
    found = {}
    for switch, cells in _read(net, PORT_RX).items():
        for neighbor, port in net.fabric.ports[switch].items():
            if net.fabric.is_host(neighbor):
                found[neighbor] = cells.get(cell(port, is_job_traffic=True), 0)
    return found


def _read(net: Network, counter: str) -> dict[str, dict[int, int]]:
    """Packets by switch and index of a counter of the ingress."""
    found = {}
    for name, switch in net.switches.items():
        with open_channel(switch.grpc_address) as channel:
            try:
                found[name] = _cells(p4r_grpc.P4RuntimeStub(channel), switch.device_id, counter)
            except grpc.RpcError:
                continue
    return found


def _cells(stub: p4r_grpc.P4RuntimeStub, device_id: int, counter: str) -> dict[int, int]:
    counters = {c.preamble.name: c.preamble.id for c in read_p4info(stub, device_id).counters}
    entity = p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counters[f"SwitchIngress.{counter}"]))
    return {
        one.counter_entry.index.index: one.counter_entry.data.packet_count
        for answer in stub.Read(p4r.ReadRequest(device_id=device_id, entities=[entity]), timeout=_TIMEOUT_S)
        for one in answer.entities
    }


def measured_loads(
    net: Network,
    before: Mapping[tuple[str, str], int],
    after: Mapping[tuple[str, str], int],
    seconds: float,
) -> Loads:
    """Mean rates between two readings, in fabric units."""
    factor = 8 / seconds / net.fabric.unit.bits_per_second
    return Loads(links={link: (after[link] - before[link]) * factor for link in after if link in before})
