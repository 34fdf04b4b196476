# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The comparison with the oracle bites: the P4 program with one thing wrong is found out by random networks alone."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.dataplane.bench import Bench, Tally
from tests.dataplane.device import SoftDevice
from tests.dataplane.frames import LANES
from tests.dataplane.mutants import check_that_it_differs, compiled, compiled_with, each_of
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
        "(hdr.netfold.tag > meta",
        "(hdr.netfold.tag >= meta",
    ),
    ("an older chunk claims", "v1model/slot_tag.p4", "(hdr.netfold.tag > meta", "(hdr.netfold.tag != meta"),
    (
        "the bitmap forgets",
        "v1model/slot_bitmap.p4",
        "meta.slot.seen | meta.bit_of_child);",
        "meta.bit_of_child);",
    ),
    (
        "a claim keeps the bitmap",
        "v1model/slot_bitmap.p4",
        "index, meta.bit_of_child",
        "index, meta.slot.seen",
    ),
    ("sums wrap", "v1model/lanes.p4", "|+|", "+"),
    ("rails do not absorb", "v1model/lanes.p4", "(sum != LANE_MAX && sum != LANE_MIN)", "(true)"),
    ("the lower rail is not flagged", "v1model/lanes.p4", "|| hdr.lanes.v##n == LANE_MIN", ""),
    (
        "repetitions carry the asker's lanes",
        "common/slot_access.h",
        "(_,              age_t.SAME,  _) : read();",
        "(_,              age_t.SAME,  _) : NoAction();",
    ),
    (
        "a repeated contribution is added again",
        "common/slot_access.h",
        "(_,              age_t.SAME,  0) : add();",
        "(_,              age_t.SAME,  _) : add();",
    ),
    ("the smallest exponent wins", "v1model/slot_marks.p4", "(held[7:0] > hdr", "(held[7:0] < hdr"),
    ("congestion is not carried", "v1model/slot_marks.p4", "(hdr.ipv4.ecn == ECN_CE)", "(false)"),
    (
        "marks of the chunk before stay",
        "common/slot_access.h",
        "(_,              age_t.NEWER) : claim();",
        "(_,              age_t.NEWER) : join();",
    ),
    (
        "an inner node sends its sum once",
        "common/verdict.p4",
        "1, 1,    _) : repeat_sum()",
        "1, 1,    _) : drop(verdict_t.DUPLICATE)",
    ),
    ("an inner node keeps the child's number", "common/verdict.p4", "hdr.netfold.child = meta.up_child;", ""),
    ("what a node makes keeps the contributor's TTL", "common/verdict.p4", "hdr.ipv4.ttl = 65;", ""),
    ("marks of the path stay in the result", "common/verdict.p4", "hdr.ipv4.ecn = ECN_ECT0;", ""),
    ("a contributor's reserved byte leaves", "common/verdict.p4", "hdr.netfold.reserved = 0;", ""),
    (
        "expired packets are sent on",
        "common/verdict.p4",
        "0 &&& 0xFE) : drop(verdict_t.EXPIRED)",
        "0) : drop(verdict_t.EXPIRED)",
    ),
    (
        "repeated results go to all",
        "common/exit.p4",
        "(verdict_t.RESULT_REPEATED,   _,      _) : to_sender()",
        "(verdict_t.RESULT_REPEATED,   _,      _) : to_workers()",
    ),
    ("a broken IP header is taken", "v1model/netfold.p4", "standard.checksum_error == 1 || ", ""),
    ("a frame that is cut is taken", "v1model/netfold.p4", " || standard.parser_error != error.NoError", ""),
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
        "v1model/netfold.p4",
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
    ("the TTL stays", "common/delivery.p4", "hdr.ipv4.ttl = hdr.ipv4.ttl - 1;", ""),
    ("expired packets of others go on", "common/forwarding.p4", " || hdr.ipv4.ttl == 1", ""),
]
CASES = each_of(MUTANTS)


@CASES
def test_every_mutant_is_one_of_the_program_as_it_stands(path: str, right: str, wrong: str):
    check_that_it_differs(path, right, wrong)


@pytest.mark.long
@pytest.mark.p4c
@CASES
def test_a_program_with_one_thing_wrong_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, right: str, wrong: str
):
    program = compiled_with(tmp_path, monkeypatch, path, right, wrong)
    with pytest.raises(AssertionError):
        explore(program)


@pytest.mark.long
@pytest.mark.p4c
def test_the_program_as_it_is_passes(tmp_path: Path):
    explore(compiled(tmp_path))


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
