# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The two distributions of this repository as wheels, and environments in which they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.house.imports import REPOSITORY

DEADLINE_S = 240.0


@dataclass(frozen=True)
class Installed:
    """A virtual environment with both wheels, and an empty folder to call their commands from."""

    python: Path
    folder: Path

    @property
    def netfold(self) -> Path:
        return self.python.with_name("netfold")

    @property
    def softswitch(self) -> Path:
        return self.python.with_name("softswitch")

    def run(self, *command: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **more}
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )


@dataclass(frozen=True)
class Wheels:
    """The wheels of the two distributions of this repository, in one folder."""

    netfold: Path
    softswitch: Path


def build(folder: Path, is_isolated: bool) -> Wheels:
    """Builds both from a copy, which leaves the checkout unchanged. `is_isolated`: with the build requirements of
    pyproject.toml, from the index, as a release is; otherwise with those of this environment."""
    copy = folder / "netfold"
    built = {".git", "build", "dist", "out", "logs", "pcaps"}

    def ignore(inside: str, names: list[str]) -> set[str]:
        top = built if Path(inside) == REPOSITORY else set()
        left = {n for n in names if n.endswith((".so", ".egg-info", "_cache")) or n == "__pycache__"}
        return left | top | {n for n in names if n.startswith(".venv")}

    shutil.copytree(REPOSITORY, copy, symlinks=True, ignore=ignore)
    options = ["-q", "--no-deps", *([] if is_isolated else ["--no-build-isolation"]), "-w", folder]
    for source in (copy, copy / "softswitch"):
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", *options, source], check=True, timeout=DEADLINE_S
        )
    return Wheels(next(folder.glob("netfold-*.whl")), next(folder.glob("softswitch-*.whl")))
