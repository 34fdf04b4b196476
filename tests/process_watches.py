# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The watches of members (traffic/membership/process_watch.py) whose files are in a folder of a test."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

DEADLINE_S = 60.0


def watches(folder: Path) -> list[int]:
    """Numbers of the processes, also of those that cancel a job now."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if {"-S", "-P"} & {*words} and any(word.startswith(f"{folder}/") for word in words):
            found.append(int(path.parent.name))
    return found


def await_no_watch(folder: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while found := watches(folder):
        assert time.monotonic() < deadline, found
        time.sleep(0.02)  # of a process that is no child nothing else tells


def kill_watches(folder: Path) -> None:
    """As the end of a container or of a machine does."""
    for pid in watches(folder):
        os.kill(pid, signal.SIGKILL)
    await_no_watch(folder)
