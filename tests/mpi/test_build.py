# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How the library is built at its first use, by a compiler wrapper that a test has made."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from netfold.traffic.mpi import recipe
from netfold.traffic.mpi.recipe import SOURCES, MpiBuildError, build

pytestmark = pytest.mark.mpi

WRAPPER = """#!/bin/sh
[ "$1" = -show ] && exec echo gcc
echo "$@" >> {log}
{fault}
while [ "$1" != -o ]; do shift; done
echo code > "$2"
"""


def write_wrapper(folder: Path, fault: str = "") -> str:
    """A compiler that compiles nothing. Each call is a line of `folder`/log."""
    wrapper = folder / "mpicc"
    wrapper.write_text(WRAPPER.format(log=folder / "log", fault=fault))
    wrapper.chmod(0o755)
    return str(wrapper)


def compiled(folder: Path) -> list[str]:
    """The calls that were to compile a source."""
    return [line for line in (folder / "log").read_text().splitlines() if " -c " in line]


def test_builds_at_the_same_time_compile_each_source_once(tmp_path: Path):
    wrapper = write_wrapper(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: build(wrapper, tmp_path / "cache"), range(4)))
    assert len(found) == 1
    assert found.pop().read_text() == "code\n"
    assert len(compiled(tmp_path)) == len(SOURCES)


def test_a_build_continues_where_another_one_has_run_out_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    gate = tmp_path / "gate"
    wrapper = write_wrapper(tmp_path, f"case $* in *queue.c*) [ -e {gate} ] || exec sleep 600 ;; esac")
    monkeypatch.setattr(recipe, "COMPILE_SECONDS", 5.0)
    with pytest.raises(MpiBuildError) as caught:
        build(wrapper, tmp_path / "cache")
    assert str(caught.value) == (
        f"{wrapper} has not ended within 5 s, on a busy machine; start again: what has been compiled is kept"
    )
    done = len(compiled(tmp_path)) - 1
    gate.touch()
    monkeypatch.setattr(recipe, "COMPILE_SECONDS", 300.0)
    assert build(wrapper, tmp_path / "cache").exists()
    assert done > 0
    assert len(compiled(tmp_path)) == len(SOURCES) + 1


def test_an_error_is_the_compilers_first_one(tmp_path: Path):
    fault = 'case $* in *queue.c*) printf "a note\\nqueue.c:3:1: error: bad\\nerror: worse\\n" >&2; exit 1 ;; esac'
    wrapper = write_wrapper(tmp_path, fault)
    with pytest.raises(MpiBuildError) as caught:
        build(wrapper, tmp_path / "cache")
    assert str(caught.value) == f"{wrapper}: queue.c:3:1: error: bad"
    assert list((tmp_path / "cache").glob("*.so")) == []
