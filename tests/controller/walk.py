# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packets of one chunk, walked through the entries of all switches as p4src would take them, one at a time."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, replace

from netfold.controller.jobs.records import AllocatedTree
from netfold.controller.switches.entries import Contents, MulticastGroup, TableEntry
from netfold.topologies.fabric import Fabric

GRADIENT, RESULT = 0, 1
MOST_HOPS = 10_000
UDP_PORT = 61440
"""The job's port, unless a packet says otherwise."""


@dataclass(frozen=True)
class Packet:
    kind: int
    tree: int
    child: int
    epoch: int
    slot: int = 0
    udp_port: int = UDP_PORT


class Walk:
    """`results[host]` counts the results that a host got; `dropped` lists refusals as (switch, reason). By switch,
    `looped` are the loopback ports that packets took, `added` the pipes in which they were added up."""

    def __init__(
        self, fabric: Fabric, switches: dict[str, Contents], planned: AllocatedTree, tree, epoch: int
    ) -> None:
        self.fabric, self.switches = fabric, switches
        self.planned, self.tree, self.epoch = planned, tree, epoch
        self.results: dict[str, int] = defaultdict(int)
        self.dropped: list[tuple[str, int]] = []
        self.looped: dict[str, list[int]] = defaultdict(list)
        self.added: dict[str, set[int]] = defaultdict(set)
        self._seen: dict[str, int] = defaultdict(int)
        self._server: set[int] = set()
        self._numbers = {e.child: n for n, e in enumerate(tree.edges)}

    def send(self, worker: str, **changes: int) -> None:
        """A worker's contribution, and all that follows from it."""
        packet = replace(Packet(GRADIENT, self.planned.tree, self._numbers[worker], self.epoch), **changes)
        self._from_host(worker, packet)

    def _from_host(self, host: str, packet: Packet) -> None:
        at = self.fabric.attachment(host)
        under_way = deque([(at, self.fabric.ports[at][host], packet)])
        for _ in range(MOST_HOPS):
            if not under_way:
                return
            switch, port, packet = under_way.popleft()
            for out, leaving in self._take(switch, port, packet):
                if out in [x.port for x in self.fabric.switch(switch).loopbacks]:
                    self.looped[switch].append(out)
                    under_way.append((switch, out, leaving))
                    continue
                near = next(n for n, p in self.fabric.ports[switch].items() if p == out)
                if not self.fabric.is_host(near):
                    under_way.append((near, self.fabric.ports[near][switch], leaving))
                elif leaving.kind == RESULT:
                    self.results[near] += 1
                else:
                    assert near == self.tree.root
                    under_way.extend(self._serve(near, leaving))
        raise AssertionError("packets go round in circles")

    def _serve(self, server: str, packet: Packet):
        """A parameter server answers a complete chunk, also when it is asked again."""
        self._server.add(packet.child)
        if len(self._server) == len(self.tree.children(server)):
            at = self.fabric.attachment(server)
            yield at, self.fabric.ports[at][server], replace(packet, kind=RESULT)

    def _take(self, switch: str, port: int, packet: Packet):
        chosen = self._admit(switch, port, packet)
        if chosen is None:
            self.dropped.append((switch, 16))
            return
        args = dict(chosen.args)
        if chosen.name == "refuse":
            self.dropped.append((switch, args["reason"]))
        elif chosen.name == "forward":
            yield args["port"], packet
        elif chosen.name == "multicast":
            yield from self._down(switch, packet)
        elif chosen.name in ("add_at_inner", "add_at_root"):
            root = chosen.name == "add_at_root"
            self.added[switch].add(self.fabric.switch(switch).pipe(port))
            again = self._seen[switch] & args["child_mask"]
            self._seen[switch] |= args["child_mask"]
            if self._seen[switch] != args["full_mask"]:
                return
            if not root:
                up = dict(self._action(switch, "uplink", {"tree_index": packet.tree}).args)
                yield up["port"], replace(packet, child=up["child"])
            elif again:
                yield port, replace(packet, kind=RESULT)
            else:
                yield from self._down(switch, replace(packet, kind=RESULT))

    def _down(self, switch: str, packet: Packet):
        group = dict(self._action(switch, "downlink", {"tree_index": packet.tree}).args)["group"]
        held = next(
            e for e in self.switches[switch].values() if isinstance(e, MulticastGroup) and e.group == group
        )
        for port in held.ports:
            yield port, packet

    def _admit(self, switch: str, port: int, packet: Packet):
        fields = {
            "ingress_port": port, "kind": packet.kind, "tree": packet.tree,
            "child": packet.child, "epoch": packet.epoch, "slot": packet.slot, "udp_port": packet.udp_port,
        }  # fmt: skip
        hits = [e for e in self._table(switch, "admission") if _matches(e, fields)]
        return max(hits, key=lambda e: e.priority).actions[0] if hits else None

    def _action(self, switch: str, table: str, fields: dict[str, int]):
        return next(e for e in self._table(switch, table) if _matches(e, fields)).actions[0]

    def _table(self, switch: str, table: str) -> list[TableEntry]:
        return [e for e in self.switches[switch].values() if isinstance(e, TableEntry) and e.table == table]


def _matches(entry: TableEntry, fields: dict[str, int]) -> bool:
    for name, wanted in entry.match:
        value, mask = wanted if isinstance(wanted, tuple) else (wanted, -1)
        if fields[name] & mask != value:
            return False
    return True
