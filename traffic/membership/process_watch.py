# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A small process beside each process that is a member of a job: it sees that one's end, whichever way it ends, and
cancels the job that it has not left. The kernel's word is evidence, where a broken stream to the controller is none: a
restarted controller and a partition break streams, too.

It imports nothing but the interpreter's own modules while it waits, and is a session of its own, which signals to the
program's process group do not reach.
"""

import os
import select
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


def watch_process(entry: Path) -> int:
    """Watches this process. `entry`: the file of the job (process_jobs.py), which goes when the process leaves it.
    Returns a descriptor; closing it ends the watch if the file is gone. Raises OSError."""
    read, write = os.pipe()
    command = [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(entry), str(read)]
    silent = subprocess.DEVNULL
    try:
        subprocess.run(
            command,
            pass_fds=[read],
            start_new_session=True,
            stdin=silent,
            stdout=silent,
            stderr=silent,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        os.close(write)
        raise OSError(f"no process can watch this one: {error}") from error
    finally:
        os.close(read)
    return write


def _main() -> None:
    pid, entry, pipe = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    process = os.pidfd_open(pid)
    if os.fork():  # the program has no child that it did not start
        return
    for descriptors in (
        [process, pipe],
        [process],
    ):  # a process that ends closes its pipes before it has ended
        _wait(descriptors)
        if not entry.exists():
            return
    os.execv(sys.executable, [sys.executable, "-m", "netfold.traffic.membership.process_jobs", str(entry)])


def _wait(descriptors: Iterable[int]) -> None:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    poll.poll()


if __name__ == "__main__":
    _main()
