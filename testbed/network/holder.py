# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a command in namespaces of its own, which hold a network, and end with it; or in those of a network that is up.

    python -m netfold.testbed.network.holder create NAME WAY COMMAND...
    python -m netfold.testbed.network.holder enter NAME COMMAND...

`create` is three processes. This one keeps `holder.json`, passes on signals and waits. Its child is the first process
of the PID namespace: at its end, the kernel ends all that runs in there, so that nothing can be left. The command is
the child's child. If this process is killed, its child ends the command, and cleans up.

Without namespaces (`userland`) the same processes end what is left of the command: orphans become their children.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from netfold.protocol.environment import Variable
from netfold.protocol.runtime import runtime_folder
from netfold.testbed.network import namespaces
from netfold.testbed.network.errors import NetworkError, NotUpError
from netfold.testbed.network.locks import is_locked, try_lock
from netfold.testbed.network.modes import KINDS, NetworkMode
from netfold.testbed.network.state import RunDirectory, already_up

_FIRST_PROCESS = 1
"""First process of a network's PID namespace. It is in none of the hosts."""

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_LEAVE_S = 20.0
"""For the command to clean up once the process that keeps `holder.json` was killed."""


Signals = set[int | signal.Signals]


@dataclass(frozen=True)
class Holder:
    """The processes of `create`, as numbered outside: `pid` the one to signal, `first` the first of the namespaces."""

    pid: int
    first: int
    net: int
    mode: str


def holder_of(name: str) -> Holder | None:
    """The holder of a network in namespaces of its own; None if there is none that runs."""
    file = _file(name)
    try:
        if not is_locked(file):
            return None
        return Holder(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def create(name: str, mode: NetworkMode, command: Sequence[str]) -> int:
    """Runs the command in new namespaces; its exit code. Raises NetworkError."""
    directory = RunDirectory(name)
    with _holding(directory) as lock:
        signals = signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED_ON, signal.SIGCHLD})
        alive, never_written = os.pipe()
        started, ready = os.pipe()
        namespaces.make(KINDS[mode])
        if not KINDS[mode]:
            namespaces.adopt_orphans()
        first = os.fork()
        if first == 0:
            os.close(never_written)
            os.close(started)
            _hold(directory, mode, command, alive, ready, signals)
        os.close(ready)
        _leave_to_command()
        try:
            with os.fdopen(started, "rb") as answer:
                net = answer.read().decode()
            if not net.isdecimal():
                raise NetworkError(f"the namespaces of network '{name}' failed: {net or 'no answer'}")
            record = Holder(os.getpid(), first, int(net), mode)
            os.pwrite(lock, json.dumps(asdict(record)).encode(), 0)
        finally:
            code = _wait(first)
            _end_children()
        directory.remove_files()
        return code


def enter(name: str, command: Sequence[str]) -> int:
    """Runs the command in the namespaces of a network, from outside or from one of its hosts; its exit code. Raises
    NotUpError."""
    holder = holder_of(name)
    if holder is None:
        raise NotUpError(name)
    signals = signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED_ON, signal.SIGCHLD})
    folder = runtime_folder()  # by the user outside
    namespaces.enter(_FIRST_PROCESS if _is_in_host(name) else holder.first)
    child = os.fork()
    if child == 0:
        namespaces.signal_at_parents_end(signal.SIGKILL)
        _execute(command, _environment(name, folder, NetworkMode(holder.mode)), signals)
    _leave_to_command()
    return _wait(child)


def _is_in_host(name: str) -> bool:
    """Whether this process is in a host of the network, a descendant of `netfold network exec`."""
    state = RunDirectory(name).read()
    return state is not None and os.environ.get(Variable.NETWORK) == state.run


def _hold(
    directory: RunDirectory,
    mode: NetworkMode,
    command: Sequence[str],
    alive: int,
    ready: int,
    signals: Signals,
) -> NoReturn:
    """The first process of the namespaces. Ends with the command's exit code."""
    try:
        namespaces.signal_at_parents_end(signal.SIGTERM)
        if KINDS[mode]:
            namespaces.prepare()
        else:
            namespaces.adopt_orphans()
        environment = _environment(directory.name, directory.path.parent, mode)
        child = os.fork()
        if child == 0:
            _execute(command, environment, signals)
        _leave_to_command()
        os.write(ready, environment[Variable.NAMESPACE].encode())
        os.close(ready)
        code = _wait(child, alive)
        _end_children()
        directory.remove_files()
        if _at_end(alive):
            _file(directory.name).unlink(missing_ok=True)
        os._exit(code)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(ready, str(error).encode())
        os._exit(1)


def _leave_to_command() -> None:
    """The standard input and output are the command's alone: a reader of them waits for its end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, sys.stdin.fileno())
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def _wait(child: int, alive: int | None = None) -> int:
    """Passes signals on to the child and reaps all children until it ends; its exit code. `alive`: a pipe that is at
    its end once the parent has ended."""
    deadline: float | None = None
    while True:
        for pid, status in _ended():
            if pid == child:
                return _exit_code(status)
        left = 3600.0 if deadline is None else deadline - time.monotonic()
        if left <= 0:
            return 128 + signal.SIGKILL
        info = signal.sigtimedwait({*_PASSED_ON, signal.SIGCHLD}, left)
        if info is None or info.si_signo == signal.SIGCHLD:
            continue
        # By a process, or of a terminal that is closed, to its first process alone. Others go to the command, too.
        if info.si_code <= 0 or (info.si_signo == signal.SIGHUP and os.getsid(0) == os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, info.si_signo)
        if alive is not None and deadline is None and _at_end(alive):
            deadline = time.monotonic() + _LEAVE_S


def _end_children() -> None:
    """Kills and reaps the children of this process until there are none; in namespaces, the kernel has ended all."""
    own = Path(f"/proc/self/task/{os.getpid()}/children")
    with contextlib.suppress(OSError, ChildProcessError):
        while pids := own.read_text().split():
            for pid in pids:
                os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)


def _ended() -> Iterator[tuple[int, int]]:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            yield pid, status


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _at_end(pipe: int) -> bool:
    os.set_blocking(pipe, False)
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return False


def _execute(command: Sequence[str], environment: Mapping[str, str], signals: Signals) -> NoReturn:
    """Run the command in place of this process, a child of the caller."""
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        os.execvpe(command[0], list(command), environment)
    except OSError as error:
        sys.stderr.write(f"netfold: {command[0]}: {error.strerror}\n")
    finally:
        os._exit(127)


def _environment(name: str, folder: Path, mode: NetworkMode) -> dict[str, str]:
    """For a command in the namespaces. The user of sudo is none of a user namespace."""
    hidden = ("SUDO_UID", "SUDO_GID", "SUDO_USER") if mode is NetworkMode.ROOTLESS else ()
    kept = {k: v for k, v in os.environ.items() if k not in hidden}
    number = namespaces.identity("net")
    return {
        **kept,
        Variable.NAMESPACE: str(number),
        Variable.NAME: name,
        Variable.NETWORK_MODE: mode,
        Variable.RUN_DIR: str(folder),
    }


@contextlib.contextmanager
def _holding(directory: RunDirectory) -> Iterator[int]:
    """The locked `holder.json`; gone afterwards. Raises AlreadyUpError, NetworkError."""
    directory.prepare()
    file = _file(directory.name)
    descriptor = _locked(file)
    if descriptor is None and _wait_for_leaving(file):
        descriptor = _locked(file)
    if descriptor is None or directory.owned:
        raise already_up(directory)
    try:
        os.ftruncate(descriptor, 0)
        yield descriptor
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)
        with contextlib.suppress(OSError):  # logs are kept
            directory.logs.rmdir()
            (directory.path / "lock").unlink(missing_ok=True)
            directory.path.rmdir()


def _locked(file: Path) -> int | None:
    while True:
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise NetworkError(f"{file} cannot be written: {error.strerror}") from error
        if not try_lock(descriptor):
            os.close(descriptor)
            return None
        with contextlib.suppress(FileNotFoundError):
            if file.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)  # the one before has removed it meanwhile


def _wait_for_leaving(file: Path) -> bool:
    """Waits for the namespaces of a holder that was killed, whose command is cleaning up; false if it runs."""
    try:
        holder = Holder(**json.loads(file.read_text()))
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(holder.first)
            select.select([descriptor], [], [], _LEAVE_S)
            os.close(descriptor)
        return True
    except (OSError, ValueError, TypeError):
        return False
    return False


def _file(name: str) -> Path:
    return RunDirectory(name).path / "holder.json"


def main(arguments: Sequence[str]) -> int:
    try:
        action, name, *rest = arguments
        if action == "enter":
            return enter(name, rest)
        return create(name, NetworkMode(rest[0]), rest[1:])
    except NetworkError as error:
        sys.stderr.write(f"netfold: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
