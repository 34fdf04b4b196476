# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Measures how busy the drivers of chip models keep a machine before any job runs. Unmodified drivers poll the model
without a pause: a pair of them takes most of two processors, and a run then takes many times as long."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from netfold.testbed.network.tofino_model import DRIVERS

SAMPLE_S = 2.0
MAX_IDLE_SHARE = 0.2
"""Largest share of the processors for drivers without traffic. With the changes of docs/how-to/tofino.md they are
nearly idle."""

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_COMMAND_CHARACTERS = 15
"""Characters of a process's name in /proc/PID/stat."""


@dataclass(frozen=True)
class DriverLoad:
    """`busy`: processors that the drivers of all switches keep busy together."""

    processors: int
    busy: float

    def warning(self) -> str:
        """Why runs on this machine take long; "" for drivers that wait."""
        if self.busy <= MAX_IDLE_SHARE * self.processors:
            return ""
        return (
            f"the drivers keep {self.busy:.1f} of {self.processors} processors busy before any job runs, so calls may "
            "take minutes; build them with the two changes of docs/how-to/tofino.md, section 3"
        )


def measure_drivers(pairs: Iterable[int | None], sleep: Callable[[float], None] = time.sleep) -> DriverLoad:
    """Measure the load of the drivers that are children of these processes of model and drivers. It takes
    `SAMPLE_S`."""
    parents = {pid for pid in pairs if pid is not None}
    began, before = time.monotonic(), _used_s(parents)
    sleep(SAMPLE_S)
    used = sum(seconds - before[pid] for pid, seconds in _used_s(parents).items() if pid in before)
    return DriverLoad(os.cpu_count() or 1, used / (time.monotonic() - began))


def _used_s(parents: set[int]) -> dict[int, float]:
    """Return the processor time of each driver in seconds, by its pid (proc(5))."""
    found = {}
    for stat in _PROC.glob("[0-9]*/stat"):
        try:
            head, _, tail = stat.read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        fields = tail.split()
        if head.partition("(")[2] == DRIVERS[:_COMMAND_CHARACTERS] and int(fields[1]) in parents:
            found[int(stat.parent.name)] = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
    return found
