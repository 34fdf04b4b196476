# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The P4 program with one thing wrong, for tests that have to find it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from netfold.p4src.manifest import Form
from netfold.p4src.tools import p4build
from tests.dataplane.frames import LANES

Mutant = tuple[str, str, str, str]
"""What, the file, the right text, the wrong one."""


def each_of(mutants: Sequence[Mutant]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("path", "right", "wrong"), [m[1:] for m in mutants], ids=[m[0] for m in mutants]
    )


def check_that_it_differs(path: str, right: str, wrong: str, once: bool = False) -> None:
    """From the program as it stands; `once`: at one place alone."""
    text = (p4build.REPOSITORY / "p4src" / path).read_text()
    assert text.count(right) == 1 if once else right in text
    assert text.replace(right, wrong) != text


def changed_copy(folder: Path, monkeypatch: pytest.MonkeyPatch, path: str, right: str, wrong: str) -> None:
    """From here on the program is the one in `folder`."""
    shutil.copytree(p4build.REPOSITORY / "p4src", folder / "p4src")
    source = folder / "p4src" / path
    source.write_text(source.read_text().replace(right, wrong))
    monkeypatch.setattr(p4build, "REPOSITORY", folder)


def compiled_with(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    right: str,
    wrong: str,
    *flags: str,
    lanes: int = LANES,
    form: Form = Form.V1MODEL,
) -> Path:
    skip_without_compiler()
    changed_copy(folder, monkeypatch, path, right, wrong)
    return p4build.compile_one(p4build.Profile(lanes, form=form), folder, *flags)[0]


def compiled(folder: Path, *flags: str, lanes: int = LANES, form: Form = Form.V1MODEL) -> Path:
    """As it stands; `flags`: the compiler's, beside those of every program."""
    skip_without_compiler()
    return p4build.compile_one(p4build.Profile(lanes, form=form), folder, *flags)[0]


def skip_without_compiler() -> None:
    try:
        p4build.compiler_version()
    except p4build.P4BuildError as missing:
        pytest.skip(str(missing))
