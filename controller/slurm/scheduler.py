# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Questions to Slurm, by its commands."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess

from netfold.controller.slurm.request import SlurmError

COMMAND_S = 20.0
"""Deadline of a command."""
ENDED = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
        *("PREEMPTED", "REVOKED", "TIMEOUT"),
    }
)
"""States of jobs that hold no nodes any more. A state that is not here counts as one of a job that lives."""
UNLIMITED = ("UNLIMITED", "NOT_SET")
_LIMIT = re.compile(r"(?:([0-9]+)-)?(?:([0-9]+):)?([0-9]+):([0-9]+)")
_ROW = re.compile(r"([0-9]{1,10}) ([A-Z_]+)")


def node_names(nodes: str) -> list[str]:
    """The names in `n[1-4]`. Raises SlurmError."""
    return _run("scontrol", "show", "hostnames", nodes).split()


def time_limit_s(number: int) -> float | None:
    """The time limit of a job; None: it has none. Raises SlurmError."""
    lines = _run(
        "squeue", "--noheader", "--all", "--array", f"--jobs={number}", "--format=%A %l"
    ).splitlines()
    # The number of one task is that of its whole array.
    limits = dict(line.split(maxsplit=1) for line in lines if len(line.split()) == 2)
    text = limits.get(str(number), "")
    if text in UNLIMITED:
        return None
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise SlurmError(f"squeue gives job {number} the time limit {text[:80]!r}")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def live_jobs() -> frozenset[int]:
    """The numbers of all jobs that wait, run or complete. Raises SlurmError."""
    lines = _run("squeue", "--noheader", "--all", "--array", "--states=all", "--format=%A %T").splitlines()
    rows = [_ROW.fullmatch(line.strip()) for line in lines]
    for row, line in zip(rows, lines, strict=True):
        if row is None:
            raise SlurmError(f"squeue has the line {line[:80]!r}; expected a number and a state")
    return frozenset(int(row[1]) for row in rows if row is not None and row[2] not in ENDED)


def note_reason(number: int, reason: str, *, is_final: bool) -> None:
    """Show the user of a job why it was refused, in `scontrol show job`. Slurm does not show what a prolog prints.
    `is_final`: Slurm does not requeue the job, but ends it."""
    requeue = ("Requeue=0",) if is_final else ()
    with contextlib.suppress(SlurmError):
        _run("scontrol", "update", f"JobId={number}", *requeue, f"AdminComment=netfold: {reason}")


def _run(*command: str) -> str:
    # Without the caller's own filters, as SQUEUE_USERS: jobs that they leave out would seem over.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SQUEUE_") and name != "SLURM_CLUSTERS"
    }
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_S,
            check=False,
            env=environment,
        )
    except OSError as error:
        raise SlurmError(f"{command[0]} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise SlurmError(f"{command[0]} did not answer within {COMMAND_S:g} s") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        raise SlurmError(f"{command[0]} failed: {lines[-1][:200]}")
    return done.stdout
