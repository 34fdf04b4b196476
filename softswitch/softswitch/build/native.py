# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Builds C into shared objects with the machine's gcc, cached by content, and loads the switch core."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from softswitch.build import compiler
from softswitch.build.capi import declare
from softswitch.errors import PipelineError

_SOFTSWITCH = Path(__file__).parents[1]
RUNTIME = _SOFTSWITCH / "runtime"
CORE = _SOFTSWITCH / "core"
BASE_FLAGS = (
    "-std=gnu11",
    "-fPIC",
    "-shared",
    "-march=native",
    "-fno-strict-aliasing",
    "-fno-semantic-interposition",
    "--param=large-function-growth=2000",  # a pipeline takes its tables in: calls cost a packet 4 to 8 %
    "-g0",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
    "-Werror=implicit-function-declaration",
)
HIDDEN = ("-fvisibility=hidden",)
"""For libraries that export only what their headers mark (`#pragma GCC visibility`)."""
LIBRARIES = ("-ldl", "-lpthread")
ANSWER_S = 30
ABANDONED_S = 3600
"""After this time a folder of a compilation is one that was killed."""
OPTIMIZE = ("-O3",)
SANITIZE = (
    "-O1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g",
)


def build_shared(
    sources: Sequence[Path],
    cache_dir: Path,
    *,
    name: str,
    optimize: Sequence[str] = OPTIMIZE,
    flags: Sequence[str] = (),
    headers: Sequence[Path] = (),
) -> Path:
    """Compiles `sources` (C) into `cache_dir/name-<hash>.so` and returns it; an unchanged one is not built
    again. The hash covers the sources, the headers, the flags, the compiler's version and the processor.
    Safe among processes.

    An I/O engine may use it for its own C. The runtime headers are on the include path. Raises PipelineError
    with gcc's words.
    """
    digest = hashlib.sha256(toolchain().encode())
    flags = (*optimize, *flags)
    digest.update("\0".join(flags).encode())
    for path in [*sources, *headers, *sorted(RUNTIME.glob("*.h"))]:
        digest.update(path.read_bytes())
    target = trusted_folder(cache_dir) / f"{name}-{digest.hexdigest()[:24]}.so"
    if not target.exists():
        compile_shared(sources, target, flags)
    require_own(target)
    return target


def trusted_folder(cache_dir: Path) -> Path:
    """The folder, created if missing, as an absolute path. Its contents are executed: raises PipelineError if another
    user can write there."""
    folder = cache_dir.absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_own(folder)
    return folder


def require_own(path: Path) -> None:
    """Raises PipelineError if a user other than this one and root can write there."""
    status = path.stat()
    ours = status.st_uid in (0, os.geteuid())
    by_others = status.st_mode & 0o002 or (status.st_mode & 0o020 and status.st_gid not in (0, os.getegid()))
    if not ours or by_others:
        raise PipelineError(
            f"{path} is not ours alone (user {status.st_uid}, mode {status.st_mode & 0o7777:o}), and its contents "
            "would be executed: choose another folder of compiled programs (--cache-dir, $SOFTSWITCH_CACHE)"
        )


def compile_shared(sources: Sequence[Path], target: Path, flags: Sequence[str]) -> None:
    """Compiles beside the target and renames: the target is never incomplete. Raises PipelineError."""
    for left in target.parent.glob(f"{compiler.FOLDER_PREFIX}*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > ABANDONED_S:
                shutil.rmtree(left, ignore_errors=True)
    files = [str(path.absolute()) for path in sources]
    with tempfile.TemporaryDirectory(prefix=compiler.FOLDER_PREFIX, dir=target.parent) as name:
        made = Path(name, target.name)
        command = [*BASE_FLAGS, *flags, f"-I{RUNTIME}", "-o", str(made), *files, *LIBRARIES]
        compiler.run([compiler.gcc(), *command], target.name, folder=made.parent)
        made.replace(target)


def program_job(source: str, what: str, flags: Sequence[str]) -> compiler.Job:
    """A translated program, with the headers that it includes."""
    return compiler.Job(what, (*BASE_FLAGS, *flags, *LIBRARIES), {"program.c": source, **runtime_headers()})


@functools.cache
def runtime_headers() -> Mapping[str, str]:
    """Texts of the runtime's headers, by name."""
    return {path.name: path.read_text() for path in RUNTIME.glob("*.h")}


@functools.cache
def toolchain() -> str:
    """Inputs of a compiled object besides its source: the compiler and the processor's features."""
    command = [compiler.gcc(), "-dumpfullversion", "-dumpmachine"]
    version = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
        check=True,
        env={**os.environ, "LD_PRELOAD": ""},
    )
    cpu = Path("/proc/cpuinfo").read_text()
    features = re.search(r"^(flags|Features)\s*:.*$", cpu, re.MULTILINE)
    model = re.search(r"^model name\s*:.*$", cpu, re.MULTILINE)
    return "\n".join(
        [version.stdout, features.group(0) if features else "", model.group(0) if model else "", *BASE_FLAGS]
    )


def default_cache_dir() -> Path:
    """$SOFTSWITCH_CACHE, else $XDG_CACHE_HOME/softswitch, else ~/.cache/softswitch."""
    explicit = os.environ.get("SOFTSWITCH_CACHE")
    if explicit:
        return Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "softswitch"


def core_library(*, sanitize: bool = False) -> ctypes.CDLL:
    """The core, built when needed and loaded with RTLD_GLOBAL, once per process."""
    return _core_library(sanitize)


@functools.cache
def _core_library(sanitize: bool) -> ctypes.CDLL:
    path = build_shared(
        sorted(CORE.glob("*.c")),
        default_cache_dir(),
        name="core-sanitized" if sanitize else "core",
        optimize=SANITIZE if sanitize else OPTIMIZE,
        flags=HIDDEN,
        headers=sorted(CORE.glob("*.h")),
    )
    return declare(ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL))
