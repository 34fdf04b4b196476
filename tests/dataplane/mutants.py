# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The P4 program with one thing wrong, for tests that have to find it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from netfold.p4src.manifest import Form
from netfold.p4src.tools import p4build
from tests.dataplane.frames import LANES

Mutant = tuple[str, str, str, str]
"""The mutant in words, its file, the right text, the wrong one."""


def each_of(mutants: Sequence[Mutant]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("path", "right", "wrong"), [m[1:] for m in mutants], ids=[m[0] for m in mutants]
    )


def check_that_it_differs(path: str, right: str, wrong: str, once: bool = False) -> None:
    """The mutant is another program than the one that stands. `once`: it changes one place alone."""
    text = (p4build.REPOSITORY / "p4src" / path).read_text()
    assert text.count(right) == 1 if once else right in text
    assert text.replace(right, wrong) != text


def changed_copy(folder: Path, monkeypatch: pytest.MonkeyPatch, path: str, right: str, wrong: str) -> None:
    """Write the changed program to `folder`. From here on p4build builds that one."""
    shutil.copytree(p4build.REPOSITORY / "p4src", folder / "p4src")
    source = folder / "p4src" / path
    source.write_text(source.read_text().replace(right, wrong))
    monkeypatch.setattr(p4build, "REPOSITORY", folder)


def proofs(
    mutants: Sequence[Mutant],
    explore: Callable[[Path], None],
    *flags: str,
    lanes: int = LANES,
    form: Form = Form.V1MODEL,
    once: bool = False,
) -> tuple[Callable[..., None], ...]:
    """Tests that each mutant is another program than the one that stands, that this one passes `explore`, and that
    `explore` finds each mutant. `flags`: the compiler's, beside those of every program; `once`: a mutant changes one
    place alone."""

    def compiled(folder: Path) -> Path:
        skip_without_compiler()
        return p4build.compile_one(p4build.Profile(lanes, form=form), folder, *flags)[0]

    @each_of(mutants)
    def is_another(path: str, right: str, wrong: str) -> None:
        check_that_it_differs(path, right, wrong, once)

    @pytest.mark.long
    @pytest.mark.p4c
    def passes(tmp_path: Path) -> None:
        explore(compiled(tmp_path))

    @pytest.mark.long
    @pytest.mark.p4c
    @each_of(mutants)
    def is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, right: str, wrong: str) -> None:
        changed_copy(tmp_path, monkeypatch, path, right, wrong)
        program = compiled(tmp_path)
        with pytest.raises(AssertionError):
            explore(program)

    return is_another, passes, is_found


def skip_without_compiler() -> None:
    try:
        p4build.compiler_version()
    except p4build.P4BuildError as missing:
        pytest.skip(str(missing))
