# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One golden capture, read by all that know the format: wire.py, the scapy layer and the Wireshark dissector."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

from netfold.protocol.wire import Packet, WireError
from netfold.traffic.scapy_netfold import Netfold
from tests.golden.make import GOLDEN, SUM, frames, pcap
from tests.golden.wireshark import dissect

MALFORMED = [
    "short gradient without a target",
    "wrong version",
    "unknown kind",
    "more lanes than there are",
    "header cut short",
]
WELLFORMED = [name for name in frames() if name not in {*MALFORMED, "another port"}]


def test_the_capture_is_what_the_format_says():
    assert GOLDEN.read_bytes() == pcap(list(frames().values())), (
        "run `python -m tests.golden.make` if it should be"
    )


def test_a_gradient_byte_by_byte():
    """By hand from docs/reference/protocol.md, section 2."""
    header = bytes.fromhex("10 00 0007 00300005 0009 0002 82 00 0020")
    assert frames()["gradient"][42:58] == header
    assert frames()["gradient"][58:74] == bytes.fromhex("00000001 ffffffff 7fffffff 80000000")


def test_targeted_packets_byte_by_byte():
    """By hand from docs/reference/protocol.md, sections 2 and 2.1."""
    found = {name: frame[42:] for name, frame in frames().items()}
    assert found["short gradient"] == bytes.fromhex("10 00 0007 00300000 0000 0002 82 00 8003")
    assert found["whole gradient of a gather"][:20] == bytes.fromhex(
        "10 02 0007 00300000 0000 0002 00 00 c003 00000001"
    )
    assert found["cut result"] == bytes.fromhex("11 02 0007 00300005 0009 0002 00 00 8003")


@pytest.mark.parametrize("name", WELLFORMED)
def test_the_wire_format_reads_and_writes_it(name: str):
    payload = frames()[name][42:]
    packet = Packet.parse(payload)
    if name != "largest fields":  # whose reserved bits are set, and not sent again
        assert packet.pack() == payload


@pytest.mark.parametrize("name", MALFORMED)
def test_the_wire_format_refuses_what_is_wrong(name: str):
    with pytest.raises(WireError):
        Packet.parse(frames()[name][42:])


@pytest.mark.parametrize("number", range(len(frames())))
def test_the_scapy_layer_reads_and_writes_it(number: int):
    name, frame = list(frames().items())[number]
    read = rdpcap(str(GOLDEN))[number]
    assert bytes(read) == frame
    assert bool(read.haslayer(Netfold)) is (name not in {"another port", "header cut short"})
    if name in WELLFORMED:
        layer, packet = read[Netfold], Packet.parse(frame[42:])
        assert (layer.kind, layer.tree, layer.epoch, layer.round) == (
            packet.kind,
            packet.tree,
            packet.epoch,
            packet.round,
        )
        assert (layer.slot, layer.child, layer.exponent) == (packet.slot, packet.child, packet.exponent)
        assert tuple(layer.lane) == packet.lane
        flags = (layer.overflow, layer.congestion, layer.quorum, layer.seal, layer.slot_reused, layer.floats)
        flags = (*flags, layer.data)
        assert sum(bit << 7 - place for place, bit in enumerate(flags)) == int(packet.flags)
        for packet_again in (read.copy(), Ether(bytes(read))):
            packet_again[UDP].remove_payload()
            assert bytes(packet_again / layer.copy())[42:] == frame[42:]


@pytest.fixture(scope="module")
def dissected() -> dict[str, dict[str, Any]]:
    """The layers of each packet, as tshark shows them."""
    return dict(zip(frames(), dissect(GOLDEN), strict=True))


def test_wireshark_shows_a_target(dissected: dict[str, dict[str, Any]]):
    shown = dissected["whole gradient of a gather"]["netfold"]
    assert (shown["netfold.owner"], shown["netfold.all_but"], shown["netfold.data"]) == ("3", "1", "1")


@pytest.mark.parametrize("name", [*WELLFORMED, "wrong version", "unknown kind", "more lanes than there are"])
def test_wireshark_shows_every_field(dissected: dict[str, dict[str, Any]], name: str):
    frame = frames()[name]
    shown = dissected[name]["netfold"]
    tag = int.from_bytes(frame[46:50], "big")
    assert {
        key: int(shown[f"netfold.{key}"]) for key in ("version", "kind", "tree", "epoch", "round", "slot")
    } == {
        "version": frame[42] >> 4,
        "kind": frame[42] & 15,
        "tree": int.from_bytes(frame[44:46], "big"),
        "epoch": tag >> 20,
        "round": tag & 0xFFFFF,
        "slot": int.from_bytes(frame[50:52], "big"),
    }
    assert int(shown["netfold.child"]) == int.from_bytes(frame[52:54], "big")
    assert int(shown["netfold.exponent"]) == frame[54]
    assert [shown["netfold.overflow"], shown["netfold.congestion"]] == [
        str(int(bool(frame[43] & bit))) for bit in (0x80, 0x40)
    ]


def test_wireshark_shows_the_lanes_as_signed_numbers(dissected: dict[str, dict[str, Any]]):
    (lanes,) = (value for value in dissected["gradient"]["netfold"].values() if "netfold.lane" in value)
    assert list(map(int, lanes["netfold.lane"])) == SUM


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("gradient", None),
        ("result, overflow and congestion", "netfold.overflow.set"),
        ("result, overflow and congestion", "netfold.congestion.set"),
        ("wrong version", "netfold.version.wrong"),
        ("unknown kind", "netfold.kind.unknown"),
        ("more lanes than there are", "netfold.lanes.wrong"),
        ("header cut short", "netfold.cut"),
        ("short gradient", None),
        ("whole gradient of a gather", None),
        ("cut result", None),
        ("short gradient without a target", "netfold.lanes.wrong"),
    ],
)
def test_wireshark_says_what_is_wrong(dissected: dict[str, dict[str, Any]], name: str, warning: str | None):
    text = json.dumps(dissected[name]["netfold"])
    assert ("_ws.expert" in text) is (warning is not None)
    assert warning is None or warning in text


def test_wireshark_leaves_other_ports_alone(dissected: dict[str, dict[str, Any]]):
    assert "netfold" not in dissected["another port"]
