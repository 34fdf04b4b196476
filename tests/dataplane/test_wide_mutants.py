# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""BMv2's form of the program with one thing of its words wrong: random sums have to find each. softswitch runs them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

from netfold.p4src.manifest import Form
from netfold.protocol.target import LaneTarget
from netfold.protocol.wire import LANE_MAX, LANE_MIN, Flag
from tests.dataplane.bench import Bench, Tally
from tests.dataplane.device import SoftDevice
from tests.dataplane.fixtures import EPOCH, SETTINGS, TREE, inner, root
from tests.dataplane.frames import Ip, Netfold, gradient
from tests.dataplane.mutants import proofs

LANES, CHUNKS, SEED = 256, 60, 45
WORDS = "v1model/lanes_wide.p4"
CLEARS = "        overflows.write(meta.slot.index, 0);"
READ = "overflows.read(overflow, meta.slot.index);"
SIGN = "((held ^ hdr.lanes.v##n) & SIGNS)"
SUM = f"CARRIES(held, hdr.lanes.v##n) ^ {SIGN}"

CHANGES = [
    ("carries reach the next lane", SUM, "held + hdr.lanes.v##n"),
    ("no carry reaches the sign", SUM, f"(CARRIES(held, hdr.lanes.v##n) & ~SIGNS) ^ {SIGN}"),
    ("signs are not added", f" ^ {SIGN}", ""),
    ("no sum overflows", "overflow = 1;", "overflow = 0;"),
    ("a sign that changes is an overflow", " & (hdr.lanes.v##n ^ CARRIES(held, hdr.lanes.v##n))", ""),
    ("the last word alone overflows", "if (((held ^", "overflow = 0; if (((held ^"),
    ("overflows are forgotten", f"{READ}\n#define", "overflow = 0;\n#define"),
    ("a claim keeps the overflow", f"(WORD_CLAIM)\n{CLEARS}", "(WORD_CLAIM)"),
    ("a short claim keeps the overflow", f"(WORD_CLEAR)\n    {CLEARS}", "(WORD_CLEAR)"),
    ("a short claim keeps the lanes", "WORD_CLEAR(n) lanes_##n.write(meta.slot.index, 0);", "WORD_CLEAR(n)"),
    ("a short packet completes without lanes", "hdr.lanes.setValid();", ""),
    ("a short packet completes with other lanes", "setValid();\n            read();", "setValid();"),
    ("a sum that is sent again has no flag", f"{READ}\n        flag_overflow();", READ),
    ("a claim forgets the lanes", "WORD_CLAIM(n) lanes_##n.write(meta.slot.index, hdr.lanes.v##n);", "WORD_CLAIM(n)"),
    ("a sum is not kept", " \\\n        lanes_##n.write(meta.slot.index, hdr.lanes.v##n);", ""),
]  # fmt: skip
MUTANTS = [(what, WORDS, right, wrong) for what, right, wrong in CHANGES]


def explore(program: Path) -> None:
    """Chunks of three children: small ones, ones in which one lane does not fit, and ones that do not fit in all lanes;
    each complete sum is asked for again. Some chunks are scatters, whose lanes child 1 wants, the first or the last to
    contribute."""
    random = Random(SEED)
    with SoftDevice(program, cache=program.parent, wraps=True) as device:
        for node in (root(3), inner(3)):
            device.clear()
            bench = Bench(device, LANES, Tally(), "mutant")
            bench.install(*SETTINGS, node)
            for round_ in range(CHUNKS):
                limit = random.choice((10, 2**29, 2**31 - 1))
                is_scatter = round_ % 3 == 2
                for child in node.children[:: random.choice((1, -1))]:
                    lanes = [random.randint(-limit - 1, limit) for _ in range(LANES)]
                    if limit == 10 and round_ % 2:
                        lanes[random.randrange(LANES)] = int(random.choice((LANE_MAX, LANE_MIN)))
                    send(bench, child.port, round_, lanes, is_scatter)
                send(bench, 1, round_, [0] * LANES, is_scatter)


def send(bench: Bench, worker: int, round_: int, lanes: list[int], is_scatter: bool) -> None:
    header = Netfold(tree=TREE, epoch=EPOCH, child=worker, lanes=lanes, round=round_)
    if is_scatter:
        is_short = worker == 1
        flags = 0 if is_short else Flag.DATA
        header = replace(header, flags=flags, lanes=[] if is_short else lanes, lane_count=LaneTarget(1).field)
    bench.send(worker, gradient(header, Ip(src=f"10.0.0.{worker}")))


test_a_mutant_is_another_program, test_the_program_as_it_is_passes, test_a_mutant_is_found = proofs(
    MUTANTS, explore, lanes=LANES, form=Form.BMV2, once=True
)
