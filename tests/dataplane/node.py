# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The part of one switch in one tree, as plain data: the harness turns it into table entries with the controller's own
builders, the oracle reads it directly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network

from netfold.controller.switches import tables
from netfold.controller.switches.entries import Entity
from netfold.protocol.wire import Kind
from tests.dataplane.frames import JOB_PORT


@dataclass(frozen=True)
class Child:
    """A sender whose packets come in from `port`. Its bit is its place among the node's children."""

    port: int
    number: int


@dataclass(frozen=True)
class Pass:
    """A sender that this switch only passes on, to `to_port`."""

    port: int
    number: int
    to_port: int


@dataclass(frozen=True)
class Owner:
    """A worker below this switch: the port of the result tree that leads to it, and whether to it alone."""

    rank: int
    port: int
    alone: bool = True


@dataclass(frozen=True)
class TreeAt:
    """`up` is the node's own (port, child number), None at a root or where nothing is added up; `down` the ports by
    which results leave; `results_from` the port they come in by, None at a root."""

    tree: int
    epoch: int
    slots: int
    base: int = 0
    root: bool = False
    children: tuple[Child, ...] = ()
    passes: tuple[Pass, ...] = ()
    answers: tuple[Pass, ...] = ()  # results for one child alone, on its own way
    results_from: int | None = None
    up: tuple[int, int] | None = None
    down: tuple[int, ...] = ()
    udp_port: int = JOB_PORT
    quorum: int | None = None  # contributions that are enough, 0 at an inner node; None: all are wanted
    owners: tuple[Owner, ...] = ()
    below: tuple[Child, ...] = ()  # at a root with a quorum: all senders under its inner nodes

    def at(self, epoch: int) -> TreeAt:
        return replace(self, epoch=epoch)

    def entities(self) -> Iterator[Entity]:
        full = (1 << len(self.children)) - 1
        for bit, child in enumerate(self.children):
            sender = self._sender(child)
            yield from tables.accumulate(sender, root=self.root, bit=bit, full=full, base=self.base)
        for bit, child in enumerate(self.below, len(self.children)):
            sender = self._sender(child)
            yield from tables.accumulate(sender, root=True, bit=bit, full=full, base=self.base)
        if self.quorum is not None:
            yield tables.quorum(self.tree, self.quorum)
        for way in self.passes:
            yield tables.forward_up(self._sender(way), way.to_port)
        for way in self.answers:
            yield tables.forward_result(self._sender(way), way.to_port)
        if self.results_from is not None:
            yield tables.multicast_results(self.results_from, self.udp_port, self.tree, self.epoch)
        if self.down:
            yield tables.result_group(self.tree, self.down)
            yield tables.downlink(self.tree, self.tree)
        for owner in self.owners:
            yield tables.owner(self.tree, owner.rank, owner.port, alone=owner.alone)
        if self.up is not None:
            yield tables.uplink(self.tree, *self.up)

    def _sender(self, sender: Child | Pass) -> tables.Sender:
        return tables.Sender(sender.port, self.udp_port, self.tree, sender.number, self.epoch, self.slots)


@dataclass(frozen=True)
class Neighbor:
    """The node at the other end of a port; `address` is that of a host, None for a switch."""

    port: int
    src: str
    dst: str
    address: str | None = None

    def entities(self) -> Iterator[Entity]:
        if self.address is None:
            yield tables.to_switch(self.port, self.src, self.dst)
        else:
            yield tables.to_host(self.port, self.src, self.dst, IPv4Address(self.address))


@dataclass(frozen=True)
class Route:
    prefix: str
    ports: tuple[int, ...]

    def entities(self) -> Iterator[Entity]:
        yield tables.route(IPv4Network(self.prefix), self.ports)


@dataclass(frozen=True)
class ArpAnswer:
    prefix: str
    mac: str

    def entities(self) -> Iterator[Entity]:
        yield tables.arp_answer(IPv4Network(self.prefix), self.mac)


MANAGED = 0xFFFF  # the tree number under which the controller reads and resets slots


@dataclass(frozen=True)
class Management:
    """READ and RESET of every slot, from the CPU port, or from another way in of the controller."""

    port: int = tables.CPU_PORT

    def entities(self) -> Iterator[Entity]:
        kinds = (Kind.READ, Kind.RESET)
        yield from tables.slot_access(self.port, MANAGED, *kinds)


Setting = TreeAt | Neighbor | Route | ArpAnswer | Management
