# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The oracle of a switch: what it has to do with a frame, byte for byte, from docs/reference/protocol.md and the slot
pool. It is the other side of every comparison. It shares no code with the P4 program and reads no table entry."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass

import numpy as np

from netfold.controller.switches.tables import CPU_PORT, MANAGEMENT_PORT
from netfold.p4src.manifest import lanes_with
from netfold.p4src.tools.p4build import CHILDREN
from netfold.protocol.wire import (
    FLAGS,
    LANE_MAX,
    LANE_MIN,
    PORT_FIRST,
    PORT_LAST,
    VERSION,
    Flag,
    Kind,
    Verdict,
)
from tests.dataplane.device import Frames
from tests.dataplane.frames import (
    ARP,
    CE,
    ECT0,
    IP_AT,
    IPV4,
    LANES_AT,
    NETFOLD_AT,
    UDP,
    UDP_AT,
    checksum,
    looks_like_netfold,
    looks_targeted,
    target_of,
)
from tests.dataplane.node import MANAGED, ArpAnswer, Child, Management, Neighbor, Pass, Route, Setting, TreeAt
from tests.dataplane.roce_frames import ROCE_PORT
from tests.dataplane.roce_node import RoceHost, RoceWorker
from tests.dataplane.roce_oracle import Contribution, RoceLeaf
from tests.dataplane.router_oracle import QUOTED_BYTES, Router, is_icmp_error, with_checksum
from tests.quorum_oracle import QuorumPool
from tests.slot_oracle import SlotOutcome, SlotPool, SlotState, Sum

_SENT_BACK_TTL = 64
_EMPTY = SlotState(0, frozenset(), Flag(0), 0, np.zeros(1, np.int32))


@dataclass
class _Installed:
    """A tree on this switch and its slots."""

    at: TreeAt
    pool: SlotPool | None
    quorum: QuorumPool | None = None  # around `pool`


class Oracle:
    """One switch. `children`: bits of its bitmaps. `wraps`: its program has wide lanes, which wrap around.
    `verdicts` counts packets by (tree index, verdict)."""

    def __init__(
        self, lanes: int, *, children: int = CHILDREN, parses_options: bool = True, wraps: bool = False
    ) -> None:
        self._lanes = lanes
        self._children = children
        self._parses_options = parses_options
        self._wraps = wraps
        self._targets = parses_options  # as all programs for v1model do
        self._flags = FLAGS if parses_options and lanes in lanes_with("floats") else FLAGS & ~Flag.FLOATS
        self._flags |= Flag.DATA if self._targets else Flag(0)
        self._roce = RoceLeaf(lanes, wraps=wraps)
        self._trees: dict[int, _Installed] = {}
        self._router = Router(lanes, self._roce, parses_options=parses_options)
        self._managed: set[int] = set()  # ports
        self._memory: dict[int, SlotState] = {}  # what the registers hold, from any writer
        self.verdicts: Counter[tuple[int, int]] = Counter()

    @property
    def has_targets(self) -> bool:
        """Whether the program knows targeted packets."""
        return self._targets

    def emptied(self) -> Oracle:
        """One that knows no setting and has counted nothing; its registers hold what they did."""
        fresh = Oracle(
            self._lanes, children=self._children, parses_options=self._parses_options, wraps=self._wraps
        )
        fresh._memory = self._memory
        return fresh

    def claimed(self) -> list[int]:
        """Slots whose tag is some round's."""
        return [index for index, held in self._memory.items() if held.tag]

    def install(self, setting: Setting | RoceWorker | RoceHost) -> None:
        if isinstance(setting, TreeAt):
            self._trees[setting.tree] = self._installed(setting)
        elif isinstance(setting, Neighbor | Route | ArpAnswer):
            self._router.install(setting)
        elif isinstance(setting, Management):
            self._managed.add(setting.port)
        else:
            self._roce.install(setting)

    def _installed(self, at: TreeAt) -> _Installed:
        if at.quorum is None or not at.children:
            return _Installed(at, self._pool(at) if at.children else None)
        quorum = QuorumPool(at.slots, self._lanes, len(at.children), at.root, at.quorum, len(at.below))
        quorum.pool = self._pool(at)
        return _Installed(at, quorum.pool, quorum)

    def _pool(self, at: TreeAt) -> SlotPool:
        """On the registers as they are: what a slot holds is brought about by the packets that would have."""
        senders = len(at.children) + len(at.below)
        pool = SlotPool(at.slots, self._lanes, senders, at.root, wraps=self._wraps, targets=self._targets)
        for slot in range(at.slots):
            held = self._memory.get(at.base + slot, _EMPTY)
            lanes = np.broadcast_to(held.lanes, self._lanes)
            nothing = LANE_MIN if Flag.FLOATS in held.flags else 0  # -0 is what changes no float
            for bit in sorted(held.seen & set(range(senders))) if held.tag else ():
                pool.gradient(held.tag, slot, bit, held.flags, held.exponent, lanes)
                lanes = np.full(self._lanes, nothing, np.int32)
        return pool

    def remove(self, tree: int) -> None:
        del self._trees[tree]
        self._roce.forget(tree)

    def receive(self, port: int, frame: bytes) -> Frames:
        """Return all frames that leave, sorted."""
        if port == CPU_PORT:
            egress = struct.unpack_from(">H", frame)[0] >> 7
            frame = frame[2:]
            if egress:
                # a chip mends a checksum by what it has changed, here nothing; v1model writes it anew
                return [(egress, with_checksum(frame) if self._parses_options else frame)]
        if len(frame) < 14:
            return []
        kind = struct.unpack_from(">H", frame, 12)[0]
        if kind == ARP:
            answer = self._router.answer_arp(frame)
            if answer is None:
                return []
            return [(port, self._packet_in(0) + answer if port == CPU_PORT else answer)]
        if kind != IPV4 or len(frame) < 34:
            return []
        if self._parses_options and self._quotes_a_job(frame):
            self.verdicts[0, int(Verdict.MALFORMED)] += 1
            return []
        sent = self._roce.judge(port, frame)
        if isinstance(sent, Verdict):
            self.verdicts[0, int(sent)] += 1
            return []
        if isinstance(sent, Contribution):
            return sorted(self._netfold(sent.port, sent.frame, sent.answer_port))
        return sorted(
            self._netfold(port, frame, port) if self._is_netfold(frame) else self._router.forward(frame)
        )

    def _is_netfold(self, frame: bytes) -> bool:
        """UDP from a port of the range to the same one, also as a first fragment or behind options. Where options hide
        the ports, it could be."""
        words, offset = frame[IP_AT] & 15, struct.unpack_from(">H", frame, IP_AT + 6)[0] & 0x1FFF
        if frame[IP_AT] >> 4 != 4 or words < 5 or frame[IP_AT + 9] != UDP or offset:
            return False
        if words > 5 and not self._parses_options:
            return True
        at = IP_AT + 4 * words
        if len(frame) < at + 8:
            return False
        source, destination = struct.unpack_from(">HH", frame, at)
        return bool(source == destination and PORT_FIRST <= source <= PORT_LAST)

    def _quotes_a_job(self, frame: bytes) -> bool:
        """An ICMP error about a datagram of a job, or one that hides what it is about: in pieces, or behind options of
        what it quotes."""
        if not is_icmp_error(frame):
            return False
        at = IP_AT + 4 * (frame[IP_AT] & 15)
        if frame[IP_AT + 6] & 0x20:
            return True
        quote = frame[at + 8 : at + QUOTED_BYTES]
        if len(quote) < QUOTED_BYTES - 8 or quote[9] != UDP:
            return False
        if quote[0] & 15 != 5:
            return True
        ports = struct.unpack_from(">HH", quote, 20)
        if all(PORT_FIRST <= number <= PORT_LAST for number in ports):
            return True
        return ROCE_PORT in ports and self._roce.is_worker(frame[IP_AT + 16 : IP_AT + 20])

    def _netfold(self, port: int, frame: bytes, answer_port: int) -> Frames:
        index, verdict, leaving = self._judge(port, frame, answer_port)
        self.verdicts[index, int(verdict)] += 1
        return leaving

    def _judge(self, port: int, frame: bytes, answer_port: int) -> tuple[int, Verdict, Frames]:
        if not self._wellformed(frame):
            return 0, Verdict.MALFORMED, []
        first, _, tree, tag, slot, child = struct.unpack_from(">BBHIHH", frame, NETFOLD_AT)
        kind, epoch = Kind(first & 15), tag >> 20
        udp_port = struct.unpack_from(">H", frame, UDP_AT)[0]
        if kind in {Kind.READ, Kind.RESET}:
            if (tree, udp_port) == (MANAGED, MANAGEMENT_PORT) and port in self._managed:
                return self._manage(port, kind, frame)
            return 0, Verdict.UNADMITTED, []
        installed = self._trees.get(tree)
        if installed is None or udp_port != installed.at.udp_port:
            return 0, Verdict.UNADMITTED, []
        at = installed.at
        if kind is Kind.RESULT:
            return self._result(at, port, child, epoch, frame)
        bit = next((b for b, c in enumerate(at.children + at.below) if c == Child(port, child)), None)
        if bit is not None:
            if epoch != at.epoch:
                return tree, Verdict.STALE_EPOCH, []
            if slot >= at.slots:
                return tree, Verdict.BAD_SLOT, []
            return self._add(installed, bit, answer_port, frame)
        way = _way(at.passes, port, child)
        if way is None or epoch != at.epoch or slot >= at.slots:
            return 0, Verdict.UNADMITTED, []
        return self._onwards(at, Verdict.FORWARDED, (way.to_port,), frame)

    def _onwards(
        self, at: TreeAt, verdict: Verdict, ports: tuple[int, ...], frame: bytes
    ) -> tuple[int, Verdict, Frames]:
        """A packet that goes on as it is has one less to live."""
        ttl = frame[IP_AT + 8]
        if ttl <= 1:
            return at.tree, Verdict.EXPIRED, []
        if not ports:
            return at.tree, Verdict.UNROUTED, []
        out = bytearray(frame)
        out[IP_AT + 8] = ttl - 1
        if verdict is Verdict.FORWARDED:
            return at.tree, verdict, [self._deliver(port, _without_padding(out)) for port in ports]
        return at.tree, verdict, self._copies(at, ports, out)

    def _copies(self, at: TreeAt, ports: tuple[int, ...], frame: bytearray) -> Frames:
        """A result for all, cut where no worker wants its lanes."""
        target, owners = target_of(frame), {owner.rank: owner for owner in at.owners}
        owner = owners.get(target.owner) if target else None
        copies = []
        for port in ports:
            if target is None:
                is_cut = False
            elif target.all_but:
                is_cut = owner is not None and owner.port == port and owner.alone
            else:
                is_cut = owner is None or owner.port != port
            copies.append(self._deliver(port, _without_padding(_cut(frame) if is_cut else frame)))
        return copies

    def _wellformed(self, frame: bytes) -> bool:
        is_targeted = len(frame) >= LANES_AT and self._targets and target_of(frame) is not None
        has_lanes = not is_targeted or _ip_length(frame) != 28 + 16
        size = 16 + 4 * self._lanes * has_lanes
        more_fragments = frame[IP_AT + 6] & 0x20
        if frame[IP_AT] & 15 != 5 or more_fragments:
            return False
        length = struct.unpack_from(">H", frame, IP_AT + 2)[0]
        udp_length = struct.unpack_from(">H", frame, UDP_AT + 4)[0]
        if len(frame) < NETFOLD_AT + size or length != 28 + size or udp_length != 8 + size:
            return False
        if checksum(frame[IP_AT:UDP_AT]) != 0:
            return False
        return (
            looks_targeted(frame, has_lanes=has_lanes)
            if is_targeted
            else looks_like_netfold(frame, self._lanes)
        )

    def _result(
        self, at: TreeAt, port: int, child: int, epoch: int, frame: bytes
    ) -> tuple[int, Verdict, Frames]:
        if epoch != at.epoch:
            return 0, Verdict.UNADMITTED, []
        if port == at.results_from:
            return self._onwards(at, Verdict.MULTICAST, at.down, frame)
        way = _way(at.answers, port, child)
        if way is None:
            return 0, Verdict.UNADMITTED, []
        return self._onwards(at, Verdict.FORWARDED, (way.to_port,), frame)

    def _add(
        self, installed: _Installed, bit: int, answer_port: int, frame: bytes
    ) -> tuple[int, Verdict, Frames]:
        at, pool = installed.at, installed.pool
        assert pool is not None
        flags, _, tag, slot, _, exponent = struct.unpack_from(">BHIHHB", frame, NETFOLD_AT + 1)
        marked = Flag.CONGESTION if frame[IP_AT + 1] & 3 == CE else 0
        is_short = target_of(frame) is not None and not flags & Flag.DATA
        lanes = None if is_short else np.frombuffer(frame, ">i4", self._lanes, LANES_AT)
        count = 0
        if installed.quorum is not None and flags & Flag.QUORUM:
            outcome, count = installed.quorum.gradient(
                tag,
                slot,
                bit,
                flags & (self._flags | ~FLAGS) | marked,
                exponent,
                lanes,
                frame[NETFOLD_AT + 13],
            )
        else:
            outcome = pool.gradient(tag, slot, bit, flags & self._flags | marked, exponent, lanes)
        self._memory[at.base + slot] = pool.read(slot)
        if outcome.verdict is Verdict.FORWARDED:
            return self._onwards(at, Verdict.FORWARDED, (at.up[0],) if at.up else (), frame)
        if outcome.verdict is Verdict.SLOT_REUSED:
            assert lanes is not None
            told = Sum(Flag.QUORUM | Flag.SLOT_REUSED, exponent, lanes.astype(np.int32))
            outcome = SlotOutcome(Verdict.SLOT_REUSED, told)
        if outcome.packet is None:
            return at.tree, outcome.verdict, []
        out = _carrying(frame, outcome.packet)
        out[8 + IP_AT] = _SENT_BACK_TTL
        out[1 + IP_AT] = out[1 + IP_AT] & 0xFC | ECT0
        if outcome.packet.flags & Flag.QUORUM:
            out[NETFOLD_AT + 13] = count
        elif not (self._roce.knows and out[NETFOLD_AT + 13] & 0x80):
            out[NETFOLD_AT + 13] = 0  # reserved, but for what RoCE says
        if not at.root:
            if at.up is None:
                return at.tree, Verdict.UNROUTED, []
            struct.pack_into(">H", out, NETFOLD_AT + 10, at.up[1])
            return at.tree, outcome.verdict, [self._deliver(at.up[0], out)]
        out[NETFOLD_AT] = VERSION << 4 | Kind.RESULT
        out[IP_AT + 12 : IP_AT + 20] = out[IP_AT + 16 : IP_AT + 20] + out[IP_AT + 12 : IP_AT + 16]
        if outcome.verdict in (Verdict.RESULT_RESENT, Verdict.LATE, Verdict.SLOT_REUSED):
            return at.tree, outcome.verdict, [self._deliver(answer_port, out)]
        if not at.down:
            return at.tree, Verdict.UNROUTED, []
        return at.tree, outcome.verdict, self._copies(at, at.down, out)

    def _manage(self, port: int, kind: Kind, frame: bytes) -> tuple[int, Verdict, Frames]:
        slot = struct.unpack_from(">H", frame, NETFOLD_AT + 8)[0]
        state = self._memory.get(slot, _EMPTY)
        if kind is Kind.RESET:
            self._reset(slot)
        lanes = np.broadcast_to(state.lanes, self._lanes)
        is_saturated = (
            not self._wraps
            and Flag.FLOATS not in state.flags
            and bool(((lanes == LANE_MAX) | (lanes == LANE_MIN)).any())
        )
        out = _carrying(
            frame, Sum(state.flags | (Flag.OVERFLOW if is_saturated else Flag(0)), state.exponent, lanes)
        )
        struct.pack_into(">I", out, NETFOLD_AT + 4, state.tag)
        header = self._packet_in(sum(1 << bit for bit in state.seen), port)
        verdict = Verdict.SLOT_READ if kind is Kind.READ else Verdict.SLOT_RESET
        return 0, verdict, [(CPU_PORT, header + with_checksum(bytes(out)))]

    def _packet_in(self, bitmap: int, port: int = CPU_PORT) -> bytes:
        """Returns the header that the controller finds before a packet that it sent in itself, or by way of another
        port."""
        return struct.pack(">H", port << 7) + bitmap.to_bytes(self._children // 8, "big")

    def _deliver(self, port: int, frame: bytes | bytearray) -> tuple[int, bytes]:
        """The last step of a packet of the protocol; a RoCE worker gets it as RoCE."""
        return port, with_checksum(bytes(self._roce.delivered(port, self._router.address(port, frame))))

    def _reset(self, index: int) -> None:
        if index in self._memory:
            old = self._memory[index]
            self._memory[index] = SlotState(0, old.seen, old.flags, old.exponent, old.lanes)
        for installed in self._trees.values():
            at = installed.at
            if installed.pool is not None and at.base <= index < at.base + at.slots:
                installed.pool.reset(index - at.base)


def _way(ways: tuple[Pass, ...], port: int, child: int) -> Pass | None:
    return next((way for way in ways if (way.port, way.number) == (port, child)), None)


def _carrying(frame: bytes, sums: Sum) -> bytearray:
    """The frame with what a slot decides in place."""
    out = bytearray(frame)
    out[NETFOLD_AT + 1] = sums.flags
    out[NETFOLD_AT + 12] = sums.exponent
    lanes = sums.lanes.astype(">i4").tobytes()
    if target_of(frame) is not None:
        is_whole = bool(sums.flags & Flag.DATA)
        out[LANES_AT:] = lanes if is_whole else b""
        _set_length(out)
    else:
        out[LANES_AT : LANES_AT + len(lanes)] = lanes
    return out


def _ip_length(frame: bytes | bytearray) -> int:
    return int.from_bytes(frame[IP_AT + 2 : IP_AT + 4], "big")


def _set_length(frame: bytearray) -> None:
    struct.pack_into(">H", frame, IP_AT + 2, len(frame) - IP_AT)
    struct.pack_into(">H", frame, UDP_AT + 4, len(frame) - UDP_AT)


def _cut(frame: bytearray) -> bytearray:
    out = frame[:LANES_AT]
    _set_length(out)
    return out


def _without_padding(frame: bytearray) -> bytearray:
    """A targeted frame ends with its packet."""
    return frame[: IP_AT + _ip_length(frame)] if target_of(frame) is not None else frame
