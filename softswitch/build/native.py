# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Builds C into shared objects with the machine's gcc, cached by content, and loads the switch core."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from netfold.softswitch.build.capi import declare
from netfold.softswitch.errors import PipelineError

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
    "-g0",
)
OPTIMIZE = ("-O3",)
SANITIZE = (
    "-O1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g",
)
GCC_DEADLINE_S = 120


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
    target = cache_dir / f"{name}-{digest.hexdigest()[:24]}.so"
    if not target.exists():
        cache_dir.mkdir(parents=True, exist_ok=True)
        compile_shared(sources, target, flags)
    return target


def compile_shared(sources: Sequence[Path], target: Path, flags: Sequence[str]) -> None:
    """Compiles beside the target and renames, so that nobody sees half a file. Raises PipelineError."""
    gcc = compiler()
    handle, temporary = tempfile.mkstemp(suffix=".so", dir=target.parent)
    os.close(handle)
    command = [
        gcc,
        *BASE_FLAGS,
        *flags,
        f"-I{RUNTIME}",
        "-o",
        temporary,
        *map(str, sources),
        "-ldl",
        "-lpthread",
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=GCC_DEADLINE_S, check=False, env=_environment()
        )
        if done.returncode != 0:
            raise PipelineError(f"gcc failed on {target.name}:\n{done.stderr[:1400]}")
        Path(temporary).replace(target)
    except subprocess.TimeoutExpired as e:
        raise PipelineError(f"gcc took more than {GCC_DEADLINE_S} s on {target.name}") from e
    finally:
        Path(temporary).unlink(missing_ok=True)


@functools.cache
def compiler() -> str:
    """$CC, else gcc."""
    wanted = os.environ.get("CC", "gcc")
    found = shutil.which(wanted)
    if found is None:
        raise PipelineError(f"no C compiler: {wanted!r} is not on PATH (apt-get install gcc libc6-dev)")
    return found


@functools.cache
def toolchain() -> str:
    """What a compiled object depends on beside its source: the compiler and the processor's features."""
    command = [compiler(), "-dumpfullversion", "-dumpmachine"]
    version = subprocess.run(
        command, capture_output=True, text=True, timeout=GCC_DEADLINE_S, check=True, env=_environment()
    )
    cpu = Path("/proc/cpuinfo").read_text()
    features = re.search(r"^(flags|Features)\s*:.*$", cpu, re.MULTILINE)
    model = re.search(r"^model name\s*:.*$", cpu, re.MULTILINE)
    return "\n".join(
        [version.stdout, features.group(0) if features else "", model.group(0) if model else "", *BASE_FLAGS]
    )


def _environment() -> dict[str, str]:
    """For the compiler: without what is preloaded into this process (a sanitizer's runtime)."""
    return {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}


def default_cache_dir() -> Path:
    """$NETFOLD_CACHE, else $XDG_CACHE_HOME/netfold, else ~/.cache/netfold."""
    explicit = os.environ.get("NETFOLD_CACHE")
    if explicit:
        return Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "netfold"


@functools.cache
def core_library(*, sanitize: bool = False) -> ctypes.CDLL:
    """The core, built when needed and loaded with RTLD_GLOBAL, once per process."""
    path = build_shared(
        sorted(CORE.glob("*.c")),
        default_cache_dir(),
        name="core-sanitized" if sanitize else "core",
        optimize=SANITIZE if sanitize else OPTIMIZE,
        headers=sorted(CORE.glob("*.h")),
    )
    return declare(ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL))
