# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A small process beside each process that is a member of a job: it sees that one's end, whichever way it ends, and
cancels the job that it has not left. The kernel's word is evidence, where a broken stream to the controller is none: a
restarted controller and a partition break streams, too.

It imports nothing but the interpreter's own modules while it waits, and is a session of its own, which signals to the
program's process group do not reach. A process that executes another program in its place has not ended, so its job is
canceled when that program ends. The watch has no parent that knows it: init, or the process that adopts orphans in its
place, has to reap it, as the first process of a container does not always.
"""

import os
import select
import subprocess
import sys
from collections.abc import Iterable, Mapping


def watch_process(*arguments: str, variables: Mapping[str, str]) -> int:
    """Watches this process: if it ends, process_jobs.py runs with these arguments and environment variables. Returns a
    descriptor; a byte written to it says that the process has left the job, and ends the watch. Raises OSError."""
    if getattr(sys, "frozen", False) or not sys.executable:
        raise OSError(f"no process can watch this one: {sys.executable!r} is no interpreter of Python")
    process = os.pidfd_open(os.getpid())
    read, write = os.pipe()
    command = [sys.executable, "-I", "-S", __file__, str(process), str(read), *arguments]
    modules = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)  # noqa: PTH100 (the watch imports little)
    silent = subprocess.DEVNULL
    try:
        subprocess.run(
            command,
            pass_fds=[process, read],
            start_new_session=True,
            stdin=silent,
            stdout=silent,
            stderr=silent,
            env={**os.environ, **variables, "PYTHONPATH": modules},
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        os.close(write)
        raise OSError(f"no process can watch this one: {error}") from error
    finally:
        os.close(process)
        os.close(read)
    return write


def _main() -> None:
    process, pipe = map(int, sys.argv[1:3])
    if os.fork():  # the program has no child that it did not start
        return
    if _leaves(process, pipe):
        return
    cancel = [sys.executable, "-P", "-m", "netfold.traffic.membership.process_jobs", *sys.argv[3:]]
    os.execv(sys.executable, cancel)


def _leaves(process: int, pipe: int) -> bool:
    """Waits until the process leaves the job, or ends. Its forked children may hold the pipe longer."""
    os.set_blocking(pipe, False)
    _wait([process, pipe])
    try:
        has_left = bool(os.read(pipe, 1))
    except BlockingIOError:
        return False
    if not has_left:  # a process that ends closes its pipes before it has ended
        _wait([process])
    return has_left


def _wait(descriptors: Iterable[int]) -> None:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    poll.poll()


if __name__ == "__main__":
    _main()
