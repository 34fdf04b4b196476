# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How `libnetfold_mpi.so` is compiled: with the compiler wrapper of the MPI library that it is preloaded into, once for
each, and kept in the user's cache folder."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from netfold.traffic.engine import recipe as engine
from netfold.traffic.engine.native import COMPILE_SECONDS, cache_folder, replacing

FOLDER = Path(__file__).parent
SOURCES = (
    *(engine.FOLDER / name for name in engine.sources_of(engine.LAYERS[: engine.LAYERS.index("server")])),
    *sorted(FOLDER.glob("*.c")),
)
HEADERS = (*(engine.FOLDER / name for name in engine.HEADERS), *sorted(FOLDER.glob("*.h")))
EXPORTS = FOLDER / "exports.map"
FLAGS = (
    *engine.FLAGS,
    "-Werror",
    "-shared",
    "-fvisibility=hidden",
    "-DNF_API=",
    f"-Wl,--version-script={EXPORTS}",
)
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


def build(compiler: str = "mpicc", folder: Path | None = None) -> Path:
    """Compiles the library with an MPI compiler wrapper, unless that was done before. Raises MpiBuildError."""
    wrapper = shutil.which(compiler)
    if wrapper is None:
        raise MpiBuildError(f"no {compiler} on PATH: apt-get install libopenmpi-dev, or libmpich-dev")
    command = [wrapper, *FLAGS, f'-DNM_PYTHON="{sys.executable}"', *map(str, (s for s in SOURCES))]
    try:
        shown = subprocess.run(
            [wrapper, "-show"], capture_output=True, check=True, timeout=COMPILE_SECONDS
        ).stdout
        target = (folder or cache_folder()) / f"libnetfold_mpi-{_fingerprint(command, shown)}.so"
        if not target.exists():
            _compile(command, target)
    except (OSError, subprocess.SubprocessError) as error:
        raise MpiBuildError(f"{compiler}: {_first_error(error)}") from error
    return target


def _fingerprint(command: list[str], shown: bytes) -> str:
    text = b"\0".join(path.read_bytes() for path in (*SOURCES, *HEADERS, EXPORTS))
    return hashlib.sha256(text + shown + " ".join(command).encode()).hexdigest()[:16]


def _compile(command: list[str], target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(target) as part:
        subprocess.run(
            [*command, "-o", str(part), *LIBRARIES], check=True, capture_output=True, timeout=COMPILE_SECONDS
        )


def _first_error(error: Exception) -> str:
    output = getattr(error, "stderr", None) or b""
    lines = output.decode(errors="replace").splitlines()
    return next((line for line in lines if "error" in line), str(error))
