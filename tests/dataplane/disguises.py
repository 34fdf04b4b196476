# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job's datagram as a switch does not expect it: in other layers, in pieces that do not fit, to and from addresses
that are no job's, and other protocols about it. One frame or a few, each of which has to count as what it is."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.dataplane.frames import ARP, IPV4, TCP, UDP, Ip, arp_request, ethernet, ip, udp

Frames = list[bytes]
VLAN, QINQ, OLD_QINQ, MPLS, IPV6, PAUSE, LLDP, EAPOL = (
    *(0x8100, 0x88A8, 0x9100),
    *(0x8847, 0x86DD, 0x8808, 0x88CC, 0x888E),
)
MORE, RESERVED = 0x2000, 0x8000  # of the field of flags and offset
NOBODYS = ("127.0.0.1", "0.0.0.0", "10.255.255.255", "224.0.0.1", "255.255.255.255")
MACS = (
    *("01:00:5e:00:00:01", "01:80:c2:00:00:00", "33:33:00:00:00:01", "ff:ff:ff:ff:ff:ff"),
    *("00:00:00:00:00:00", "02:00:00:00:01:00", "02:00:00:00:01:01"),
)


@dataclass(frozen=True)
class Disguises:
    """Disguises of one packet of a job: `packet` and `body` are what is right, `members` the addresses of the job's
    hosts."""

    packet: Ip
    body: bytes
    port: int
    members: Sequence[str]
    random: Random

    def frames(self) -> Frames:
        ways: list[Callable[[], Frames]] = [
            *(self._tagged, self._in_another_layer, self._in_ipv6, self._to_others_and_to_all),
            *(self._other_versions_and_protocols, self._routed_by_its_source, self._odd_pieces),
            *(
                self._longer_than_it_says,
                self._icmp_about_it,
                self._arp_request,
                self._link_control,
                self._noise,
            ),
        ]
        return self.random.choice(ways)()

    def _datagram(self) -> bytes:
        return udp(self.body, self.port, self.port, sum_=self.random.choice([0, 0xFFFF, 0xBEEF]))

    def _whole(self) -> bytes:
        return self.packet.pack(self._datagram())

    def _tagged(self) -> Frames:
        tag = struct.pack(">HH", self.random.choice([0, 1, 4095, 0xE001]), IPV4)
        if self.random.random() < 0.3:
            return [ethernet(struct.pack(">HH", 1, VLAN) + tag + self._whole(), QINQ)]
        return [ethernet(tag + self._whole(), self.random.choice([VLAN, QINQ, OLD_QINQ]))]

    def _in_another_layer(self) -> Frames:
        snap = b"\xaa\xaa\x03\x00\x00\x00\x08\x00" + self._whole()
        return [
            self.random.choice(
                [
                    ethernet(struct.pack(">I", 0x0001_0140) + self._whole(), MPLS),
                    ethernet(snap, len(snap)),
                    ethernet(replace(self.packet, protocol=4).pack(self._whole())),
                    ethernet(struct.pack(">HH", 0, 0) + self._whole(), LLDP),
                ]
            )
        ]

    def _in_ipv6(self) -> Frames:
        source, to = (bytes(10) + b"\xff\xff" + ip(member) for member in (self.members[1], self.members[0]))
        data = self._datagram()
        plain = struct.pack(">IHBB", 6 << 28, len(data), UDP, 64) + source + to + data
        fragment = struct.pack(">BBHI", UDP, 0, 1, 7)
        first = struct.pack(">IHBB", 6 << 28, len(data) + 8, 44, 64) + source + to + fragment + data
        return [ethernet(self.random.choice([plain, first, self._whole()]), IPV6)]

    def _to_others_and_to_all(self) -> Frames:
        r = self.random
        if r.random() < 0.5:
            return [ethernet(self._whole(), src=r.choice(MACS), dst=r.choice(MACS))]
        there = (self.packet.src, self.packet.dst, self.members[0])
        addresses = replace(self.packet, src=r.choice([*there, *NOBODYS]), dst=r.choice([*there, *NOBODYS]))
        return [ethernet(addresses.pack(self._datagram()))]

    def _other_versions_and_protocols(self) -> Frames:
        r = self.random
        changed = r.choice(
            [
                replace(self.packet, version=r.randrange(16)),
                replace(self.packet, ihl=r.randrange(16)),
                replace(self.packet, protocol=r.choice([TCP, 136, 47])),
            ]
        )
        return [ethernet(changed.pack(self._datagram()))]

    def _routed_by_its_source(self) -> Frames:
        """Loose and strict, by a recorded route, with timestamps and what is no option."""
        to = ip(self.members[0])
        options = self.random.choice(
            [
                b"\x83\x07\x04" + to + b"\x00",
                b"\x89\x07\x04" + to + b"\x00",
                b"\x07\x07\x04" + bytes(5),
                b"\x44\x08\x05" + bytes(5),
                b"\x82\x0b" + bytes(10),
            ]
        )
        flags = self.random.choice([0, MORE, MORE | 1, 1, 0x1FFF, RESERVED])
        return [
            ethernet(replace(self.packet, options=options, flags_and_offset=flags).pack(self._datagram()))
        ]

    def _odd_pieces(self) -> Frames:
        """At offsets that nothing was cut at, less than a header long, or one over the other's header (RFC 1858)."""
        r, data = self.random, self._datagram()
        if r.random() < 0.5:
            flags = r.choice([1, 2, 3, 17, MORE | 1, MORE | 3, 0x1FFF, RESERVED, 0xE000, 0x6000])
            start = r.choice([0, 1, 7, 8, 9, 13])
            return [ethernet(replace(self.packet, flags_and_offset=flags).pack(data[start:]))]
        first = replace(self.packet, flags_and_offset=MORE).pack(data[: r.choice([1, 7, 8, 9, 16])])
        return [ethernet(first), ethernet(replace(self.packet, flags_and_offset=1).pack(data[8:]))]

    def _longer_than_it_says(self) -> Frames:
        room = bytes(self.random.choice([1300, 7800, 8600]))
        if self.random.random() < 0.5:
            return [ethernet(self._whole()) + room]
        return [ethernet(self.packet.pack(udp(self.body + room, self.port, self.port)))]

    def _icmp_about_it(self) -> Frames:
        """It goes another way, is too long, or does not arrive; or a message of any type and code."""
        r = self.random
        errors = [(5, 0), (5, 1), (3, 1), (3, 3), (3, 4), (11, 0), (12, 0), (4, 0)]
        kind, code = r.choice([*errors, (r.randrange(256), r.randrange(16))])
        quoted = replace(self.packet, options=r.choice([b"", b"", b"\x01" * 4])).pack(self._datagram())
        told = struct.pack(">BBH4s", kind, code, 0, ip("10.0.0.66")) + quoted[: r.choice([28, 28, 64, 12])]
        layer = replace(
            self.packet,
            protocol=1,
            options=r.choice([b"", b"", b"\x01" * 40]),
            flags_and_offset=r.choice([0, 0, MORE, 1]),
        )
        igmp = b"\x22\x00\x00\x00\x00\x00\x00\x01\x04\x00\x00\x00" + ip("239.1.1.1")
        joins = replace(self.packet, protocol=2, dst="224.0.0.22").pack(igmp)
        return [ethernet(r.choice([layer.pack(told), layer.pack(told), joins]))]

    def _arp_request(self) -> Frames:
        """Gratuitous: a member's address is said to be here; and questions of other sizes and protocols."""
        r, member = self.random, self.random.choice(list(self.members))
        gratuitous = arp_request(member, member, "02:00:00:00:00:66", r.choice([1, 2, 3, 8]))
        layers = (r.choice([1, 6, 0]), r.choice([IPV4, ARP]), r.choice([6, 8, 0]), r.choice([4, 16]), 1)
        odd = struct.pack(">HHBBH", *layers) + bytes(6) + ip(self.members[1]) + bytes(6) + ip(member)
        return [r.choice([gratuitous, ethernet(odd, ARP)])]

    def _link_control(self) -> Frames:
        kind = self.random.choice([PAUSE, LLDP, EAPOL, 0, 0x05FF])
        return [ethernet(bytes([0, 1, 255, 255]) + bytes(42), kind)]

    def _noise(self) -> Frames:
        r = self.random
        if r.random() < 0.5:
            return [ethernet(self._whole()[: r.choice([0, 1, 19, 20, 21, 27, 28, 29, 43, 44, 45])])]
        return [r.randbytes(r.randrange(14, 80))]
