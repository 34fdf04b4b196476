# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The comparison on the chip's model bites: Tofino's program with one thing wrong, in what is its own, is found out by
random jobs and frames that are cut. What it shares with v1model has its mutants in test_mutants.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from netfold.p4src.manifest import most_children
from netfold.p4src.tools.tofino import CHIPS, build
from netfold.protocol.wire import PORT_FIRST, PORT_LAST
from tests.dataplane import chip
from tests.dataplane.bench import Bench, Tally
from tests.dataplane.chip_builds import why_not
from tests.dataplane.fixtures import EPOCH, SETTINGS, TREE, root, sent
from tests.dataplane.frames import Ip, Netfold, ethernet, udp
from tests.dataplane.mutants import changed_copy, check_that_it_differs, each_of
from tests.dataplane.test_chips import add_up_many, play

NAME, SEEDS = "tofino", 6

MUTANTS = [
    ("the same chunk claims again", "tna/slot_tag.p4", "hdr.netfold.tag > held", "hdr.netfold.tag >= held"),
    ("the bitmap forgets", "tna/slot_bitmap.p4", "held | meta.child_mask[high:low]", "meta.child_mask[high:low]"),
    ("a sum awaits one word", "tna/slot_bitmap.p4", "missing                : ternary", "missing[31:0] : ternary"),
    ("one word shows duplicates", "tna/slot_bitmap.p4", "own_bit_seen : ternary", "own_bit_seen[31:0] : ternary"),
    ("the smallest exponent wins", "tna/slot_attributes.p4", "max(held,", "min(held,"),
    ("flags are not merged", "tna/slot_attributes.p4", "held = held | own;", "held = own;"),
    ("sums wrap", "tna/lanes.p4", "|+|", "+"),
    ("saturation at the lower limit is not flagged", "tna/saturation.p4", "SATURATED(0x80000000) \\\n", ""),
    ("a truncated frame is taken", "tna/ingress_parser.p4", "packet.lookahead<bit<32>>()[7:0]", "hdr.netfold.kind"),
    ("a truncated frame is routed", "tna/netfold.p4", "if (from_parser.parser_err == 0) {", "if (true) {"),
    ("options hide a packet", "tna/ingress_parser.p4", "meta.ports_unparsed = 1;", ""),
    ("results keep the header's checksum", "tna/netfold.p4", "if (meta.bridge.netfold == 1) {", "if (false) {"),
]  # fmt: skip
CASES = each_of(MUTANTS)


@CASES
def test_every_mutant_is_one_of_the_program_as_it_stands(path: str, right: str, wrong: str):
    check_that_it_differs(path, right, wrong)


@pytest.mark.long
@pytest.mark.p4c
@pytest.mark.timeout(1800 * chip.PATIENCE)
@CASES
def test_a_program_with_one_thing_wrong_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, right: str, wrong: str
):
    missing = why_not(NAME)
    if missing is not None:
        pytest.skip(f"{missing}: nothing runs on the model of {NAME}")
    changed_copy(tmp_path, monkeypatch, path, right, wrong)
    made = build(CHIPS[NAME], tmp_path / "out", chip.CHIP_CPU_PORT)
    with chip.model(NAME, made.context.parent) as device, pytest.raises(AssertionError):
        play_all(device)


def play_all(device: chip.ChipDevice) -> None:
    tally = Tally()
    device.clear()
    cut_everywhere(Bench(device, CHIPS[NAME].lanes, tally, NAME))
    for seed in range(SEEDS):
        play(NAME, seed, {NAME: device}, tally)
    add_up_many(device, most_children("tofino"), tally, NAME)


def cut_everywhere(bench: Bench) -> None:
    """Packets that are the protocol's, and that look like its own until their ports turn out to differ: at all lengths
    that a wire carries."""
    bench.install(*SETTINGS, root(2))
    header = Netfold(tree=TREE, epoch=EPOCH)
    between = ethernet(Ip(dst="10.0.0.2").pack(udp(header.pack(), PORT_FIRST, PORT_LAST)))
    for frame in (sent(1), between):
        for length in range(bench.device.least_bytes, len(frame) + 1):
            bench.send(1, frame[:length])
    bench.check_counters(TREE)
