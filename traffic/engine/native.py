# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine as a shared object: the one that the package has built (recipe.py lists its sources). Where there is
none, or the sources differ by now, as in a checkout, it is compiled once for each version and kept in the user's cache
folder."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from netfold.traffic.engine import recipe
from netfold.traffic.engine.c_headers import Headers
from netfold.traffic.errors import EngineUnavailableError

BUILT_IN = recipe.FOLDER / "_native.so"
SOURCES = tuple(recipe.FOLDER / name for name in (*recipe.SOURCES, *recipe.HEADERS))
FLAGS = (*recipe.FLAGS, "-shared")
HEADERS = Headers(*(recipe.FOLDER / name for name in recipe.HEADERS))
COMPILE_SECONDS = 300  # on a busy machine
_ERROR = re.compile(r"\berror:|undefined reference")
PART_PREFIX = "part-"
"""A file that a compiler writes has this prefix."""


@cache
def library() -> ctypes.CDLL:
    """Returns the compiled code. Raises EngineUnavailableError with the reason."""
    if sys.byteorder != "little":
        raise EngineUnavailableError("the engine needs a little-endian processor")
    try:
        code = _built_in() or ctypes.CDLL(str(build(SOURCES, cache_folder(), recipe.OPTIONS)))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:  # RuntimeError: no home directory
        raise EngineUnavailableError(f"the engine (C code) cannot be compiled here: {error}") from error
    HEADERS.declare(code, "nf_engine_", "nf_root_", "nf_shards_")
    return code


def _built_in() -> ctypes.CDLL | None:
    """Returns the package's build, unless it is of other sources than these."""
    if not BUILT_IN.exists():
        return None
    code = ctypes.CDLL(str(BUILT_IN))
    code.nf_sources.restype = ctypes.c_char_p
    return code if code.nf_sources() == recipe.fingerprint().encode() else None


def build(sources: Sequence[Path], folder: Path, options: Sequence[str] = ("-lm",)) -> Path:
    """Compiles `sources` (headers among them) with `options` into `folder` unless that was done before.
    Safe among processes: the file is renamed into place. Raises OSError without a compiler or if `folder` is another
    user's, subprocess.SubprocessError with the first error if it fails."""
    target = folder / recipe.library_name(sources, options)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid == os.geteuid():
        folder.chmod(0o700)
    elif not _is_private(folder):
        raise PermissionError(f"{folder} belongs to another user; code loaded from it would run as this one")
    if target.exists() and _is_private(target):
        return target
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no C compiler (cc or gcc) on PATH")
    files = [str(source) for source in sources if source.suffix == ".c"]
    with replacing(target) as part:
        command = [compiler, *FLAGS, "-o", str(part), *files, *options]
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMPILE_SECONDS,
            env={**os.environ, "LC_ALL": "C"},
        )
        if done.returncode != 0:
            raise subprocess.SubprocessError(first_error(done.stderr))
    return target


def first_error(output: str) -> str:
    """Returns the line of a compiler's output that says what is wrong: lines before it name places, and later
    errors often follow from the first."""
    lines = output.strip().splitlines() or ["the compiler ended without a message"]
    return next((line for line in lines if _ERROR.search(line)), lines[0])


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Gives a file to write in place of `target`, a shared library. Safe among processes: the file is renamed into
    place at the end, or removed after an error. No build may take longer than two COMPILE_SECONDS."""
    _remove_abandoned_parts(target.parent)
    handle, name = tempfile.mkstemp(suffix=".so", prefix=PART_PREFIX, dir=target.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o700)  # independent of the umask
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _remove_abandoned_parts(folder: Path) -> None:
    """Removes the files of builds that were killed. No build takes longer than two time-outs."""
    for part in folder.glob(f"{PART_PREFIX}*.so"):
        with contextlib.suppress(FileNotFoundError):  # another process's build has just ended
            if time.time() - part.stat().st_mtime > 2 * COMPILE_SECONDS:
                part.unlink()


def _is_private(path: Path) -> bool:
    """Returns whether only this user and root can write it."""
    status = path.stat()
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "netfold"
