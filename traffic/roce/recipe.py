# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How `netfold-roce` is compiled: on a host with libibverbs-dev by `netfold roce build`, for machines of the testbed
against the unpacked package."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from netfold.traffic.engine import recipe as engine

HERE = Path(__file__).parent
ENGINE, AGENT = "../engine", "../agent"
SOURCES = (
    f"{ENGINE}/numerics/quantize.c",
    f"{ENGINE}/numerics/rotate.c",
    f"{AGENT}/channel.c",
    f"{AGENT}/dump.c",
    "message_header.c",
    "calls.c",
    "control.c",
    "connections.c",
    "rows.c",
    "call.c",
    "gradient.c",
    "worker.c",
)
HEADERS = (
    *(f"{ENGINE}/{name}" for name in engine.HEADERS),
    f"{AGENT}/channel.h",
    f"{AGENT}/dump.h",
    f"{AGENT}/messages.h",
    "message_header.h",
    "calls.h",
    "control.h",
    "connections.h",
    "rows.h",
    "call.h",
    "gradient.h",
    "worker.h",
)
PROGRAM = "main.c"
ENGINE_DEFINES = ("-DNF_API=", "-DNF_PLAIN")
"""Flags of the engine's files: none of their functions is exported, and none has versions that an ifunc chooses
from, which sanitizers do not support."""
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", *ENGINE_DEFINES)
LIBRARIES = ("-libverbs", "-lm")
SHARED_OPTIONS = ("-fvisibility=hidden", *ENGINE_DEFINES, *LIBRARIES)
"""Flags of the shared object that worker.py loads: worker.h marks what is visible."""


class RoceBuildError(Exception):
    """The compiler failed; the message has its first error."""


def build(to: Path, root: Path | None = None, compiler: str = "gcc") -> Path:
    """Compiles the worker's program to the file `to`. `root`: an unpacked libibverbs-dev in place of this machine's.
    Raises BuildError."""
    if shutil.which(compiler) is None:
        raise RoceBuildError(f"no {compiler} on PATH: apt-get install gcc libc6-dev")
    own = [] if root is None else _unpacked(root)
    sources = [str(HERE / name) for name in (*SOURCES, PROGRAM)]
    command = [compiler, *FLAGS, *sources, "-o", str(to), *own, *LIBRARIES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        what = next((x for x in done.stderr.splitlines() if "error" in x), done.stderr.strip())
        raise RoceBuildError(f"{what} (libibverbs-dev gives <infiniband/verbs.h>)")
    return to


def _unpacked(root: Path) -> list[str]:
    libraries = root / "usr/lib/x86_64-linux-gnu"
    return [f"-I{root}/usr/include", f"-L{libraries}", f"-Wl,-rpath-link,{libraries}"]
