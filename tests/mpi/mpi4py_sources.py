# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""mpi4py for its own tests, which only its source distribution contains: compiled for Open MPI into `out/mpi4py`.

python -m tests.mpi.mpi4py_sources
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

VERSION = "4.1.2"
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "out" / "mpi4py" / VERSION
PACKAGES, TESTS = FOLDER / "site", FOLDER / f"mpi4py-{VERSION}" / "test"


def is_built() -> bool:
    return (PACKAGES / "mpi4py").exists()


def main() -> None:
    if is_built():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip"]
    what = f"mpi4py=={VERSION}"
    subprocess.run(
        [*pip, "download", "-q", "--no-deps", "--no-binary", "mpi4py", "-d", FOLDER, what], check=True
    )
    source = next(FOLDER.glob("*.tar.gz"))
    with tarfile.open(source) as archive:
        archive.extractall(FOLDER, filter="data")
    environment = {**os.environ, "MPICC": "mpicc.openmpi"}
    subprocess.run(
        [*pip, "install", "-q", "--no-deps", "--target", PACKAGES, source], check=True, env=environment
    )


if __name__ == "__main__":
    main()
