# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Unpacks Debian's Slurm and MUNGE in the virtual environment, and installs nothing: `python -m tests.slurm.packages`
brings them, and `make test-slurm` calls it before its tests lose the way to Debian's mirrors."""

from __future__ import annotations

import sys
from pathlib import Path

from netfold.testbed.errors import RunError
from netfold.testbed.roce.packages import unpack

FOLDER = Path(__file__).resolve().parents[2] / ".venv/slurm"
ROOT = FOLDER / "root"
COMPLETE = FOLDER / "complete"
"""The file that a complete folder has."""

PACKAGES = (
    *("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge", "libslurm-dev"),
    *(
        "libmunge2",
        "libhwloc15",
        "libjson-c5",
        "liblua5.1-0",
        "libyaml-0-2",
        "libnuma1",
        "libdbus-1-3",
        "liblz4-1",
    ),
)


def main() -> None:
    if COMPLETE.exists():
        return
    try:
        unpack(FOLDER, PACKAGES)
    except RunError as error:
        sys.stderr.write(f"SKIPPED: the tests with Slurm: {error}\n")


if __name__ == "__main__":
    main()
