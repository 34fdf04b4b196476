# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The comparison with the oracle bites: the P4 program with one thing wrong is found out by random networks alone."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.dataplane.bench import Bench, Tally
from tests.dataplane.device import SoftDevice
from tests.dataplane.frames import LANES
from tests.dataplane.mutants import proofs
from tests.dataplane.test_stateful import SWITCHES, new_world

WORLDS, EVENTS = 60, 600

MUTANTS = [
    ("the tree's base is forgotten", "common/admission.p4", "base + hdr.netfold.slot", "hdr.netfold.slot"),
    (
        "refusals count for no tree",
        "common/admission.p4",
        "tree_index;\n        meta.verdict",
        "0;\n        meta.verdict",
    ),
    (
        "the same chunk claims again",
        "v1model/slot_tag.p4",
        "meta.slot.age = age_t.SAME;",
        "meta.slot.age = age_t.NEWER;",
    ),
    ("an older chunk claims", "v1model/slot_tag.p4", "(hdr.netfold.tag > meta", "(hdr.netfold.tag != meta"),
    (
        "the bitmap forgets",
        "v1model/slot_bitmap.p4",
        "bitmap = meta.slot.bitmap_before | meta.child_mask;",
        "bitmap = meta.child_mask;",
    ),
    (
        "a claim keeps the bitmap",
        "v1model/slot_bitmap.p4",
        "(meta.role == role_t.MANAGEMENT || meta.slot.age == age_t.SAME)",
        "(true)",
    ),
    ("sums wrap", "v1model/lanes.p4", "|+|", "+"),
    (
        "saturated lanes do not stay saturated",
        "v1model/lanes.p4",
        "(sum != LANE_MAX && sum != LANE_MIN)",
        "(true)",
    ),
    ("saturation at the lower limit is not flagged", "v1model/lanes.p4", "|| hdr.lanes.v##n == LANE_MIN", ""),
    (
        "a resent result has the sender's lanes",
        "common/slot_access.h",
        "(_,                 age_t.SAME,  _) : read();",
        "(_,                 age_t.SAME,  _) : NoAction();",
    ),
    (
        "a duplicate is added",
        "common/slot_access.h",
        "(_,                 age_t.SAME,  0) : add();",
        "(_,                 age_t.SAME,  _) : add();",
    ),
    ("the smallest exponent wins", "v1model/slot_attributes.p4", "(held[7:0] > hdr", "(held[7:0] < hdr"),
    ("congestion is not carried", "v1model/slot_attributes.p4", "(hdr.ipv4.ecn == ECN_CE)", "(false)"),
    (
        "attributes of the previous chunk stay",
        "v1model/slot_attributes.p4",
        "(meta.role == role_t.MANAGEMENT || meta.slot.age == age_t.SAME)",
        "(true)",
    ),
    (
        "an inner node sends its sum once",
        "common/verdict.p4",
        "1, 1, _) : resend_sum()",
        "1, 1, _) : drop(verdict_t.DUPLICATE)",
    ),
    ("an inner node keeps the child's number", "common/verdict.p4", "hdr.netfold.child = meta.up_child;", ""),
    ("what a node makes keeps the contributor's TTL", "common/verdict.p4", "hdr.ipv4.ttl = 65;", ""),
    ("ECN marks of the path stay in the result", "common/verdict.p4", "hdr.ipv4.ecn = ECN_ECT0;", ""),
    (
        "a contributor's reserved byte leaves",
        "v1model/arch.p4",
        "hdr.netfold.reserved = meta.annotation;",
        "",
    ),
    (
        "expired packets are sent on",
        "common/verdict.p4",
        "0 &&& 0xFE) : drop(verdict_t.EXPIRED)",
        "0) : drop(verdict_t.EXPIRED)",
    ),
    (
        "resent results go to all",
        "common/egress_select.p4",
        "(verdict_t.RESULT_RESENT, _,      _) : to_sender()",
        "(verdict_t.RESULT_RESENT, _,      _) : to_workers()",
    ),
    ("an invalid IP header is taken", "v1model/classify.p4", "standard.checksum_error == 1 || ", ""),
    ("a truncated frame is taken", "v1model/classify.p4", " || standard.parser_error != error.NoError", ""),
    (
        "the UDP length is not looked at",
        "v1model/parser.p4",
        "(5, 28 + NETFOLD_BYTES, 8 + NETFOLD_BYTES)",
        "(5, 28 + NETFOLD_BYTES, _)",
    ),
    (
        "a first fragment is forwarded",
        "v1model/parser.p4",
        "state first_fragment {\n        meta.netfold = 1;",
        "state first_fragment {",
    ),
    (
        "options hide a packet",
        "v1model/parser.p4",
        "((bit<32>)hdr.ipv4.ihl - 5) * 32);\n        transition parse_transport;",
        "((bit<32>)hdr.ipv4.ihl - 5) * 32);\n        transition accept;",
    ),
    (
        "any two ports of the range are netfold's",
        "v1model/classify.p4",
        "hdr.udp.src_port != hdr.udp.dst_port",
        "false",
    ),
    (
        "the UDP port is not asked for",
        "common/admission.p4",
        "hdr.udp.dst_port       : exact ",
        "(bit<16>)0xF001        : exact ",
    ),
    (
        "other traffic loses its UDP checksum",
        "common/delivery.p4",
        "if (IS_NETFOLD) {\n            hdr.udp.checksum = 0;\n        }",
        "hdr.udp.checksum = 0;",
    ),
    ("a late contribution is a duplicate", "common/verdict.p4", ": send_late();", ": resend_result();"),
    (
        "the packet that seals a sum gets it alone",
        "common/verdict.p4",
        "seal_t.SEALING, _, _, _) : send_result();",
        "seal_t.SEALING, _, _, _) : resend_result();",
    ),
    ("a reused slot is a sealed sum", "common/verdict.p4", ": send_slot_reused();", ": send_late();"),
    (
        "an inner node takes late contributions for duplicates",
        "common/verdict.p4",
        "seal_t.BYPASS, _, _, _) : forward();",
        "seal_t.BYPASS, _, _, _) : resend_sum();",
    ),
    (
        "a packet that bypasses the slot changes it",
        "v1model/slot.p4",
        "meta.slot.seal != seal_t.BYPASS",
        "true",
    ),
    (
        "duplicates are taken for additions",
        "v1model/slot_bitmap.p4",
        "is_complete | meta.slot.is_duplicate",
        "is_complete",
    ),
    (
        "stale packets are taken for additions",
        "v1model/slot_bitmap.p4",
        " && meta.slot.age != age_t.OLDER",
        "",
    ),
    ("sums do not carry their count", "quorum/on.p4", "meta.annotation = 1w0 ++ count;", ""),
    ("a sum forgets that a seal was requested", "quorum/on.p4", "meta.role == role_t.INNER && ", "false && "),
    ("the TTL stays", "common/delivery.p4", "hdr.ipv4.ttl = hdr.ipv4.ttl - 1;", ""),
    ("other traffic is forwarded with an expired TTL", "common/forwarding.p4", " || hdr.ipv4.ttl == 1", ""),
]


def explore(program: Path) -> None:
    devices = [SoftDevice(program, cache=program.parent) for _ in range(SWITCHES)]
    tally = Tally()
    for seed in range(WORLDS):
        random = Random(seed)
        for device in devices:
            device.clear()
        world = new_world(random, [Bench(device, LANES, tally, "mutant") for device in devices])
        for number in range(EVENTS):
            world.happen(random, loss=0.02, repeats=0.1)
            if number % 20 == 0:
                world.forge(random)
            if number == EVENTS // 2:
                world.raise_epoch(random.choice(world.jobs), random)
        world.finish()
        world.check_counters()


test_a_mutant_is_another_program, test_the_program_as_it_is_passes, test_a_mutant_is_found = proofs(
    MUTANTS, explore
)
