# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How `libnetfold_mpi.so` is compiled: with the compiler wrapper of the MPI library that it is preloaded into, once for
each, and kept in the user's cache folder."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from netfold.traffic.engine import recipe as engine
from netfold.traffic.engine.native import COMPILE_SECONDS, cache_folder, replacing

FOLDER = Path(__file__).parent
AGENT = FOLDER.parent / "agent"
SOURCES = (
    *(engine.FOLDER / name for name in engine.sources_of(engine.LAYERS[: engine.LAYERS.index("server")])),
    *sorted(AGENT.glob("*.c")),
    *sorted(FOLDER.glob("*.c")),
)
HEADERS = (
    *(engine.FOLDER / name for name in engine.HEADERS),
    *sorted(AGENT.glob("*.h")),
    *sorted(FOLDER.glob("*.h")),
)
EXPORTS = FOLDER / "exports.map"
FLAGS = (*engine.FLAGS, "-Werror", "-fvisibility=hidden", "-DNF_API=", f'-DNM_PYTHON="{sys.executable}"')
LINK = ("-shared", "-pthread", f"-Wl,--version-script={EXPORTS}")
LIBRARIES = ("-lm",)


class MpiBuildError(Exception):
    """The library cannot be compiled; the message has the compiler's first error."""


def compiler_of(mpirun: str = "mpirun") -> str:
    """The compiler wrapper beside a launcher: mpicc beside mpirun, mpicc.mpich beside mpirun.mpich. Raises
    MpiBuildError."""
    found = shutil.which(mpirun)
    if found is None:
        raise MpiBuildError(
            f"no {mpirun} on PATH: apt-get install openmpi-bin libopenmpi-dev, or mpich libmpich-dev"
        )
    flavor = Path(found).name.partition(".")[2]
    wrapper = Path(found).parent / ("mpicc" + (f".{flavor}" if flavor else ""))
    if not wrapper.exists():
        raise MpiBuildError(f"{wrapper} is missing: apt-get install libopenmpi-dev, or libmpich-dev")
    return str(wrapper)


def build(compiler: str = "mpicc", folder: Path | None = None, options: Sequence[str] = ()) -> Path:
    """Compiles the library with an MPI compiler wrapper, unless that was done before. A process that finds another one
    at it waits for that. What an interrupted build has compiled is kept for the next one. `options`: of the compiler.
    Raises MpiBuildError."""
    wrapper = shutil.which(compiler)
    if wrapper is None:
        raise MpiBuildError(f"no {compiler} on PATH: apt-get install libopenmpi-dev, or libmpich-dev")
    try:
        shown = subprocess.run(
            [wrapper, "-show"], capture_output=True, check=True, timeout=COMPILE_SECONDS
        ).stdout
        command = [wrapper, *FLAGS, *options]
        target = (folder or cache_folder()) / f"libnetfold_mpi-{_fingerprint(command, shown)}.so"
        if not target.exists():
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _locked(target.with_suffix(".lock")):
                _build_library(command, target)
    except subprocess.TimeoutExpired as error:
        raise MpiBuildError(
            f"{compiler} has not ended within {error.timeout:g} s, on a busy machine; start again: "
            "what has been compiled is kept"
        ) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise MpiBuildError(f"{compiler}: {_first_error(error)}") from error
    return target


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Only one process at a time; a process that ends releases it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_library(command: list[str], target: Path) -> None:
    if target.exists():
        return
    objects = target.with_suffix(".objects")
    objects.mkdir(mode=0o700, exist_ok=True)

    def compile_source(source: Path) -> str:
        file = objects / f"{source.parent.name}-{source.stem}.so"
        if not file.exists():
            _run([*command, "-c", str(source)], file)
        return str(file)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        files = list(pool.map(compile_source, SOURCES))
    _run([*command, *LINK, *files, *LIBRARIES], target)
    shutil.rmtree(objects)


def _run(command: list[str], target: Path) -> None:
    with replacing(target) as part:
        subprocess.run([*command, "-o", str(part)], check=True, capture_output=True, timeout=COMPILE_SECONDS)


def _fingerprint(command: list[str], shown: bytes) -> str:
    text = b"\0".join(path.read_bytes() for path in (*SOURCES, *HEADERS, EXPORTS))
    return hashlib.sha256(text + shown + " ".join((*command, *LINK)).encode()).hexdigest()[:16]


def _first_error(error: Exception) -> str:
    """The compiler's first line with an error; the command is of no help."""
    if not isinstance(error, subprocess.CalledProcessError):
        return f"{error}"
    lines = error.stderr.decode(errors="replace").splitlines()
    return next((line for line in lines if "error" in line), f"ended with exit code {error.returncode}")
