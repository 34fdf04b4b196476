# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The `netfold` command as a whole: its version, its forms, its completion."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.core import TyperGroup, TyperOption
from typer.testing import CliRunner

from netfold.cli import COMMANDS, CommandGroup, build, main
from tests.house.imports import REPOSITORY


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


def commands() -> Iterator[tuple[str, Any]]:
    """Each command that takes options, with its words."""
    for path, entry in COMMANDS.items():
        if isinstance(entry, CommandGroup):
            continue
        found: Any = typer.main.get_command(build(path))
        for word in path.split():
            found = found.commands[word]
        yield from leaves(path, found)


def leaves(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(command, TyperGroup):
        yield path, command
        return
    for word, below in command.commands.items():
        yield from leaves(f"{path} {word}", below)


def test_an_option_has_one_name_in_all_commands():
    """A short form stands for one option, and an option is a flag, and has its short form, wherever it is."""
    long_of: dict[str, set[str]] = defaultdict(set)
    is_flag: dict[str, set[bool]] = defaultdict(set)
    for _, command in commands():
        for option in (p for p in command.params if isinstance(p, TyperOption)):
            name = max(option.opts, key=len)
            is_flag[name].add(option.is_flag)
            for short in set(option.opts) - {name}:
                long_of[short].add(name)
    assert {short: names for short, names in long_of.items() if len(names) > 1} == {}
    assert [name for name, kinds in is_flag.items() if len(kinds) > 1] == []
    assert [name for name in is_flag if name.endswith("-s")] == []


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


def test_both_distributions_have_the_same_option_groups():
    there, here = (
        REPOSITORY / folder / "option_groups.py" for folder in ("softswitch/softswitch", "protocol")
    )
    assert there.read_text() == here.read_text()
