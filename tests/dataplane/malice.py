# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packets of an attacker: any frame by the hosts that are the attacker's, and from the hosts of others whatever a
process without privileges gets out of their kernel. Directed at jobs that run, and at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from netfold.controller.switches.tables import MANAGEMENT_PORT
from netfold.protocol.wire import Kind
from tests.dataplane.disguises import Disguises
from tests.dataplane.frames import (
    ARP,
    NETFOLD_AT,
    Ip,
    Netfold,
    arp_request,
    ethernet,
    gradient,
    mac,
    udp,
)
from tests.dataplane.node import MANAGED

Frames = list[bytes]
_ANY_PORTS = (0, 53, 61439, 61440, 61441, 61450, 61695, 61696, 65535)


@dataclass(frozen=True)
class Target:
    """A job as others see it: all of this can be guessed or overheard. `members` are its hosts' addresses, the root's
    first, `children` the numbers of its senders."""

    tree: int
    udp_port: int
    epoch: int
    slots: int
    members: tuple[str, ...]
    children: tuple[int, ...]


@dataclass(frozen=True)
class Origin:
    """A host that the attacker sends from. `taken` are UDP ports that other processes of it hold: a process without
    privileges sends from none of them, nor with another address than the host's. Raw: the attacker is root there."""

    switch: int
    port: int
    address: str
    raw: bool
    taken: tuple[int, ...] = ()


class Attacker:
    """`own` is a job that is the attacker's, admitted like any other."""

    def __init__(self, targets: Sequence[Target], own: Target, lanes: int, random: Random) -> None:
        self._targets, self._own, self._lanes, self._random = targets, own, lanes, random
        self._ways: list[Callable[[Target], Frames]] = [
            self._gradient,
            self._result,
            self._managing,
            self._fragments,
            self._options,
            self._odd_lengths,
            self._foreign_ports,
            self._disguised,
            self._disguised,  # of many kinds
            self._address_resolution,
            self._changed_anywhere,
        ]

    def frames(self, origin: Origin) -> Frames:
        """One attempt, as what leaves the host one after the other."""
        target = self._random.choice([*self._targets, *self._targets, self._own])
        if not origin.raw:
            return self._of_a_process(origin, target)
        return self._random.choice(self._ways)(target)

    # ---- root on a host of its own ---------------------------------------------------------------

    def _header(self, target: Target) -> Netfold:
        r = self._random
        return Netfold(
            kind=Kind.GRADIENT,
            tree=target.tree,
            epoch=r.choice([target.epoch] * 4 + [target.epoch - 1, target.epoch + 1, 0, 4095]),
            round=r.choice([0, 0, 1, 2, 0xFFFFF]),
            slot=r.choice([r.randrange(target.slots)] * 4 + [target.slots, 4095, 0xFFFF]),
            child=r.choice([*target.children, 0, 0xFFFF]),
            lanes=[r.randrange(-(2**31), 2**31)] * self._lanes,
            flags=r.randrange(256),
            exponent=r.randrange(256),
            reserved=r.randrange(256),
        )

    def _ip(self, target: Target, *, down: bool) -> Ip:
        """Make an IP header as the job's packets have it: towards its root, or from there to a worker."""
        root, *workers = target.members
        worker = self._random.choice(workers)
        src, dst = (root, worker) if down else (worker, root)
        ttl = self._random.choice([64, 64, 64, 255, 2, 1, 0])
        return Ip(src=src, dst=dst, ttl=ttl, ecn=self._random.randrange(4))

    def _packet(self, target: Target) -> tuple[Netfold, Ip]:
        down = self._random.random() < 0.5
        kind = Kind.RESULT if down else Kind.GRADIENT
        return replace(self._header(target), kind=kind), self._ip(target, down=down)

    def _gradient(self, target: Target) -> Frames:
        to = self._random.choice(target.members)
        packet = replace(self._ip(target, down=False), dst=to)
        return [gradient(self._header(target), packet, port=target.udp_port)]

    def _result(self, target: Target) -> Frames:
        header = replace(self._header(target), kind=Kind.RESULT)
        return [gradient(header, self._ip(target, down=True), port=target.udp_port)]

    def _managing(self, target: Target) -> Frames:
        kind = self._random.choice([Kind.READ, Kind.RESET])
        header = replace(
            self._header(target), kind=kind, tree=self._random.choice([MANAGED, 0, target.tree, 2000])
        )
        port = self._random.choice([MANAGEMENT_PORT, target.udp_port])
        return [gradient(header, self._ip(target, down=self._random.random() < 0.5), port=port)]

    def _fragments(self, target: Target) -> Frames:
        """A whole datagram in two to four pieces, in any order, some of them twice or over one another."""
        header, packet = self._packet(target)
        data = udp(header.pack(), target.udp_port, target.udp_port)
        cuts = sorted(self._random.sample(range(8, len(data), 8), self._random.randint(1, 3)))
        pieces = list(zip([0, *cuts], [*cuts, len(data)], strict=True))
        if self._random.random() < 0.3:
            pieces.append((8, len(data)))
        identification = self._random.randrange(1 << 16)
        frames = []
        for first, end in pieces:
            more = 0x2000 if end < len(data) else 0
            at = replace(packet, identification=identification, flags_and_offset=more | first // 8)
            frames.append(ethernet(at.pack(data[first:end])))
        self._random.shuffle(frames)
        return frames

    def _options(self, target: Target) -> Frames:
        header, packet = self._packet(target)
        options = self._random.choice([b"\x01\x01\x01\x00", bytes(4), b"\x94\x04\x00\x00", bytes(40)])
        fragment = self._random.choice([0x4000, 0x4000, 0x2000])
        return [
            gradient(
                header, replace(packet, options=options, flags_and_offset=fragment), port=target.udp_port
            )
        ]

    def _odd_lengths(self, target: Target) -> Frames:
        """Lengths that lie, frames that are cut or longer than they say, lanes and versions that do not exist."""
        r = self._random
        header, packet = self._packet(target)
        changed = r.choice(
            [
                header,
                replace(header, version=r.randrange(16)),
                replace(header, kind=r.randrange(16)),
                replace(header, lane_count=r.choice([0, 1, self._lanes - 1, self._lanes + 1, 0xFFFF])),
                replace(header, lanes=[1] * r.choice([0, 1, self._lanes - 1, self._lanes + 1])),
            ]
        )
        body = changed.pack()
        length = r.choice([None, None, 0, 7, 8, len(body), len(body) + 7, len(body) + 9, 0xFFFF])
        total = r.choice([None, None, 0, 19, 20, 27, 28, 27 + len(body), 29 + len(body), 0xFFFF])
        packet = replace(packet, total_length=total, checksum=r.choice([None, None, None, 0, 0xFFFF]))
        datagram = udp(body, target.udp_port, target.udp_port, length, r.choice([0, 0xBEEF]))
        frame = ethernet(packet.pack(datagram))
        if r.random() < 0.4:
            return [frame[: r.randrange(14, len(frame))]]
        return [frame + bytes(r.choice([0, 1, 4, 60]))]

    def _foreign_ports(self, target: Target) -> Frames:
        header, packet = self._packet(target)
        ports = (target.udp_port, *_ANY_PORTS, *(t.udp_port for t in self._targets))
        source, to = self._random.choice(ports), self._random.choice(ports)
        return [ethernet(packet.pack(udp(header.pack(), source, to, sum_=self._random.randrange(1 << 16))))]

    def _disguised(self, target: Target) -> Frames:
        header, packet = self._packet(target)
        found = replace(packet, identification=self._random.randrange(1 << 16))
        return Disguises(found, header.pack(), target.udp_port, target.members, self._random).frames()

    def _address_resolution(self, target: Target) -> Frames:
        """Questions and answers in the names of others."""
        asked, answered = self._random.sample(target.members, 2)
        request = arp_request(asked, answered, "02:00:00:00:00:66", self._random.choice([1, 2, 0]))
        if self._random.random() < 0.3:
            return [ethernet(request[14 : self._random.randrange(14, len(request))], ARP)]
        return [mac("02:00:00:00:01:00") + request[6:]]

    def _changed_anywhere(self, target: Target) -> Frames:
        header, packet = self._packet(target)
        frame = bytearray(gradient(header, packet, port=target.udp_port))
        for _ in range(self._random.randint(1, 4)):
            place = self._random.randrange(12, min(len(frame), NETFOLD_AT + 16))
            frame[place] = self._random.randrange(256)
        return [bytes(frame)]

    # ---- a process beside a worker ---------------------------------------------------------------

    def _of_a_process(self, origin: Origin, target: Target) -> Frames:
        """The kernel puts the address in, cuts what is too long, and refuses a port that another process holds;
        options it takes from any process."""
        r = self._random
        source = r.choice([p for p in (*_ANY_PORTS[1:], target.udp_port, 5555) if p not in origin.taken])
        header, _ = self._packet(target)
        to = r.choice([*target.members, "10.255.0.1"])
        port = r.choice([target.udp_port, target.udp_port, source, r.choice(_ANY_PORTS)])
        datagram = udp(
            header.pack() + bytes(r.choice([0, 0, 0, 4, 1400])), source, port, sum_=r.choice([0, 1])
        )
        packet = Ip(src=origin.address, dst=to, ttl=r.choice([1, 2, 64, 255]), ecn=r.randrange(4))
        if r.random() < 0.2:
            return [ethernet(replace(packet, options=r.choice([bytes(4), bytes(40)])).pack(datagram))]
        if len(datagram) < 1200:
            return [ethernet(packet.pack(datagram))]
        cut = 8 * r.randrange(1, len(datagram) // 8)
        return [
            ethernet(replace(packet, flags_and_offset=0x2000).pack(datagram[:cut])),
            ethernet(replace(packet, flags_and_offset=cut // 8).pack(datagram[cut:])),
        ]
