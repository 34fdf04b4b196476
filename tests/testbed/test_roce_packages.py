# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Where the packages of machines are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from netfold.testbed.roce import packages


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for all users, in a folder of this test."""
    monkeypatch.setattr(packages, "CACHE", tmp_path / "var" / "netfold" / "roce")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    (tmp_path / "var").mkdir()
    return packages.CACHE


def test_root_fills_the_folder_of_all_users(shared: Path) -> None:
    assert packages.cache_folder() == shared


def test_a_user_takes_what_root_has_filled_and_else_fills_a_folder_of_its_own(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: not Path(path).is_relative_to(tmp_path / "var"))
    assert packages.cache_folder() == tmp_path / "own" / "netfold" / "roce"
    shared.mkdir(parents=True)
    packages.complete_mark().parent.mkdir(parents=True)
    assert not packages.complete_mark().is_relative_to(shared), "an incomplete one is of no use"
    (shared / "complete").touch()
    assert packages.unpacked(lambda step: None) == shared / "root"
