# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine of workers, C code, as a shared object: the package brings it built (recipe.py says of what). Where it
does not, or its sources are others by now, as in a checkout, it is compiled once for each version and kept in the
user's cache folder."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from netfold.traffic.engine import recipe
from netfold.traffic.errors import EngineMissing

BUILT_IN = recipe.FOLDER / "_native.so"
SOURCES = tuple(recipe.FOLDER / name for name in (*recipe.SOURCES, *recipe.HEADERS))
FLAGS = (*recipe.FLAGS, "-shared")
COMPILE_SECONDS = 300  # on a machine that is busy otherwise


@cache
def library() -> ctypes.CDLL:
    """The compiled code. Raises EngineMissing, which says why there is none."""
    if sys.byteorder != "little":
        raise EngineMissing("the engine of workers needs a little-endian processor")
    try:
        code = _built_in() or ctypes.CDLL(str(build(SOURCES, cache_folder())))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:  # no home is a RuntimeError
        raise EngineMissing(f"the engine of workers, C code, cannot be compiled here: {error}") from error
    declare(code, _SIGNATURES)
    return code


_P, _N, _R = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
_SIGNATURES: dict[str, tuple[object, ...]] = {
    "nf_engine_create": (_P,),
    "nf_engine_stop": (None, _P),
    "nf_engine_destroy": (None, _P),
    "nf_engine_retire": (None, _P),
    "nf_engine_assign": (ctypes.c_int, _P, _P, _P, _N),
    "nf_engine_submit": (_P, _P, _P, _N),
    "nf_engine_wait": (_N, _P, _P, _R),
    "nf_engine_next": (_P, _P, _R),
    "nf_engine_release": (None, _P, _P, _P),
    "nf_engine_abort": (None, _P),
    "nf_engine_no_epoch": (None, _P),
    "nf_engine_totals": (None, _P, _P),
    "nf_engine_reports": (_N, _P, _P, _N),
    "nf_engine_error": (_N, _P),
    "nf_root_create": (_P, ctypes.c_int, ctypes.c_int, _N, _N, _P, _N, _P),
    "nf_root_destroy": (None, _P),
    "nf_root_begin": (None, _P, _N),
    "nf_root_tree": (ctypes.c_int, _P, _N, _N, _P, _N, _P, _P),
    "nf_root_quorum": (ctypes.c_int, _P, _N, _N, _N),
    "nf_root_serve": (_N, _P, _R),
}


def declare(code: ctypes.CDLL, signatures: Mapping[str, tuple[object, ...]]) -> None:
    """Tells ctypes the functions of `code`: by name the result, then the arguments."""
    for name, (result, *arguments) in signatures.items():
        function = getattr(code, name)
        function.restype, function.argtypes = result, arguments


def _built_in() -> ctypes.CDLL | None:
    """What came with the package, unless it was built of other sources than lie here."""
    if not BUILT_IN.exists():
        return None
    code = ctypes.CDLL(str(BUILT_IN))
    code.nf_sources.restype = ctypes.c_char_p
    return code if code.nf_sources() == recipe.fingerprint().encode() else None


def build(sources: Sequence[Path], folder: Path, libraries: Sequence[str] = ("-lm",)) -> Path:
    """Compiles `sources` (and the headers among them) with `libraries` into `folder` unless that was done before.
    Safe among processes: the file appears whole. Raises OSError without a compiler or if `folder` is another user's,
    subprocess.SubprocessError if it fails."""
    target = folder / recipe.library_name(sources, libraries)
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
        command = [compiler, *FLAGS, "-o", part, *files, *libraries]
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


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "netfold"
