# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A rule that the engine leaves out of scatters and gathers is found by a test of calls (test_core_targets.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from netfold.protocol.target import Targets
from netfold.traffic.engine.blocks import CallForm
from netfold.traffic.numerics import BlockFloat, Fixed
from tests.traffic import test_core_targets as proofs
from tests.traffic.engine_mutants import Mutant, prove

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

SCATTER, BOTH = CallForm.SCATTER, [CallForm.GATHER, CallForm.SCATTER]
MUTANTS = {
    "C16: the rows of an owner follow each other": Mutant(
        "call/call.c",
        "for (int64_t round = 0; row < rows->count; round++)\n"
        "        for (int64_t i = 0, first = 0; i < c->request.block_count; first += c->blocks[i++].elements) {",
        "for (int64_t i = 0, first = 0; i < c->request.block_count; first += c->blocks[i++].elements)\n"
        "        for (int64_t round = 0; round * width < c->blocks[i].elements; round++) {",
        proofs.test_rows_of_the_owners_take_turns,
    ),
    "S1: gathers have no stream": Mutant(
        "transport/tree.c", "a->targets == NF_TARGETS && t->channel_count >= GATHER_CHANNELS ?", "0 ?",
        proofs.test_a_gather_does_not_wait_for_a_scatter,
    ),
    "S12: gathers overtake scatters": Mutant(
        "transport/tree_state.h", "t->flights[channel >= t->streams[GATHER].from]", "t->flights[channel < 0]",
        proofs.test_chunks_of_gathers_and_scatters_overtake_each_other_without_a_loss,
    ),
    "G2: tokens count packets": Mutant(
        "transport/tree.c", "is_short(h) ? t->short_cost : 1, target_wants(h, t->rank) ? 1 : t->short_cost", "1, 1",
        lambda: proofs.test_pacing_counts_bytes_of_both_directions(BOTH, 19),
    ),
    "G2: scatters go first": Mutant(
        "transport/tree.c", "nf_pacer_has_more_down(&t->pacer) ? GATHER : MAIN", "MAIN",
        lambda: proofs.test_pacing_counts_bytes_of_both_directions(BOTH, 19),
    ),
    "results of both directions are coalesced one after the other": Mutant(
        "transport/tree.c", "fuller = gathers > others ? gathers : others", "fuller = gathers + others",
        proofs.test_results_of_both_directions_are_coalesced_beside_each_other,
    ),
    "C17: the owner's contribution is lost": Mutant(
        "parts/data.c", "if (call_keeps_own(c) && call_owns_row(c, row)) add_own", "if (0) add_own",
        proofs.test_a_sum_has_the_bits_that_a_node_makes_of_all_contributions,
    ),
    "C17: the owner's contribution is added twice": Mutant(
        "parts/data.c", "if (!call_owns_row(c, row) || !call_keeps_own(c)) h->flags", "h->flags",
        proofs.test_a_sum_has_the_bits_that_a_node_makes_of_all_contributions,
    ),
    "C17: the owner keeps integers": Mutant(
        "call/call.h", "codec->format != NF_LANE_INT32 && ", "",
        lambda: proofs.test_the_form_of_packets(SCATTER, "int32", BlockFloat(), True, True),
    ),
    "C17: the owner keeps fixed numbers": Mutant(
        "call/call.h", " && !codec->is_fixed;", ";",
        lambda: proofs.test_the_form_of_packets(SCATTER, "float32", Fixed(12), True, True),
    ),
    "C18: a scatter does not close": Mutant(
        "session/scheduler.c", " || call->rows.form == NF_SCATTER ? CALL_CLOSING", " ? CALL_CLOSING",
        lambda: proofs.test_ready_workers_finish_their_scatter({0}, Targets.ON),
    ),
    "C18: closing chunks have lanes": Mutant(
        "parts/closing.c", "if (c->rows.form == NF_TO_ALL)", "if (1)",
        lambda: proofs.test_ready_workers_finish_their_scatter({0}, Targets.ON),
    ),
    "C19: an epoch without targets has them": Mutant(
        "call/call.c", "a->targets != NF_TARGETS || ", "",
        lambda: proofs.test_sums_to_all((proofs.LANES, proofs.BLOCK), Targets.PAUSED),
    ),
    "C19: blocks of few rows have targets": Mutant(
        "call/call.c", "rows_of_blocks(c, codec) < MIN_BLOCK_ROWS * blocks || ", "",
        lambda: proofs.test_sums_to_all(proofs.FEW_ROWS, Targets.ON),
    ),
    "C19: blocks of few bytes have targets": Mutant(
        "call/call.c", " || call_bytes(c) < MIN_BLOCK_BYTES * blocks", "",
        lambda: proofs.test_sums_to_all(proofs.FEW_BYTES, Targets.ON),
    ),
    "W12: a result of another target is taken": Mutant(
        "transport/tree.c", "if (h->lanes != own->lanes) return 0;", "",
        proofs.test_a_worker_takes_lanes_only_of_its_own_target,
    ),
    "S10: a result without its lanes is taken": Mutant(
        "transport/tree.c", "return length == t->packet_bytes || is_short(h) ||", "return 1 ||",
        proofs.test_a_worker_takes_lanes_only_of_its_own_target,
    ),
    "S11: a worker that wants no lanes waits for them": Mutant(
        "transport/tree.c", " || !target_wants(own, t->rank);", ";",
        proofs.test_a_worker_takes_lanes_only_of_its_own_target,
    ),
    "E9: a ready worker votes as another": Mutant(
        "resume/resume.c", "w->is_ready && terms->has_scatters ? READY :", "",
        lambda: proofs.test_ready_workers_finish_their_scatter({0, 1, 2}, Targets.ON),
    ),
    "E9: a ready worker finishes at once": Mutant(
        "session/calls.c", "lacks_closing_only(call) && call->rows.form == NF_SCATTER", "0",
        proofs.test_a_scatter_is_made_again_where_one_worker_is_not_ready,
    ),
    "E10: one ready worker is enough": Mutant(
        "resume/resume.c", "if (ready != votes_for(terms, sums->calls, lowest)) ready = 0;", "",
        proofs.test_a_scatter_is_made_again_where_one_worker_is_not_ready,
    ),
    "E10: no ready worker finishes": Mutant(
        "resume/resume.c", "o.is_ready_finished = ready &&", "o.is_ready_finished = 0 &&",
        lambda: proofs.test_ready_workers_finish_their_scatter({0, 1, 2}, Targets.ON),
    ),
    "E12: a scatter is handed over": Mutant(
        "session/synchronize.c", "if (call && call->rows.form == NF_SCATTER) return 1;", "",
        proofs.test_a_ready_worker_ends_at_its_deadline_and_others_are_told,
    ),
    "F27: O of a gather has a meaning": Mutant(
        "parts/gather.c", "(void)t, (void)now;",
        "(void)t, (void)now;\n    c->rows.needs_reencode[s->first + chunk] = (h->flags & FLAG_OVERFLOW) != 0;",
        proofs.test_bits_at_the_limits_of_int32_are_gathered_at_once,
    ),
    "C15: a scatter is as a gather": Mutant(
        "call/fingerprint.c", "if (r->form) hash = nf_mix(hash, (uint64_t)r->form);", "",
        proofs.test_workers_in_a_scatter_and_in_a_gather_are_told,
    ),
    "C19: a lost worker's block is gathered": Mutant(
        "session/scheduler.c", "call->request.form == NF_GATHER && ", "0 && ",
        proofs.test_a_gather_of_a_worker_that_is_lost_is_an_error,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_rule_that_is_left_out_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    prove(MUTANTS[name], tmp_path, monkeypatch)
