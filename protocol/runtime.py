# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Where sockets and files of running networks and controllers are, and whose they are."""

from __future__ import annotations

import os
from pathlib import Path

RUN_DIRECTORY_VARIABLE = "NETFOLD_RUN_DIR"
NAME_VARIABLE = "NETFOLD_NAME"
DEFAULT_NAME = "nf"
ROOTS_FOLDER = Path("/run/netfold")


def runtime_folder() -> Path:
    """$NETFOLD_RUN_DIR; else /run/netfold of root; else netfold in $XDG_RUNTIME_DIR or in /tmp/netfold-UID."""
    explicit = os.environ.get(RUN_DIRECTORY_VARIABLE)
    if explicit:
        return Path(explicit)
    if is_root():
        return ROOTS_FOLDER
    user = _user_outside()
    return Path(os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/netfold-{user}") / "netfold"


def default_name() -> str:
    """Name of the network: $NETFOLD_NAME, else `nf`."""
    return os.environ.get(NAME_VARIABLE) or DEFAULT_NAME


def is_root() -> bool:
    """True for the machine's root, or a container's; false for a user who is root in a namespace of one user only."""
    return os.geteuid() == 0 and _user_outside() == 0


def _user_outside() -> int:
    """This user's number in the parent user namespace, where that maps a single user; else its number here."""
    user = os.geteuid()
    try:
        [(inside, outside, size)] = [
            tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()
        ]
    except (OSError, ValueError):
        return user
    return outside if (inside, size) == (user, 1) else user
