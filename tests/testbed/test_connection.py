# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A user's controller is found by what runs in the hosts, which are root's."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from netfold.protocol import connection as api
from netfold.protocol.connection import connection


@pytest.fixture
def folder() -> Iterator[Path]:
    """Its path leaves place for a socket's name, of at most 107 bytes, which one of pytest may not."""
    with tempfile.TemporaryDirectory(prefix="nf-") as path:
        yield Path(path)


@pytest.fixture
def users(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The socket of a controller that this user runs, and root's process under sudo."""
    file = folder / "netfold" / "controller.sock"
    file.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(file))
    user = os.getuid()
    monkeypatch.setattr(api, "_RUNTIME_FOLDERS", (f"{folder.parent}/{{uid}}-none", str(folder)))
    monkeypatch.setattr("netfold.protocol.runtime.ROOTS_FOLDER", folder / "roots")
    monkeypatch.setattr(api, "check_default_socket", lambda: None)  # the folder is of a test's user
    for variable in ("NETFOLD_RUN_DIR", "NETFOLD_NAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        "netfold.protocol.runtime._user_map", lambda: [(0, 0, 1 << 32)]
    )  # that of the machine
    monkeypatch.setenv("SUDO_UID", str(user))
    monkeypatch.delenv("NETFOLD_CONTROLLER", raising=False)
    return file


def test_under_sudo_the_callers_controller_is_found(users: Path) -> None:
    assert connection().address == f"unix:{users}"


def test_what_is_said_comes_first_then_roots_own(users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (users.parents[1] / "roots").mkdir()
    (users.parents[1] / "roots" / "controller.sock").touch()
    assert connection().address == f"unix:{users.parents[1]}/roots/controller.sock"
    monkeypatch.setenv("NETFOLD_CONTROLLER", "unix:/said")
    assert connection().address == "unix:/said"


@pytest.mark.parametrize("user", ["", "you", str(os.getuid() + 1)])
def test_a_socket_that_is_not_the_callers_is_not_taken(
    users: Path, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    monkeypatch.setenv("SUDO_UID", user)
    assert connection().address == f"unix:{users.parents[1]}/roots/controller.sock"


def test_each_network_has_a_controller_of_its_own(users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID")
    monkeypatch.setenv("NETFOLD_NAME", "other")
    assert connection().address == f"unix:{users.parents[1]}/roots/other/controller.sock"
