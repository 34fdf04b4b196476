# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold reproduce netreduce`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netfold.cli import build
from netfold.evaluation.papers.netreduce import CostGrid, conditions, cost_rows


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def said(out: Path) -> str:
    arguments = ["reproduce", "netreduce", "--json", "--quick", "--out", str(out)]
    result = CliRunner().invoke(build("reproduce"), arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.slow
def test_json_rows_are_the_cost_model_of_500_mb(said: str) -> None:
    found = json.loads(said)["rows"]
    assert all(list(r) == ["intra_gbs", "ranks", "latency_us", "scheme", "ms"] for r in found)
    assert {r["ranks"] for r in found} >= {32, 1024}
    assert {r["intra_gbs"] for r in found} >= {15.75, 100}
    assert {r["latency_us"] for r in found} >= {0.1, 100}
    for row in found:
        p, intra, a, between, size = (
            row["ranks"],
            row["intra_gbs"] * 1e9,
            row["latency_us"] * 1e-6,
            12.5e9,
            5e8,
        )
        h = p // 8
        seconds = {
            "FR": 2 * (p - 1) * a + 2 * (p - 1) / p * size / between,
            "TA": 2 * size / intra + 2 * (h - 1) * a + 2 * (h - 1) / h * size / between,
            "PN": 2 * 7 * a + 2 * 7 / 8 * size / intra + size / between,
        }
        assert row["ms"] == pytest.approx(1e3 * seconds[row["scheme"]], rel=1e-12)


@pytest.mark.slow
def test_csv_and_pictures_lie_beside_the_json(out: Path, said: str) -> None:
    assert (out / "reproduce-netreduce.json").read_text().strip() == said.strip()
    with (out / "reproduce-netreduce.csv").open() as file:
        table = list(csv.DictReader(file))
    written = [{k: str(v) for k, v in row.items()} for row in json.loads(said)["rows"]]
    assert table == written
    for picture in ("surfaces", "crossings"):
        assert (out / f"reproduce-netreduce-{picture}.png").read_bytes()[:4] == b"\x89PNG"


def test_the_sufficient_conditions_hold_over_the_whole_grid() -> None:
    found = {c.name: c for c in conditions(CostGrid())}
    assert found.keys() == {"PN < FR", "PN < TA", "TA < FR"}
    for condition in found.values():
        assert condition.broken == 0
        assert 0 < condition.holds <= condition.wins <= condition.points == len(cost_rows(CostGrid())) // 3
    assert found["PN < TA"].wins == found["PN < TA"].points
    assert found["PN < FR"].wins < found["PN < FR"].points, "a flat ring wins where machines are slow inside"
