# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Computes the time of an all-reduce of hosts with several ranks by NetReduce's cost model, and the choice that
follows.

NetReduce (ASPLOS 2023, arXiv 2009.09736) compares a flat ring (FR), Tencent's two levels (TA) and its own parallel form
(PN). Its printed equations could not be had; (1) to (5) are derived from its description, with latency and bandwidth
terms only. P ranks, n on each of H = P/n hosts that share a host's one link, a gradient of M bytes, B bytes/s, a
seconds for each message:

    (1) ring(n)  2 (n-1) a + 2 (n-1)/n M/B              a reduce-scatter and an all-gather of n - 1 steps each
    (2) stream   M/B                                    up to the switches, while the sums come down
    (3) FR       ring(P) over the network
    (4) TA       2 M/B_intra + ring(H) over the network  to a leader in each host, a ring of leaders, and back
    (5) PN       ring(n) inside the hosts + stream       each rank has 1/n of its host's sum added up by the switches
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

GIGABYTE, MICROSECOND = 1e9, 1e-6


def ring_bytes(members: int, size: float) -> float:
    """Bytes that each member of a ring sends, and receives, for a gradient of `size` bytes. In a tree it is `size`."""
    return 2 * (members - 1) / members * size


def ring_s(members: int, size: float, rate: float, latency: float) -> float:
    """Time of a ring, (1), in seconds."""
    return 2 * (members - 1) * latency + ring_bytes(members, size) / rate


def stream_s(size: float, rate: float) -> float:
    """Time of a stream, (2), in seconds: it does not depend on the number of members."""
    return size / rate


@dataclass(frozen=True)
class Machines:
    """Hosts with several ranks. Bandwidths in bytes/s, latencies in seconds for a message.

    intra, intra_latency  between the ranks of a host, for each of them
    inter, inter_latency  of the one network link that a host's ranks share
    """

    hosts: int
    per_host: int
    intra: float
    inter: float
    intra_latency: float
    inter_latency: float

    @property
    def ranks(self) -> int:
        return self.hosts * self.per_host

    def flat_s(self, size: float) -> float:
        """Time of FR, (3), in seconds."""
        return ring_s(self.ranks, size, self.inter, self.inter_latency)

    def leaders_s(self, size: float) -> float:
        """Time of TA, (4), in seconds."""
        return 2 * size / self.intra + ring_s(self.hosts, size, self.inter, self.inter_latency)

    def parallel_s(self, size: float) -> float:
        """Time of PN, (5), in seconds."""
        inside = ring_s(self.per_host, size, self.intra, self.intra_latency)
        return inside + stream_s(size, self.inter)

    def parallel_beats_flat_from(self, size: float) -> float:
        """The intra-host bandwidth at which (5) = (3); PN is faster above it, infinite if nowhere.

        Without latencies it is 2 (n-1) P / (n (P-2)) B_inter: the sufficient condition wherever
        a_intra (n-1) <= a_inter (P-1).
        """
        left = self.flat_s(size) - stream_s(size, self.inter) - 2 * (self.per_host - 1) * self.intra_latency
        return ring_bytes(self.per_host, size) / left if left > 0 else float("inf")

    def leaders_beat_flat_from(self, size: float) -> float:
        """The intra-host bandwidth at which (4) = (3); TA is faster above it, infinite if nowhere.

        Without latencies it is P / (n-1) B_inter: the sufficient condition always, for H <= P.
        """
        left = self.flat_s(size) - ring_s(self.hosts, size, self.inter, self.inter_latency)
        return 2 * size / left if left > 0 else float("inf")


class Reduction(StrEnum):
    """Method by which hosts with several ranks reduce."""

    FLAT = "flat"
    LEADER_ONLY = "leader-only"
    PARALLEL = "parallel"


@dataclass(frozen=True)
class Ranks:
    """The ranks of a job, as its file has them. The defaults are netfold's own: one rank of PCIe 3.0 x16, of
    NetReduce's slowest machine, and latencies in the middle of its range.

    intra_gbs   GB/s (10^9 bytes/s) between the ranks of a host, for each
    intra_us    microseconds for a message between them
    network_us  the same from host to host
    """

    per_host: int = 1
    intra_gbs: float = 15.75
    intra_us: float = 1.0
    network_us: float = 10.0


@dataclass(frozen=True)
class Way:
    """One way to reduce, and its milliseconds for the whole gradient. `in_trees`: it goes through the plan's trees."""

    reduction: Reduction
    text: str
    ms: float
    in_trees: bool = False

    @property
    def shown(self) -> str:
        return f"{self.ms:,.3f} ms" if self.ms < 1000 else f"{self.ms:,.0f} ms"


@dataclass(frozen=True)
class Hierarchy:
    """The hosts of a job, as a plan stores them.

    hosts         H, of `ranks.per_host` ranks each
    gradient      its bytes
    link          bytes/s of the slowest host's link, which a ring has
    unit          bytes/s of one of the fabric's units, in which a plan's rate is
    """

    ranks: Ranks
    hosts: int
    gradient: int
    link: float
    unit: float

    def ways(self, rate: float) -> tuple[Way, ...]:
        """All ways to reduce, for trees that carry `rate` (fabric units) from each host; the first of equals is the
        simplest. A ring has the link of the host whatever the trees have."""
        ring, trees = self._machines(self.link), self._machines(rate * self.unit)
        size = self.gradient
        gather = 2 * size / ring.intra
        return (
            Way(Reduction.FLAT, "flat: a ring of all ranks, past the trees (FR)", ring.flat_s(size) * 1e3),
            Way(
                Reduction.LEADER_ONLY,
                "leader-only: one rank of each host, in the trees",
                (gather + stream_s(size, trees.inter)) * 1e3,
                in_trees=True,
            ),
            Way(
                Reduction.LEADER_ONLY,
                "leader-only: a ring of leaders, past the trees (TA)",
                ring.leaders_s(size) * 1e3,
            ),
            Way(
                Reduction.PARALLEL,
                "parallel: each rank its part, in the trees (PN)",
                trees.parallel_s(size) * 1e3,
                in_trees=True,
            ),
        )

    def chosen(self, rate: float) -> Way:
        return min(self.ways(rate), key=lambda way: way.ms)

    def why(self, rate: float) -> str:
        """A sentence about the choice."""
        best = self.chosen(rate)
        trees, ring = self._machines(rate * self.unit), self._machines(self.link)
        inter = trees.inter / GIGABYTE
        here = (
            f"{self.hosts} hosts of {self.ranks.per_host} ranks, {self.ranks.intra_gbs:g} GB/s inside, "
            f"{inter:.3g} GB/s in the trees, {ring.inter / GIGABYTE:.3g} GB/s for a ring, "
            f"{self.gradient / 1e6:.4g} MB"
        )
        rivals = [
            min((w for w in self.ways(rate) if w.reduction is kind), key=lambda w: w.ms)
            for kind in Reduction
            if kind is not best.reduction
        ]
        against = " and ".join(f"{w.shown} {w.reduction}" for w in rivals)
        return f"{best.text}: {best.shown} against {against} ({here})"

    def _machines(self, inter: float) -> Machines:
        ranks = self.ranks
        return Machines(
            hosts=self.hosts,
            per_host=ranks.per_host,
            intra=ranks.intra_gbs * GIGABYTE,
            inter=inter,
            intra_latency=ranks.intra_us * MICROSECOND,
            inter_latency=ranks.network_us * MICROSECOND,
        )
