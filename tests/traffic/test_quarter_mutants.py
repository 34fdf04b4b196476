# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A rule that the engine leaves out of the scheme quarter is found by a test of calls (test_core_quarter.py,
test_core_remainder.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.traffic import test_core_quarter as proofs
from tests.traffic import test_core_remainder as remainders
from tests.traffic.engine_mutants import Mutant, prove

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


MUTANTS = {
    "a sender hides that its row does not fit": Mutant(
        "parts/rotated.c", "is_encoded ? FLAG_OVERFLOW : 0", "0",
        proofs.test_workers_that_cancel_each_other_are_within_the_same_bound,
    ),
    "O is ignored": Mutant(
        "parts/rotated.c", "h->flags & FLAG_OVERFLOW || ", "",
        proofs.test_workers_that_cancel_each_other_are_within_the_same_bound,
    ),
    "special values are ignored": Mutant(
        "parts/rotated.c", " || h->exponent == NF_NOT_FINITE", "",
        lambda: proofs.test_nan_and_infinities_reach_every_worker_as_ieee_754_adds_them(6),
    ),
    "a row that is too large is taken": Mutant(
        "numerics/rotate.h", "observed <= range && ", "",
        lambda: proofs.test_a_call_that_follows_all_is_predicted_by_the_call_before(False),
    ),
    "a row that is too small is taken": Mutant(
        "numerics/rotate.h", "observed + NF_RANGE_SLACK >= range", "1",
        lambda: proofs.test_a_row_unlike_all_before_goes_again_if_it_does_not_fit("a thousandth"),
    ),
    "a row above all ranges is taken": Mutant(
        "numerics/rotate.h", "observed + NF_RANGE_MARGIN < NF_ABOVE_RANGES", "1",
        lambda: proofs.test_a_row_that_leaves_all_ranges_goes_again(18.9, 20),
    ),
    "a row below all ranges is taken": Mutant(
        "numerics/rotate.h", "return observed != NF_BELOW_RANGES && ", "return ",
        lambda: proofs.test_a_row_that_leaves_all_ranges_goes_again(-43.8, -50),
    ),
    "a row of zeros goes again": Mutant(
        "parts/rotated.c", "c->rows.needs_reencode[row] = 0;", "",
        proofs.test_rows_of_zeros_take_one_packet_each,
    ),
    "ranges are not compared": Mutant(
        "call/fingerprint.c", "row < c->ranges.count; row++", "row < 0; row++",
        proofs.test_workers_with_other_ranges_are_in_other_calls,
    ),
    "a call that follows all is not predicted by the last one": Mutant(
        "session/scheduler.c", "call->request.follows_all ? 1 :", "0 ? 1 :",
        lambda: proofs.test_a_call_that_follows_all_is_predicted_by_the_call_before(True),
    ),
    "nothing is learned from half": Mutant(
        "call/ranges.c", "+= energy / (double)ranges->width", "+= 0 * energy",
        lambda: proofs.test_a_predicted_call_takes_one_round_trip_and_a_quarter_of_the_packets(proofs.FLOAT32),
    ),
    "a mean is taken for a sum": Mutant(
        "call/ranges.c", "* (divisor * divisor)", "* divisor / divisor",
        proofs.test_an_average_is_the_sum_over_the_workers,
    ),
    "special values of a fourth of the row": Mutant(
        "numerics/codec.c", "c->width > c->lanes ? c->width / c->lanes : 1", "1",
        lambda: proofs.test_nan_and_infinities_reach_every_worker_as_ieee_754_adds_them(6),
    ),
    "dithers repeat after nine calls": Mutant(
        "call/fingerprint.c", "if (is_rotated(c) && a->has_newcomers)", "if (0)",
        lambda: proofs.test_errors_of_equal_gradients_do_not_repeat(True),
    ),
    "a remainder outlives its attempt": Mutant(
        "call/ranges.c", "if (c->request.remainder) memset", "if (0) memset",
        remainders.test_a_call_that_starts_again_in_a_new_epoch_leaves_nothing,
    ),
    "a row that goes again leaves a remainder": Mutant(
        "parts/rotated.c", "|| c->rows.needs_reencode[row] ||", "||",
        lambda: remainders.test_a_row_that_goes_again_leaves_nothing("tiny"),
    ),
    "a scatter learns ranges of its own block": Mutant(
        "call/call.c", " || learns_ranges", " || (learns_ranges && 0)",
        lambda: proofs.test_scatters_learn_ranges_of_all_blocks_whatever_the_network_does(0),
    ),
    "half of a row goes again": Mutant(
        "parts/reencode.c", "+ part * codec.width * codec.itemsize", "+ 0 * part",
        lambda: proofs.test_a_row_unlike_all_before_goes_again_if_it_does_not_fit("a thousandth"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_rule_that_is_left_out_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    prove(MUTANTS[name], tmp_path, monkeypatch)
