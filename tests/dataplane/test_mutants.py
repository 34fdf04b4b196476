# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The comparison with the oracle bites: the P4 program with one thing wrong is found out by random networks alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from tests.dataplane.bench import Bench, Tally
from tests.dataplane.device import SoftDevice
from tests.dataplane.frames import LANES
from tests.dataplane.test_stateful import SWITCHES, new_world
from tools import p4build

WORLDS, EVENTS = 60, 600

# What, the file, the right text, the wrong one.
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
        "v1model/lanes.p4",
        "role_t.MANAGER || meta.slot.complete == 1",
        "role_t.MANAGER",
    ),
    ("the smallest exponent wins", "v1model/slot_marks.p4", "(held[7:0] > hdr", "(held[7:0] < hdr"),
    ("congestion is not carried", "v1model/slot_marks.p4", "(hdr.ipv4.ecn == ECN_CE)", "(false)"),
    (
        "marks of the chunk before stay",
        "v1model/slot_marks.p4",
        "claim();\n        } else if",
        "join();\n        } else if",
    ),
    (
        "an inner node sends its sum once",
        "common/verdict.p4",
        "1, 1) : repeat_sum()",
        "1, 1) : drop(verdict_t.DUPLICATE)",
    ),
    ("an inner node keeps the child's number", "common/verdict.p4", "hdr.netfold.child = meta.up_child;", ""),
    (
        "sums go up with the child's TTL",
        "common/verdict.p4",
        "climb() {\n        hdr.ipv4.ttl = 64;",
        "climb() {",
    ),
    (
        "marks of the path stay in the result",
        "common/verdict.p4",
        "hdr.ipv4.ecn = ECN_ECT0;\n        hdr.netfold.kind",
        "hdr.netfold.kind",
    ),
    ("repeated results go to all", "v1model/exit.p4", "to_port(meta.ingress_port)", "to_workers()"),
    ("a broken IP header is taken", "v1model/netfold.p4", "&& standard.checksum_error == 0", ""),
    (
        "the UDP length is not looked at",
        "v1model/parser.p4",
        "(28 + NETFOLD_BYTES, 8 + NETFOLD_BYTES)",
        "(28 + NETFOLD_BYTES, _)",
    ),
    ("the TTL stays", "v1model/forwarding.p4", "hdr.ipv4.ttl = hdr.ipv4.ttl - 1;", ""),
    ("expired packets go on", "v1model/forwarding.p4", "|| hdr.ipv4.ttl <= 1", ""),
]


@pytest.mark.long
@pytest.mark.p4c
@pytest.mark.parametrize(("path", "right", "wrong"), [m[1:] for m in MUTANTS], ids=[m[0] for m in MUTANTS])
def test_a_program_with_one_thing_wrong_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, right: str, wrong: str
):
    with pytest.raises(AssertionError):
        explore(compiled_with(tmp_path, monkeypatch, path, right, wrong))


@pytest.mark.long
@pytest.mark.p4c
def test_the_program_as_it_is_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    explore(compiled_with(tmp_path, monkeypatch, "common/sizes.p4", "", ""))


def compiled_with(folder: Path, monkeypatch: pytest.MonkeyPatch, path: str, right: str, wrong: str) -> Path:
    try:
        p4build.compiler_version()
    except p4build.BuildError as missing:
        pytest.skip(str(missing))
    shutil.copytree(p4build.REPOSITORY / "p4src", folder / "p4src")
    source = folder / "p4src" / path
    text = source.read_text()
    assert right in text
    source.write_text(text.replace(right, wrong) if right else text)
    monkeypatch.setattr(p4build, "REPOSITORY", folder)
    return p4build.compile_one(LANES, folder)[0]


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
