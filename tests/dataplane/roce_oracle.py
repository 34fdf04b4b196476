# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The oracle of a leaf with RoCE: it translates RoCE, and results for those that speak it, by docs/reference/roce.md:
bytes in, bytes out."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from netfold.controller.features.roce.tables import HIDDEN_QPN, ROCE_SIDE, SOURCE_PORT
from netfold.p4src.manifest import lanes_with
from netfold.protocol.wire import LANE_MAX, VERSION, Flag, Kind, Verdict, make_tag
from tests.dataplane.frames import CE, ECT0, IP_AT, LANES_AT, NETFOLD_AT, UDP, UDP_AT, checksum, ip
from tests.dataplane.roce_frames import (
    BTH_AT,
    LAST_INVALIDATE,
    ONLY_IMMEDIATE,
    PAYLOAD_AT,
    PSN_AT,
    QPN_AT,
    ROCE_PORT,
    SUMMANDS,
    icrc,
)
from tests.dataplane.roce_node import RoceHost, RoceWorker

CHUNKS = 1 << 23  # of a connection
_NO_ROCE = 32  # lanes of the program that knows nothing of it


@dataclass(frozen=True)
class Contribution:
    """A worker's contribution in the protocol's own form, as if by `port`; answers to it alone leave by another one."""

    port: int
    answer_port: int
    frame: bytes


class RoceLeaf:
    """`forget` takes out what `install` put in. `wraps`: sums with O are delivered with all lanes at the limit."""

    def __init__(self, lanes: int, *, wraps: bool = False) -> None:
        self._lanes = lanes
        self._wraps = wraps
        self.knows = lanes != _NO_ROCE
        self._turns = lanes in lanes_with("floats")
        self._workers: list[RoceWorker] = []
        self._hosts: list[str] = []

    def install(self, setting: RoceWorker | RoceHost) -> None:
        if isinstance(setting, RoceWorker):
            self._workers.append(setting)
        else:
            self._hosts.append(setting.address)

    def forget(self, tree: int) -> None:
        self._workers = [w for w in self._workers if w.at.tree != tree]

    def judge(self, port: int, frame: bytes) -> Contribution | Verdict | None:
        """None: it is none of the jobs' business."""
        if not self.knows or not _to_roce(frame):
            return None
        shows = self._shows(frame)
        qpn = int.from_bytes(frame[QPN_AT : QPN_AT + 3], "big") if shows else HIDDEN_QPN
        source, destination = frame[IP_AT + 12 : IP_AT + 16], frame[IP_AT + 16 : IP_AT + 20]
        for worker in self._workers:
            to = worker.successor
            if (port, source, destination, qpn) == (
                worker.own.port,
                ip(worker.own.address),
                ip(to.address),
                to.receiving,
            ):
                return self._sent(worker, port, frame)
        for worker in self._workers:
            if destination == ip(worker.own.address) and qpn == worker.own.receiving:
                return Verdict.UNADMITTED
            if destination == ip(worker.own.address) and qpn == worker.own.sending:
                peer = worker.successor
                return None if (port, source) == (peer.port, ip(peer.address)) else Verdict.UNADMITTED
        return Verdict.MALFORMED if not shows and destination in map(ip, self._hosts) else None

    def is_worker(self, address: bytes) -> bool:
        """Return whether a RoCE worker of a job has the address (4 bytes)."""
        return self.knows and address in map(ip, self._hosts)

    def _shows(self, frame: bytes) -> bool:
        """Its BTH: the datagram is long enough, whole, and not behind options."""
        length = struct.unpack_from(">H", frame, UDP_AT + 4)[0]
        fragment = struct.unpack_from(">H", frame, IP_AT + 6)[0] & 0x3FFF
        return frame[IP_AT] & 15 == 5 and not fragment and length >= 20 and len(frame) >= PAYLOAD_AT

    def _whole(self, frame: bytes) -> bool:
        """A SEND with one packet's lanes and an ICRC."""
        lengths = (
            struct.unpack_from(">H", frame, IP_AT + 2)[0],
            struct.unpack_from(">H", frame, UDP_AT + 4)[0],
        )
        size = 16 + 4 * self._lanes
        return (
            lengths == (28 + size, 8 + size)
            and len(frame) >= BTH_AT + size
            and frame[BTH_AT] in SUMMANDS
            and frame[BTH_AT + 1] & 0x3F == 0  # pad count and version
        )

    def _sent(self, worker: RoceWorker, port: int, frame: bytes) -> Contribution | Verdict | None:
        opcode = frame[BTH_AT]
        if not self._whole(frame):
            is_send = opcode <= ONLY_IMMEDIATE or opcode in (LAST_INVALIDATE, LAST_INVALIDATE + 1)
            return Verdict.MALFORMED if is_send else None
        end = PAYLOAD_AT + 4 * self._lanes
        if (
            frame[end : end + 4] != icrc(frame[:end]).to_bytes(4, "little")
            or checksum(frame[IP_AT:UDP_AT]) != 0
        ):
            return Verdict.MALFORMED
        psn = int.from_bytes(frame[PSN_AT : PSN_AT + 3], "big")
        chunk = (psn - worker.first_psn) % (1 << 24)
        round_, slot = divmod(chunk, worker.at.slots)
        said = 0x80 | (frame[PSN_AT - 1] & 0x80) >> 1 | (frame[BTH_AT + 1] & 0x80) >> 2 | opcode
        header = struct.pack(
            ">BBHIHHBBH",
            VERSION << 4 | Kind.GRADIENT,
            Flag.FLOATS if worker.floats else 0,
            worker.at.tree,
            make_tag(worker.at.epoch if chunk < CHUNKS else 0, round_ & 0xFFFFF),
            slot,
            worker.child,
            0,
            said,
            self._lanes,
        )
        out = bytearray(frame)
        out[IP_AT + 16 : IP_AT + 20] = ip(worker.root_address)
        struct.pack_into(">H", out, IP_AT + 10, 0)
        struct.pack_into(">H", out, IP_AT + 10, checksum(bytes(out[IP_AT:UDP_AT])))
        struct.pack_into(">HH", out, UDP_AT, worker.at.udp_port, worker.at.udp_port)
        lanes = self._turned(frame[PAYLOAD_AT:end], worker.floats)
        made = bytes(out[:NETFOLD_AT]) + header + lanes + frame[end + 4 :]
        return Contribution(port | ROCE_SIDE, worker.successor.port, made)

    def delivered(self, port: int, frame: bytearray) -> bytearray:
        """A packet of the protocol that leaves by a port, as the worker there wants it."""
        udp_port, tree = (
            struct.unpack_from(">H", frame, UDP_AT)[0],
            struct.unpack_from(">H", frame, NETFOLD_AT + 2)[0],
        )
        worker = next(
            (w for w in self._workers if (w.own.port, w.at.udp_port, w.at.tree) == (port, udp_port, tree)),
            None,
        )
        said = frame[NETFOLD_AT + 13]
        if not self.knows or worker is None or frame[NETFOLD_AT] & 15 != Kind.RESULT:
            return frame
        if not said & 0x80 or said & 0x1F not in SUMMANDS:
            return frame
        tag, slot = struct.unpack_from(">IH", frame, NETFOLD_AT + 4)
        psn = (worker.expected_psn + (tag & 0xFFFFF) * worker.at.slots + slot) % (1 << 24)
        bth = struct.pack(
            ">BBHII", said & 0x1F, 0x40 | (said & 0x20) << 2, 0xFFFF, worker.own.receiving, (said & 0x40) << 25 | psn
        )  # fmt: skip
        out = bytearray(frame)
        out[IP_AT + 1] = CE if frame[NETFOLD_AT + 1] & 0x40 else ECT0
        out[IP_AT + 8] = 64
        out[IP_AT + 12 : IP_AT + 20] = ip(worker.predecessor.address) + ip(worker.own.address)
        struct.pack_into(">HH", out, UDP_AT, SOURCE_PORT, ROCE_PORT)
        end = LANES_AT + 4 * self._lanes
        lanes = bytes(out[LANES_AT:end])
        if self._wraps and frame[NETFOLD_AT + 1] & Flag.OVERFLOW:
            lanes = int(LANE_MAX).to_bytes(4, "big") * self._lanes
        lanes = self._turned(lanes, bool(frame[NETFOLD_AT + 1] & Flag.FLOATS))
        made = bytes(out[:NETFOLD_AT]) + bth + lanes
        return bytearray(made + icrc(made).to_bytes(4, "little") + bytes(out[end:]))

    def _turned(self, lanes: bytes, floats: bool) -> bytes:
        """Floats lie as in a little-endian host's memory."""
        return np.frombuffer(lanes, ">u4").astype("<u4").tobytes() if floats and self._turns else lanes

    def reads(self, frame: bytes) -> int | None:
        """How many bytes behind the IPv4 header are wanted of RoCE that is forwarded; None where it is none."""
        if not self.knows or not _to_roce(frame):
            return None
        if struct.unpack_from(">H", frame, IP_AT + 6)[0] & 0x3FFF or frame[IP_AT] & 15 != 5:
            return 8
        total, length = (
            struct.unpack_from(">H", frame, IP_AT + 2)[0],
            struct.unpack_from(">H", frame, UDP_AT + 4)[0],
        )
        size = 16 + 4 * self._lanes
        if (total, length) != (28 + size, 8 + size):
            return 8 if length < 20 else 20
        if len(frame) < PAYLOAD_AT or frame[BTH_AT] not in SUMMANDS or frame[BTH_AT + 1] & 0x3F:
            return 20
        return 8 + size


def _to_roce(frame: bytes) -> bool:
    """UDP to its port, also as a first fragment or behind options."""
    at = IP_AT + 4 * (frame[IP_AT] & 15)
    fragment = struct.unpack_from(">H", frame, IP_AT + 6)[0] & 0x1FFF
    if frame[IP_AT] >> 4 != 4 or at < UDP_AT or frame[IP_AT + 9] != UDP or fragment or len(frame) < at + 8:
        return False
    return bool(struct.unpack_from(">H", frame, at + 2)[0] == ROCE_PORT)
