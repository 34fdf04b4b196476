# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What one member of a job has to know: the proto's `Assignment`, checked, as plain values."""

from __future__ import annotations

import ipaddress
import itertools
import math
from dataclasses import dataclass, field, fields

from netfold.traffic.errors import BadAssignment
from netfold.traffic.numerics import Automatic, Scheme
from netfold.traffic.packets.wire import COUNT_MAX, EPOCH_MAX, LANES_MAX, PORT_FIRST, PORT_LAST, SLOTS_MAX

LEAST_LANES_OF_A_QUORUM = 32
"""And where workers may come later: the resume chunk says more there (docs/protocol.md, sections 5.5 and 5.6)."""


@dataclass(frozen=True)
class TreePart:
    """One tree as a member sees it (see docs/protocol.md, section 1, for the words).

    sources  for each of `children` the IPv4 addresses that its packets may come from; empty: nobody has said, and any
             address is taken (an assignment from a file, without switches)
    own_children  with a quorum: so many of `children` are the root's own, the others are those under inner nodes, whose
             late packets come alone; 0: all are
    """

    tree: int
    share: float
    slots: int
    window: int
    child: int
    destination: str
    children: tuple[int, ...] = ()
    sources: tuple[tuple[str, ...], ...] = ()
    own_children: int = 0

    def __post_init__(self) -> None:
        _check(0 <= self.tree < 1 << 16, f"tree is {self.tree}; it must be 0 to 65535")
        where = f"tree {self.tree}"
        _check(
            math.isfinite(self.share) and 0 <= self.share <= 1,
            f"{where}: share is {self.share}; it must be 0 to 1",
        )
        _check(
            2 <= self.slots <= SLOTS_MAX and self.slots & (self.slots - 1) == 0,
            f"{where}: slots is {self.slots}; it must be a power of two from 2 to {SLOTS_MAX}",
        )
        _check(
            1 <= self.window <= self.slots // 2,
            f"{where}: window is {self.window}; it must be 1 to half the slots, {self.slots // 2}",
        )
        _check(0 <= self.child < 1 << 16, f"{where}: child is {self.child}; it must be 0 to 65535")
        _check(
            len(set(self.children)) == len(self.children),
            f"{where}: a child is named twice in {self.children}",
        )
        _check(
            len(self.sources) in (0, len(self.children)),
            f"{where}: there are sources for {len(self.sources)} of {len(self.children)} children",
        )
        _check_address(where, "destination", self.destination)
        for address in itertools.chain(*self.sources):
            _check_address(where, "a source", address)


@dataclass(frozen=True)
class Timing:
    """What a sender waits for, in seconds; the defaults allow for hosts and switches that share a processor.

    `first_timeout`: before a round trip was measured. `least_variance`: what a timeout allows for beside the smoothed
    round trip, at least. `least_reordering`: how much later a chunk may have gone than one that it overtakes, at least.
    `late`: where nothing marks congestion, a round trip so much longer than the shortest means a queue. `burst`: how
    long at the paced rate packets may go at once. `gather`: how long results may lie in the socket, so that a worker
    wakes up for many at a time."""

    first_timeout: float = 0.05
    least_variance: float = 0.04
    longest_timeout: float = 1.0
    least_reordering: float = 0.0005
    late: float = 0.025
    burst: float = 0.004
    gather: float = 0.001

    def __post_init__(self) -> None:
        for item in fields(self):
            seconds = getattr(self, item.name)
            least = 0.0 if item.name in ("gather", "least_reordering") else 1e-9
            _check(
                math.isfinite(seconds) and seconds >= least,
                f"timing: {item.name} is {seconds} s; it must be {'0 or more' if not least else 'above 0'}",
            )


@dataclass(frozen=True)
class Assignment:
    """A member's part in one epoch of a job. `rate_mbps` counts payload and headers; 0: not limited. `numerics`:
    how numbers become lanes, unless a worker is told otherwise. `quorum`: contributions of a chunk that are enough once
    it has waited `quorum_deadline_s` seconds for all; 0: all are wanted. `newcomers`: workers may be there who were in
    no call of the others'; they go on with the call that these are in."""

    job: str
    epoch: int
    udp_port: int
    lanes: int
    rank: int
    workers: int
    trees: tuple[TreePart, ...]
    rate_mbps: float = 0.0
    numerics: Scheme = field(default_factory=Automatic)
    timing: Timing = field(default_factory=Timing)
    quorum: int = 0
    quorum_deadline_s: float = 0.05
    newcomers: bool = False

    def __post_init__(self) -> None:
        _check(1 <= self.epoch <= EPOCH_MAX, f"epoch is {self.epoch}; it must be 1 to {EPOCH_MAX}")
        _check(
            PORT_FIRST <= self.udp_port <= PORT_LAST,
            f"udp_port is {self.udp_port}; it must be {PORT_FIRST} to {PORT_LAST}",
        )
        _check(4 <= self.lanes <= LANES_MAX, f"lanes is {self.lanes}; it must be 4 to {LANES_MAX}")
        _check(1 <= self.workers < 1 << 15, f"workers is {self.workers}; it must be 1 to 32767")
        _check(self.rank >= 0, f"rank is {self.rank}; it must not be negative")
        _check(math.isfinite(self.rate_mbps) and self.rate_mbps >= 0, f"rate_mbps is {self.rate_mbps}")
        _check(
            0 <= self.quorum <= min(self.workers, COUNT_MAX),
            f"quorum is {self.quorum}; it must be 0 (none) to {min(self.workers, COUNT_MAX)}",
        )
        _check(
            not self.quorum or (self.workers <= COUNT_MAX and self.lanes >= LEAST_LANES_OF_A_QUORUM),
            f"a quorum is for at most {COUNT_MAX} workers and at least {LEAST_LANES_OF_A_QUORUM} lanes",
        )
        _check(
            not self.newcomers or self.lanes >= LEAST_LANES_OF_A_QUORUM,
            f"workers may come later where packets have {LEAST_LANES_OF_A_QUORUM} lanes at least",
        )
        _check(
            math.isfinite(self.quorum_deadline_s) and self.quorum_deadline_s > 0,
            f"quorum_deadline_s is {self.quorum_deadline_s}; it must be above 0",
        )
        _check(len(self.trees) > 0, "trees is empty; a job has at least one tree")
        numbers = [part.tree for part in self.trees]
        _check(len(set(numbers)) == len(numbers), f"a tree is named twice in {numbers}")

    def bounds(self) -> tuple[float, ...]:
        """Up to where each tree carries an array of length 1, in the order of `trees`; the first begins at 0. All
        workers hold the same shares and so cut alike. Raises BadAssignment if they do not add up to 1."""
        whole = math.fsum(part.share for part in self.trees)
        if abs(whole - 1) > 1e-6:
            raise BadAssignment(f"the shares of the trees add up to {whole}; they must add up to 1")
        return tuple(
            math.fsum(part.share for part in self.trees[:upto]) for upto in range(1, len(self.trees) + 1)
        )


def _check_address(where: str, what: str, text: str) -> None:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        raise BadAssignment(f"{where}: {what} is '{text}', which is no IPv4 address") from None


def _check(good: bool, message: str) -> None:
    if not good:
        raise BadAssignment(f"assignment: {message}")


SHARED_PROCESSORS = Timing()

DATA_CENTER = Timing(
    first_timeout=2e-3,
    least_variance=2e-4,
    longest_timeout=0.1,
    least_reordering=5e-6,
    late=1e-3,
    burst=20e-6,
    gather=0.0,
)
"""Where round trips take microseconds and hosts have nothing else to do."""
