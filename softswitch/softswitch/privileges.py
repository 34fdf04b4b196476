# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Drops root's capabilities (capabilities(7)) except those of the network and, where AF_XDP needs it, of locking
memory.

The process still owns root's files, but cannot change its user, trace processes, load kernel modules, mount, or write
other users' private files."""

from __future__ import annotations

import ctypes
import os
import resource
from pathlib import Path

CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK = 12, 13, 14
NETWORK = frozenset({CAP_NET_ADMIN, CAP_NET_RAW})

_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 38, 47, 4
_VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable"))


def keep_only(kept: frozenset[int] = NETWORK) -> None:
    """Drops every capability but `kept`, permanently, for future threads and programs too. Call it before starting
    threads: a thread changes its own capabilities only. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0:
        if not _unbound_locked_memory():
            kept |= {CAP_IPC_LOCK}
        last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
        for capability in set(range(last + 1)) - kept:
            # StatusError without CAP_SETPCAP: capset does it then.
            libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header, data = _Header(_VERSION_3, 0), (_Data * 2)()
    _check(libc.capget(ctypes.byref(header), data), "capget")
    for word in range(2):
        mask = sum(1 << (capability % 32) for capability in kept if capability // 32 == word)
        data[word].permitted &= mask
        data[word].effective = data[word].permitted
        data[word].inheritable = 0
    _check(libc.capset(ctypes.byref(header), data), "capset")


def _unbound_locked_memory() -> bool:
    """Lifts the bound that the memory of AF_XDP sockets counts against where CAP_IPC_LOCK is gone; false where only
    CAP_SYS_RESOURCE could, as in a container: the bound is one for all processes of the user, and a socket that
    does not get its memory would leave the switch to the slower way to send without a word."""
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (ValueError, OSError):
        return False
    return True


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
