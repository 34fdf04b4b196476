# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes entries of the tables `connections`, `reserved_qps` (p4src/transport/roce/roce_to_gradient.p4) and
`roce_receivers` (result_to_roce.p4): the RC connections of the workers of a job at their leaf. entries.py derives
them from a job."""

from __future__ import annotations

from dataclasses import dataclass

from netfold.controller.switches.entries import Field, TableEntry, action, entry
from netfold.protocol.wire import NO_FLAGS, Flag

CONNECTIONS, RESERVED_QPS, RECEIVERS = "connections", "reserved_qps", "roce_receivers"

ROCE_SIDE = 0x100
"""Offset of the port number under which contributions of a RoCE worker are admitted: another process of its host cannot
send them as plain UDP."""

NO_PORT = 511
"""Number of a port from which no packet comes."""

HIDDEN_QPN = 0
"""Queue pair number for packets without a visible one, such as fragments."""

SOURCE_PORT = 0xC000
"""UDP source port of the datagrams that carry sums."""


@dataclass(frozen=True)
class RoceConnection:
    """A connection from a worker to its successor in the ring, at their leaf: ports, addresses, the receiving queue
    pair, the first PSN. `slots` are those of the tree."""

    udp_port: int
    tree: int
    slots: int
    port: int
    src: int
    successor_port: int
    dst: int
    qpn: int
    first_psn: int


def contributions(
    connection: RoceConnection, *, child: int, epoch: int, root: int, floats: bool = False
) -> TableEntry:
    """Entries by which packets that enter by the connection are contributions of the child. `root`: address of the root
    of the tree; `floats`: the lanes are float32."""
    match: dict[str, Field] = {
        "ingress_port": connection.port,
        "src": connection.src,
        "dst": connection.dst,
        "qpn": connection.qpn,
    }
    contribute = action(
        "contribute",
        udp_port=connection.udp_port,
        tree=connection.tree,
        child=child,
        epoch=epoch,
        root=root,
        first_psn=connection.first_psn,
        log2_slots=connection.slots.bit_length() - 1,
        successor_port=connection.successor_port,
        flags=int(Flag.FLOATS if floats else NO_FLAGS),
    )
    return entry(CONNECTIONS, match, contribute)


def sums(connection: RoceConnection) -> TableEntry:
    """An entry for sums that leave by the connection."""
    match: dict[str, Field] = {
        "port": connection.successor_port,
        "udp_port": connection.udp_port,
        "tree": connection.tree,
    }
    deliver = action(
        "deliver",
        src=connection.src,
        dst=connection.dst,
        udp_src_port=SOURCE_PORT,
        qpn=connection.qpn,
        first_psn=connection.first_psn,
        log2_slots=connection.slots.bit_length() - 1,
    )
    return entry(RECEIVERS, match, deliver)


def reserved(dst: int, qpn: int, port: int, src: int) -> TableEntry:
    """An entry that drops RoCE packets to this queue pair unless they enter by this port from this address."""
    return entry(RESERVED_QPS, {"dst": dst, "qpn": qpn}, action("set_peer", port=port, src=src))
