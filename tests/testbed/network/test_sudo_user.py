# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Arguments and files of a command through sudo: what goes through, and whose the files are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from netfold.protocol.runtime import is_only_user, is_root
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.sudo_user import Recordings, as_sudo_user, become_root, sudo_user

needs_root = pytest.mark.skipif(
    is_only_user() or not is_root(), reason="SKIPPED: needs root, and other users"
)
USER, GROUP = 12345, 12346


@pytest.fixture
def by_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", str(USER))
    monkeypatch.setenv("SUDO_GID", str(GROUP))
    for folder in (tmp_path, *tmp_path.parents):
        folder.chmod(folder.stat().st_mode | 0o001)


def sudo_by(monkeypatch: pytest.MonkeyPatch, user: str, group: str) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", user)
    monkeypatch.setenv("SUDO_GID", group)


def test_a_command_keeps_all_that_is_netfolds_own(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []

    def execv(path: str, arguments: list[str]) -> None:
        called.append(arguments)
        raise SystemExit

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")
    kept = {
        "PATH": "/usr/bin",
        "NETFOLD_RUN_DIR": "/tmp/run",
        "NETFOLD_CONTROLLER": "unix:/tmp/with a space",
        "NETFOLD_TLS_CA": "/ca.pem",
        "NETFOLD_TLS_SERVER_NAME": "ctl",
        "NETFOLD_TOKEN_FILE": "/token",
    }
    for name, value in {**kept, "LD_PRELOAD": "/evil.so", "PYTHONPATH": "/evil"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", ["netfold", "network", "exec", "h1"])
    with pytest.raises(SystemExit):
        become_root()
    [words] = called
    assert words[:2] == ["/usr/bin/sudo", "env"]
    assert {f"{name}={value}" for name, value in kept.items()} <= set(words)
    assert not [w for w in words if "evil" in w]
    assert words[-4:] == ["netfold", "network", "exec", "h1"]


@pytest.mark.parametrize(("user", "group"), [("", ""), ("0", "0"), ("-1", "1"), ("you", "you"), ("1000", "")])
def test_without_sudo_there_is_no_caller(monkeypatch: pytest.MonkeyPatch, user: str, group: str) -> None:
    sudo_by(monkeypatch, user, group)
    assert sudo_user() is None


def test_a_user_without_a_name_has_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    sudo_by(monkeypatch, str(USER), str(GROUP))
    user = sudo_user()
    assert user is not None
    assert (user.name, user.groups) == (None, [GROUP])


@needs_root
def test_new_files_are_the_callers_and_rights_come_back(tmp_path: Path, by_sudo: None) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, USER, GROUP)
    secret = tmp_path / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)
    (home / "link").symlink_to(secret)
    groups = os.getgroups()
    with as_sudo_user():
        (home / "out").mkdir()
        (home / "out" / "run.json").write_text("{}")
        with pytest.raises(PermissionError):
            (home / "link").write_text("through the link")
    made = [(p.stat().st_uid, p.stat().st_gid) for p in (home / "out", home / "out" / "run.json")]
    assert made == [(USER, GROUP)] * 2
    assert secret.read_text() == "root's"
    assert (os.geteuid(), os.getgroups()) == (0, groups)


@needs_root
def test_recordings_are_handed_over_and_nothing_else(tmp_path: Path, by_sudo: None) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, USER, GROUP)
    secret = tmp_path / "secret"
    secret.touch()
    pcaps = home / "pcaps"
    names = ["new", "old", "link", "second-name", "pipe", "not-there"]
    recordings = Recordings(pcaps, names)
    with as_sudo_user():
        pcaps.mkdir()
    (pcaps / "old").touch()
    recordings.prepare()
    assert (pcaps / "new").stat().st_uid == 0, "it is root's switches that write to it"
    for replaced in names[2:]:
        (pcaps / replaced).unlink()
    (pcaps / "other").touch()
    (pcaps / "link").symlink_to(secret)
    (pcaps / "second-name").hardlink_to(secret)
    os.mkfifo(pcaps / "pipe")
    recordings.hand_over()
    owners = {p.name: p.lstat().st_uid for p in pcaps.iterdir()}
    assert owners == {"new": USER, "old": 0, "other": 0, "link": 0, "second-name": 0, "pipe": 0}
    assert secret.stat().st_uid == 0


@needs_root
def test_a_folder_of_recordings_is_the_callers(tmp_path: Path, by_sudo: None) -> None:
    with pytest.raises(
        NetworkError, match=r"cannot create the folder of captures .*pcaps: Permission denied"
    ):
        Recordings(tmp_path / "pcaps", []).prepare()
    os.chown(tmp_path, USER, GROUP)
    Recordings(tmp_path / "pcaps", []).prepare()
    assert (tmp_path / "pcaps").stat().st_uid == USER
