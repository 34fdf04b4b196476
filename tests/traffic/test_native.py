# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How the engine's C code comes to a host."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from netfold.traffic.engine import native
from netfold.traffic.errors import EngineUnavailableError


@pytest.fixture(autouse=True)
def forgetful():
    """Libraries that were loaded are looked for again, before and after."""
    native.library.cache_clear()
    yield
    native.library.cache_clear()


def test_it_is_built_once_and_renamed_into_place(tmp_path):
    source = tmp_path / "one.c"
    source.write_text("int one(void) { return 1; }\n")
    built = native.build([source], tmp_path / "cache")
    stamp = built.stat().st_mtime_ns
    assert native.build([source], tmp_path / "cache") == built
    assert built.stat().st_mtime_ns == stamp
    source.write_text("int one(void) {\n    return missing + more;\n}\n")
    with pytest.raises(subprocess.SubprocessError) as failed:
        native.build([source], tmp_path / "cache")
    assert re.search(r"one\.c:2:12: error: .missing. undeclared", str(failed.value).splitlines()[0])
    assert len(str(failed.value).splitlines()) == 1, "gcc names the function first, and then each error"
    assert [p.name for p in Path(tmp_path / "cache").iterdir()] == [built.name]


def test_what_a_killed_build_left_is_removed_by_a_later_one(tmp_path):
    source, cache = tmp_path / "one.c", tmp_path / "cache"
    source.write_text("int one(void) { return 1; }\n")
    cache.mkdir()
    abandoned, under_way = cache / "part-killed.so", cache / "part-running.so"
    for part in (abandoned, under_way):
        part.touch()
    an_hour_ago = time.time() - 3600
    os.utime(abandoned, (an_hour_ago, an_hour_ago))
    built = native.build([source], cache)
    assert {p.name for p in cache.iterdir()} == {built.name, under_way.name}


def test_code_that_another_user_may_have_put_there_is_not_loaded(tmp_path, monkeypatch):
    source, cache = tmp_path / "one.c", tmp_path / "cache"
    source.write_text("int one(void) { return 1; }\n")
    old = os.umask(0o002)
    try:
        built = native.build([source], cache)
    finally:
        os.umask(old)
    code = built.read_bytes()
    assert not built.stat().st_mode & 0o022

    built.write_bytes(b"planted")
    built.chmod(0o720)
    assert native.build([source], cache).read_bytes() == code, "it is built again"
    cache.chmod(0o777)
    native.build([source], cache)
    assert not cache.stat().st_mode & 0o022
    cache.chmod(0o777)
    user = os.geteuid() + 1000
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(PermissionError, match=str(cache)):
        native.build([source], cache)


def test_without_a_compiler_the_error_names_it(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(native, "BUILT_IN", tmp_path / "none.so")
    with pytest.raises(EngineUnavailableError, match="no C compiler"):
        native.library()


def test_without_a_home_directory_the_error_names_it(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setattr(native, "BUILT_IN", Path("/nonexistent"))
    with pytest.raises(EngineUnavailableError, match="home directory"):
        native.library()
