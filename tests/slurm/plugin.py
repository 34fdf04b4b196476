# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles Slurm's plugin, with warnings as errors."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.house.imports import REPOSITORY
from tests.slurm.packages import ROOT

SOURCE = REPOSITORY / "controller/slurm/spank_netfold.c"
FLAGS = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC")
HEADER = "slurm/spank.h"
INCLUDES = (ROOT / "usr/include", Path("/usr/include"))
COMPILE_S = 60.0


def headers() -> Path | None:
    """The folder with Slurm's headers, unpacked or installed; None: there is none."""
    return next((folder for folder in INCLUDES if (folder / HEADER).exists()), None)


def compile_plugin(library: Path, include: Path) -> None:
    command = [shutil.which("gcc") or "cc", *FLAGS, f"-I{include}", "-o", library, SOURCE]
    subprocess.run(command, check=True, timeout=COMPILE_S)
