# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs that processes of this machine are members of, in files: a job is abandoned when its process has ended and has
not left it.

A process beside each one (process_watch.py) cancels its job then, within a second. Where that is killed, too, as with
a container, the next program's processes find the abandoned jobs and cancel them: `torchrun` ends the processes of an
attempt before it starts the next one. Else jobs keep their share of the links until their leases expire.

A job may be kept for the processes that follow in its run: then only the part of its workers ends. Its file stays until
they, or others, have taken it over.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import stat
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

from netfold.protocol.connection import Connection, connection
from netfold.protocol.environment import Variable
from netfold.protocol.job_token import job_of_token
from netfold.traffic.errors import ControllerUnreachableError
from netfold.traffic.membership.jobs import KeptJob, cancel_job, cancel_lost, interrupt_job, live_generation
from netfold.traffic.membership.process_watch import watch_process

log = logging.getLogger(__name__)

CANCELED_BY = "the program that followed, as a process of the job had ended"
_CANCEL_S = 5.0
_LOOK_S = 1.0
"""Between two looks at a job that is kept."""
_KEEP_S = 86_400.0
"""How long files are kept that no process of the same controller has looked at, and folders of other boots that do not
change."""


_LEFT: dict[Path, EnteredJob] = {}
"""By their files, jobs that this process has left to those that follow."""


@dataclass(frozen=True)
class ProcessJob:
    """`host`: as which the process is a member, or the first process of its host. `member`: for messages. `started`: of
    the process, in clock ticks since boot: tells processes of one number apart. `token`: of the job, in the file alone,
    which no other user can read. `generation`: of the workers of a job that is kept; None: it ends with them. `run`: in
    which processes follow that find this file; "": they know the job otherwise. `is_submitted`: else a job of this name
    may be that of another program."""

    job: str
    host: str
    member: str
    controller: str
    pid: int
    started: int
    token: str = field(default="", repr=False)
    generation: int | None = None
    run: str = ""
    is_submitted: bool = True

    @classmethod
    def read(cls, text: str) -> Self:
        """Raises ValueError, TypeError. No process follows in a job that may not have been submitted."""
        found = cls(**json.loads(text))
        return found if found.is_submitted else replace(found, generation=None, run="")


class EnteredJob:
    """A job that this process is in. The file is for the case in which the watch dies with its process; a job that has
    neither ends with its lease."""

    def __init__(
        self,
        where: Connection,
        name: str,
        host: str,
        member: str,
        *,
        generation: int | None = None,
        run: str = "",
        is_submitted: bool = True,
    ) -> None:
        """To be called before this process joins the job, or submits it."""
        self._process = process = os.getpid()
        self._run = run
        entry = ProcessJob(
            *(name, host, member, where.address, process, _started(process)),
            generation=generation,
            run=run,
            is_submitted=is_submitted,
        )
        text = json.dumps(asdict(entry))
        token = where.token if job_of_token(where.token) is not None else ""
        self._watch = -1
        self._entry = entry
        self._path: Path | None = None
        try:
            self._path = _write_file(replace(entry, token=token))
        except OSError as error:
            log.warning(
                "job %s has no file, and ends with its lease if %s and its watch die: %s", name, member, error
            )
        try:
            variables = {str(Variable.JOB_TOKEN): token} if token else {}
            self._watch = watch_process(str(self._path or ""), text, variables=variables)
        except OSError as error:
            log.warning("job %s has no watch, and may end with its lease if %s dies: %s", name, member, error)

    def submitted(self, token: str) -> None:
        """To be called when the job is submitted. `token`: of its members."""
        with contextlib.suppress(OSError):
            entry = replace(self._entry, token=token, is_submitted=True)
            self._path = self._path and _write_file(entry)

    def leave(self, *, has_failed: bool = False) -> None:
        """To be called after this process has left the job. A forked child, which is no member, leaves nothing. Nor
        does a process whose calls failed, if the job is kept: those that follow in its run, or this process again,
        find its file."""
        if os.getpid() != self._process:
            return
        if has_failed and self._run and self._entry.generation is not None:
            if self._path is not None:
                _LEFT[self._path] = self
            return
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()
        if self._watch >= 0:
            with contextlib.suppress(OSError):  # the watch has died
                os.write(self._watch, b"\0")
            os.close(self._watch)
            self._watch = -1


def cancel_entered(path: str, text: str) -> None:
    """Cancels the job of a process that has ended. `text`: of its file when it was entered. If the file is gone, the
    program that followed may have canceled the job, and one of the same name may be its own: it is canceled only if
    this member is lost. A job that was kept is theirs then."""
    try:
        entry = ProcessJob.read(Path(path).read_text() if path else text)
    except OSError:
        entry = ProcessJob(**json.loads(text))
    by = f"the watch of {entry.member}: its process {entry.pid} has ended"
    where = connection(entry.controller).as_member(entry.token)
    if entry.generation is not None:
        if not path or Path(path).exists():
            interrupt_job(where, entry.job, entry.generation, by, _CANCEL_S)
            _forget_when_taken(where, Path(path), entry)
        return
    is_own = entry.is_submitted and path != "" and Path(path).exists()
    has_ended = is_own and cancel_job(where, entry.job, by, _CANCEL_S)
    if has_ended or cancel_lost(where, entry.job, entry.host, by, _CANCEL_S) is not None:
        with contextlib.suppress(OSError):
            Path(path).unlink()


def _forget_when_taken(where: Connection, path: Path, entry: ProcessJob) -> None:
    with contextlib.suppress(ControllerUnreachableError, OSError):
        while path.exists() and live_generation(where, entry.job, _CANCEL_S) == entry.generation:
            time.sleep(_LOOK_S)  # a member may not watch a job
        path.unlink()


def take_kept_job(where: Connection, run: str) -> KeptJob | None:
    """The newest job that processes of the run have left on this machine: this one, or those that have ended. The
    caller takes it over: its files are gone."""
    found: dict[float, KeptJob] = {}
    for path, entry in _entries():
        is_own = (entry.run, entry.controller) == (run, where.address)
        is_left = path in _LEFT or _has_ended(entry)
        if run and is_own and entry.generation is not None and is_left:
            with contextlib.suppress(OSError):
                found[path.stat().st_mtime] = KeptJob(entry.job, entry.generation, entry.token)
                path.unlink()
            if (left := _LEFT.pop(path, None)) is not None:
                left.leave()
    return found[max(found)] if found else None


def cancel_abandoned_jobs(where: Connection, timeout: float, run: str = "") -> list[str]:
    """Cancels the jobs that this user's processes have abandoned on this machine, if their members have no stream to
    the controller; also those that are kept for another run than this one. Returns those that had not ended before."""
    _forget_old_folders()
    canceled = []
    deadline = time.monotonic() + timeout
    for path, entry in _entries():
        if not _has_ended(entry):
            continue
        if entry.controller != where.address:
            _forget_old(path)
            continue
        remaining = max(0.0, deadline - time.monotonic())
        member = where.as_member(entry.token)
        if entry.generation is not None and (_is_taken(member, path, entry, remaining) or entry.run == run):
            continue
        was_live = cancel_lost(member, entry.job, entry.host, CANCELED_BY, remaining)
        if was_live is not None:
            path.unlink(missing_ok=True)
        if was_live:
            canceled.append(entry.job)
    return canceled


def _is_taken(where: Connection, path: Path, entry: ProcessJob, timeout: float) -> bool:
    """Whether a job that was kept is of others now, or unknown; its file is gone then."""
    with contextlib.suppress(ControllerUnreachableError, OSError):
        if live_generation(where, entry.job, timeout) == entry.generation:
            return False
        path.unlink()
    return True


def _entries() -> Iterator[tuple[Path, ProcessJob]]:
    with contextlib.suppress(OSError):
        for path in sorted(_folder().glob("*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError):
                yield path, ProcessJob.read(path.read_text())


def _has_ended(entry: ProcessJob) -> bool:
    return _started(entry.pid) != entry.started


def _forget_old(path: Path) -> None:
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > _KEEP_S:
            path.unlink()


def _forget_old_folders() -> None:
    """Keeps those of this boot: the processes of a container that shares the parent folder are not seen from here."""
    with contextlib.suppress(OSError):
        own = _folder()
        of_this_boot = own.name.rpartition("-")[0]
        for folder in own.parent.glob(f"{_prefix()}*"):
            is_old = time.time() - folder.lstat().st_mtime > _KEEP_S
            if is_old and not folder.name.startswith(f"{of_this_boot}-") and _is_own(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _write_file(entry: ProcessJob) -> Path:
    """Raises OSError."""
    generation = "" if entry.generation is None else f"-{entry.generation}"
    path = _folder() / f"{entry.pid}{generation}-{urllib.parse.quote(entry.job, safe='')}.json"
    part = path.with_suffix(".part")
    try:
        part.touch(mode=0o600)
        part.write_text(json.dumps(asdict(entry)))
        return part.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def _folder() -> Path:
    """Return the folder of this user, boot and namespace of process numbers. Raises OSError."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 (a link that leads to no file)
    folder = Path(tempfile.gettempdir()) / f"{_prefix()}{boot}-{namespace}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if not _is_own(folder):
        raise PermissionError(f"{folder} is of another user, or open to others")
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


if __name__ == "__main__":
    cancel_entered(*sys.argv[1:])
