# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The C code of workers as a shared object: the package brings it built (recipe.py says of what). Where it does not,
or its sources are others by now, as in a checkout, it is compiled once for each version and kept in the user's cache
folder.

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
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from netfold.traffic.worker import recipe

BUILT_IN = recipe.FOLDER / "_native.so"
SOURCES = tuple(recipe.FOLDER / name for name in (*recipe.SOURCES, *recipe.HEADERS))
FLAGS = (*recipe.FLAGS, "-shared")
COMPILE_SECONDS = 60
log = logging.getLogger(__name__)


@cache
def library() -> ctypes.CDLL | None:
    """The compiled code, or None where it cannot be had; a log line says why."""
    if os.environ.get("NETFOLD_NATIVE") == "0" or sys.byteorder != "little":
        return None
    try:
        code = _built_in() or ctypes.CDLL(str(build(SOURCES, _cache_folder())))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:  # no home is a RuntimeError
        log.warning("workers do without their C code, at more processor time a packet: %s", error)
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    real = ctypes.c_double
    code.nf_match.argtypes = [pointer] * 7
    code.nf_match.restype = None
    code.nf_take.argtypes = [pointer] * 4
    code.nf_take.restype = None
    code.nf_emit.argtypes = [pointer, pointer, *[number] * 4, real, *[pointer] * 3]
    code.nf_emit.restype = None
    code.nf_ready.argtypes = [pointer, number, number, number, pointer]
    code.nf_ready.restype = number
    code.nf_put.argtypes = [pointer, pointer, number, pointer, pointer, pointer]
    code.nf_put.restype = None
    code.nf_overdue.argtypes = [pointer, real, pointer, pointer]
    code.nf_overdue.restype = number
    code.nf_turns.argtypes = [pointer]
    code.nf_turns.restype = None
    return code


def _built_in() -> ctypes.CDLL | None:
    """What came with the package, unless it was built of other sources than lie here."""
    if not BUILT_IN.exists():
        return None
    code = ctypes.CDLL(str(BUILT_IN))
    code.nf_sources.restype = ctypes.c_char_p
    return code if code.nf_sources() == recipe.fingerprint().encode() else None


def build(sources: Sequence[Path], folder: Path) -> Path:
    """Compiles `sources` (and the headers among them) into `folder` unless that was done before. Safe among
    processes: the file appears whole. Raises OSError without a compiler or if `folder` is another user's,
    subprocess.SubprocessError if it fails."""
    text = b"\0".join(source.read_bytes() for source in sources)
    key = hashlib.sha256(text + " ".join((*FLAGS, platform.machine())).encode()).hexdigest()[:16]
    target = folder / f"{sources[0].stem}-{key}.so"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid == os.geteuid():
        folder.chmod(0o700)
    elif not _ours_alone(folder):
        raise PermissionError(
            f"{folder} belongs to another user, and what is loaded from it runs as this one"
        )
    if target.exists() and _ours_alone(target):
        return target
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no C compiler (cc or gcc) on PATH")
    handle, part = tempfile.mkstemp(suffix=".so", dir=folder)
    os.close(handle)
    try:
        files = [str(source) for source in sources if source.suffix == ".c"]
        command = [compiler, *FLAGS, "-o", part, *files, "-lm"]
        subprocess.run(command, check=True, capture_output=True, timeout=COMPILE_SECONDS)
        Path(part).chmod(0o700)  # whatever the umask is
        Path(part).replace(target)
    finally:
        Path(part).unlink(missing_ok=True)
    return target


def _ours_alone(path: Path) -> bool:
    """Can nobody write it but this user and root?"""
    status = path.stat()
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "netfold"
