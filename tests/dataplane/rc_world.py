# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A RoCE job on switches under test, with a network that loses, doubles and reorders: what `test_rc` drives at random.

Every switch is a `Bench`, so each frame that leaves is compared with the oracle's. The workers know each sum.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from random import Random

import numpy as np

from netfold.controller.features.roce.tables import ROCE_SIDE
from tests.dataplane.bench import Bench
from tests.dataplane.frames import ECT0, IP_AT, Ip, Netfold, gradient
from tests.dataplane.layout import NODE
from tests.dataplane.node import Child, Neighbor, Pass, Route, TreeAt
from tests.dataplane.rc import Endpoint, Messages, Words, contribution
from tests.dataplane.roce_frames import (
    ACKNOWLEDGE,
    CNP,
    LAST_IMMEDIATE,
    LAST_INVALIDATE,
    ONLY,
    PAYLOAD_AT,
    PSN_AT,
    READ_REQUEST,
    ROCE_PORT,
    SUMMANDS,
    Rc,
    acknowledgment,
    roce,
    with_icrc,
)
from tests.dataplane.roce_node import Peer, RoceHost, ring
from tests.dataplane.world import congested

TREE, UDP_PORT, SLOTS, UPLINK = 5, 0xF005, 16, 4
ROOT = "10.255.0.1"
MAX_IN_FLIGHT = 400
Hop = tuple[int, int]  # switch, port


def _host_ports(count: int) -> tuple[int, ...]:
    return tuple(port for port in range(1, count + 2) if port != UPLINK)


class RcWorld:
    """`leaves` of two workers or more each; one leaf is the root, more have one above them, and add up or only pass."""

    def __init__(self, benches: list[Bench], leaves: list[int], adding: list[bool], random: Random) -> None:
        self.benches, self.random, self.lanes = benches, random, benches[0].lanes
        self.leaves, self.adding = leaves, adding
        self.top = len(leaves) if len(leaves) > 1 else 0
        self.host_ports = _host_ports(max(4, *leaves) + 1)
        self.places: dict[int, Hop] = {}  # of the workers, by child number
        for leaf, workers in enumerate(leaves):
            for port in self.host_ports[:workers]:
                self.places[len(self.places)] = (leaf, port)
        qpns = random.sample(range(2, 1 << 24), 2 * len(self.places))
        self.peers = {
            child: Peer(port, f"10.{leaf}.0.{port}", *qpns[2 * child : 2 * child + 2])
            for child, (leaf, port) in self.places.items()
        }
        self.first_psns = {
            child: random.choice([random.randrange(1 << 24), -3 % (1 << 24)]) for child in self.places
        }
        self.epoch, self.overruns = 0, 0
        self.flying: list[tuple[int, int, bytes]] = []
        for switch, bench in enumerate(benches):
            self._cable(switch, bench)
        self.begin()

    def _cable(self, switch: int, bench: Bench) -> None:
        for child, (leaf, port) in self.places.items():
            address = self.peers[child].address
            if leaf == switch:
                bench.install(Neighbor(port, "02:00:00:00:01:01", f"02:00:00:00:00:{child:02x}", address))
                bench.install(RoceHost(address))
            bench.install(
                Route(
                    f"{address}/32", (port if leaf == switch else leaf + 1 if switch == self.top else UPLINK,)
                )
            )

    def begin(self) -> None:
        """A new epoch, in which the connections begin anew; what is still under way stays there."""
        self.epoch += 1
        lengths = [self.random.choice([1, 1, 2, 3, 4]) for _ in range(self.random.randint(8, 14))]
        messages = Messages.of(lengths)
        self.first_psns = {child: psn ^ 1 << 23 for child, psn in self.first_psns.items()}
        self.workers: dict[int, Endpoint] = {}
        for switch, bench in enumerate(self.benches):
            at = self._at(switch)
            bench.install(at)
            mine = {c: self.peers[c] for c, (leaf, _) in self.places.items() if leaf == switch}
            if switch < len(self.leaves):
                for worker in ring(at, ROOT, mine, self.first_psns):
                    bench.install(worker)
                    self.workers[worker.child] = Endpoint(worker, self.lanes, messages, SLOTS // 2)
        self._sums: dict[int, Words] = {}

    def _at(self, switch: int) -> TreeAt:
        plain = TreeAt(TREE, self.epoch, SLOTS, udp_port=UDP_PORT, base=SLOTS)
        if switch == self.top and self.top:
            children: list[Child] = []
            for leaf, adds in enumerate(self.adding):
                below = [c for c, (at, _) in self.places.items() if at == leaf]
                children += [Child(leaf + 1, number) for number in ([NODE + leaf] if adds else below)]
            return replace(
                plain, root=True, children=tuple(children), down=tuple(range(1, len(self.leaves) + 1))
            )
        mine = [(c, port) for c, (leaf, port) in self.places.items() if leaf == switch]
        children = [Child(ROCE_SIDE | port, c) for c, port in mine]
        down = tuple(port for _, port in mine)
        if not self.top:
            return replace(plain, root=True, children=tuple(children), down=down)
        if self.adding[switch]:
            up = (UPLINK, NODE + switch)
            return replace(plain, children=tuple(children), up=up, results_from=UPLINK, down=down)
        passes = tuple(Pass(child.port, child.number, UPLINK) for child in children)
        return replace(plain, passes=passes, results_from=UPLINK, down=down)

    def exact(self, chunk: int) -> Words:
        if chunk not in self._sums:
            parts = [contribution(self.lanes, self.epoch, child, chunk) for child in self.places]
            self._sums[chunk] = np.sum(parts, axis=0)
        return self._sums[chunk]

    # ---- what happens -----------------------------------------------------------------------------

    def happen(self, loss: float, repeats: float) -> None:
        dice, r = self.random.random(), self.random
        worker = self.workers[r.choice(list(self.workers))]
        if dice < 0.01:
            worker.time_out()
        elif dice < 0.04:
            self.arrive(*self.noise())
        elif (not self.flying or dice < 0.4) and len(self.flying) < MAX_IN_FLIGHT:
            self.send(worker)
        elif self.flying:
            place = 0 if r.random() < 0.9 else r.randrange(len(self.flying))  # mostly in order
            switch, port, frame = self.flying[place]
            if r.random() >= repeats or len(self.flying) >= MAX_IN_FLIGHT:
                del self.flying[place]
            if r.random() < 0.03:
                frame = congested(frame)
            if r.random() >= loss:
                self.arrive(switch, port, frame)

    def send(self, worker: Endpoint) -> None:
        if not worker.may_send():
            return
        if worker.next == worker.highest:
            lacking = min(w.expected for w in self.workers.values())
            self.overruns += worker.next - SLOTS >= lacking  # a worker may still ask for what the slot holds
        self.flying.append((*self.places[worker.at.child], worker.send()))

    def arrive(self, switch: int, port: int, frame: bytes) -> None:
        for out, left in self.benches[switch].send(port, frame):
            if (hop := self.across(switch, out)) is not None:
                self.flying.append((*hop, left))
            else:
                self._at_host(switch, out, left)

    def across(self, switch: int, port: int) -> Hop | None:
        """The other end of a link between switches; None at a host's."""
        if self.top and switch == self.top:
            return port - 1, UPLINK
        return (self.top, switch + 1) if self.top and port == UPLINK else None

    def _at_host(self, switch: int, port: int, frame: bytes) -> None:
        child = next((c for c, hop in self.places.items() if hop == (switch, port)), None)
        if (
            child is None
            or frame[12:14] != b"\x08\x00"
            or struct.unpack_from(">H", frame, 36)[0] != ROCE_PORT
        ):
            return
        worker = self.workers[child]
        worker.take(
            frame, self.exact(worker.expected) if worker.expected < worker.messages.chunks else np.zeros(0)
        )
        self.flying += [(*self.places[child], answer) for answer in worker.out]
        worker.out.clear()

    # ---- what should change nothing ---------------------------------------------------------------

    def noise(self) -> tuple[int, int, bytes]:
        """Any frame that is none of the job's, or none of the right ones, from anywhere."""
        r = self.random
        own, other = r.sample(list(self.peers.values()), 2)
        child = r.choice(list(self.places))
        worker = self.workers[child].at
        lanes = [r.randrange(-(2**31), 2**31)] * self.lanes
        psn = (
            worker.first_psn + r.choice([*range(4), -1, -(1 << 22), 1 << 23, self.workers[child].next])
        ) % (1 << 24)
        right = Rc(r.choice(SUMMANDS), worker.successor.receiving, psn, lanes, ack_request=r.random() < 0.5)
        ip = Ip(src=worker.own.address, dst=worker.successor.address, ecn=r.choice([0, ECT0, 3]))
        there = self.places[child]
        elsewhere = r.choice(
            [(s, p) for s in range(len(self.benches)) for p in self.host_ports if (s, p) != there]
        )
        frame = roce(right, ip)
        kind = r.randrange(12)
        if kind == 0:  # by another port, in the right one's name
            return (*elsewhere, frame)
        if kind == 1:
            return (*there, with_icrc(frame, r.randrange(1 << 32)))
        if kind == 2:
            wrong = (
                {"pad": r.randrange(1, 4)}
                if r.random() < 0.5
                else {"lanes": lanes[: r.randrange(self.lanes)]}
            )
            return (*there, roce(replace(right, **wrong), ip))
        if kind == 3:
            opcode = r.choice([LAST_IMMEDIATE, ONLY + 1, LAST_INVALIDATE, LAST_INVALIDATE + 1])
            return (*there, roce(replace(right, opcode=opcode), ip))
        if kind == 4:  # other connections
            return (*there, roce(replace(right, qpn=r.randrange(1 << 24), icrc=r.choice([None, 0])), ip))
        if kind == 5:
            other_opcode = Rc(
                r.choice([CNP, READ_REQUEST, 0x0A, ACKNOWLEDGE]), 0x777, 1, payload=bytes(r.randrange(80))
            )
            return (*there, roce(other_opcode, Ip(src=own.address, dst=other.address)))
        if kind == 6:
            cnp = Rc(CNP, worker.own.sending, payload=bytes(16), congestion=0x40)
            return (
                *self.places[self._child(worker.successor)],
                roce(cnp, Ip(src=worker.successor.address, dst=worker.own.address)),
            )
        if kind == 7:  # an acknowledgment by a sender without a right to it
            return (
                *elsewhere,
                acknowledgment(worker.own.sending, psn, Ip(src=own.address, dst=worker.own.address)),
            )
        if kind == 8:  # in the protocol's own form
            header = Netfold(
                0, TREE, self.epoch, 0, r.randrange(SLOTS), child, lanes, reserved=r.randrange(256)
            )
            return (*there, gradient(header, Ip(src=own.address, dst=ROOT), port=UDP_PORT))
        if kind == 9:
            return (*there, frame[: r.randrange(14, len(frame))])
        if kind == 10:
            hidden = {"options": bytes(4)} if r.random() < 0.5 else {"flags_and_offset": 0x2000}
            return (*there, roce(right, replace(ip, **hidden)))
        out = bytearray(frame)
        place = r.choice([*range(IP_AT, PSN_AT - 4), r.randrange(PAYLOAD_AT, len(out))])
        out[place] ^= 1 << r.randrange(8)
        changed_for_nothing = place in (
            15,
            22,
            40,
            41,
            46,
        )  # what the ICRC does not cover, and the header checksum does
        return (*elsewhere, bytes(out)) if changed_for_nothing else (*there, bytes(out))

    def _child(self, peer: Peer) -> int:
        return next(c for c, p in self.peers.items() if p == peer)

    # ---- what has to hold -------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        return all(worker.done for worker in self.workers.values())

    def finish(self) -> None:
        """No more losses: the timers alone bring all that is missing."""
        self.flying.clear()
        for _ in range(4 * next(iter(self.workers.values())).messages.chunks):
            if self.done:
                break
            for worker in self.workers.values():
                worker.time_out()
                worker.told = False
                while worker.may_send():
                    self.send(worker)
            while self.flying:
                self.arrive(*self.flying.pop(0))
        assert self.done, [(w.acknowledged, w.expected, w.messages.chunks) for w in self.workers.values()]
        assert self.overruns == 0
        for bench in self.benches:
            bench.check_counters(TREE)
