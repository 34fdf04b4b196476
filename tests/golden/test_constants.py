# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The wire's constants stand in wire.py. P4, C, Lua and the protocol's page cannot read Python, and state them again;
here each is compared with it, so that no constant can change in one place alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netfold.controller.switches import admission_table, management
from netfold.traffic.packets import wire
from netfold.traffic.packets.wire import Flag, Kind, Verdict
from netfold.traffic.scapy_netfold import Netfold
from tools.p4build import REPOSITORY

LANES = 32
TYPES = REPOSITORY / "p4src/common/types.p4"
ARCH = REPOSITORY / "p4src/v1model/arch.p4"
QUORUM = REPOSITORY / "p4src/v1model/quorum.p4"
HEADERS = REPOSITORY / "p4src/common/headers.p4"
CORE_H, TREE_H = REPOSITORY / "traffic/engine/core.h", REPOSITORY / "traffic/engine/tree.h"
DISSECTOR = REPOSITORY / "tools/wireshark/netfold.lua"
PROTOCOL = REPOSITORY / "docs/protocol.md"

FIELDS = {  # bits from the start of the header, and how many
    "version": (0, 4),
    "kind": (4, 4),
    "overflow": (8, 1),
    "congestion": (9, 1),
    "quorum": (10, 1),
    "seal": (11, 1),
    "lapped": (12, 1),
    "floats": (13, 1),
    "tree": (16, 16),
    "epoch": (32, 12),
    "round": (44, 20),
    "slot": (64, 16),
    "child": (80, 16),
    "exponent": (96, 8),
    "count": (105, 7),
    "lanes": (112, 16),
}
"""By hand from the picture in docs/protocol.md, section 2."""


def without_comments(path: Path) -> str:
    return re.sub(r"//.*|/\*.*?\*/", "", path.read_text(), flags=re.DOTALL if path.suffix == ".h" else 0)


def p4_constants() -> dict[str, int]:
    """Every `const TYPE NAME = number;` of types.p4."""
    found = re.findall(r"const\s+[\w<>]+\s+(\w+)\s*=\s*(-?\w+)\s*;", without_comments(TYPES))
    return {name: int(value, 0) for name, value in found}


def p4_consts(path: Path, kind: str) -> dict[str, int]:
    """Every constant of that type, cast or not."""
    found = re.findall(rf"const\s+{kind}\s+(\w+)\s*=\s*(?:\(\w+\))?(\w+)\s*;", without_comments(path))
    return {name: int(value, 0) for name, value in found}


def p4_enum(name: str) -> dict[str, int]:
    (body,) = re.findall(rf"enum bit<\d+> {name} \{{(.*?)\}}", without_comments(TYPES), re.DOTALL)
    return {member: int(value) for member, value in re.findall(r"(\w+)\s*=\s*(\d+)", body)}


def test_the_record_has_the_fields_where_the_picture_has_them():
    sample = {name: (0x5A5A5A5A5A >> 3) & ((1 << bits) - 1) for name, (_, bits) in FIELDS.items()}
    number = sum(sample[name] << (128 - first - bits) for name, (first, bits) in FIELDS.items())
    record = wire.np.frombuffer(number.to_bytes(16, "big") + bytes(4), wire.packet(1))[0]
    epoch, round_ = wire.split_tag(int(record["tag"]))
    assert (wire.HEADER_BYTES, wire.packet(LANES).itemsize) == (16, 16 + 4 * LANES)
    assert {
        "version": int(record["version_kind"]) >> 4,
        "kind": int(record["version_kind"]) & 15,
        "overflow": int(bool(int(record["flags"]) & Flag.OVERFLOW)),
        "congestion": int(bool(int(record["flags"]) & Flag.CONGESTION)),
        "quorum": int(bool(int(record["flags"]) & Flag.QUORUM)),
        "seal": int(bool(int(record["flags"]) & Flag.SEAL)),
        "lapped": int(bool(int(record["flags"]) & Flag.LAPPED)),
        "floats": int(bool(int(record["flags"]) & Flag.FLOATS)),
        "count": int(record["reserved"]) & wire.COUNT_MAX,
        "epoch": epoch,
        "round": round_,
        **{name: int(record[name]) for name in ("tree", "slot", "child", "exponent", "lanes")},
    } == sample


def test_p4_states_the_same_numbers():
    constants = p4_constants()
    mask, ports = constants["NETFOLD_UDP_MASK"], constants["NETFOLD_UDP_PORTS"]
    assert constants["NETFOLD_VERSION"] == wire.VERSION
    assert (ports, ports | ~mask & 0xFFFF) == (wire.PORT_FIRST, wire.PORT_LAST)
    assert (constants["FLAG_OVERFLOW"], constants["FLAG_CONGESTION"]) == (Flag.OVERFLOW, Flag.CONGESTION)
    assert (constants["LANE_MIN"], constants["LANE_MAX"]) == (wire.LANE_MIN, wire.LANE_MAX)
    assert re.search(r"NETFOLD_BYTES\s*=\s*16 \+ 4 \* LANES;", TYPES.read_text())
    assert p4_enum("kind_t") == {kind.name: kind.value for kind in Kind}
    assert p4_enum("verdict_t") | p4_consts(QUORUM, "verdict_t") == {"NONE": 0} | {
        v.name: v.value for v in Verdict
    }
    assert p4_consts(ARCH, "flags_t")["FLAG_FLOATS"] == Flag.FLOATS
    assert p4_consts(QUORUM, "flags_t") == {
        f"FLAG_{flag.name}": flag.value for flag in (Flag.QUORUM, Flag.SEAL, Flag.LAPPED)
    }


def test_p4_has_the_same_header():
    text = without_comments(TYPES)
    widths = {name: int(n) for n, name in re.findall(r"(?:enum|typedef) bit<(\d+)>\s+(\w+)", text)}
    (body,) = re.findall(r"header netfold_t \{(.*?)\}", without_comments(HEADERS), re.DOTALL)
    at, found = 0, {}
    for kind, name in re.findall(r"(\S+)\s+(\w+);", body):
        literal = re.fullmatch(r"bit<(\d+)>", kind)
        bits = int(literal[1]) if literal else widths[kind]
        found[name] = (at, bits)
        at += bits
    assert at == 8 * wire.HEADER_BYTES
    assert found.pop("tag") == (32, 32)
    assert found.pop("flags") == (8, 8)
    assert found.pop("reserved") == (104, 8)
    split = ("overflow", "congestion", "quorum", "seal", "lapped", "floats", "epoch", "round", "count")
    assert found == {name: place for name, place in FIELDS.items() if name not in split}


def test_scapy_has_the_same_header():
    at, found = 0, {}
    for field in Netfold.fields_desc[:-1]:  # the lanes are a list
        bits = int(8 * field.sz)
        found[field.name] = (at, bits)
        at += bits
    assert at == 8 * wire.HEADER_BYTES
    shared = {
        name: place for name, place in FIELDS.items() if name != "count"
    }  # RoCE's fields lie there, too
    assert {name: place for name, place in found.items() if name in FIELDS} == shared
    assert found.keys() - FIELDS.keys() == {"reserved", "roce", "ack_request", "solicited", "opcode"}


def test_the_dissector_states_the_same_numbers():
    text = DISSECTOR.read_text()
    assert f'local PORTS = "{wire.PORT_FIRST}-{wire.PORT_LAST}"' in text
    assert f"local VERSION = {wire.VERSION}\n" in text
    assert f"local HEADER = {wire.HEADER_BYTES}\n" in text
    (kinds,) = re.findall(r"local KINDS = \{(.*)\}", text)
    assert {name: int(n) for n, name in re.findall(r'\[(\d+)\] = "(\w+)"', kinds)} == {
        kind.name: kind.value for kind in Kind
    }
    masks = dict(re.findall(r'ProtoField\.\w+\("netfold\.(\w+)",.*?(0x[0-9A-F]+)\)', text))
    places = {
        n: tuple(map(int, place)) for n, *place in re.findall(r"add\(f\.(\w+), buffer\((\d+), (\d+)\)", text)
    }
    found = {}
    for name, (at, size) in places.items():
        mask = int(masks.get(name, hex((1 << 8 * size) - 1)), 0)
        found[name] = (8 * at + 8 * size - mask.bit_length(), mask.bit_count())
    assert found == FIELDS


def test_c_states_the_same_numbers():
    text = without_comments(CORE_H) + without_comments(TREE_H)
    numbers = {name: int(value, 0) for name, value in re.findall(r"\b([A-Z_]+) ?=? (0x\w+|\d+)\b", text)}
    assert numbers["NF_HEADER_BYTES"] == wire.HEADER_BYTES
    assert 1 << numbers["ROUND_BITS"] == wire.ROUNDS
    assert numbers["VERSION_KIND_RESULT"] == wire.VERSION << 4 | Kind.RESULT
    assert (numbers["OVERFLOW"], numbers["CONGESTION"]) == (Flag.OVERFLOW, Flag.CONGESTION)
    (body,) = re.findall(r"struct header \{(.*?)\};", text, re.DOTALL)
    found = []
    for bits, names in re.findall(r"uint(\d+)_t ([\w, ]+);", body):
        found += [(name, int(bits) // 8) for name in names.split(", ")]
    record = wire.packet(1)
    fields = [(name, record[name].itemsize) for name in record.names or () if name != "lane"]
    assert found == fields


def test_the_controller_packs_the_same_header():
    packed = management.slot_packet(
        Kind.READ,
        mark=0x1234,
        slot=0x5678,
        request=0x9ABC,
        sender=management.IPv4Address("10.0.0.1"),
        lanes=LANES,
    )
    packet = wire.Packet.parse(packed[wire.FRAME_OVERHEAD_BYTES :])
    assert packet == wire.Packet(Kind.READ, 0x1234, 0, 0, 0x5678, 0x9ABC, (0,) * LANES)
    assert wire.PORT_FIRST <= admission_table.MANAGEMENT_PORT <= wire.PORT_LAST


def test_the_protocol_s_page_states_the_same_numbers():
    text = PROTOCOL.read_text()
    assert f"{wire.PORT_FIRST} ... {wire.PORT_LAST}" in text
    verdicts = re.findall(r"^\| (\d+) \| `(\w+)` \|", text[text.index("## 4. Verdicts") :], re.MULTILINE)
    assert {name: int(number) for number, name in verdicts} == {v.label: v.value for v in Verdict}
    (kinds,) = re.findall(r"^\| 0\.5 \| kind \| 4 \| (.*) \|$", text, re.MULTILINE)
    assert {name: int(number) for number, name in re.findall(r"(\d) ([A-Z]+)", kinds)} == {
        kind.name: kind.value for kind in Kind
    }


@pytest.mark.parametrize("name", ["overflow", "congestion", "quorum", "seal", "lapped", "floats"])
def test_a_flag_is_one_bit(name: str):
    first, bits = FIELDS[name]
    assert bits == 1
    assert Flag[name.upper()] == 1 << (15 - first)
