# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold reproduce grid` and `inart`: setups, means, files, and the figures of InArt that follow from plans."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netfold.evaluation.core.output import Output, evaluate
from netfold.evaluation.papers.cli import app as reproduce_app
from netfold.evaluation.papers.grid import GRID
from netfold.evaluation.papers.inart import FIGURES, INART
from netfold.evaluation.papers.inart_derived import derived, derived_rows, derived_table
from netfold.evaluation.papers.rate_figure import RatePoint
from netfold.evaluation.papers.rates import InArt


def test_setups_have_the_papers_sizes() -> None:
    for figure in GRID.figures:
        setup = GRID.draw(figure, figure.x[-1], 0)
        assert len(setup.job.workers) == figure.x[-1]
        able = sum(s.aggregates for s in setup.fabric.switches)
        assert able == {"11a": 32, "11b": 30, "12a": 16, "12b": 12}[figure.name]
    for figure in INART.figures:
        setup = INART.draw(figure, figure.x[-1], 0)
        assert len(setup.fabric.switches) == 45
        assert setup.fabric == INART.draw(figure, figure.x[-1], 0).fabric
        assert setup.fabric != INART.draw(figure, figure.x[-1], 1).fabric


@pytest.mark.slow
def test_reproduced_columns_stand_in_the_right_order() -> None:
    point = next(iter(InArt(1, no_cache=True, draws=1, only=["8a"]).rows(print)))
    v = point.values
    assert v["scaled"] <= v["repaired"] <= v["optimal"] <= v["optimal <="] <= v["LP bound"] * (1 + 1e-6)
    assert v["lbmm"] == pytest.approx(80 / point.x)
    assert v["lbmm"] < v["atp"] < v["repaired"]


@pytest.mark.slow
def test_points_are_means_over_the_draws() -> None:
    quick = InArt(quick=True)
    assert [(f.name, x) for f, x in quick.points()] == [(f.name, x) for f in INART.figures for x in f.x[::2]]
    one = InArt(1, no_cache=True, draws=2, only=["8a"])
    assert next(iter(one.rows(print))).draws == 2


@pytest.mark.slow
def test_a_quick_reproduction_prints_tables_and_draws_plots(tmp_path: Path) -> None:
    experiment = InArt(1, no_cache=True, quick=True, only=["12a"])
    with redirect_stdout(io.StringIO()) as printed:
        evaluate(experiment, Output(out=tmp_path))
    assert "InArt, Fig. 12a" in printed.getvalue()
    found = json.loads((tmp_path / "reproduce-inart.json").read_text())
    assert [p["servers"] for p in found["points"]] == [2, 4, 6]
    assert (tmp_path / "reproduce-inart-fig12a.png").read_bytes()[:4] == b"\x89PNG"


def test_reproduce_refuses_a_place_it_cannot_write() -> None:
    result = CliRunner().invoke(reproduce_app, ["grid", "--out", "/proc/nowhere"])
    assert result.exit_code == 2
    assert "/proc/nowhere" in result.stderr


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
