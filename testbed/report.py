# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The report of a run, as JSON and as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from rich.console import Group
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True)
class AllReduce:
    """All-reduces of one transport. Times: of the slowest worker. algbw (nccl-tests): array size over time, Mbit/s.
    `busy`: share of the machine's processors, meanwhile."""

    ms_p50: float
    ms_p99: float
    algbw_mbps: float
    wrong_elements: int
    checked_elements: int
    retransmits: int = 0
    probes: int = 0
    busy: float = 0.0


TARGET_NOTES = {
    "bmv2": (
        "this measures BMv2, not netfold. BMv2 is P4's reference switch: it interprets the program, one packet at a "
        "time. The sums are those of any target; rates and times show what BMv2 carries, and no ratio to expect "
        "elsewhere"
    )
}
"""Notes on a target's figures: their meaning, and what they cannot show."""

MEASURED = ("p50 ms", "p99 ms", "algbw Mbit/s", "wrong", "bound by")


BOUND_BY_LINKS = 0.5
"""Least rate that workers send, as a fraction of the links', of an all-reduce that links hold up."""

BOUND_BY_PROCESSORS = 0.8
"""Least share of the machine's processors of another one that they hold up: what waits for one takes the rest."""


class Bound(StrEnum):
    """The resource that holds up an all-reduce; an idle machine with idle links waits for round trips."""

    LINKS = "links"
    PROCESSORS = "processors"
    LATENCY = "latency"


def bound_of(measured: AllReduce, link_mbps: float, sent: float = 1.0) -> Bound:
    """`sent`: array bytes that a worker sends for each byte of the array."""
    if sent * measured.algbw_mbps >= BOUND_BY_LINKS * link_mbps:
        return Bound.LINKS
    return Bound.PROCESSORS if measured.busy >= BOUND_BY_PROCESSORS else Bound.LATENCY


def _sent_by_ring(workers: int) -> float:
    return 2 * (workers - 1) / workers


def _speedup(netfold: AllReduce, ring: AllReduce) -> str:
    return f"{ring.ms_p50 / netfold.ms_p50:.1f} times"


def _cells(measured: AllReduce, bound: Bound) -> tuple[str, ...]:
    """Cells of the columns MEASURED."""
    return (
        f"{measured.ms_p50:.2f}",
        f"{measured.ms_p99:.2f}",
        f"{measured.algbw_mbps:.2f}",
        str(measured.wrong_elements),
        bound,
    )


@dataclass(frozen=True)
class FastLinks:
    """The arrays over links of a rate that this machine may not carry in full. `identical`: at all workers."""

    link_mbps: float
    netfold: AllReduce
    ring: AllReduce | None
    identical: bool


@dataclass(frozen=True)
class RunReport:
    """One run. `network`: a NetworkMode. `wrong_elements`: of all workloads; the top-level rates: of `bandwidth`,
    arrays of `bandwidth_bytes`; the top-level times: of the training. `frames_lost`: None without injected loss.
    `restarted`: a switch, whose counters in `switches` start at its restart. `warning`: why the rates may be the
    machine's, not the network's. `fast`: None if not asked for."""

    fabric: str
    network: str
    target: str
    target_reason: str
    scheme: str
    workers: int
    lanes: int
    link_mbps: float
    accuracy: float
    reference_accuracy: float
    identical: bool
    wrong_elements: int
    allreduce_ms_p50: float
    allreduce_ms_p99: float
    bandwidth_bytes: int
    algbw_mbps: float
    goodput_mbps_per_worker: float
    goodput_of_link: float
    packets_aggregated: int
    retransmits: int
    probes: int
    ring_algbw_mbps: float | None
    training: AllReduce
    training_ring: AllReduce | None
    bandwidth: AllReduce
    bandwidth_ring: AllReduce | None
    seconds: float
    switches: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    frames_lost: int | None = None
    restarted: str | None = None
    warning: str = ""
    fast: FastLinks | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"

    def render(self) -> Group:
        texts = filter(None, (TARGET_NOTES.get(self.target), self.warning))
        notes = [Text(f"Note: {text}.", style="yellow") for text in texts]
        fast = [] if self.fast is None else [self._fast_rates(self.fast)]
        return Group(self._outcome(), self._rates(), *fast, self._counters(), *notes, Text(self.conclusion))

    @property
    def conclusion(self) -> str:
        """The run in a sentence to repeat: whether sums are right, and the speed compared with the ring's."""
        wrong = f"{self.wrong_elements:,} elements are WRONG" if self.wrong_elements else "No sum is wrong"
        if self.bandwidth_ring is None:
            return f"{wrong}."
        size = f"{self.bandwidth_bytes / 2**20:g} MiB"
        ratio = _speedup(self.bandwidth, self.bandwidth_ring)
        compared = (
            f"an all-reduce of {size} is {ratio} as fast as the TCP ring's over {self.link_mbps:,.0f} Mbit/s"
        )
        if self.fast is not None and self.fast.ring is not None:
            ratio, link = _speedup(self.fast.netfold, self.fast.ring), self.fast.link_mbps
            compared += f", {ratio} over {link:,.0f} Mbit/s"
            if bound_of(self.fast.netfold, link) is Bound.PROCESSORS:
                compared += ", where this machine's processors are the limit"
        return f"{wrong}; {compared}."

    def _outcome(self) -> Table:
        table = Table(
            title=f"{self.workers} workers on {self.fabric} ({self.target}, {self.scheme})", min_width=72
        )
        table.add_column("")
        table.add_column("value", justify="right")
        table.add_row("network", self.network)
        table.add_row("switches", self.target_reason)
        table.add_row("accuracy", f"{self.accuracy:.4f}")
        table.add_row("accuracy of the single-machine reference", f"{self.reference_accuracy:.4f}")
        checked = self.training.checked_elements + self.bandwidth.checked_elements
        checked += self.fast.netfold.checked_elements if self.fast else 0
        table.add_row("wrong elements", f"{self.wrong_elements} of {checked:,} checked")
        table.add_row("results bit-identical on all workers", "yes" if self.identical else "NO")
        table.add_row("packets aggregated in switches", f"{self.packets_aggregated:,}")
        table.add_row("retransmissions", f"{self.retransmits:,}")
        table.add_row("  of them probes, after silence", f"{self.probes:,}")
        if self.frames_lost is not None:
            table.add_row("frames lost by injected faults", f"{self.frames_lost:,}")
        if self.restarted is not None:
            table.add_row("killed and restarted during the training", self.restarted)
        goodput = self.goodput_mbps_per_worker
        table.add_row(
            "goodput per worker", f"{goodput:.1f} Mbit/s" if goodput >= 1 else f"{goodput:.2g} Mbit/s"
        )
        table.add_row(
            f"  of the link's payload rate ({self.link_mbps:g} Mbit/s on the wire)",
            f"{self.goodput_of_link:.0%}",
        )
        return table

    def _rates(self) -> Table:
        table = Table(title="all-reduce", min_width=72)
        for column in ("workload", "transport", *MEASURED):
            table.add_column(column, justify="left" if column in ("workload", "transport") else "right")
        size = f"{self.bandwidth_bytes / 2**20:g} MiB"
        rows = (
            ("training", "netfold", self.training, 1.0),
            ("training", "ring (TCP)", self.training_ring, _sent_by_ring(self.workers)),
            (size, "netfold", self.bandwidth, 1.0),
            (size, "ring (TCP)", self.bandwidth_ring, _sent_by_ring(self.workers)),
        )
        for workload, transport, measured, sent in rows:
            if measured is not None:
                bound = bound_of(measured, self.link_mbps, sent)
                table.add_row(workload, transport, *_cells(measured, bound))
        return table

    def _fast_rates(self, fast: FastLinks) -> Table:
        size = f"{self.bandwidth_bytes / 2**20:g} MiB"
        title = f"all-reduce of {size} over links of {fast.link_mbps:,.0f} Mbit/s, as far as this machine carries them"
        table = Table(title=title, min_width=72)
        for column in ("transport", *MEASURED):
            table.add_column(column, justify="left" if column == "transport" else "right")
        rows = (("netfold", fast.netfold, 1.0), ("ring (TCP)", fast.ring, _sent_by_ring(self.workers)))
        for transport, measured, sent in rows:
            if measured is not None:
                table.add_row(transport, *_cells(measured, bound_of(measured, fast.link_mbps, sent)))
        return table

    def _counters(self) -> Table:
        table = Table(title="packets by switch and verdict", min_width=72)
        table.add_column("verdict")
        for switch in self.switches:
            table.add_column(switch, justify="right")
        for verdict in dict.fromkeys(v for counts in self.switches.values() for v in counts):
            table.add_row(verdict, *(f"{counts.get(verdict, 0):,}" for counts in self.switches.values()))
        return table
