# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How `netfold-roce` is compiled: on a host with libibverbs-dev by `netfold roce build`, for machines of the testbed
against the unpacked package."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = ("numbers.c", "control.c", "links.c", "call.c", "worker.c")
HEADERS = ("numbers.h", "control.h", "links.h", "call.h", "worker.h")
PROGRAM = "main.c"
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread")
LIBRARIES = ("-libverbs", "-lm")


class BuildError(Exception):
    """The compiler refused; the message has its first words."""


def build(to: Path, root: Path | None = None, compiler: str = "gcc") -> Path:
    """Compile the worker's program. `root`: an unpacked libibverbs-dev, not this machine's. Raises BuildError."""
    if shutil.which(compiler) is None:
        raise BuildError(f"there is no {compiler}: apt-get install gcc libc6-dev")
    own = [] if root is None else _unpacked(root)
    sources = [str(HERE / name) for name in (*SOURCES, PROGRAM)]
    command = [compiler, *FLAGS, *sources, "-o", str(to), *own, *LIBRARIES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        what = next((x for x in done.stderr.splitlines() if "error" in x), done.stderr.strip())
        raise BuildError(f"{what} (libibverbs-dev gives <infiniband/verbs.h>)")
    return to


def _unpacked(root: Path) -> list[str]:
    libraries = root / "usr/lib/x86_64-linux-gnu"
    return [f"-I{root}/usr/include", f"-L{libraries}", f"-Wl,-rpath-link,{libraries}"]
