# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold measure` from the outside: its commands, its errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from netfold.cli import build
from netfold.evaluation.testbed import cli


def test_help_names_every_experiment_and_each_has_a_module_of_its_name():
    result = CliRunner().invoke(build("measure"), ["measure", "--help"])
    assert result.exit_code == 0
    names = [experiment.name.removeprefix("measure-") for experiment in cli.EXPERIMENTS]
    assert [command.name for command in cli.app.registered_commands] == names
    folder = Path(cli.__file__).parent
    assert all((folder / f"{name}.py").exists() or (folder / name).is_dir() for name in names)
    assert all(name in result.output for name in names)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("arrivals", "--spreads-ms"),
        ("balance", "--sizes-mb"),
        ("balance", "--speeds"),
        ("quorum", "--delays-ms"),
    ],
)
def test_invalid_numbers_are_named(command: str, option: str):
    result = CliRunner().invoke(build("measure"), ["measure", command, option, "1,x"])
    assert result.exit_code == 2
    assert option in result.output
    assert "expected numbers A,B,C" in result.output
