# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Locks of whole files that end with the processes that hold them: open file description locks (fcntl(2)), which also
exclude other descriptors of the same process, and which forks share."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

_FLOCK = struct.Struct("@hhqqi0q")
"""The kernel's struct flock: type, whence, start, length, pid."""


def try_lock(descriptor: int) -> bool:
    """Takes the lock; false if another holds it."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _request(fcntl.F_WRLCK))
    except BlockingIOError:
        return False
    return True


def is_locked(file: Path) -> bool:
    """True if a running process holds the lock; does not take it. Raises OSError, but not for a missing file."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _request(fcntl.F_RDLCK))
    finally:
        os.close(descriptor)
    kind: int = _FLOCK.unpack(answer)[0]
    return kind != fcntl.F_UNLCK


def _request(kind: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0)
