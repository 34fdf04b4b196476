# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Root's rights, where networks need them, and the user who called sudo, to whom belongs what comes of it."""

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

from netfold.topologies.network.errors import NetworkError, NotRootError


def check_root() -> None:
    if os.geteuid() != 0:
        raise NotRootError


def become_root() -> None:
    """Run this very command again through sudo unless it is root's. Raises NotRootError without sudo.

    sudo gives a clean environment; PATH and all that is netfold's own goes along."""
    if os.geteuid() == 0:
        return
    sudo = shutil.which("sudo")
    if sudo is None:
        raise NotRootError
    kept = [
        f"{name}={value}"
        for name, value in os.environ.items()
        if name == "PATH" or name.startswith("NETFOLD_")
    ]
    os.execv(sudo, [sudo, "env", *kept, sys.executable, *sys.argv])


@dataclass(frozen=True)
class Caller:
    """The user who called sudo."""

    uid: int
    gid: int

    @property
    def name(self) -> str | None:
        """None for a number that no user has."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return None

    @property
    def groups(self) -> list[int]:
        return [self.gid] if self.name is None else os.getgrouplist(self.name, self.gid)


def caller() -> Caller | None:
    """None unless this is root's process that a user has started through sudo."""
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not (user.isdecimal() and group.isdecimal()) or int(user) == 0:
        return None
    return Caller(int(user), int(group))


@contextlib.contextmanager
def as_caller() -> Iterator[None]:
    """What is read and written meanwhile is so with the rights of the user who called sudo, and new files are theirs:
    no link leads anywhere where they could not go, and nothing has to be given back. All threads of the process."""
    who = caller()
    if who is None:
        yield
        return
    group, groups = os.getegid(), os.getgroups()
    os.setgroups(who.groups)
    os.setegid(who.gid)
    os.seteuid(who.uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


class Recordings:
    """Files that root's switches write into a folder while the network is up; afterwards they are the caller's."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        self.folder = folder
        self._names = list(names)
        self._before: set[str] = set()

    def prepare(self) -> None:
        """Make the folder, which is the caller's. Raises NetworkError."""
        try:
            if not self.folder.is_dir():
                with as_caller():
                    self.folder.mkdir(parents=True)
                    self.folder.chmod(0o755)  # the switches go in as anybody may
            self._before = {p.name for p in self.folder.iterdir()}
            for name in (
                set(self._names) - self._before
            ):  # the switches may write to root's files, not to any folder
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                os.close(os.open(self.folder / name, flags, 0o644))
        except OSError as error:
            raise NetworkError(
                f"cannot make the recordings' folder {self.folder}: {error.strerror}"
            ) from error

    def hand_over(self) -> None:
        """What was there before stays whose it was, and so does whatever someone has put in a recording's place: a
        link, a second name of another file, a file that is not root's."""
        who = caller()
        if who is None:
            return
        for name in set(self._names) - self._before:
            with contextlib.suppress(OSError):
                _give(self.folder / name, who)


def _give(file: Path, who: Caller) -> None:
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == 0:
            os.fchown(descriptor, who.uid, who.gid)
    finally:
        os.close(descriptor)
