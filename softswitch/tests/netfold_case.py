# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A random set-up and random packets for the netfold program itself: a root and an inner node on one switch, with
pass-through, relay and routed traffic beside them. Some chunks are targeted. See docs/reference/protocol.md."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from softswitch.state.entities import (
    ActionCall,
    Exact,
    Lpm,
    Match,
    Member,
    MemberRef,
    Replica,
    TableEntry,
    Ternary,
)

IN, OUT = "SwitchIngress.", "SwitchEgress."
LANES = 32
CHILDREN = 3
SLOTS = 8  # of each tree
EPOCH = 5
UDP_PORT = 0xF001
GRADIENT, RESULT = 0, 1
DATA, TARGETED, ALL_BUT, NO_OWNER = 0x02, 0x8000, 0x4000, 0x3FFF
OWNERS = (0, 1, NO_OWNER)
ROOT, INNER, PASS, RELAY = 1, 2, 3, 4  # trees, each with its index


def by(value: int, width: int) -> bytes:
    return value.to_bytes((width + 7) // 8, "big")


def _admission(port: int, kind: int, tree: int, child: int | None, **more: int) -> dict[str, Match]:
    match: dict[str, Match] = {
        "ingress_port": Exact(by(port, 9)),
        "udp_port": Exact(by(UDP_PORT, 16)),
        "kind": Exact(by(kind, 4)),
        "tree": Exact(by(tree, 16)),
    }
    if child is not None:
        match["child"] = Ternary(by(child, 16), b"\xff\xff")
    if "epoch" in more:
        match["epoch"] = Ternary(by(more["epoch"], 12), b"\x0f\xff")
    if "slots" in more:
        match["slot"] = Ternary(b"\0", by(0xFFFF ^ (more["slots"] - 1), 16))
    return match


def setup(sw: Any, _: random.Random) -> None:
    def admit(match: dict[str, Match], name: str, priority: int, **params: tuple[int, int]) -> None:
        call = ActionCall(f"{IN}admission.{name}", {k: by(v, w) for k, (v, w) in params.items()})
        sw.table_insert(IN + "admission.admission", TableEntry(match, call, priority))

    for child in range(CHILDREN):
        for tree, name in ((ROOT, "add_at_root"), (INNER, "add_at_inner")):
            bits = {
                "child_mask": (1 << child, 32),
                "full_mask": ((1 << CHILDREN) - 1, 32),
                "base": (tree * 64, 16),
            }
            match = _admission(child + 1, GRADIENT, tree, child, epoch=EPOCH, slots=SLOTS)
            admit(match, name, 30, tree_index=(tree, 10), **bits)
            wrong_slot = _admission(child + 1, GRADIENT, tree, child, epoch=EPOCH)
            admit(wrong_slot, "refuse", 20, tree_index=(tree, 10), reason=(18, 5))
            admit(
                _admission(child + 1, GRADIENT, tree, child),
                "refuse",
                10,
                tree_index=(tree, 10),
                reason=(17, 5),
            )
        match = _admission(child + 1, GRADIENT, PASS, child, epoch=EPOCH)
        admit(match, "forward", 30, tree_index=(PASS, 10), port=(4, 9))
    admit(_admission(4, RESULT, RELAY, None, epoch=EPOCH), "multicast", 30, tree_index=(RELAY, 10))
    up = ActionCall(IN + "tree_routes.up", {"port": by(4, 9), "child": by(9, 16)})
    sw.table_insert(IN + "tree_routes.uplink", TableEntry({"tree_index": Exact(by(INNER, 10))}, up))
    for group, index in enumerate((ROOT, RELAY), 1):
        sw.multicast_insert(group, [Replica(p) for p in range(1, CHILDREN + 1)])
        down = ActionCall(IN + "tree_routes.down", {"group": by(group, 16)})
        sw.table_insert(IN + "tree_routes.downlink", TableEntry({"tree_index": Exact(by(index, 10))}, down))
        for owner in range(2):  # the first one alone behind its port
            lead = {"via": by(owner + 1, 9), "alone": by(1 - owner, 1)}
            own: dict[str, Match] = {"tree_index": Exact(by(index, 10)), "owner": Exact(by(owner, 14))}
            entry = TableEntry(own, ActionCall(IN + "sum_form.lead", lead))
            sw.table_insert(IN + "sum_form.owners", entry)
    _routes(sw)


def _routes(sw: Any) -> None:
    for port in range(1, 5):
        sw.member_insert(
            IN + "forwarding.nexthops",
            Member(port, ActionCall(IN + "forwarding.nexthop", {"port": by(port, 9)})),
        )
        match: dict[str, Match] = {"destination": Lpm(by(0x0A000000 + port * 256, 32), 24)}
        sw.table_insert(IN + "forwarding.ipv4_routes", TableEntry(match, MemberRef(port)))
        macs = {"src": by(0x02AA00000000 + port, 48), "dst": by(0x02BB00000000 + port, 48)}
        call = ActionCall(OUT + "delivery.to_host", {**macs, "address": by(0x0A000000 + port * 256 + 1, 32)})
        if port == 4:
            call = ActionCall(OUT + "delivery.to_switch", macs)
        sw.table_insert(OUT + "delivery.neighbors", TableEntry({"port": Exact(by(port, 9))}, call))
    reply = ActionCall(IN + "forwarding.reply", {"mac": by(0x02CC00000000, 48)})
    sw.table_insert(
        IN + "forwarding.arp_responder", TableEntry({"target": Lpm(by(0x0A000000, 32), 8)}, reply)
    )


def _ip(rng: random.Random, payload: bytes, protocol: int, dst: int) -> bytes:
    head = bytearray(b"\x45" + bytes([rng.choice([0, 1, 2, 3])]) + (20 + len(payload)).to_bytes(2, "big"))
    head += rng.randbytes(2) + b"\0\0" + bytes([rng.choice([1, 2, 64]), protocol]) + b"\0\0"
    head += by(0x0A000100 + rng.randrange(512), 32) + by(dst, 32)
    total = sum(int.from_bytes(head[i : i + 2], "big") for i in range(0, 20, 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    head[10:12] = by((~total & 0xFFFF) ^ (rng.random() < 0.02), 16)
    return rng.randbytes(12) + b"\x08\x00" + bytes(head) + payload


def _netfold(rng: random.Random, chunk: int) -> tuple[int, bytes]:
    tree = rng.choice([ROOT, ROOT, ROOT, INNER, INNER, PASS, RELAY, 99])
    child = rng.randrange(CHILDREN)
    port = 4 if tree == RELAY else child + 1 if rng.random() < 0.97 else rng.randrange(1, 5)
    kind = RESULT if tree == RELAY else GRADIENT
    epoch = EPOCH if rng.random() < 0.97 else EPOCH - 1
    slot = chunk % SLOTS if rng.random() < 0.97 else rng.randrange(1 << 16)
    tag = epoch << 20 | chunk + 1
    edges = [0, 1, -1, 2**31 - 1, -(2**31)]
    values = [rng.choice([*edges, rng.randrange(-(2**31), 2**31)]) for _ in range(LANES)]
    lanes = b"".join(v.to_bytes(4, "big", signed=True) for v in values)
    flags, field, padding = rng.choice([0, 0, 0x40, 0x80]), LANES if rng.random() < 0.99 else 7, b""
    if chunk % 3:
        field = TARGETED | chunk % 2 * ALL_BUT | OWNERS[chunk // 6 % 3]
        if rng.random() < 0.5:
            lanes, padding = b"", rng.choice([b"", rng.randbytes(2), rng.randbytes(150)])
        has_data = bool(lanes) or (kind == RESULT and rng.random() < 0.5)
        flags |= DATA if has_data is (rng.random() < 0.97) else 0
    head = bytes([0x10 | kind, flags]) + by(tree, 16) + by(tag, 32) + by(slot, 16) + by(child, 16)
    body = head + bytes([rng.randrange(256), 0]) + by(field, 16) + lanes
    source = UDP_PORT if rng.random() < 0.95 else rng.randrange(1 << 16)
    port_of_job = source if rng.random() < 0.97 else 0xF000 | rng.randrange(256)
    udp = by(source, 16) + by(port_of_job, 16) + by(8 + len(body), 16) + rng.choice([b"\0\0", b"\xab\xcd"])
    return port, _ip(rng, udp + body, 17, 0x0A000401) + padding


def frames(rng: random.Random) -> Iterator[tuple[int, bytes]]:
    """Chunks advance slowly, so that slots fill, repeat and go stale."""
    for i in range(500):
        kind = rng.random()
        if kind < 0.85:
            yield _netfold(rng, max(0, i // 12 - rng.choice([0, 0, 0, 1, 2, 9])))
        elif kind < 0.93:
            l4 = rng.randbytes(4) + rng.randbytes(rng.randrange(4, 40))
            yield rng.randrange(1, 5), _ip(rng, l4, rng.choice([6, 17, 1]), 0x0A000000 | rng.randrange(0x600))
        elif kind < 0.97:
            arp = (
                b"\0\x01\x08\0\x06\x04"
                + by(rng.choice([1, 2]), 16)
                + rng.randbytes(10)
                + bytes(6)
                + by(0x0A000000 | rng.randrange(9), 32)
            )
            yield rng.randrange(1, 5), b"\xff" * 6 + rng.randbytes(6) + b"\x08\x06" + arp
        else:
            good = _netfold(rng, i // 12)[1]
            yield rng.randrange(1, 5), good[: rng.randrange(14, len(good))]
