# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Random set-ups and packets for the programs beside this file, one class each. A set-up is applied alike to
our pipeline and to BMv2: both have methods of the same names."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from softswitch.state.entities import (
    ActionCall,
    CloneSession,
    Exact,
    Group,
    GroupMember,
    GroupRef,
    Lpm,
    Match,
    Member,
    MemberRef,
    Range,
    Replica,
    TableEntry,
    Ternary,
)

PORTS = 4
Frame = tuple[int, bytes]


def number(rng: random.Random, width: int) -> int:
    """Often an edge: zero, one, all ones, the sign bit, and their neighbors."""
    full, sign = (1 << width) - 1, 1 << (width - 1)
    if rng.random() < 0.5:
        return rng.choice([0, 1, 2, full, full - 1, sign, sign - 1, sign + 1]) & full
    return rng.getrandbits(width) >> rng.choice([0, 0, rng.randrange(width)])


def pack(*fields: tuple[int, int]) -> bytes:
    """(value, width) pairs behind one another."""
    value = bits = 0
    for v, w in fields:
        value, bits = (value << w) | (v & ((1 << w) - 1)), bits + w
    return value.to_bytes(bits // 8, "big")


def by(value: int, width: int) -> bytes:
    return value.to_bytes((width + 7) // 8, "big")


def blob(rng: random.Random, low: int = 14, high: int = 60) -> bytes:
    return rng.randbytes(rng.randrange(low, high))


def nothing(_: Any, __: random.Random) -> None:
    """No entries."""


def _operands(rng: random.Random, widths: list[int], tail: int) -> Iterator[Frame]:
    """`tail` bytes for the results behind the operands: BMv2 has room for 512 bytes of new headers only."""
    for _ in range(60):
        fields = []
        for w in widths:
            a = number(rng, w)
            fields += [(a, w), (a if rng.random() < 0.1 else number(rng, w), w)]
        fields += [(rng.choice([0, 1, 5, 7, 8, 31, 32, 33, 63, 64, 65, 127, 200, 255]), 8)]
        fields += [(rng.getrandbits(w), w) for w in (3, 5, 1, 7, 33, 31)]
        yield 1, pack(*fields) + bytes(tail)


def arith_frames(rng: random.Random) -> Iterator[Frame]:
    yield from _operands(rng, [8, 16, 32, 48, 64, 72, 128], 16 * 46 + 7 + 43)


def arith_wide_frames(rng: random.Random) -> Iterator[Frame]:
    yield from _operands(rng, [520], 16 * 65 + 1 + 43)


def parsing_frames(rng: random.Random) -> Iterator[Frame]:
    for _ in range(150):
        kind = rng.choice([0, 1, 2, 3, 4, 5, 0x13, 0x25, 0x31, 0x33, 0x99, 0x98])
        body = bytearray(blob(rng, 14, 40))
        if kind == 2:
            body[0] = rng.choice([0, 8, 16, 64, 120, 255])
        elif kind in (1, 0x13) and rng.random() < 0.5:
            body[:2] = rng.choice([b"\x12\x34", b"\x00\x11", b"\x12\x3c"])
        elif kind == 3:
            body[: rng.randrange(1, 6)] = bytes(2 * rng.randrange(128) for _ in range(5))[: len(body)]
            body[rng.randrange(6)] |= 1
        elif kind == 4:
            body = bytearray(_unions(rng)) + body
        elif kind == 5:
            body[0] = rng.choice([0x00, 0x30, 0x70, 0xF0]) | body[0] & 15
        yield rng.randrange(1, PORTS + 1), bytes([kind]) + bytes(body)


def _unions(rng: random.Random) -> bytes:
    out = b""
    for _ in range(rng.randrange(4)):
        tag = rng.choice([1, 2, 3, 4, 5])
        out += bytes([tag]) + rng.randbytes({1: 1, 2: 2, 3: 4, 4: 1, 5: 2}[tag])
    return out + b"\x09"


def tables_setup(sw: Any, rng: random.Random) -> None:
    call = _random_call(rng)
    for i in range(20):
        wide = by(i % 5, 100)
        sw.table_insert(
            "MyIngress.exact_t",
            TableEntry(
                {"hdr.key.sel": Exact(by(i // 5, 8)), "hdr.key.wide": Exact(wide)},
                call("set_a", "set_f", "nothing"),
            ),
        )
    for length in (0, 1, 8, 12, 16, 24, 31, 32):
        value = 0x0A0B0C0D >> (32 - length) << (32 - length) if length else 0
        sw.table_insert(
            "MyIngress.lpm_t",
            TableEntry({"hdr.key.ip": Lpm(by(value, 32), length)} if length else {}, call("set_b")),
        )
        for sel in (1, 2):
            match: dict[str, Match] = {"hdr.key.sel": Exact(by(sel, 8))}
            if length:
                match["hdr.key.ip"] = Lpm(by(value, 32), length)
            sw.table_insert("MyIngress.lpm_exact_t", TableEntry(match, call("set_c", "nothing")))
    for i in range(30):
        match = {}
        if rng.random() < 0.7:
            mask = rng.choice([0xFFFFFFFF, 0xFFFF0000, 0xFF, 0x0F0F0F0F])
            match["hdr.key.ip"] = Ternary(by(0x0A0B0C0D & mask, 32), by(mask, 32))
        if rng.random() < 0.7:
            mask = rng.choice([0xFFFF, 1, 3, 0xF0])
            match["hdr.key.port"] = Ternary(by(rng.randrange(8) & mask, 16), by(mask, 16))
        if rng.random() < 0.4:
            match["hdr.key.opt"] = Exact(by(rng.randrange(3), 8))
        entry = TableEntry(match, call("set_a", "set_b", "leave"), 100 + i)
        sw.table_insert("MyIngress.ternary_t", entry)
    for i in range(20):
        low = rng.randrange(0x10000)
        match = {"hdr.key.low": Range(by(low, 16), by(rng.randrange(low, 0x10000), 16))}
        if rng.random() < 0.5:
            match["hdr.key.sel"] = Ternary(by(rng.randrange(4), 8), by(3, 8))
        sw.table_insert("MyIngress.range_t", TableEntry(match, call("set_a", "set_c"), 1 + i))
    for i in range(4):
        sw.table_insert(
            "MyIngress.valid_t",
            TableEntry({"hdr.o.$valid$": Exact(b"\1"), "hdr.key.sel[3:0]": Exact(by(i, 4))}, call("set_b")),
        )


def _random_call(rng: random.Random) -> Callable[..., ActionCall]:
    widths = {"set_a": {"v": 8}, "set_b": {"v": 8}, "set_c": {"v": 8, "w": 16}, "set_f": {"v": 100}}

    def call(*names: str) -> ActionCall:
        name = rng.choice(names)
        params = {p: by(rng.getrandbits(w), w) for p, w in widths.get(name, {}).items()}
        return ActionCall(f"MyIngress.{name}", params)

    return call


def tables_frames(rng: random.Random) -> Iterator[Frame]:
    for _ in range(150):
        ip = 0x0A0B0C0D ^ (rng.getrandbits(32) >> rng.randrange(33))
        wide = rng.choice([rng.randrange(6), rng.getrandbits(100)])
        yield 1, pack((rng.randrange(9), 8), (ip, 32), (rng.randrange(8), 16), (rng.getrandbits(16), 16),
                      (rng.randrange(4), 8), (wide, 100), (0, 4)) + blob(rng)  # fmt: skip


def profiles_setup(sw: Any, rng: random.Random) -> None:
    for i in range(1, 9):
        sw.member_insert("MyIngress.selector", Member(i, ActionCall("MyIngress.choose", {"v": by(i, 8)})))
        sw.member_insert("MyIngress.profile", Member(i, ActionCall("MyIngress.plain", {"v": by(i * 3, 8)})))
    for g in range(1, 5):
        members = [GroupMember(m) for m in sorted(rng.sample(range(1, 9), g))]
        sw.group_insert("MyIngress.selector", Group(g, members))
        sw.table_insert("MyIngress.by_hash", TableEntry({"hdr.key.group": Exact(by(g, 8))}, GroupRef(g)))
    sw.table_insert("MyIngress.by_hash", TableEntry({"hdr.key.group": Exact(by(9, 8))}, MemberRef(2)))
    for g in range(1, 5):
        sw.table_insert(
            "MyIngress.by_member", TableEntry({"hdr.key.group": Exact(by(g, 8))}, MemberRef(g + 1))
        )


def profiles_frames(rng: random.Random) -> Iterator[Frame]:
    for _ in range(100):
        yield 1, bytes([rng.choice([1, 2, 3, 4, 9, 10])]) + rng.randbytes(10) + bytes(2) + blob(rng)


def hashes_frames(rng: random.Random) -> Iterator[Frame]:
    for _ in range(80):
        yield 1, bytes([rng.randrange(4)]) + rng.randbytes(2 + 4 + 6 + 9) + blob(rng, 0, 70)


def state_setup(sw: Any, _: random.Random) -> None:
    for op in range(3):
        sw.table_insert(
            "MyIngress.direct", TableEntry({"hdr.i.op": Exact(by(op, 8))}, ActionCall("MyIngress.hit"))
        )


def state_frames(rng: random.Random) -> Iterator[Frame]:
    return _state_frames(rng, [0, 1, 2, 14, 15])


def state_out_of_range_frames(rng: random.Random) -> Iterator[Frame]:
    return _state_frames(rng, [0, 1, 2, 15, 16, 200])


def _state_frames(rng: random.Random, indexes: list[int]) -> Iterator[Frame]:
    for _ in range(150):
        index = rng.choice(indexes)
        yield 1, pack((rng.randrange(4), 8), (index, 8), (number(rng, 80), 80)) + blob(rng, 2, 30)


def copies_setup(sw: Any, _: random.Random) -> None:
    sw.clone_insert(CloneSession(5, [Replica(3, 1)]))
    sw.clone_insert(CloneSession(6, [Replica(4, 7)]))
    sw.clone_insert(CloneSession(9, [Replica(1, 1), Replica(2, 2)]))
    sw.multicast_insert(1, [Replica(1, 1), Replica(2, 2), Replica(3, 3)])
    sw.multicast_insert(2, [Replica(4, 2)])


def copies_frames(rng: random.Random) -> Iterator[Frame]:
    for _ in range(120):
        op = rng.getrandbits(8) & rng.getrandbits(8)
        egress = rng.getrandbits(6) & rng.getrandbits(6)
        if egress & 1:  # the clone would read the command from an invalid header
            egress &= 0x1F
        if egress & 4:  # recirculation with many copies, or of other bytes as the command, does not end soon
            op, egress = op & 0xBC, egress & 0x1F
        yield (
            rng.randrange(1, 5),
            pack((op, 8), (egress, 8), (rng.randrange(1, 5), 16), (rng.randrange(3), 16), (0, 16))
            + blob(rng, 20, 50),
        )


def validity_frames(rng: random.Random) -> Iterator[Frame]:
    for top in range(4):
        for op in range(11):
            for index in (0, 1, 2, 3):
                body = rng.randbytes(4) * 2 if rng.random() < 0.3 else rng.randbytes(8)
                yield 1, bytes([top << 6 | op, index]) + body + blob(rng, 8, 20)


def router_setup(sw: Any, rng: random.Random) -> None:
    seen: set[tuple[int, int]] = set()
    for i in range(40):
        length = rng.randrange(8, 33)
        value = (0x0A000000 | rng.getrandbits(24)) >> (32 - length) << (32 - length)
        call = ActionCall(
            "MyIngress.route", {"nexthop": by(4 * (i % 3), 8), "count": by(rng.randrange(1, 5), 8)}
        )
        if (value, length) not in seen:
            seen.add((value, length))
            sw.table_insert("MyIngress.routes", TableEntry({"hdr.ip.dst": Lpm(by(value, 32), length)}, call))
    for n in range(12):
        call = ActionCall("MyIngress.forward", {"port": by(1 + n % 4, 9), "dst": by(0x020000000000 + n, 48)})
        sw.table_insert("MyIngress.nexthops", TableEntry({"meta.nexthop": Exact(by(n, 8))}, call))


def router_frames(rng: random.Random) -> Iterator[Frame]:
    for _ in range(120):
        header = bytearray(pack((4, 4), (rng.choice([5, 5, 5, 6]), 4), (0, 8), (40, 16),
        (rng.getrandbits(16), 16), (0, 16),
                                (rng.choice([0, 1, 2, 64]), 8), (rng.choice([6, 17, 1]), 8), (0, 16),
                                (rng.getrandbits(32), 32), (0x0A000000 | rng.getrandbits(24), 32)))  # fmt: skip
        total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, 20, 2))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        header[10:12] = by((~total & 0xFFFF) ^ (rng.random() < 0.1), 16)
        kind = rng.choice([b"\x08\x00"] * 5 + [b"\x86\xdd"])
        yield rng.randrange(1, 5), rng.randbytes(12) + kind + bytes(header) + blob(rng, 0, 30)


def lanes_frames(rng: random.Random) -> Iterator[Frame]:
    """Positive sums only: BMv2 reads an int<32> register without its sign (see softswitch/README.md)."""
    for _ in range(120):
        lanes = [(rng.choice([0, 1, 0x3FFFFFFF, 0x7FFFFFFF, rng.getrandbits(31)]), 32) for _ in range(32)]
        yield (
            1,
            rng.randbytes(12)
            + b"\x88\xb5"
            + pack((rng.randrange(4), 16), (rng.random() < 0.3, 8), (0, 8), *lanes),
        )


CASES: dict[str, tuple[Callable[[Any, random.Random], None], Callable[[random.Random], Iterator[Frame]]]] = {
    "arith": (nothing, arith_frames),
    "arith_wide": (nothing, arith_wide_frames),
    "parsing": (nothing, parsing_frames),
    "tables": (tables_setup, tables_frames),
    "profiles": (profiles_setup, profiles_frames),
    "hashes": (nothing, hashes_frames),
    "state": (state_setup, state_frames),
    "copies": (copies_setup, copies_frames),
    "validity": (nothing, validity_frames),
    "router": (router_setup, router_frames),
    "lanes": (nothing, lanes_frames),
    "lanes_ternary": (nothing, lanes_frames),
}
