# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold measure` from the outside: what it names, where its figures go, how it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netfold.cli.main import build
from netfold.measure import options
from netfold.measure.cli import app
from netfold.testbed.errors import RunError

FOLDERS = {p.parent.name for p in Path(options.__file__).parent.glob("*/cli.py")}


def test_help_names_every_measurement_and_nothing_else():
    result = CliRunner().invoke(build("measure"), ["measure", "--help"])
    assert result.exit_code == 0
    named = {command.callback.__name__.replace("_", "-") for command in app.registered_commands}
    assert named == {folder.replace("_", "-") for folder in FOLDERS}
    assert all(name in result.output for name in named)


def test_json_goes_to_a_file_or_stands_for_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "deep" / "figures.json"
    assert not options.written(file, {"rows": []})
    assert json.loads(file.read_text()) == {"rows": []}
    assert options.written(options.STDOUT, {"rows": [1]})
    assert json.loads(capsys.readouterr().out) == {"rows": [1]}
    assert not options.written(None, {})


@pytest.mark.parametrize(
    ("command", "option"),
    [("arrivals", "--spreads"), ("balance", "--sizes"), ("balance", "--speeds"), ("quorum", "--delays")],
)
def test_numbers_that_are_none_are_named(command: str, option: str):
    result = CliRunner().invoke(build("measure"), ["measure", command, option, "1,x"])
    assert result.exit_code == 2
    assert f"{option} takes numbers" in result.output


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path):
    with pytest.raises(RunError, match=r"--json .*: Is a directory"):
        options.written(tmp_path, {})
