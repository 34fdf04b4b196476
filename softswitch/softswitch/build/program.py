# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles BMv2 JSON to a shared object and its layout, with a cache keyed by content."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from softswitch.build import native
from softswitch.build.compiler import Compile, compile_here
from softswitch.translate.program import translate

TRANSLATOR = Path(__file__).parents[1] / "translate"
CACHE_BYTES = 256 << 20
"""Size of the programs in a cache folder; beyond, the least recently used are removed."""


@dataclass(frozen=True)
class Program:
    """A compiled program: the shared object, and the numbering for the control plane. While any process holds a
    `lease`, the program stays in the cache."""

    path: Path
    layout: Mapping[str, Any]
    lease: BinaryIO


def load_program(
    p4_json: bytes,
    cache_dir: Path,
    *,
    sanitize: bool = False,
    traced: bool = False,
    compile_c: Compile = compile_here,
) -> Program:
    """Takes the program from the cache or builds it. The key covers the JSON, the translator, the runtime
    headers, the compiler and the processor. Beside the object lie its C source and layout. The caller closes the
    lease. Raises UnsupportedConstructError or PipelineError."""
    folder = native.trusted_folder(cache_dir)
    digest = hashlib.sha256(p4_json)
    digest.update(translator_hash().encode())
    digest.update(b"sanitized" if sanitize else b"")
    digest.update(b"traced" if traced else b"")
    stem = folder / f"program-{digest.hexdigest()[:24]}"
    built = False
    while (program := _take(stem)) is None:
        translation = translate(p4_json, traced=traced)
        flags = native.SANITIZE if sanitize else native.OPTIMIZE
        code = compile_c(native.program_job(translation.source, stem.name, flags))
        _store(
            stem,
            {
                ".c": translation.source.encode(),
                ".json": json.dumps(translation.layout).encode(),
                ".so": code,
            },
        )
        built = True
    if built:
        prune(folder)
    return program


def _take(stem: Path) -> Program | None:
    """The program from the cache, leased and marked as used; None if it is missing."""
    target = stem.with_suffix(".so")
    try:
        with ExitStack() as stack:
            native.require_own(target)
            lease = stack.enter_context(target.open("rb"))
            with suppress(
                OSError
            ):  # without locks nothing is removed either; the cache of another user keeps its dates
                fcntl.flock(lease, fcntl.LOCK_SH)
                os.utime(target)
            if not _is_at(lease, target):  # another process built it too
                return _take(stem)
            program = Program(target, json.loads(stem.with_suffix(".json").read_text()), lease)
            stack.pop_all()
            return program
    except FileNotFoundError:
        return None


def prune(cache_dir: Path, limit: int = CACHE_BYTES) -> None:
    """Removes programs, the longest unused first, until the rest takes at most `limit` bytes. One with a lease stays.
    Safe among processes: the object goes last, under a lock that a lease waits for; without layout none is taken."""
    found = []
    for target in cache_dir.glob("program-*.so"):
        files = [target.with_suffix(suffix) for suffix in (".json", ".c", ".so")]
        with suppress(FileNotFoundError):  # another process is pruning
            size = sum(file.stat().st_size for file in files if file.exists())
            found.append((target.stat().st_mtime_ns, size, files))
    total = sum(size for _, size, _ in found)
    with _locked(cache_dir):
        for _, size, files in sorted(found):
            if total <= limit:
                return
            with suppress(OSError), files[-1].open("rb") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(held, files[-1]):
                    for file in files:
                        file.unlink(missing_ok=True)
                    total -= size


def _is_at(file: BinaryIO, path: Path) -> bool:
    return os.path.samestat(os.fstat(file.fileno()), path.stat())


def _store(stem: Path, files: Mapping[str, bytes]) -> None:
    """Stores a program in the cache, unless another process has: files in use are not replaced."""
    with _locked(stem.parent):
        if all(stem.with_suffix(suffix).exists() for suffix in files):
            return
        for suffix, data in files.items():
            handle, temporary = tempfile.mkstemp(dir=stem.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                Path(temporary).replace(stem.with_suffix(suffix))
            finally:
                Path(temporary).unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Excludes other processes that change the folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@functools.cache
def translator_hash() -> str:
    """Inputs of the generated code besides the JSON."""
    digest = hashlib.sha256(native.toolchain().encode())
    for path in [*sorted(TRANSLATOR.glob("*.py")), *sorted(native.RUNTIME.glob("*.h"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()
