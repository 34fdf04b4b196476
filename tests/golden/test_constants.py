# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The numbers of the wire have one source, protocol/wire.yaml. Files generated from it are up to date.
P4's header, scapy's layer and the controller's packets, written by hand, are compared with the picture in
docs/reference/protocol.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netfold.controller.switches import management, tables
from netfold.p4src.tools.p4build import REPOSITORY
from netfold.protocol import generate, wire
from netfold.protocol.wire import Flag, Kind
from netfold.traffic.scapy_netfold import Netfold

LANES = 32
TYPES = REPOSITORY / "p4src/common/types.p4"
WIRE = REPOSITORY / "p4src/common/wire.p4"
HEADERS = REPOSITORY / "p4src/common/headers.p4"

FIELDS = {  # bits from the start of the header, and how many
    "version": (0, 4),
    "kind": (4, 4),
    "overflow": (8, 1),
    "congestion": (9, 1),
    "quorum": (10, 1),
    "seal": (11, 1),
    "slot_reused": (12, 1),
    "floats": (13, 1),
    "data": (14, 1),
    "tree": (16, 16),
    "epoch": (32, 12),
    "round": (44, 20),
    "slot": (64, 16),
    "child": (80, 16),
    "exponent": (96, 8),
    "count": (105, 7),
    "lanes": (112, 16),
}
"""By hand from the picture in docs/reference/protocol.md, section 2."""


def without_comments(path: Path) -> str:
    return re.sub(r"//.*|/\*.*?\*/", "", path.read_text(), flags=re.DOTALL if path.suffix == ".h" else 0)


def test_generated_files_are_up_to_date():
    assert generate.stale() == [], "run `make wire`"


def test_a_file_with_another_number_is_stale(tmp_path: Path):
    for target in generate.TARGETS:
        copy = tmp_path / target.path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((REPOSITORY / target.path).read_text())
    header = tmp_path / "traffic/engine/wire/header.h"
    header.write_text(header.read_text().replace("FLAG_OVERFLOW = 0x80", "FLAG_OVERFLOW = 0x81"))
    assert generate.stale(tmp_path) == ["traffic/engine/wire/header.h"]
    generate.write(tmp_path)
    assert generate.stale(tmp_path) == []


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
        "slot_reused": int(bool(int(record["flags"]) & Flag.SLOT_REUSED)),
        "floats": int(bool(int(record["flags"]) & Flag.FLOATS)),
        "data": int(bool(int(record["flags"]) & Flag.DATA)),
        "count": int(record["reserved"]) & wire.COUNT_MAX,
        "epoch": epoch,
        "round": round_,
        **{name: int(record[name]) for name in ("tree", "slot", "child", "exponent", "lanes")},
    } == sample


def test_p4_has_the_same_header():
    text = without_comments(TYPES) + without_comments(WIRE)
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
    flags = ("overflow", "congestion", "quorum", "seal", "slot_reused", "floats", "data")
    split = (*flags, "epoch", "round", "count")
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


def test_the_controller_packs_the_same_header():
    packed = management.slot_packet(
        Kind.READ,
        tree=0x1234,
        slot=0x5678,
        request=0x9ABC,
        sender=management.IPv4Address("10.0.0.1"),
        lanes=LANES,
    )
    packet = wire.Packet.parse(packed[wire.FRAME_OVERHEAD_BYTES :])
    assert packet == wire.Packet(Kind.READ, 0x1234, 0, 0, 0x5678, 0x9ABC, (0,) * LANES)
    assert wire.PORT_FIRST <= tables.MANAGEMENT_PORT <= wire.PORT_LAST


@pytest.mark.parametrize(
    "name", ["overflow", "congestion", "quorum", "seal", "slot_reused", "floats", "data"]
)
def test_a_flag_is_one_bit(name: str):
    first, bits = FIELDS[name]
    assert bits == 1
    assert Flag[name.upper()] == 1 << (15 - first)
