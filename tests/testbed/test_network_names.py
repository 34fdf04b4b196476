# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Commands that make a network for themselves give it the name of `--name`, else that of $NETFOLD_NAME."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from examples import ddp
from netfold.cli import build
from netfold.protocol.environment import Variable
from netfold.testbed.errors import RunError
from netfold.testbed.network import isolation
from netfold.testbed.network.modes import NetworkMode

COMMANDS = [
    ["measure", "plans", "inart-fig1"],
    ["measure", "reroute"],
    ["measure", "fairness", "--testbed"],
    ["roce", "run"],
]


class HolderStarted(BaseException):
    """In place of the holder, which takes the process."""


@pytest.fixture
def holders(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Command lines of the holders that would have started, from their action on."""
    started: list[list[str]] = []

    def execv(path: str, command: list[str]) -> None:
        started.append(command[command.index(isolation._HOLDER) + 1 :])
        raise HolderStarted

    monkeypatch.delenv(Variable.NAMESPACE)
    monkeypatch.setattr("os.execv", execv)
    monkeypatch.setattr(isolation, "pick_mode", lambda *_: NetworkMode.MININET)
    monkeypatch.setattr("netfold.testbed.roce.packages.unpacked", lambda report: None)
    return started


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: " ".join(c[:2]))
@pytest.mark.parametrize(
    ("options", "environment"), [(["--name", "other"], "mine"), ([], "other")], ids=["option", "variable"]
)
def test_a_holder_gets_the_name(
    command: list[str],
    options: list[str],
    environment: str,
    holders: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv(Variable.NAME, environment)
    with pytest.raises(HolderStarted):
        CliRunner().invoke(build(command[0]), [*command, *options], catch_exceptions=False)
    assert [holder[:2] for holder in holders] == [["create", "other"]]


def test_a_training_of_the_example_gets_the_name(
    holders: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["ddp", "--name", "other"])
    with pytest.raises(HolderStarted):
        ddp.main()
    assert [holder[:2] for holder in holders] == [["create", "other"]]


def test_the_switches_of_the_example_get_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def deploy(*_: object, name: str, **__: object) -> None:
        names.append(name)
        raise RunError("not started")

    monkeypatch.setattr(sys, "argv", ["ddp", "--name", "other"])
    monkeypatch.setattr(ddp, "torch_python", lambda: None)
    monkeypatch.setattr(ddp, "Testbed", deploy)
    with pytest.raises(SystemExit):
        ddp.main()
    assert names == ["other"]
