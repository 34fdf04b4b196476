# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The program with one thing of its short packets and cuts wrong: chunks of all kinds have to find each. softswitch
runs them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from netfold.protocol.wire import Flag, Kind
from tests.dataplane.bench import Bench, Tally
from tests.dataplane.device import SoftDevice
from tests.dataplane.fixtures import SETTINGS, UPLINK, inner, root, sent
from tests.dataplane.frames import LANES
from tests.dataplane.mutants import proofs
from tests.dataplane.node import Owner
from tests.dataplane.test_lane_targets import EMPTY, GATHER, OWNERS, SCATTER, short, whole

SUMS, FORMS, PARSER = "v1model/lanes.p4", "v1model/targets.p4", "v1model/parser.p4"
MUTANTS = [
    ("a short claim keeps the lanes", SUMS, "lane_##n.write(meta.slot.index, 0);", ""),
    ("one lane is not cleared", SUMS, "FOR_EACH_LANE(LANE_CLEAR)", "LANES_16(LANE_CLEAR, 0)"),
    ("a short packet completes without lanes", SUMS, "hdr.lanes.setValid();\n        FOR", "FOR"),
    (
        "a short packet completes with other lanes",
        SUMS,
        "setValid();\n        FOR_EACH_LANE(LANE_READ)",
        "setValid();",
    ),
    (
        "a repeated short packet clears the lanes",
        SUMS,
        "if (meta.slot.age == age_t.NEWER) {\n                clear",
        "if (meta.slot.age != age_t.OLDER) {\n                clear",
    ),
    ("D does not stick", "v1model/lanes_integer.p4", " | FLAG_DATA", ""),
    ("all sums leave whole", FORMS, "make_short();", "make_whole();"),
    ("all sums leave short", FORMS, "make_whole();", "make_short();"),
    ("lengths stay", FORMS, "hdr.udp.length = 8 + NETFOLD_BYTES;", ";"),
    ("results from above are not cut", FORMS, " || meta.verdict == verdict_t.MULTICAST", ""),
    (
        "results that are sent again are cut",
        FORMS,
        "verdict_t.RESULT_SENT ||",
        "verdict_t.RESULT_SENT || meta.verdict == verdict_t.RESULT_RESENT ||",
    ),
    (
        "the owner's copy of a scatter is cut",
        FORMS,
        "ALL_BUT_ONE && standard.egress_port !=",
        "ALL_BUT_ONE && standard.egress_port ==",
    ),
    ("a gather is cut above others", FORMS, "alone == 1", "true"),
    (
        "an owner elsewhere cuts nothing",
        FORMS,
        "action lead_away() {\n        if (hdr.netfold.lanes[TARGET_ALL_BUT] == 0) {",
        "action lead_away() {\n        if (false) {",
    ),
    ("padding is sent on", FORMS, "truncate(14 + (bit<32>)hdr.ipv4.total_length);", ""),
    (
        "a short contribution with D is taken",
        PARSER,
        "0 &&& (FLAG_DATA | FLAG_QUORUM)",
        "0 &&& FLAG_QUORUM",
    ),
    (
        "a whole contribution without D is taken",
        PARSER,
        "kind_t.GRADIENT, FLAG_DATA &&& (FLAG_DATA | FLAG_QUORUM)",
        "kind_t.GRADIENT, 0 &&& FLAG_QUORUM",
    ),
    ("a target may have a quorum", PARSER, "kind_t.RESULT,   0 &&& FLAG_QUORUM", "kind_t.RESULT,   _"),
]


def explore(program: Path) -> None:
    """Chunks of all kinds at a root and an inner node: lanes of another chunk before, each packet twice, and one
    that is malformed in each form."""
    with SoftDevice(program, cache=program.parent) as device:
        for node in (root(3), inner(3)):
            for owners in (OWNERS, (), (Owner(2, 1, alone=False),)):
                device.clear()
                bench = Bench(device, LANES, Tally(), "mutant")
                bench.install(*SETTINGS, replace(node, owners=owners))
                chunks = [None, SCATTER, None, GATHER, EMPTY, SCATTER]
                for round_, target in enumerate(chunks):
                    for worker in (2, 1, 3):
                        send_twice(bench, worker, round_, target)
                for target in (SCATTER, GATHER):
                    for flags in (0, int(Flag.QUORUM)):
                        result = whole(1, target, 9, kind=Kind.RESULT, flags=flags)
                        bench.send(UPLINK, result)
                        bench.send(UPLINK, short(1, target, kind=Kind.RESULT, flags=flags))
                        bench.send(1, short(1, target, round=9, flags=int(Flag.DATA) | flags))
                        bench.send(1, sent(1, 5, round=9, lane_count=target.field, flags=flags))
                bench.check_counters()


def send_twice(bench: Bench, worker: int, round_: int, target) -> None:  # type: ignore[no-untyped-def]
    if target is None:
        frame = sent(worker, list(range(100 * worker, 100 * worker + LANES)), round=round_)
    elif target is EMPTY or (worker == target.owner) != target.all_but:
        frame = short(worker, target, round=round_)
    else:
        frame = whole(worker, target, 7 * worker, round=round_)
    bench.send(worker, frame)
    bench.send(worker, frame)


test_a_mutant_is_another_program, test_the_program_as_it_is_passes, test_a_mutant_is_found = proofs(
    MUTANTS, explore
)
