# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold run` and `netfold measure` from the outside: how they fail, and whose their files are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netfold.testbed import cli

COMMANDS = [(cli.run, ["--target", "softswitch"]), (cli.measure, ["inart-fig1", "--target", "softswitch"])]


@pytest.mark.parametrize(("command", "arguments"), COMMANDS, ids=["run", "measure"])
def test_without_root_and_sudo_one_line_says_so(command, arguments, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda name: None)
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 1
    lines = [line for line in result.output.splitlines() if line.startswith("netfold: ")]
    assert len(lines) == 1
    assert "need root" in lines[0]


@pytest.mark.parametrize(("command", "arguments"), COMMANDS, ids=["run", "measure"])
def test_without_root_it_runs_itself_through_sudo(command, arguments, monkeypatch: pytest.MonkeyPatch):
    ran: list[list[str]] = []

    def execv(path: str, command: list[str]) -> None:
        ran.append(command)
        raise SystemExit(7)

    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("os.execv", execv)
    assert CliRunner().invoke(command, arguments).exit_code == 7
    assert [c[0] for c in ran] == ["/usr/bin/sudo"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--fabric", "no-such-fabric"], "no-such-fabric"),
        (["--target", "nonsense"], "no switch target"),
    ],
)
def test_bad_input_is_one_line(arguments, says, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    result = CliRunner().invoke(cli.run, arguments)
    assert result.exit_code == 1
    assert says in next(line for line in result.output.splitlines() if line.startswith("netfold: "))


def test_what_root_wrote_is_given_to_the_user_who_called_sudo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    given: list[tuple[Path, int, int]] = []
    monkeypatch.setattr("os.chown", lambda path, user, group: given.append((path, user, group)))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    file = tmp_path / "run.json"
    file.touch()
    monkeypatch.delenv("SUDO_UID", raising=False)
    cli.give_back(tmp_path)
    assert given == []
    monkeypatch.setitem(os.environ, "SUDO_UID", "1000")
    monkeypatch.setitem(os.environ, "SUDO_GID", "1001")
    cli.give_back(tmp_path)
    assert sorted(given) == [(tmp_path, 1000, 1001), (file, 1000, 1001)]
