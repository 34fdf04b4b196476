# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What the switches of a run counted: verdicts, read over P4Runtime, and the bytes on each link."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import grpc
from finsy.proto import p4r, p4r_grpc

from netfold.controller.planning.plan import Loads
from netfold.topologies.network.builder import Network
from netfold.topologies.network.processes import open_channel
from netfold.traffic.packets.wire import Verdict

VERDICTS_PER_TREE = 32
_TIMEOUT_S = 10.0


def read_verdicts(net: Network) -> dict[str, dict[str, int]]:
    """Packets by switch and verdict, over all trees (docs/protocol.md, section 4). A switch that does not answer is
    left out."""
    found = {}
    for name, switch in net.switches.items():
        with open_channel(switch.grpc_address) as channel:
            try:
                found[name] = _read(p4r_grpc.P4RuntimeStub(channel), switch.device_id)
            except grpc.RpcError:
                continue
    return found


def _read(stub: p4r_grpc.P4RuntimeStub, device_id: int) -> dict[str, int]:
    config = stub.GetForwardingPipelineConfig(
        p4r.GetForwardingPipelineConfigRequest(
            device_id=device_id,
            response_type=p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE,
        ),
        timeout=_TIMEOUT_S,
    )
    counters = {c.preamble.name: c.preamble.id for c in config.config.p4info.counters}
    entity = p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counters["SwitchIngress.verdicts"]))
    totals = dict.fromkeys((v.name.lower() for v in Verdict), 0)
    names = {int(v): v.name.lower() for v in Verdict}
    for answer in stub.Read(p4r.ReadRequest(device_id=device_id, entities=[entity]), timeout=_TIMEOUT_S):
        for cell in answer.entities:
            verdict = cell.counter_entry.index.index % VERDICTS_PER_TREE
            if cell.counter_entry.data.packet_count and verdict in names:
                totals[names[verdict]] += cell.counter_entry.data.packet_count
    return {name: count for name, count in totals.items() if count}


def read_link_bytes(net: Network) -> dict[tuple[str, str], int]:
    """Bytes so far on each directed link, as the kernel counts them at the switches' interfaces."""
    total: dict[tuple[str, str], int] = {}
    for name, switch in net.switches.items():
        for neighbor, interface in switch.interfaces.items():
            statistics = Path("/sys/class/net") / interface / "statistics"
            total[name, neighbor] = int((statistics / "tx_bytes").read_text())
            if net.fabric.is_host(neighbor):
                total[neighbor, name] = int((statistics / "rx_bytes").read_text())
    return total


def measured_loads(
    net: Network, before: Mapping[tuple[str, str], int], after: Mapping[tuple[str, str], int], seconds: float
) -> Loads:
    """Mean rates between two readings, in fabric units."""
    factor = 8 / seconds / net.fabric.unit.bits_per_second
    return Loads(links={link: (after[link] - before[link]) * factor for link in after if link in before})
