# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""System calls on namespaces: make them, prepare what lives in them, enter those of a process (namespaces(7)).

Only for processes of one thread: a thread changes its own namespaces, and user namespaces refuse a process of several.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
from enum import IntFlag
from pathlib import Path


class Namespaces(IntFlag):
    """Kinds of namespaces, as unshare(2) and setns(2) number them."""

    MOUNT = 0x00020000
    USER = 0x10000000
    PID = 0x20000000
    NETWORK = 0x40000000


PRIVATE = Namespaces.MOUNT | Namespaces.PID | Namespaces.NETWORK
"""Namespaces that a network made with root's rights has."""

_FILES = {
    Namespaces.USER: "user",
    Namespaces.PID: "pid",
    Namespaces.NETWORK: "net",
    Namespaces.MOUNT: "mnt",
}
"""File names in /proc/PID/ns, in the order of entering: the user namespace gives the rights for the others."""

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_INTERFACE_FLAGS = struct.Struct("16sh22x")
_LOOPBACK = b"lo"

_libc = ctypes.CDLL(None, use_errno=True)


def make(kinds: Namespaces) -> None:
    """New namespaces for this process; the PID namespace for its future children. Raises OSError.

    In a new user namespace this process is root, and the only user is the one that it was."""
    if not kinds:
        return
    user, group = os.geteuid(), os.getegid()
    _check(_libc.unshare(int(kinds)), "unshare")
    if kinds & Namespaces.USER:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def prepare() -> None:
    """For the first process of new namespaces: mounts that are not seen outside, /proc and /sys of these namespaces,
    a loopback interface. Raises OSError."""
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    _mount("proc", "/proc", "proc", flags)
    _mount("sysfs", "/sys", "sysfs", flags)  # its links are those of the network namespace
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = fcntl.ioctl(control, _SIOCGIFFLAGS, _INTERFACE_FLAGS.pack(_LOOPBACK, 0))
        flags = _INTERFACE_FLAGS.unpack(request)[1] | _IFF_UP
        fcntl.ioctl(control, _SIOCSIFFLAGS, _INTERFACE_FLAGS.pack(_LOOPBACK, flags))


def enter(pid: int) -> None:
    """Enters the namespaces of a process, those that differ; the PID namespace for future children. Keeps the working
    directory if it exists there. Raises OSError."""
    folder = Path.cwd()
    opened = [
        (kind, os.open(f"/proc/{pid}/ns/{file}", os.O_RDONLY | os.O_CLOEXEC))
        for kind, file in _FILES.items()
        if identity(file) != identity(file, pid)
    ]
    for kind, descriptor in opened:
        _check(_libc.setns(descriptor, int(kind)), f"setns({kind.name})")
        os.close(descriptor)
    try:
        os.chdir(folder)
    except OSError:
        os.chdir("/")


def identity(file: str, pid: int | str = "self") -> int:
    """Number of a process's namespace, unique on this machine; `file`: net, pid, ... Raises OSError."""
    return Path(f"/proc/{pid}/ns/{file}").stat().st_ino


def signal_at_parents_end(number: signal.Signals) -> None:
    """This process receives the signal when its parent ends. The parent may have ended before."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0), "prctl")


def adopt_orphans() -> None:
    """Descendants whose parents end become children of this process."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def _mount(source: str | None, target: str, kind: str | None, flags: int) -> None:
    words = [None if w is None else w.encode() for w in (source, target, kind)]
    _check(_libc.mount(*words, ctypes.c_ulong(flags), None), f"mounting {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
