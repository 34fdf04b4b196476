# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Without a runtime folder of the user's own, networks have their files in /tmp, under a name that anyone can guess."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from netfold.protocol.environment import Variable
from netfold.protocol.runtime import FolderError, check_own, is_only_user, make_own
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.holder import holder_of
from netfold.testbed.network.state import RunDirectory, State

STRANGER = 4242


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The runtime folder, which is not there yet."""
    upper = tmp_path / "netfold-1000"
    monkeypatch.delenv(Variable.RUN_DIR, raising=False)
    for module in ("protocol.runtime", "testbed.network.state", "testbed.network.holder"):
        monkeypatch.setattr(f"netfold.{module}.runtime_folder", lambda: upper / "netfold")
    return upper / "netfold"


def _link(folder: Path) -> None:
    """To a folder of this user's, in which a stranger would have files overwritten."""
    elsewhere = folder.with_suffix(".elsewhere")
    elsewhere.mkdir()
    folder.symlink_to(elsewhere)


def _dangling_link(folder: Path) -> None:
    folder.symlink_to(folder.with_suffix(".nowhere"))


def _of_a_stranger(folder: Path) -> None:
    if is_only_user() or os.geteuid():
        pytest.skip("SKIPPED: needs root, and other users")
    folder.mkdir()
    os.chown(folder, STRANGER, STRANGER)


def _for_all(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


@pytest.mark.parametrize("spoil", [_link, _dangling_link, _of_a_stranger, _for_all])
@pytest.mark.parametrize("is_upper", [False, True])
def test_a_folder_that_a_stranger_made_is_not_used(
    spoil: Callable[[Path], None], is_upper: bool, folder: Path
) -> None:
    spoiled = folder.parent if is_upper else folder
    spoiled.parent.mkdir(exist_ok=True)
    spoil(spoiled)
    for use in (check_own, make_own):
        with pytest.raises((FolderError, FileExistsError)):
            use(folder)
    with pytest.raises(NetworkError, match="is not to be trusted"):
        RunDirectory("t")
    with pytest.raises(NetworkError, match="is not to be trusted"):
        holder_of("t")


def test_strangers_may_write_beside_a_folder_in_tmp_but_not_into_it(folder: Path) -> None:
    for at in (folder.parent, folder):
        at.mkdir(exist_ok=True)
    folder.parent.chmod(0o1777)
    check_own(folder)
    folder.chmod(0o1777)
    with pytest.raises(FolderError):
        check_own(folder)


@pytest.mark.parametrize("umask", [0, 0o022])
def test_a_network_makes_each_level_for_its_user_whatever_the_umask_is(
    umask: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netfold.protocol.runtime.is_root", lambda: False)
    before = os.umask(umask)
    try:
        directory = RunDirectory("t")
        directory.acquire()
        directory.write(State("t", "r", 1, "f", "fake"))
        directory.release()
    finally:
        os.umask(before)
    assert [stat.S_IMODE(f.stat().st_mode) for f in (folder.parent, folder)] == [0o700, 0o700]


def test_a_folder_that_the_user_names_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "named"
    _link(named)
    monkeypatch.setenv(Variable.RUN_DIR, str(named))
    RunDirectory("t").prepare()
    assert (named / "t" / "logs").is_dir()
