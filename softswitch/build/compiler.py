# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs gcc with bounds of time, memory, files and processes; what a controller pushed, as a user of its own."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from netfold.softswitch.errors import PipelineError

GCC_DEADLINE_S = 120
MEMORY_BYTES = 4 << 30  # of one process of gcc; a program of 256 lanes takes 0.6 GB
FILE_BYTES = 256 << 20
PROCESSES = 64
NOBODY = 65534
_READY = b"!"
FIRST_USER = 2_000_000_000
"""User ids from here on belong to nobody: each process takes one of its own for gcc."""


@dataclass(frozen=True)
class Job:
    """One C file `program.c` among `files`, by name, to be made a shared object. `what` is for the error."""

    what: str
    flags: tuple[str, ...]
    files: Mapping[str, str]


Compile = Callable[[Job], bytes]
"""A job to the shared object's bytes. Raises PipelineError with gcc's words."""


@functools.cache
def gcc() -> str:
    """$CC, else gcc."""
    wanted = os.environ.get("CC", "gcc")
    found = shutil.which(wanted)
    if found is None:
        raise PipelineError(f"no C compiler: {wanted!r} is not on PATH (apt-get install gcc libc6-dev)")
    return found


def run(command: Sequence[str], what: str, *, folder: Path | None = None, user: int | None = None) -> None:
    """Runs a compiler to its end. When its time is up all that it has started ends with it. Raises PipelineError."""
    # What is preloaded into this process (a sanitizer's runtime) is not for the compiler.
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    if folder is not None:
        environment |= {"TMPDIR": str(folder), "HOME": str(folder)}
    process = subprocess.Popen(
        [*_as_user(user), *_bounds(user is not None), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    try:
        _, said = process.communicate(timeout=GCC_DEADLINE_S)
    except subprocess.TimeoutExpired:
        raise PipelineError(f"gcc took more than {GCC_DEADLINE_S} s on {what}") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode != 0:
        raise PipelineError(f"gcc failed on {what}:\n{said[:1400]}")


def _as_user(user: int | None) -> list[str]:
    """By a program of its own: Popen's `user` would fork this process, whose threads may hold gRPC's locks."""
    if user is None:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None or not _may_become_others():
        raise PermissionError("another user cannot be taken on here")
    return [setpriv, f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]


def _may_become_others() -> bool:
    """CAP_SETUID and CAP_SETGID, bits 7 and 6 of the effective set."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("CapEff:"))
    return int(line.split()[1], 16) & 0xC0 == 0xC0


def _bounds(alone: bool) -> list[str]:
    """`alone`: nobody else runs as this user, so that its processes can be counted."""
    limiter = shutil.which("prlimit")
    if limiter is None:
        return []
    bounds = [f"--cpu={GCC_DEADLINE_S}", f"--as={MEMORY_BYTES}", f"--fsize={FILE_BYTES}", "--core=0"]
    return [limiter, *bounds, *([f"--nproc={PROCESSES}"] if alone else []), "--"]


def compile_here(job: Job) -> bytes:
    """Compiles in a folder that is gone afterwards; as another user, where this process may become one."""
    if os.geteuid() != 0:
        return _compile(job, None)
    try:
        return _compile(job, own_user())
    except PermissionError:  # root without the right to change users
        return _compile(job, None)


def own_user() -> int:
    return FIRST_USER + os.getpid()


def _compile(job: Job, user: int | None) -> bytes:
    with tempfile.TemporaryDirectory(prefix="netfold-gcc-") as name:
        folder = Path(name)
        for file, text in job.files.items():
            (folder / file).write_text(text)
        target = folder / "program.so"
        if user is not None:
            for path in (folder, *folder.iterdir()):
                os.chown(path, user, user)
        run([gcc(), *job.flags, "-o", target.name, "program.c"], job.what, folder=folder, user=user)
        handle = os.open(target, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb") as made:
            return made.read(FILE_BYTES)


class Builder:
    """A process that compiles for this one, as a user of its own. Made while this process is root; used when it has
    given up the right to change users. A program of its own, no fork of this one, whose threads may hold any lock."""

    def __init__(self) -> None:
        """Returns when the process is that user. Raises PipelineError without a compiler, or if it ends instead."""
        gcc()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            code = "from netfold.softswitch.build.compiler import serve; import sys; serve(*map(int, sys.argv[1:]))"
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                [sys.executable, "-P", "-c", code, str(theirs.fileno()), str(own_user())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._socket = ours
        self._turn = threading.Lock()
        if not ours.recv(len(_READY)):
            self.close()
            raise PipelineError("the process that runs gcc ended at once")

    def compile(self, job: Job) -> bytes:
        """A Compile."""
        with self._turn:
            try:
                _send(self._socket, json.dumps(asdict(job)).encode())
                answer = _receive(self._socket)
            except (OSError, EOFError) as error:
                raise PipelineError(f"the process that runs gcc is gone: {error}") from error
        if answer[:1] == b"+":
            return answer[1:]
        raise PipelineError(answer[1:].decode())

    def close(self) -> None:
        """Ends the process. Idempotent."""
        self._socket.close()
        if self._process is not None:
            self._process.wait()
            self._process = None


def serve(descriptor: int, user: int) -> None:
    """Becomes `user`, and compiles what comes by the socket until its other end is closed."""
    requests = socket.socket(fileno=descriptor)
    try:
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
        ):  # a switch that is told to stop ends this by the socket
            signal.signal(number, signal.SIG_IGN)
        _become(user)
        requests.sendall(_READY)
        while True:
            job = json.loads(_receive(requests))
            try:
                answer = b"+" + _compile(Job(job["what"], tuple(job["flags"]), job["files"]), None)
            except (PipelineError, OSError) as error:
                answer = b"-" + str(error).encode()
            _send(requests, answer)
    except (OSError, EOFError):
        return


def _become(user: int) -> None:
    os.setgroups([])
    try:
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError:  # a user namespace without so many users
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def _send(to: socket.socket, data: bytes) -> None:
    to.sendall(len(data).to_bytes(8, "big") + data)


def _receive(source: socket.socket) -> bytes:
    size = int.from_bytes(_exactly(source, 8), "big")
    return _exactly(source, size)


def _exactly(source: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = source.recv(min(size, 1 << 20))
        if not part:
            raise EOFError("end of the connection")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
