# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""An experiment's rows become a table, a JSON document, CSV and plots; errors name the option."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from rich.table import Table
from typer.testing import CliRunner

from netfold.controller.drawing.plot import Plot
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.core.output import Output, evaluate
from netfold.protocol.option_groups import expand_groups


@dataclass(frozen=True)
class SquareRow(Row):
    x: int
    ratio: float

    @property
    def square(self) -> int:
        return self.x**2


@dataclass(frozen=True)
class Squares(Experiment[SquareRow]):
    name = "squares"
    notes = ("a note",)
    count: int = 2

    def rows(self, notify: Notify) -> Iterable[SquareRow]:
        for x in range(self.count):
            notify(f"x = {x}")
            yield SquareRow(x, math.inf if x == 0 else 1 / x)

    def tables(self, rows: Sequence[SquareRow]) -> Iterable[Table]:
        columns = (
            Column[SquareRow]("x", lambda r: r.x),
            Column[SquareRow]("square", lambda r: r.square or None, ".1f"),
        )
        return [table("Squares", columns, rows)]

    def csv_rows(self, rows: Sequence[SquareRow]) -> Sequence[Mapping[str, object]]:
        return [r.to_dict() for r in rows]

    def plots(self, rows: Sequence[SquareRow]) -> Iterable[Plot]:
        def draw(figure: object) -> None:
            figure.subplots().plot([r.x for r in rows])  # type: ignore[attr-defined]

        return [Plot(draw), Plot(draw, suffix="again")]


def test_rows_become_files_and_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "deep" / "out"
    rows = evaluate(Squares(3), Output(out=out))
    assert [r.square for r in rows] == [0, 1, 4]
    shown = capsys.readouterr()
    assert "Squares" in shown.out
    assert "- a note" in shown.out
    assert "4.0" in shown.out
    assert "x = 2" in shown.err
    assert sorted(p.name for p in out.iterdir()) == [
        "squares-again.png",
        "squares-again.svg",
        "squares.csv",
        "squares.json",
        "squares.png",
        "squares.svg",
    ]
    assert [r["square"] for r in csv.DictReader((out / "squares.csv").open())] == ["0", "1", "4"]


def test_json_is_printed_alone_and_names_its_origin(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    evaluate(Squares(), Output(as_json=True, out=tmp_path))
    document = json.loads(capsys.readouterr().out)
    assert document["rows"] == [{"x": 0, "ratio": None, "square": 0}, {"x": 1, "ratio": 1.0, "square": 1}]
    assert document["parameters"] == {"count": 2}
    assert {"experiment", "command", "revision", "machine"} <= document.keys()
    assert json.loads((tmp_path / "squares.json").read_text()) == document


def test_rows_before_an_error_are_kept(tmp_path: Path):
    @dataclass(frozen=True)
    class Failing(Squares):
        def rows(self, notify: Notify) -> Iterable[SquareRow]:
            yield SquareRow(1, 1.0)
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        evaluate(Failing(), Output(out=tmp_path))
    document = json.loads((tmp_path / "squares.json").read_text())
    assert document["incomplete"]
    assert [r["x"] for r in document["rows"]] == [1]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(typer.BadParameter, match=r"--out .*file"):
        evaluate(Squares(), Output(out=tmp_path / "file"))


def test_a_command_has_the_options_of_its_groups():
    app = typer.Typer()
    seen: list[tuple[int, Output]] = []

    @app.command()
    @expand_groups
    def command(output: Output, count: Annotated[int, typer.Option(min=1)] = 2) -> None:
        """Help text."""
        seen.append((count, output))

    result = CliRunner().invoke(app, ["--count", "3", "--json", "--out", "there"])
    assert result.exit_code == 0, result.output
    assert seen == [(3, Output(True, Path("there")))]
    help_text = CliRunner().invoke(app, ["--help"]).output
    assert all(word in help_text for word in ("Help text.", "--json", "--out", "--count"))
