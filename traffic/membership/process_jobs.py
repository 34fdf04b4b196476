# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs that processes of this machine are members of, in files: a job is abandoned when its process has ended and has
not left it.

`torchrun` ends the processes of an attempt by signals before it starts the next one. The next one's processes find the
abandoned jobs and cancel them. Else these keep their share of the links until their leases expire.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from netfold.protocol.connection import Connection
from netfold.traffic.membership.jobs import cancel_lost

CANCELED_BY = "the program that followed, as a process of the job had ended"
_KEEP_S = 86_400.0
"""How long files are kept that no process of the same controller has looked at, and folders of other boots and
namespaces that do not change."""


@dataclass(frozen=True)
class ProcessJob:
    """`host`: as which the process is a member. `started`: of the process, in clock ticks since boot: tells processes
    of one number apart."""

    job: str
    host: str
    controller: str
    pid: int
    started: int


def enter_job(where: Connection, name: str, host: str) -> None:
    """To be called before this process joins the job."""
    pid = os.getpid()
    entry = ProcessJob(name, host, where.address, pid, _started(pid))
    with contextlib.suppress(OSError):  # a job of which there is no file ends with its lease
        path = _file(name, pid)
        written = path.with_suffix(".part")
        written.write_text(json.dumps(asdict(entry)))
        written.rename(path)


def leave_job(name: str) -> None:
    """To be called after this process has left the job."""
    with contextlib.suppress(OSError):
        _file(name, os.getpid()).unlink()


def cancel_abandoned_jobs(where: Connection, timeout: float) -> list[str]:
    """Cancels the jobs that this user's processes have abandoned on this machine, if their members have no stream to
    the controller. Returns those that had not ended before."""
    _forget_old_folders()
    canceled = []
    deadline = time.monotonic() + timeout
    for path, entry in _abandoned():
        if entry.controller != where.address:
            _forget_old(path)
            continue
        remaining = max(0.0, deadline - time.monotonic())
        was_live = cancel_lost(where, entry.job, entry.host, CANCELED_BY, remaining)
        if was_live is not None:
            path.unlink(missing_ok=True)
        if was_live:
            canceled.append(entry.job)
    return canceled


def _abandoned() -> Iterator[tuple[Path, ProcessJob]]:
    with contextlib.suppress(OSError):
        for path in sorted(_folder().glob("*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError):
                entry = ProcessJob(**json.loads(path.read_text()))
                if _started(entry.pid) != entry.started:
                    yield path, entry


def _forget_old(path: Path) -> None:
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > _KEEP_S:
            path.unlink()


def _forget_old_folders() -> None:
    with contextlib.suppress(OSError):
        own = _folder()
        for folder in own.parent.glob(f"{_prefix()}*"):
            if folder != own and _is_own(folder) and time.time() - folder.stat().st_mtime > _KEEP_S:
                shutil.rmtree(folder, ignore_errors=True)


def _file(job: str, pid: int) -> Path:
    return _folder() / f"{pid}-{urllib.parse.quote(job, safe='')}.json"


def _folder() -> Path:
    """Return the folder of this user, boot and namespace of process numbers. Raises OSError."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 (a link that leads to no file)
    folder = Path(tempfile.gettempdir()) / f"{_prefix()}{boot}-{namespace}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if not _is_own(folder):
        raise PermissionError
    return folder


def _prefix() -> str:
    return f"netfold-{os.getuid()}-"


def _is_own(folder: Path) -> bool:
    """Else another user made it."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _started(pid: int) -> int:
    """0: the process has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])
