# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""InArt's figures that follow from plans: what is exact in the paper comes out, and what has no plan is left out."""

from __future__ import annotations

import pytest

from netfold.evaluation.papers.inart import FIGURES
from netfold.evaluation.papers.inart_derived import derived, derived_rows, derived_table
from netfold.evaluation.papers.rate_point import RatePoint

EVEN = next(f for f in FIGURES if f.name == "8a")


def point(workers: int) -> RatePoint:
    """LBMM alone, as it is exactly: each worker's whole gradient reaches the servers' 80 Mbit/s."""
    return RatePoint(EVEN, workers, {"lbmm": 80 / workers}, {"lbmm": float(workers)}, 1.0, 1.0, 1)


def test_what_is_exact_in_the_paper_comes_out():
    for figure, at in derived([point(n) for n in EVEN.x]):
        ours = figure.ours(at, "lbmm")
        if "lbmm" in figure.published:
            assert ours == pytest.approx(figure.published["lbmm"], rel=0.13), figure


def test_what_has_no_plan_is_left_out():
    few = [point(30)]
    assert {f.figure for f, _ in derived(few)} == {"10a", "13"}
    assert [set(row["ours"]) for row in derived_rows(few)] == [{"lbmm"}] * 2
    assert derived_table(few).row_count == 2
