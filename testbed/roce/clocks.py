# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the clock of a booted machine against the host's. A guest kernel that calibrates its clock on a busy host can
be wrong by any factor; its timeouts then end too early or too late."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from netfold.testbed.errors import RunError

INTERVAL_S = 2.0
"""Between two readings of a clock, on the host."""

TOLERANCE = 0.05
RESOLUTION_S = 0.02
"""Resolution of the difference of two readings of /proc/uptime."""


class ClockError(RunError):
    """The clock of the machine in place of `host` runs at another rate than the host's."""

    def __init__(self, host: str, guest_s: float, host_s: float) -> None:
        super().__init__(
            f"{host}: the machine's clock counted {guest_s:.1f} s in {host_s:.1f} s; boot it on an idle host"
        )
        self.host = host


class Clocked(Protocol):
    """A machine with a clock."""

    host: str

    def uptime_s(self) -> float:
        """Seconds since the boot, by the machine's clock. Raises RunError."""


@dataclass(frozen=True)
class _Reading:
    """A machine's clock, read at some time between two times of the host's clock."""

    guest_s: float
    after_s: float
    before_s: float


def find_wrong_clocks(
    machines: Iterable[Clocked],
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[ClockError]:
    """Reads each clock twice, INTERVAL_S apart. Takes what a busy host delays between them as unknown, not as an error
    of the clock. Raises RunError."""

    def read(machine: Clocked) -> _Reading:
        after = now()
        return _Reading(machine.uptime_s(), after, now())

    first = [(machine, read(machine)) for machine in machines]
    sleep(INTERVAL_S)
    found = []
    for machine, begin in first:
        end = read(machine)
        guest, longest = end.guest_s - begin.guest_s, end.before_s - begin.after_s
        shortest = end.after_s - begin.before_s
        if not shortest * (1 - TOLERANCE) - RESOLUTION_S <= guest <= longest * (1 + TOLERANCE) + RESOLUTION_S:
            found.append(ClockError(machine.host, guest, longest))
    return found
