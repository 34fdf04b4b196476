# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""RoCE's form of a packet, as scapy and Wireshark read and write it."""

from __future__ import annotations

import json
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from netfold.protocol.wire import Kind
from netfold.traffic.scapy_netfold import Netfold
from netfold.traffic.scapy_roce import lanes_of, send
from tests.dataplane import frames, roce_frames
from tests.golden.make import pcap
from tests.golden.wireshark import dissect

LANES = [1, -1, 2**31 - 1, -(2**31), *range(60)]
BY_HAND = roce_frames.roce(
    roce_frames.Rc(roce_frames.LAST, 0x123456, 5, LANES, ack_request=True),
    frames.Ip(dst="10.0.0.2", ecn=0, flags_and_offset=0x4000),
)


def test_scapy_makes_what_is_made_by_hand():
    ip = IP(src="10.0.0.1", dst="10.0.0.2", flags="DF", id=0)
    packet = (
        ip / UDP(sport=0xC000, dport=4791, chksum=0) / send(0x123456, 0xFFFFFF, 6, LANES, 2, ack_request=True)
    )
    assert bytes(packet) == BY_HAND[14:]


def test_scapy_reads_the_lanes():
    assert lanes_of(Ether(BY_HAND)) == tuple(LANES)
    assert lanes_of(Ether(roce_frames.acknowledgment(1, 2, frames.Ip()))) is None


def test_the_header_between_switches_says_what_roce_said():
    header = frames.Netfold(Kind.RESULT, lanes=[0] * 32, reserved=0x80 | 0x40 | roce_frames.LAST)
    layer = Ether(frames.gradient(header))[Netfold]
    assert (layer.roce, layer.ack_request, layer.solicited, layer.opcode) == (1, 1, 0, roce_frames.LAST)


def test_wireshark_shows_both(tmp_path: Path):
    header = frames.Netfold(Kind.RESULT, lanes=[0] * 32, reserved=0x80 | 0x20 | roce_frames.ONLY)
    capture = tmp_path / "roce.pcap"
    capture.write_bytes(pcap([BY_HAND, frames.gradient(header)]))
    sent, result = dissect(capture, "--disable-protocol", "rpcordma")
    bth = json.dumps(sent["infiniband"])
    assert '"infiniband.bth.destqp": "0x123456"' in bth
    assert '"infiniband.bth.psn": "5"' in bth
    assert "Malformed" not in json.dumps(sent)
    (lanes,) = (value for value in sent["netfold"].values() if "netfold.lane" in value)
    assert list(map(int, lanes["netfold.lane"])) == LANES
    shown = result["netfold"]
    assert (shown["netfold.roce"], shown["netfold.roce.solicited"], shown["netfold.roce.opcode"]) == (
        "1",
        "1",
        "4",
    )
