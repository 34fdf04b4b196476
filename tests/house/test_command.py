# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The `netfold` command as a whole: its version, its forms, its completion."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from netfold.cli import COMMANDS, build, main


def test_the_version_is_that_of_the_distribution():
    command = [sys.executable, "-m", "netfold", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == f"netfold {importlib.metadata.version('netfold')}\n"


def bash(line: str) -> dict[str, str]:
    return {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_NETFOLD_COMPLETE": "complete_bash"}


def zsh(line: str) -> dict[str, str]:
    return {"_TYPER_COMPLETE_ARGS": line, "_NETFOLD_COMPLETE": "complete_zsh"}


def fish(line: str) -> dict[str, str]:
    own = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return {"_TYPER_COMPLETE_ARGS": line, "_NETFOLD_COMPLETE": "complete_fish", **own}


@pytest.mark.parametrize("shell", [bash, zsh, fish])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("netfold me", "measure"),
        ("netfold job su", "submit"),
        ("netfold host wo", "worker"),
        ("netfold host worker --ass", "--assignment"),
        ("netfold network fa", "faults"),
        ("netfold job submit --qu", "--queue"),
        ("netfold plan --comp", "--compare"),
    ],
)
def test_shells_complete_commands_and_options(
    shell, line: str, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for name, value in shell(line).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", ["netfold"])
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 0
    assert expected in capsys.readouterr().out


def test_the_help_has_at_most_fourteen_words_in_panels():
    top = {path: entry for path, entry in COMMANDS.items() if " " not in path}
    assert len(top) <= 14
    assert all(entry.panel for entry in top.values())
    assert {path.split()[0] for path in COMMANDS} == top.keys()
    shown = CliRunner().invoke(build(None), ["--help"], prog_name="netfold").output
    assert [word for word in top if f"│ {word} " not in shown] == []


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_of_the_index_has_help(path: str):
    result = CliRunner().invoke(build(path), [*path.split(), "--help"], prog_name="netfold")
    assert result.exit_code == 0, result.output
    assert f"netfold {path}" in result.output
