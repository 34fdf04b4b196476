# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Root privileges of networks, and the user of sudo: the owner of the files that a run writes."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from netfold.testbed.network.errors import NetworkError, NotRootError


def check_root() -> None:
    if os.geteuid() != 0:
        raise NotRootError


def can_become_root() -> bool:
    return shutil.which("sudo") is not None


def become_root() -> None:
    """Run this command again through sudo unless it runs as root. Raises NotRootError without sudo.

    Root leaves no caches of Python's beside the user's files."""
    if os.geteuid() == 0:
        return
    command = sudo_command()
    if command is None:
        raise NotRootError
    os.execv(command[0], [*command, "PYTHONDONTWRITEBYTECODE=1", sys.executable, *sys.argv])


def sudo_command() -> list[str] | None:
    """The words before a command of root's; None without sudo. Keeps PATH and the NETFOLD_ variables, which sudo would
    remove."""
    sudo = shutil.which("sudo")
    if sudo is None:
        return None
    kept = [
        f"{name}={value}"
        for name, value in os.environ.items()
        if name == "PATH" or name.startswith("NETFOLD_")
    ]
    return [sudo, "env", *kept]


@dataclass(frozen=True)
class SudoUser:
    """The user that called sudo."""

    uid: int
    gid: int

    @property
    def name(self) -> str | None:
        """None for an id without a user."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return None

    @property
    def groups(self) -> list[int]:
        return [self.gid] if self.name is None else os.getgrouplist(self.name, self.gid)


def sudo_user() -> SudoUser | None:
    """None unless a user started this process through sudo."""
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not (user.isdecimal() and group.isdecimal()) or int(user) == 0:
        return None
    return SudoUser(int(user), int(group))


@contextlib.contextmanager
def as_sudo_user() -> Iterator[None]:
    """Reads and writes files with the rights of sudo's user, the owner of new files. A symbolic link therefore reaches
    nothing that the user could not reach. Affects all threads."""
    user = sudo_user()
    if user is None:
        yield
        return
    group, groups = os.getegid(), os.getgroups()
    os.setgroups(user.groups)
    os.setegid(user.gid)
    os.seteuid(user.uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


class Recordings:
    """Capture files that switches write as root; the user of sudo owns them afterwards."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        self.folder = folder
        self._names = list(names)
        self._before: set[str] = set()

    def prepare(self) -> None:
        """Create the folder, owned by the user of sudo. Raises NetworkError."""
        try:
            if not self.folder.is_dir():
                with as_sudo_user():
                    self.folder.mkdir(parents=True)
                    self.folder.chmod(0o755)  # for switches without root's capabilities
            self._before = {p.name for p in self.folder.iterdir()}
            for name in (
                set(self._names) - self._before
            ):  # switches may write root's files, but create none elsewhere
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                os.close(os.open(self.folder / name, flags, 0o644))
        except OSError as error:
            raise NetworkError(
                f"cannot create the folder of captures {self.folder}: {error.strerror}"
            ) from error

    def hand_over(self) -> None:
        """Change the owner of the captures; not of files that existed before, nor of links, hard links and files of
        another owner in a capture's place."""
        user = sudo_user()
        if user is None:
            return
        for name in set(self._names) - self._before:
            with contextlib.suppress(OSError):
                _give(self.folder / name, user)


def _give(file: Path, user: SudoUser) -> None:
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == 0:
            os.fchown(descriptor, user.uid, user.gid)
    finally:
        os.close(descriptor)
