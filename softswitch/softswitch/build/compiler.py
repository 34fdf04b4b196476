# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs gcc with limits of time, memory, files and processes, for pushed programs as a user of its own."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from softswitch.errors import PipelineError

GCC_DEADLINE_S = 120
MEMORY_BYTES = 4 << 30  # of one process of gcc; a program of 256 lanes takes 0.6 GB
FILE_BYTES = 256 << 20
PROCESSES = 64
UNPRIVILEGED_UID = 65534
TRIAL_S = 10
LINE_MAX = 500
_ERROR = re.compile(r"\berror:|undefined reference")
_READY, _NO_OTHER_USER = b"!", b"0"
FOLDER_PREFIX = "softswitch-gcc-"
FIRST_USER = 2_000_000_000
"""User ids from here on are unassigned: each process uses one for gcc."""


@dataclass(frozen=True)
class Job:
    """A C file `program.c` among `files`, by name, to compile to a shared object. `what`: its name in errors."""

    what: str
    flags: tuple[str, ...]
    files: Mapping[str, str]


Compile = Callable[[Job], bytes]
"""Compiles a job to the shared object's bytes. Raises PipelineError with gcc's errors."""


@functools.cache
def gcc() -> str:
    """$CC, else gcc."""
    wanted = os.environ.get("CC", "gcc")
    found = shutil.which(wanted)
    if found is None:
        raise PipelineError(f"no C compiler: {wanted!r} is not on PATH (apt-get install gcc libc6-dev)")
    return found


class _Compilations:
    """Those of this process, until it stops."""

    def __init__(self) -> None:
        self._ends: list[Callable[[], None]] = []
        self._lock = threading.RLock()  # a signal's handler may interrupt its holder
        self.canceled = False

    @contextlib.contextmanager
    def ended_by(self, end: Callable[[], None]) -> Iterator[None]:
        with self._lock:
            self._ends.append(end)
            if self.canceled:
                end()
        try:
            yield
        finally:
            with self._lock:
                self._ends.remove(end)

    def cancel(self) -> None:
        with self._lock:
            self.canceled = True
            for end in self._ends:
                end()


_compilations = _Compilations()


def cancel() -> None:
    """Ends what this process compiles, now and later: PipelineError is raised there, and temporary files are removed.
    Also for handlers of signals."""
    _compilations.cancel()


def run(command: Sequence[str], what: str, *, folder: Path, user: int | None = None) -> None:
    """Runs a compiler, whose temporary files are in `folder`; at its deadline kills its process group. Raises
    PipelineError."""
    # The compiler must not preload a sanitizer's runtime.
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    environment |= {"TMPDIR": str(folder), "HOME": str(folder), "LC_ALL": "C"}
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
        with _compilations.ended_by(functools.partial(_kill_group, process.pid)):
            _, errors = process.communicate(timeout=GCC_DEADLINE_S)
    except subprocess.TimeoutExpired:
        raise PipelineError(f"gcc took more than {GCC_DEADLINE_S} s on {what}") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if _compilations.canceled:
        raise PipelineError(f"{what} was not compiled: the switch stops")
    if process.returncode != 0:
        raise PipelineError(f"gcc failed on {what}: {first_error(errors)}")


def first_error(output: str) -> str:
    """The line of a compiler's output that says what is wrong: lines before it name places, and later errors often
    follow from the first."""
    lines = output.strip().splitlines() or ["it ended without a message"]
    return next((line for line in lines if _ERROR.search(line)), lines[0])[:LINE_MAX]


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended; it is another user's
        os.killpg(group, signal.SIGKILL)


def _as_user(user: int | None) -> list[str]:
    """Return the prefix of a command that runs as another user. Popen's `user` would fork this process, whose threads
    may hold gRPC's locks."""
    if user is None:
        return []
    return [
        shutil.which("setpriv") or "setpriv",
        f"--reuid={user}",
        f"--regid={user}",
        "--clear-groups",
        "--",
    ]


def _can_run_as(user: int) -> bool:
    """Tried, not read from capabilities: a user namespace has all of them, and often a single user."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return False
    tried = subprocess.run(
        [*_as_user(user), "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=TRIAL_S
    )
    return tried.returncode == 0


def _bounds(alone: bool) -> list[str]:
    """`alone`: no other processes run as this user, so that their number can be limited."""
    limiter = shutil.which("prlimit")
    if limiter is None:
        return []
    bounds = [f"--cpu={GCC_DEADLINE_S}", f"--as={MEMORY_BYTES}", f"--fsize={FILE_BYTES}", "--core=0"]
    return [limiter, *bounds, *([f"--nproc={PROCESSES}"] if alone else []), "--"]


def compile_here(job: Job) -> bytes:
    """Compiles in a folder that is gone afterwards; as another user, where this process may become one."""
    user = compiler_user()
    return _compile(job, user if _can_run_as(user) else None)


def compiler_user() -> int:
    return FIRST_USER + os.getpid()


def _compile(job: Job, user: int | None) -> bytes:
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as name:
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


class NoOtherUserError(Exception):
    """No process can change its user here: root without the right to, or a user namespace of a single user."""


class CompilerProcess:
    """A process that compiles for this one, as a user of its own. Created while this process may change users. A new
    interpreter, not a fork: threads of this process may hold locks."""

    def __init__(self) -> None:
        """Waits until the process has changed its user. Raises PipelineError without a compiler, or if it ends;
        NoOtherUserError."""
        gcc()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            code = "from softswitch.build.compiler import serve; import sys; serve(*map(int, sys.argv[1:]))"
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                [sys.executable, "-P", "-c", code, str(theirs.fileno()), str(compiler_user())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._socket = ours
        self._lock = threading.Lock()
        answer = ours.recv(len(_READY))
        if answer != _READY:
            self.close()
            if answer == _NO_OTHER_USER:
                raise NoOtherUserError
            raise PipelineError("the compiler process ended at its start")

    def compile(self, job: Job) -> bytes:
        """A Compile."""
        with self._lock, _compilations.ended_by(self._disconnect):
            try:
                _send(self._socket, json.dumps(asdict(job)).encode())
                answer = _receive(self._socket)
            except (OSError, EOFError) as error:
                raise PipelineError(f"the compiler process ended: {error}") from error
        if answer[:1] == b"+":
            return answer[1:]
        raise PipelineError(answer[1:].decode())

    def close(self) -> None:
        """Ends the process. Idempotent."""
        self._disconnect()
        self._socket.close()
        if self._process is not None:
            self._process.wait()
            self._process = None

    def _disconnect(self) -> None:
        """Ends the process, and the wait for its answer."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


def serve(descriptor: int, user: int) -> None:
    """Changes to `user`, and compiles jobs from the socket until its other end is closed, which ends gcc too."""
    requests = socket.socket(fileno=descriptor)
    try:
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
        ):  # at its stop the switch ends this process by the socket
            signal.signal(number, signal.SIG_IGN)
        try:
            _change_user(user)
        except OSError:
            requests.sendall(_NO_OTHER_USER)
            return
        requests.sendall(_READY)
        threading.Thread(target=_cancel_at_end, args=(requests,), daemon=True).start()
        while True:
            job = json.loads(_receive(requests))
            try:
                answer = b"+" + _compile(Job(job["what"], tuple(job["flags"]), job["files"]), None)
            except (PipelineError, OSError) as error:
                answer = b"-" + str(error).encode()
            _send(requests, answer)
    except (OSError, EOFError):
        return


def _cancel_at_end(connection: socket.socket) -> None:
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    poll.poll()
    cancel()


def _change_user(user: int) -> None:
    os.setgroups([])
    try:
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError:  # a user namespace without so many users
        os.setresgid(UNPRIVILEGED_UID, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
        os.setresuid(UNPRIVILEGED_UID, UNPRIVILEGED_UID, UNPRIVILEGED_UID)


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
