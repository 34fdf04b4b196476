# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The program with one thing of the sum of floats wrong: edges and random numbers have to find each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.dataplane.bench import Bench, Tally
from tests.dataplane.device import SoftDevice
from tests.dataplane.fixtures import SETTINGS
from tests.dataplane.mutants import proofs
from tests.dataplane.test_floats import EDGES, KINDS, LANES, ROOT, added, copies, random_bits, rows, sum_of

SUM = "v1model/lanes_float.p4"
MUTANTS = [
    ("the larger does not lead", SUM, "MAGNITUDE(f_large) < MAGNITUDE(f_small)", "f_large < f_small"),
    ("subnormals have an exponent of 0", SUM, "exponent + (bit<32>)(bit<1>)(exponent < 1)", "exponent"),
    ("subnormals have a first bit", SUM, "(bit<32>)(bit<1>)(exponent > 0) << 26", "0x4000000"),
    ("shifts go around", SUM, "if (f_distance > 31) { f_distance = 31; }", ""),
    ("nothing sticks", SUM, "{ f_sum = f_sum | 1; }", "{ f_sum = f_sum | 0; }"),
    ("signs are forgotten", SUM, "f_large ^ f_small < FLOAT_SIGN", "f_large < FLOAT_SIGN"),
    ("one step of normalizing is missing", SUM, "NORMALIZE(8) ", ""),
    ("the exponent gives out unseen", SUM, " && f_exponent >= n", ""),
    ("ties go up", SUM, "f_bits + 7 + ((f_bits >> 4) & 1)", "f_bits + 8"),
    ("sums are cut", SUM, "f_bits + 7 + ((f_bits >> 4) & 1)", "f_bits"),
    ("a sum leaves the range", SUM, "f_exponent >= 254 || ", ""),
    ("infinity less something", SUM, " || MAGNITUDE(f_large) == FLOAT_INFINITY", ""),
    ("nothing has a sign", SUM, "f_large & f_small & FLOAT_SIGN", "f_large & FLOAT_SIGN"),
    ("NaN is a number", SUM, "MAGNITUDE(f_large) > FLOAT_INFINITY || ", ""),
    ("infinities of both signs", SUM, " && f_large != f_small", " && false"),
    ("saturation is flagged for floats", "v1model/lanes.p4", "if (!is_float && ", "if ("),
    (
        "floats are not flagged",
        "v1model/lanes_float.p4",
        "FLAG_OVERFLOW | FLAG_CONGESTION | FLAG_FLOATS",
        "FLAG_OVERFLOW | FLAG_CONGESTION",
    ),
    ("duplicates are added", "v1model/lanes.p4", " && meta.slot.own_bit_seen == 0", ""),
]


def explore(program: Path) -> None:
    bench = Bench(SoftDevice(program, cache=program.parent), LANES, Tally(), "mutant")
    bench.install(*SETTINGS, ROOT)
    pairs = zip(*(rows(grid.ravel()) for grid in np.meshgrid(EDGES, EDGES)), strict=True)
    for number, (a, b) in enumerate(pairs):
        np.testing.assert_array_equal(sum_of(bench, [a, b, a, a], number), added(added(added(a, b), a), a))
    random = np.random.default_rng(1)
    for number, kind in enumerate(KINDS * 5, 100):
        sum_of(bench, [random_bits(random, kind) for _ in ROOT.children], number)
    copies(bench)


test_a_mutant_is_another_program, test_the_program_as_it_is_passes, test_a_mutant_is_found = proofs(
    MUTANTS, explore, lanes=LANES, once=True
)
