# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A member's part of a job: the proto's `Assignment`, checked, as plain values."""

from __future__ import annotations

import ipaddress
import itertools
import math
from dataclasses import dataclass, field

from netfold.protocol.congestion import Timing
from netfold.protocol.constants import TARGET_NONE
from netfold.protocol.target import Targets
from netfold.protocol.wire import COUNT_MAX, EPOCH_MAX, LANES_MAX, PORT_FIRST, PORT_LAST, SLOTS_MAX
from netfold.traffic.errors import InvalidAssignmentError
from netfold.traffic.numerics import Automatic, Scheme

LEAST_LANES_OF_A_QUORUM = 32
"""And where workers may come later: the resume chunk says more there (docs/reference/protocol.md, sections 5.5
and 5.6). Ready votes need lanes, too (5.8)."""


@dataclass(frozen=True)
class TreeAssignment:
    """One tree as a member sees it (see docs/reference/protocol.md, section 1, for the words).

    sources  for each of `children` the source addresses (IPv4) of its packets; empty: any address is accepted (an
             assignment from a file, without switches)
    direct_children  with a quorum: the first so many of `children` are the root's own, the others are below inner
             nodes, which forward their late packets; 0: all are the root's own
    """

    tree: int
    share: float
    slots: int
    window: int
    child: int
    destination: str
    children: tuple[int, ...] = ()
    sources: tuple[tuple[str, ...], ...] = ()
    direct_children: int = 0

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
class WorkersLeft:
    """Workers that have left the job after `calls` calls. `epoch`: the last one that they take part in. Calls from
    `call_limit` on are not completed in the present epoch; `is_final`: nor in a later one."""

    hosts: tuple[str, ...]
    epoch: int
    calls: int
    call_limit: int
    is_final: bool

    def __str__(self) -> str:
        return f"{', '.join(self.hosts)} left the job after {self.calls} calls"


@dataclass(frozen=True)
class Neighbors:
    """A RoCE worker's neighbors in the ring of one tree: addresses and queue pairs, and the first PSN that comes."""

    tree: int
    successor: str
    successor_qpn: int
    predecessor: str
    predecessor_qpn: int
    predecessor_psn: int


@dataclass(frozen=True)
class Ring:
    """The ring of a RoCE job's epoch. `min_calls`, `max_calls`: calls that all workers, and that some have completed;
    worker `source_rank` has the results that the others lack."""

    min_calls: int
    max_calls: int
    source_rank: int
    trees: tuple[Neighbors, ...]


@dataclass(frozen=True)
class Assignment:
    """A member's part in one epoch of a job. `rate_mbps` counts payload and headers; 0: not limited. `numerics`:
    how numbers become lanes, unless the worker's caller chooses. `quorum`: contributions that seal a chunk
    `quorum_deadline_s` seconds after it was sent; 0: all workers'. `allow_newcomers`: workers without call state may
    take part; they continue with the call that the other workers are in. `workers_left`: workers without which calls
    cannot be completed; None: there are none. `link_mbps`: rate of the member's link, counted
    likewise; 0: unknown. `address`: the member's own. `ring`: of a RoCE job, once all workers have registered their
    queue pairs; None: not yet. `targets`: of the epoch's packets."""

    job: str
    epoch: int
    udp_port: int
    lanes: int
    rank: int
    workers: int
    trees: tuple[TreeAssignment, ...]
    rate_mbps: float = 0.0
    numerics: Scheme = field(default_factory=Automatic)
    timing: Timing = field(default_factory=Timing)
    quorum: int = 0
    quorum_deadline_s: float = 0.05
    allow_newcomers: bool = False
    workers_left: WorkersLeft | None = None
    link_mbps: float = 0.0
    address: str = ""
    ring: Ring | None = None
    targets: Targets = Targets.OFF

    @property
    def roots(self) -> list[str]:
        """Addresses that the trees' contributions go to, each once."""
        return list(dict.fromkeys(part.destination for part in self.trees))

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
            not self.allow_newcomers or self.lanes >= LEAST_LANES_OF_A_QUORUM,
            f"workers may come later where packets have {LEAST_LANES_OF_A_QUORUM} lanes at least",
        )
        _check(
            not self.targets or not (self.quorum or self.allow_newcomers),
            "packets have no targets with a quorum, or where workers may come later",
        )
        _check(
            not self.targets or (self.workers <= TARGET_NONE and self.lanes >= LEAST_LANES_OF_A_QUORUM),
            f"targets are for at most {TARGET_NONE} workers and at least {LEAST_LANES_OF_A_QUORUM} lanes",
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
        workers hold the same shares and so cut alike. Raises InvalidAssignmentError if they do not add up to 1."""
        whole = math.fsum(part.share for part in self.trees)
        if abs(whole - 1) > 1e-6:
            raise InvalidAssignmentError(f"the shares of the trees add up to {whole}; they must add up to 1")
        return tuple(
            math.fsum(part.share for part in self.trees[:upto]) for upto in range(1, len(self.trees) + 1)
        )


def _check_address(where: str, what: str, text: str) -> None:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        raise InvalidAssignmentError(f"{where}: {what} is '{text}', which is no IPv4 address") from None


def _check(good: bool, message: str) -> None:
    if not good:
        raise InvalidAssignmentError(f"assignment: {message}")
