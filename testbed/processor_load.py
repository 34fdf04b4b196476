# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Measures how busy this machine's processors are, before a run by other processes, and during it. A run on a busy
machine measures the machine."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from netfold.traffic.workloads.benchmark import busy_processor_s

SAMPLE_S = 0.5
MAX_BUSY_SHARE = 0.25
"""Share of the processors that other processes may take. Above it, rates are not this machine's."""

MAX_WAITING_SHARE = 0.5
"""Share of its time that a process may wait for a processor. Above it, the machine is what makes a run slow."""

SLOW_GOODPUT = 0.7
"""Goodput, of the link's payload rate, below which a run is slow."""

_PRESSURE = Path("/proc/pressure/cpu")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def processor_seconds(pids: Iterable[int]) -> float:
    """User and system time of these processes so far, with all their threads (proc(5)). Raises OSError if one has
    ended."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS_PER_S


@dataclass(frozen=True)
class ProcessorLoad:
    """`busy_before`: processors that other processes kept busy before the run; `waiting`: share of the run's time in
    which some process waited for a processor, None if the kernel does not count it."""

    processors: int
    busy_before: float
    waiting: float | None

    def warning(self, target: str, goodput_of_link: float | None = None) -> str:
        """Why the figures of a run (its failure, for None) may be the machine's; "" if nothing points to it."""
        if self.busy_before > MAX_BUSY_SHARE * self.processors:
            return (
                f"this machine is too busy for these figures: before the run other processes kept "
                f"{self.busy_before:.1f} of {self.processors} processors busy"
            )
        is_slow = goodput_of_link is None or goodput_of_link < SLOW_GOODPUT
        if is_slow and self.waiting is not None and self.waiting > MAX_WAITING_SHARE:
            return (
                f"this machine is too slow for {target} at this rate: processes waited for one of "
                f"{self.processors} processors in {self.waiting:.0%} of the time; choose a smaller --scale"
            )
        return ""


class ProcessorMeter:
    """Measures from its creation, which takes `SAMPLE_S`."""

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        began, busy = time.monotonic(), busy_processor_s()
        sleep(SAMPLE_S)  # a rate needs two readings
        self._started, self._waited_us = time.monotonic(), _waited_us()
        self._busy_before = (busy_processor_s() - busy) / (self._started - began)

    def read(self) -> ProcessorLoad:
        waited_us, seconds = _waited_us(), time.monotonic() - self._started
        waiting = None
        if waited_us is not None and self._waited_us is not None and seconds > 0:
            waiting = min(1.0, (waited_us - self._waited_us) / 1e6 / seconds)
        return ProcessorLoad(os.cpu_count() or 1, self._busy_before, waiting)


def _waited_us() -> int | None:
    """Microseconds in which some process waited for a processor, since boot; None without CONFIG_PSI."""
    try:
        found = re.search(r"^some .*total=(\d+)", _PRESSURE.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None
