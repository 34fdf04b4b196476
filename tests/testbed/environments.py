# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The environments in which netfold runs, made on one machine of root's, by which a command is started:

root       as it is
user       an ordinary user, without groups and capabilities
neighbor   another one
container  root with the capabilities of a default container, in which user namespaces work
sealed     root as in `container`; unshare(2) and setns(2) are refused by a seccomp filter, as by a default container

    python -m tests.testbed.environments sealed COMMAND...
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NoReturn

from netfold.testbed.network import namespaces

USER, NEIGHBOR = 64_321, 64_322
"""Numbers of users without names."""

CONTAINER_CAPABILITIES = (
    "chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,"
    "audit_write,setfcap"
)
"""Docker's default."""

_SYSTEM_CALLS = {"x86_64": (0xC000003E, (272, 308)), "aarch64": (0xC00000B7, (97, 268))}
"""By machine: its number in audit(7), and those of unshare and setns."""
_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_PR_SET_SECCOMP, _MODE_FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38


class Environment(StrEnum):
    ROOT = "root"
    USER = "user"
    NEIGHBOR = "neighbor"
    CONTAINER = "container"
    SEALED = "sealed"

    @property
    def uid(self) -> int:
        return {Environment.USER: USER, Environment.NEIGHBOR: NEIGHBOR}.get(self, 0)

    def prefix(self) -> list[str]:
        """The words before a command."""
        return [] if self is Environment.ROOT else [sys.executable, str(Path(__file__)), self]


def seal() -> None:
    """Refuses unshare(2) and setns(2) with EPERM, for this process and those it starts (seccomp(2))."""
    audit, numbers = _SYSTEM_CALLS[platform.machine()]
    count = len(numbers)
    code = [(_LOAD, 0, 0, 4), (_JUMP_EQUAL, 0, count + 1, audit), (_LOAD, 0, 0, 0)]
    code += [(_JUMP_EQUAL, count - i, 0, number) for i, number in enumerate(numbers)]
    code += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    program = b"".join(struct.pack("=HBBI", *line) for line in code)
    buffer = ctypes.create_string_buffer(program)
    descriptor = struct.pack("@HP", len(code), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _MODE_FILTER, descriptor, 0, 0
    ):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def reach_python() -> None:
    """Shows this Python to all users, in a mount namespace of its own, where it lies in a closed home."""
    base = Path(sys.base_prefix).resolve()
    closed = next((p for p in reversed(base.parents) if not p.stat().st_mode & 0o001), None)
    if closed is None:
        return
    namespaces.make(namespaces.Namespaces.MOUNT)
    with tempfile.TemporaryDirectory() as aside:
        for command in (
            ["mount", "--make-rprivate", "/"],
            ["mount", "--bind", base, aside],
            ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", closed],
            ["mkdir", "-p", base],
            ["mount", "--bind", aside, base],
            ["umount", aside],
        ):
            subprocess.run([str(word) for word in command], check=True, timeout=30)


def become_user(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def bounded(added: Sequence[str] = ()) -> list[str]:
    """The words before a command that root of a container runs, with these capabilities too."""
    only = ",".join(f"+{c}" for c in (*CONTAINER_CAPABILITIES.split(","), *added))
    return ["setpriv", f"--bounding-set=-all,{only}", "--inh-caps=-all", "--"]


def main(arguments: Sequence[str]) -> NoReturn:
    environment, command = Environment(arguments[0]), list(arguments[1:])
    if environment.uid:
        reach_python()
        become_user(environment.uid)
    if environment is Environment.SEALED:
        seal()
    if environment in (Environment.CONTAINER, Environment.SEALED):
        command = [*bounded(), *command]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
