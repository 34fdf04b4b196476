# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""channels.c as a shared object: compiled once for each machine and version, kept in the user's cache folder.

It is optional: without a compiler, or with NETFOLD_NATIVE=0, the workers use numpy, which does the same
more slowly.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("channels.c")
FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fno-strict-aliasing", "-Wall", "-Wextra")
COMPILE_SECONDS = 60
log = logging.getLogger(__name__)


@cache
def library() -> ctypes.CDLL | None:
    """The compiled code, or None where it cannot be had; a log line says why."""
    if os.environ.get("NETFOLD_NATIVE") == "0" or sys.byteorder != "little":
        return None
    try:
        code = ctypes.CDLL(str(build(SOURCE, _cache_folder())))
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("workers do without channels.c, at more processor time a packet: %s", error)
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    code.nf_match.argtypes = [pointer, pointer, number, *[pointer] * 7]
    code.nf_match.restype = None
    code.nf_ready.argtypes = [pointer, number, number, number, pointer]
    code.nf_ready.restype = number
    code.nf_put.argtypes = [pointer, pointer, number, pointer, pointer, pointer]
    code.nf_put.restype = None
    code.nf_overdue.argtypes = [pointer, ctypes.c_double, pointer, pointer]
    code.nf_overdue.restype = number
    return code


def build(source: Path, folder: Path) -> Path:
    """Compiles `source` into `folder` unless that was done before. Safe among processes: the file appears
    whole. Raises OSError without a compiler, subprocess.SubprocessError if it fails."""
    text = source.read_bytes()
    key = hashlib.sha256(text + " ".join((*FLAGS, platform.machine())).encode()).hexdigest()[:16]
    target = folder / f"{source.stem}-{key}.so"
    if target.exists():
        return target
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no C compiler (cc or gcc) on PATH")
    folder.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(suffix=".so", dir=folder)
    os.close(handle)
    try:
        command = [compiler, *FLAGS, "-o", part, str(source)]
        subprocess.run(command, check=True, capture_output=True, timeout=COMPILE_SECONDS)
        Path(part).replace(target)
    finally:
        Path(part).unlink(missing_ok=True)
    return target


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "netfold"
