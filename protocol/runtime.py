# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Places of the sockets and files of running networks and controllers, and checks of their owner."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from netfold.protocol.environment import Variable

DEFAULT_NAME = "nf"
ROOTS_FOLDER = Path("/run/netfold")


def runtime_folder() -> Path:
    """$NETFOLD_RUN_DIR; else /run/netfold of root; else netfold in $XDG_RUNTIME_DIR or in /tmp/netfold-UID."""
    explicit = os.environ.get(Variable.RUN_DIR)
    if explicit:
        return Path(explicit)
    if is_root():
        return ROOTS_FOLDER
    user = _user_outside()
    return Path(os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/netfold-{user}") / "netfold"


class FolderError(Exception):
    """The runtime folder is not this user's alone."""


def check_runtime_folder() -> None:
    """See `check_own`. A folder that $NETFOLD_RUN_DIR names is taken as it is. Raises FolderError."""
    if not os.environ.get(Variable.RUN_DIR):
        check_own(runtime_folder())


def make_runtime_folder() -> None:
    """Raises FolderError, OSError."""
    if os.environ.get(Variable.RUN_DIR):
        runtime_folder().mkdir(parents=True, exist_ok=True)
    else:
        make_own(runtime_folder())


def make_own(folder: Path) -> None:
    """Make a folder and the one above it, for this user; root's can be read by all. Raises FolderError, OSError."""
    mode = 0o755 if is_root() else 0o700
    for at in (folder.parent, folder):
        at.mkdir(mode=mode, parents=True, exist_ok=True)
    check_own(folder)


def check_own(folder: Path) -> None:
    """Raises FolderError if another user could have put the folder where it is, or could write to it: without a runtime
    folder of the user's own it lies in /tmp, under a name that any user can guess. What is not there passes."""
    for at in (folder.parent, folder):
        try:
            found = at.lstat()
        except OSError:
            continue
        is_sticky = at != folder and found.st_mode & stat.S_ISVTX
        is_shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_sticky
        if stat.S_ISLNK(found.st_mode) or found.st_uid not in (0, os.geteuid()) or is_shared:
            raise FolderError(
                f"{at} is a link, belongs to another user, or others may write to it: what is in it is not to be "
                "trusted; set XDG_RUNTIME_DIR"
            )


def default_name() -> str:
    """Name of the network: $NETFOLD_NAME, else `nf`."""
    return os.environ.get(Variable.NAME) or DEFAULT_NAME


def is_root() -> bool:
    """True for the machine's root, or a container's; false for a user that is root in a namespace of one user only."""
    return os.geteuid() == 0 and _user_outside() == 0


def is_only_user() -> bool:
    """True in a user namespace that maps one user, as those of networks without root's rights."""
    return len(_user_map()) == 1 and _user_map()[0][2] == 1


def _user_outside() -> int:
    """This user's number in the parent user namespace, where that maps a single user; else its number here."""
    user = os.geteuid()
    if not is_only_user():
        return user
    [(inside, outside, _)] = _user_map()
    return outside if inside == user else user


def _user_map() -> list[tuple[int, ...]]:
    """Rows of first number inside, first number outside, count (user_namespaces(7))."""
    try:
        rows = Path("/proc/self/uid_map").read_text().splitlines()
    except OSError:
        return []
    return [tuple(map(int, row.split())) for row in rows]
