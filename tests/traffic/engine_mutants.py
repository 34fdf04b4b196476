# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine's core with one rule left out, which a test of calls has to find."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from netfold.traffic.engine.native import HEADERS
from netfold.traffic.engine.recipe import CORE, FLAGS, FOLDER
from tests.traffic import cores


@dataclass(frozen=True)
class Mutant:
    """`file`: of the engine's folder, in which `new` replaces `old`. `proof`: a test that must fail then."""

    file: str
    old: str
    new: str
    proof: Callable[[], None]


def prove(mutant: Mutant, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy, target = folder / "engine", folder / "core.so"
    shutil.copytree(FOLDER.resolve(), copy, ignore=shutil.ignore_patterns("*.py", "*.so", "__pycache__"))
    source = (copy / mutant.file).read_text()
    assert source.count(mutant.old) == 1
    (copy / mutant.file).write_text(source.replace(mutant.old, mutant.new))
    flags = [flag for flag in FLAGS if flag not in ("-O3", "-Wall", "-Wextra")]
    command = ["gcc", *flags, "-O1", "-shared", "-o", target, *(copy / part for part in CORE), "-lm"]
    subprocess.run(command, check=True, timeout=600)
    code = ctypes.CDLL(str(target))
    HEADERS.declare(code, "nf_core_", nf_totals=cores.Totals, nf_tree_report=cores.TreeReport)
    monkeypatch.setattr(cores, "code", lambda: code)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        mutant.proof()
