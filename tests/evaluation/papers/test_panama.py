# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""PANAMA's simulation on a fat-tree of 16 servers: what a point is made of, its intervals, and what is printed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from netfold.evaluation.core.experiment import to_csv
from netfold.evaluation.papers.cli import app
from netfold.evaluation.papers.panama import simulation, variants
from netfold.evaluation.papers.panama.experiment import Panama
from netfold.evaluation.papers.panama.rows import claims_of, rows_of
from netfold.evaluation.papers.panama.simulation import LOADS, SCHEMES, SHORT, LoadPoint, point, points
from netfold.simulator.schemes.catalog import SchemeName
from netfold.simulator.sweep.sweep import Executor, sweep
from netfold.simulator.sweep.task import SweepTask

TINY = LoadPoint(
    SchemeName.PANAMA, 0.5, k=4, workers=6, seconds=0.4, warm_up=0.1, blocks=4, sizes="web-search", background=0.02,
    replications=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    results = [point(replace(TINY, scheme=scheme, load=load)) for load in (0.05, 0.5) for scheme in SCHEMES]
    return [r for r in results if isinstance(r, dict)]


def test_the_sweep_is_the_papers_twenty_loads_by_four_schemes():
    wanted = points()
    assert len(wanted) == 80
    assert {p.load for p in wanted} == set(LOADS)
    assert len(LOADS) == 20
    assert wanted[0].k ** 3 / 4 == 1024
    assert len(points(quick=True)) == 20


def test_a_point_is_the_same_wherever_it_runs():
    assert json.dumps(point(TINY)) == json.dumps(point(TINY))


def test_all_schemes_have_the_same_flows_and_jobs_and_the_load(found: list[dict[str, Any]]):
    for load in (0.05, 0.5):
        own = [r for r in found if r["load"] == load]
        assert len({(r["flows"], r["jobs"], r["offered"]) for r in own}) == 1
        counts = [[b[0] for b in r["short"][str(SHORT[1])]["blocks"]] for r in own]
        assert counts == [counts[0]] * 4
    assert found[-1]["offered"] == pytest.approx(0.5, abs=0.15)


def test_the_99th_percentile_is_that_of_all_short_flows():
    """The kept tails are enough for it."""
    times = np.random.default_rng(1).exponential(size=4000)
    floor = np.quantile(times, simulation.TAIL)
    blocks = [[1000, sorted(t for t in part if t >= floor)] for part in np.split(times, 4)]
    result = {
        "scheme": "panama", "load": 0.1, "jobs": 1, "host_links": 0.1, "iterations": {}, "replications": 1,
        "short": {str(s): {"mean": 1.0, "unfinished": 0, "blocks": blocks} for s in SHORT},
    }  # fmt: skip
    row = rows_of([result])[0]
    assert row.p99_s == pytest.approx(float(np.quantile(times, 0.99)), rel=0.01)
    assert row.p99_interval[0] < row.p99_s < row.p99_interval[1]
    assert row.p99_gain == 1.0
    assert row.short_flows == 4000


def test_rows_and_claims_are_printed_and_kept(found: list[dict[str, Any]]):
    rows = rows_of(found)
    claims = claims_of(rows)
    kept = json.loads(json.dumps(Panama().document(rows)))
    assert {"scheme", "load", "p99_s", "p99_interval"} <= kept["rows"][0].keys()
    assert len(to_csv(Panama().csv_rows(rows)).splitlines()) == 9
    assert [c.published for c in claims] == [4.5, 1.34]
    assert {c["verdict"] for c in kept["claims"]} <= {"exceeded", "confirmed", "not reached"}
    ideal = next(r for r in rows if r.scheme == SchemeName.IDEAL and r.load == 0.5)
    ring = next(r for r in rows if r.scheme == SchemeName.RING and r.load == 0.5)
    assert ideal.p99_s <= ring.p99_s


def test_the_command_writes_picture_json_and_csv(tmp_path, monkeypatch):
    tiny = [replace(TINY, scheme=s, load=0.3, seconds=0.3) for s in SCHEMES]
    monkeypatch.setattr(simulation, "points", lambda seed, quick: tiny)
    done = CliRunner().invoke(app, ["panama", "--processes", "1", "--no-cache", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "short flows' p99 │ 4.5 │" in " ".join(done.output.split())
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        f"reproduce-panama.{kind}" for kind in ("csv", "json", "png", "svg")
    ]


def test_flows_are_added_until_the_percentile_is_known_well_enough():
    some = replace(TINY, within=0.0, replications=3)
    enough = replace(some, within=10.0)
    every, first = point(some), point(enough)
    assert isinstance(every, dict)
    assert isinstance(first, dict)
    assert (every["replications"], first["replications"]) == (3, 1)
    blocks = every["short"]["1000000"]["blocks"]
    assert len(blocks) == 3 * TINY.blocks
    assert blocks[: TINY.blocks] == first["short"]["1000000"]["blocks"], "the first ones stay"
    assert len({json.dumps(blocks[i :: TINY.blocks]) for i in range(3)}) == 3, (
        "others have flows of their own"
    )
    rows = rows_of([{**first, "scheme": "ring"}, every])
    assert rows[0].p99_gain_interval[0] <= rows[0].p99_gain <= rows[0].p99_gain_interval[1]


def test_two_dask_workers_give_every_bit_of_a_point():
    points = [replace(TINY, scheme=scheme) for scheme in SCHEMES]
    there = list(sweep(point, points, Executor(jobs=2)))
    here = list(sweep(point, points, Executor(jobs=1)))
    assert json.dumps(there) == json.dumps(here)


@pytest.mark.long
def test_two_dask_workers_give_every_bit_of_what_the_command_sweeps():
    """Points of `netfold reproduce panama --quick`, of each scheme."""
    wanted = [p for p in points(quick=True) if p.load == simulation.QUICK_LOADS[1]]
    there = list(sweep(point, wanted, Executor(jobs=2)))
    assert json.dumps(there) == json.dumps([SweepTask(point, p).run() for p in wanted])


def test_one_assumption_is_changed_at_a_time(tmp_path, monkeypatch):
    base = replace(TINY, load=0.3, seconds=0.3)
    monkeypatch.setattr(variants, "BASE", base)
    monkeypatch.setattr(
        variants, "VARIANTS", {"all": {}, "open": {"open_loop": True}, "16": {"parallel": 16}}
    )
    command = ["panama-vary", "--processes", "1", "--no-cache", "--out", str(tmp_path), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "reproduce-panama-vary.json").read_text())["rows"]
    assert [row["what"] for row in found] == ["all", "open", "16"]
    assert found[2]["panama"] == found[0]["panama"], "only the ring has connections"
    assert found[2]["ring"]["p99_s"] >= found[0]["ring"]["p99_s"]
    assert len((tmp_path / "reproduce-panama-vary.csv").read_text().splitlines()) == 1 + 3 * len(SHORT)


@pytest.mark.parametrize("name", list(variants.VARIANTS))
def test_each_variant_can_be_simulated(name: str):
    changed = {k: v for k, v in variants.VARIANTS[name].items() if k not in ("workers", "load")}
    for scheme in (SchemeName.RING, SchemeName.PANAMA):
        result = point(replace(TINY, scheme=scheme, seconds=0.2, **changed))
        assert isinstance(result, dict)
        assert result["short"]["1000000"]["mean"] > 0
