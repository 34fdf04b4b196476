# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A fault that is put into the controller. `apply` changes a module's source while it is imported; the files stay as
they are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path

CONTROLLER = Path(__file__).resolve().parents[2] / "controller"


@dataclass(frozen=True)
class Mutant:
    """`new` in place of `old` in a file of the controller. `scenario`: of a mutant that few seeds find, one by hand
    (regressions.py) that finds it, too."""

    name: str
    file: str
    old: str
    new: str
    scenario: str = ""

    @property
    def path(self) -> Path:
        return CONTROLLER / self.file


def misplaced(mutants: Iterable[Mutant]) -> list[str]:
    """The mutants that do not change exactly one place."""
    return [m.name for m in mutants if m.path.read_text().count(m.old) != 1]


def run_failing(*arguments: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run Python, which has to end with 1, as for a mutant that is found."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    return done


def apply(mutant: Mutant) -> None:
    """Before the module is imported. Raises ValueError if the text is not there exactly once."""
    source = mutant.path.read_text()
    if source.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: its text is {source.count(mutant.old)} times in {mutant.file}")
    changed = source.replace(mutant.old, mutant.new).encode()
    original = SourceFileLoader.get_data

    def get_data(loader: SourceFileLoader, path: str) -> bytes:
        if path.endswith(".py") and Path(path).resolve() == mutant.path:
            return changed
        if (
            path.endswith(".pyc")
            and Path(path).parent.parent.resolve() / f"{mutant.path.stem}.py" == mutant.path
        ):
            raise OSError("compiled from the original source")
        return original(loader, path)

    sys.dont_write_bytecode = True
    SourceFileLoader.get_data = get_data  # type: ignore[method-assign]
