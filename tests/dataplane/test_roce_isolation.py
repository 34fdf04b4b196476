# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Isolation of RoCE jobs (docs/explanation/security.md): whatever comes by other ports than the workers', and
whatever a process without privileges sends from a worker's host in the protocol's own form, changes no slot,
and nothing of it reaches a QP of the job; nor does a delayed packet of an older connection change anything."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from random import Random

import pytest

from netfold.controller.switches.tables import CPU_PORT, MANAGEMENT_PORT
from netfold.protocol.wire import Kind
from tests.dataplane.bench import Tally
from tests.dataplane.conftest import Devices
from tests.dataplane.frames import Ip, Netfold, ethernet, gradient
from tests.dataplane.layout import NODE
from tests.dataplane.node import MANAGED, Management
from tests.dataplane.rc_world import ROOT, SLOTS, TREE, UDP_PORT, Hop, RcWorld
from tests.dataplane.roce_frames import ACKNOWLEDGE, CNP, PSN_AT, QPN_AT, ROCE_PORT, SUMMANDS, Rc, roce
from tests.dataplane.roce_node import Peer
from tests.dataplane.test_rc import SHAPES, new_world

BURST = 50
Sent = list[tuple[Hop, bytes]]


class RoceSiege:
    def __init__(self, world: RcWorld, random: Random) -> None:
        self.world, self.random = world, random
        taken = set(world.places.values())
        hosts = [(s, p) for s in range(len(world.leaves)) for p in world.host_ports]
        self.foreign = [hop for hop in hosts if hop not in taken]
        self.ends = {
            (world.peers[c].address, qpn)
            for c in world.places
            for qpn in (world.peers[c].receiving, world.peers[c].sending)
        }
        for bench in world.benches:
            bench.install(Management())

    def attack(self, frames: int) -> None:
        before = self._registers()
        for _ in range(frames):
            for hop, frame in self._attempt():
                self._through(hop, frame)
        assert self._registers() == before

    def _attempt(self) -> Sent:
        ways = [self._forged, self._forged, self._hidden, self._own_form, self._delayed, self._changed]
        return self.random.choice(ways)()

    def _packet(self) -> tuple[Rc, Ip]:
        """Draws a packet that a worker could send, to any of its QPs."""
        r, world = self.random, self.world
        child = r.choice(list(world.workers))
        worker = world.workers[child]
        victim: Peer = r.choice([worker.at.successor, worker.at.own, worker.at.predecessor])
        psn = (worker.at.first_psn + r.choice([worker.next, worker.acknowledged, 0, -1, SLOTS, 1 << 22])) % (
            1 << 24
        )
        opcode = r.choice(
            [*SUMMANDS, *SUMMANDS, 3, 5, 0x0A, 0x0C, ACKNOWLEDGE, CNP, 0x13, 0x16, r.randrange(256)]
        )
        lanes = [r.randrange(-(2**31), 2**31)] * r.choice([world.lanes] * 4 + [0, 4, world.lanes - 1])
        qpn = r.choice([victim.receiving, victim.sending])
        source = r.choice(list(world.peers.values())).address
        packet = Rc(opcode, qpn, psn, lanes, ack_request=r.random() < 0.5, icrc=r.choice([None] * 4 + [0]))
        return packet, Ip(src=source, dst=victim.address, ttl=r.choice([64, 64, 2, 1]), ecn=r.randrange(4))

    def _forged(self) -> Sent:
        return [(self.random.choice(self.foreign), roce(*self._packet()))]

    def _hidden(self) -> Sent:
        """Packets in fragments, behind options, cut, or with lengths that lie, also from a worker's own host."""
        r = self.random
        packet, ip = self._packet()
        hop = r.choice([*self.foreign, *self.world.places.values()])
        kind = r.randrange(4)
        if kind == 0:
            return [(hop, roce(packet, replace(ip, options=r.choice([bytes(4), b"\x01" * 40]))))]
        data = roce(packet, ip)[34:]
        if kind == 1 and len(data) > 24:
            cut = 8 * r.randrange(1, len(data) // 8)
            first = replace(ip, flags_and_offset=0x2000).pack(data[:cut])
            rest = replace(ip, flags_and_offset=cut // 8).pack(data[cut:])
            return [(hop, ethernet(first)), (hop, ethernet(rest))]
        if kind == 2:
            hop = r.choice(self.foreign)
            return [(hop, roce(replace(packet, length=r.choice([8, 12, 20, 27, 1000])), ip))]
        return [(r.choice(self.foreign), roce(packet, ip)[: r.randrange(34, 34 + len(data))])]

    def _own_form(self) -> Sent:
        """The protocol's own form, from anywhere: on a worker's host no process holds the job's UDP port."""
        r, world = self.random, self.world
        hop = r.choice([*self.foreign, *world.places.values(), *world.places.values()])
        header = Netfold(
            r.choice([Kind.GRADIENT, Kind.GRADIENT, Kind.RESULT]),
            TREE,
            world.epoch,
            r.randrange(3),
            r.randrange(SLOTS),
            r.choice([*world.places, NODE, NODE + 1]),
            [r.randrange(1000)] * world.lanes,
            reserved=r.choice([0, 0x84, 0xC2, r.randrange(256)]),
        )
        address = r.choice(list(world.peers.values())).address
        to = r.choice([ROOT, address])
        return [(hop, gradient(header, Ip(src=address, dst=to), port=UDP_PORT))]

    def _delayed(self) -> Sent:
        """A packet of the connection of an older epoch, right in all else."""
        child = self.random.choice(list(self.world.places))
        at = self.world.workers[child].at
        psn = ((at.first_psn ^ 1 << 23) + self.random.randrange(60)) % (1 << 24)
        packet = Rc(self.random.choice(SUMMANDS), at.successor.receiving, psn, [7] * self.world.lanes)
        ip = Ip(src=at.own.address, dst=at.successor.address)
        return [(self.world.places[child], roce(packet, ip))]

    def _changed(self) -> Sent:
        out = bytearray(roce(*self._packet()))
        for _ in range(self.random.randint(1, 3)):
            out[self.random.randrange(14, min(len(out), 60))] = self.random.randrange(256)
        return [(self.random.choice(self.foreign), bytes(out))]

    def _through(self, origin: Hop, frame: bytes) -> None:
        world = self.world
        under_way = deque([(*origin, frame)])
        for _ in range(100):
            if not under_way:
                return
            switch, port, data = under_way.popleft()
            for out, left in world.benches[switch].send(port, data):
                assert out != CPU_PORT
                if (hop := world.across(switch, out)) is not None:
                    under_way.append((*hop, left))
                else:
                    assert not self._is_for_an_end(left), f"{frame.hex()} became {left.hex()} at a worker"
        raise AssertionError(f"{frame.hex()} goes round in a circle")

    def _is_for_an_end(self, frame: bytes) -> bool:
        """Return whether a NIC or a kernel would give it to a QP of the job, perhaps together with later fragments."""
        if frame[12:14] != b"\x08\x00" or frame[23] != 17 or int.from_bytes(frame[20:22], "big") & 0x1FFF:
            return False
        at = 14 + 4 * (frame[14] & 15)
        address = ".".join(map(str, frame[30:34]))
        if int.from_bytes(frame[at + 2 : at + 4], "big") != ROCE_PORT:
            return False
        if at > 34 or frame[20] & 0x20 or len(frame) < PSN_AT + 3:
            return any(address == own for own, _ in self.ends)
        return (address, int.from_bytes(frame[QPN_AT : QPN_AT + 3], "big")) in self.ends

    def _registers(self) -> list[list[tuple[int, bytes]]]:
        found = []
        for bench in self.world.benches:
            for slot in range(SLOTS, 2 * SLOTS):
                header = Netfold(Kind.READ, MANAGED, 0, slot=slot, lanes=[0] * self.world.lanes)
                found.append(bench.send(CPU_PORT, b"\0\0" + gradient(header, port=MANAGEMENT_PORT)))
        return found


def besiege(target: str, devices: Devices, tally: Tally, shape: str, seed: int, bursts: int) -> None:
    random = Random(seed)
    besiege_world(new_world(target, devices, tally, 64, SHAPES[shape], random), random, bursts)


def besiege_world(world: RcWorld, random: Random, bursts: int) -> None:
    siege = RoceSiege(world, random)
    for _ in range(bursts):
        for _ in range(100):
            world.happen(loss=0.02, repeats=0.03)
            if world.done:
                world.begin()
        siege.attack(BURST)
    world.finish()


@pytest.mark.parametrize("shape", ["one leaf of two", "a leaf that passes"])
def test_an_attacker_changes_nothing_of_a_roce_job(target: str, devices: Devices, tally: Tally, shape: str):
    besiege(target, devices, tally, shape, 1, 12 if target == "softswitch" else 3)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_attacker_changes_nothing_of_a_roce_job_in_many_frames(
    target: str, devices: Devices, tally: Tally, shape: str
):
    besiege(target, devices, tally, shape, 7, 200 if target == "softswitch" else 20)
