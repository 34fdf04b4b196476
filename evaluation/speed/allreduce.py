# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""All-reduce through switches, beside a TCP ring over the same links, in the columns of nccl-tests. Needs root.

    python -m netfold.evaluation.speed.allreduce [--workers 2,4,8] [--sizes 256K,4M] [--rate 100,1000]
        [--numerics block,half] [--lanes 32,64,256] [--leaves 1]

size (bytes), count and type of the elements, redop; time: mean of a call at the slowest worker, us; algbw = size /
time, busbw = algbw * 2 (n - 1) / n, GB/s; #wrong. "of link": algbw over the rate at which the link carries float32
payload. "Break-even": the largest rate up to which netfold is at least as fast as the ring, at the largest size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, takewhile
from typing import Annotated, Any

import typer
from rich.table import Table

from netfold.evaluation.core.command import (
    Floats,
    Integers,
    Words,
    expect,
    floats,
    integers,
    run_command,
    words,
)
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.core.progress import one_by_one
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, packet_bytes
from netfold.testbed.fault_injection import FaultInjection
from netfold.testbed.processor_load import processor_seconds
from netfold.testbed.submitted_job import Results
from netfold.testbed.testbed import Testbed
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine, single_switch
from netfold.traffic.numerics import DTYPES

RING_PORT = 29600
NUMERICS = ("auto", "block", "half", "float32", "integer")
RUN_TIMEOUT_S, CALL_TIMEOUT_S = 600.0, 120
QUEUE_LANES = SLOT_LANES = 256
"""Lanes of the packets that --queue and --slots count."""


@dataclass(frozen=True)
class SizeResult(Row):
    """A line of nccl-tests: the slowest worker's calls of one size."""

    size: int
    count: int
    type: str
    redop: str
    time_us: float
    algbw_gbs: float
    busbw_gbs: float
    wrong: int


@dataclass(frozen=True)
class TransportResult(Row):
    """All sizes over one transport. `flows` of the first worker; `cpu_s_per_gib` a mean over the workers."""

    sizes: tuple[SizeResult, ...]
    identical: bool
    flows: Any
    retransmits: int
    cpu_s_per_gib: float
    peak_rss_mib: float


@dataclass(frozen=True)
class AllReduceRow(Row):
    """One network with one job. `rate_mbps`: of a link; `payload_mbps`: float32 payload that it carries."""

    rate_mbps: float
    workers: int
    numerics: str
    lanes: int
    payload_mbps: float
    switch_cpu_s: float
    netfold: TransportResult
    ring: TransportResult | None

    @property
    def of_link(self) -> float:
        return self.netfold.sizes[-1].algbw_gbs * 8e3 / self.payload_mbps

    @property
    def over_ring(self) -> float | None:
        ring = self.ring and self.ring.sizes[-1].algbw_gbs
        return self.netfold.sizes[-1].algbw_gbs / ring if ring else None


@dataclass(frozen=True)
class BreakEven(Row):
    """`rate_mbps`: the largest one up to which netfold is as fast as the ring; None: it is slower at the smallest."""

    workers: int
    lanes: int
    numerics: str
    rate_mbps: float | None


SUMMARY_COLUMNS = (
    Column[AllReduceRow]("Mbit/s", lambda r: r.rate_mbps, "g"),
    Column[AllReduceRow]("workers", lambda r: r.workers),
    Column[AllReduceRow]("lanes", lambda r: r.lanes),
    Column[AllReduceRow]("numerics", lambda r: r.numerics, is_text=True),
    Column[AllReduceRow]("goodput of link", lambda r: r.of_link, ".1%"),
    Column[AllReduceRow](
        "M elements/s", lambda r: r.netfold.sizes[-1].count / r.netfold.sizes[-1].time_us, ".2f"
    ),
    Column[AllReduceRow]("over ring", lambda r: r.over_ring, ".2f"),
    Column[AllReduceRow]("retransmits", lambda r: r.netfold.retransmits),
    Column[AllReduceRow]("CPU s/GiB", lambda r: r.netfold.cpu_s_per_gib, ".2f"),
    Column[AllReduceRow]("worker MiB", lambda r: r.netfold.peak_rss_mib, ".0f"),
    Column[AllReduceRow]("ring CPU s/GiB", lambda r: r.ring and r.ring.cpu_s_per_gib, ".2f"),
    Column[AllReduceRow]("switch CPU s", lambda r: r.switch_cpu_s, ".2f"),
)
BREAK_EVEN_COLUMNS = (
    Column[BreakEven]("workers", lambda r: r.workers),
    Column[BreakEven]("lanes", lambda r: r.lanes),
    Column[BreakEven]("numerics", lambda r: r.numerics, is_text=True),
    Column[BreakEven]("Mbit/s", lambda r: r.rate_mbps, "g"),
)


@dataclass(frozen=True)
class AllReduceBenchmark(Experiment[AllReduceRow]):
    """All-reduce through switches, beside a TCP ring over the same links. Needs root.

    A network for each number of workers and lanes and each numerics. Arrays of each size are reduced and checked
    element by element."""

    name = "bench-allreduce"
    needs_namespaces = True
    workers: Annotated[Integers, integers("Numbers of workers.")] = Integers((2, 4, 8))
    sizes: Annotated[str, typer.Option("--sizes", help="Sizes of the arrays, as in 64K,1M,16M.")] = "256K,4M"
    dtype: Annotated[str, typer.Option("--type", help="Element type.")] = "float32"
    rates_mbps: Annotated[Floats, floats("Rates of the links, Mbit/s.", "--rate")] = Floats((100.0,))
    lanes: Annotated[Integers, integers("Lanes of a packet, some of 32, 64, 256, 512.")] = Integers((256,))
    leaves: Annotated[int, typer.Option(min=1, help="Leaves; below a spine if more than one.")] = 1
    iterations: Annotated[
        int,
        typer.Option(min=1, help="Calls of each size, at least; of smaller ones up to 200, of 8 MiB in all."),
    ] = 5
    scheme: Annotated[str, typer.Option(help="Scheme of the plan.")] = "switchml"
    target: Annotated[str, typer.Option(help="The switches: softswitch or bmv2.")] = "softswitch"
    loss: Annotated[float, typer.Option(min=0, max=1, help="Loss of each link and direction.")] = 0.0
    queue: Annotated[int, typer.Option(help="Queue of each switch port, in packets of 256 lanes.")] = 64
    slots: Annotated[int, typer.Option(help="Slots of the tree, of 256 lanes; twice the window.")] = 512
    congestion: Annotated[str, typer.Option(help="panama, atp or fixed.")] = "panama"
    numerics: Annotated[Words, words(f"One run for each of {', '.join(NUMERICS)}.")] = Words(("auto",))
    ring: Annotated[bool, typer.Option(help="Run the TCP ring, too.")] = True

    def __post_init__(self) -> None:
        expect("--type", (self.dtype,), tuple(map(str, DTYPES)))
        expect("--congestion", (self.congestion,), ("panama", "atp", "fixed"))
        expect("--numerics", self.numerics, NUMERICS)
        expect("--lanes", tuple(map(str, self.lanes)), ("32", "64", "256", "512"))

    def rows(self, notify: Notify) -> Iterator[AllReduceRow]:
        """Raises RunError, NetworkError."""
        cases = list(product(self.rates_mbps, self.workers, self.lanes, self.numerics))
        for rate, workers, lanes, numerics in one_by_one(
            cases, lambda case: "{:g} Mbit/s, {} workers, {} lanes, {}".format(*case), notify
        ):
            yield self._measure(rate, workers, lanes, numerics, notify)

    def tables(self, rows: Sequence[AllReduceRow]) -> Iterable[Table]:
        for row in rows:
            for transport, result in (("netfold", row.netfold), ("ring", row.ring)):
                if result is not None:
                    yield self._nccl_table(row, transport, result)
        yield table("The largest size", SUMMARY_COLUMNS, rows)
        if self.ring and len(self.rates_mbps) > 1:
            yield table("Break-even with the ring", BREAK_EVEN_COLUMNS, break_even(rows))

    def _nccl_table(self, row: AllReduceRow, transport: str, result: TransportResult) -> Table:
        columns = (
            Column[SizeResult]("size (B)", lambda s: s.size),
            Column[SizeResult]("count", lambda s: s.count),
            Column[SizeResult]("type", lambda s: s.type),
            Column[SizeResult]("redop", lambda s: s.redop),
            Column[SizeResult]("time (us)", lambda s: s.time_us, ".0f"),
            Column[SizeResult]("algbw (GB/s)", lambda s: s.algbw_gbs, ".5f"),
            Column[SizeResult]("busbw (GB/s)", lambda s: s.busbw_gbs, ".5f"),
            Column[SizeResult]("#wrong", lambda s: s.wrong),
            Column[SizeResult]("of link", lambda s: s.algbw_gbs * 8e3 / row.payload_mbps, ".1%"),
        )
        title = (
            f"{transport}: {row.workers} workers, {row.numerics}, {row.rate_mbps:g} Mbit/s, {row.lanes} lanes, "
            f"{self.target}, loss {self.loss:g}"
        )
        return table(title, columns, result.sizes, f"sums identical at all workers: {result.identical}")

    def _measure(
        self, rate_mbps: float, workers: int, lanes: int, numerics: str, notify: Notify
    ) -> AllReduceRow:
        flags: list[object] = ["--workload", "sizes", "--sizes", self.sizes, "--dtype", self.dtype]
        flags += ["--iterations", self.iterations, "--volume", "8M", "--timeout", CALL_TIMEOUT_S]
        fabric = self._fabric(rate_mbps, workers, lanes)
        with Testbed(fabric, target=self.target, lanes=lanes, on_step=notify) as system:
            FaultInjection(self.loss).start_loss(system.net)
            # Hosts and switches share the processors of one machine, so a round trip takes many milliseconds.
            available = min(switch.slots for switch in system.fabric.switches)
            slots = min(available, self.slots * SLOT_LANES // lanes)
            keys: dict[str, Any] = {"scheme": self.scheme, "slots": slots, "numerics": {"mode": numerics}}
            job = system.submit("allreduce", [*flags, "--congestion", self.congestion], **keys)
            netfold = job.result(RUN_TIMEOUT_S)
            switches = [s.pid for s in system.net.switches.values() if s.pid is not None]
            switch_cpu_s = processor_seconds(switches)
            ring: Results = {}
            if self.ring:
                group, _ = system.start_ring("allreduce", flags, RING_PORT)
                ring = group.wait(RUN_TIMEOUT_S, system.check)
        payload = rate_mbps * 4 * lanes / frame_bytes(lanes)
        beside = summarize(ring) if ring else None
        return AllReduceRow(
            rate_mbps, workers, numerics, lanes, payload, switch_cpu_s, summarize(netfold), beside
        )

    def _fabric(self, rate_mbps: float, workers: int, lanes: int) -> Fabric:
        """Raises typer.BadParameter if the leaves differ."""
        # Ports count packets, a switch's buffer bytes: it holds more of smaller packets.
        queue = round(self.queue * frame_bytes(QUEUE_LANES) / frame_bytes(lanes))
        name = f"workers-{workers}"
        if self.leaves == 1:
            return single_switch(workers, rate=rate_mbps, queue=queue, name=name)
        if workers % self.leaves:
            raise typer.BadParameter(f"{workers} workers cannot be divided evenly over {self.leaves} leaves")
        per_leaf = workers // self.leaves
        return leaf_spine(
            self.leaves, 1, per_leaf, rate=rate_mbps, fabric_rate=per_leaf * rate_mbps, queue=queue, name=name
        )


def break_even(rows: Sequence[AllReduceRow]) -> list[BreakEven]:
    """Break-even of each number of workers, lanes and numerics; rows without a ring do not count."""
    found: list[BreakEven] = []
    for case in dict.fromkeys((r.workers, r.lanes, r.numerics) for r in rows):
        own = sorted((r for r in rows if (r.workers, r.lanes, r.numerics) == case), key=lambda r: r.rate_mbps)
        wins = list(takewhile(lambda r: r.over_ring is not None and r.over_ring >= 1, own))
        found.append(BreakEven(*case, wins[-1].rate_mbps if wins else None))
    return found


def frame_bytes(lanes: int) -> int:
    """Bytes of a packet on the wire, as the fabric counts it."""
    return packet_bytes(lanes) + FRAME_OVERHEAD_BYTES


def summarize(results: Mapping[str, Mapping[str, Any]]) -> TransportResult:
    """Return the time of the slowest worker for each size, which ends the all-reduce."""
    own = list(results.values())
    sizes = []
    for lines in zip(*(r["sizes"] for r in own), strict=True):
        slowest = max(lines, key=lambda line: float(line["time_us"]))
        known = {name: slowest[name] for name in SizeResult.__dataclass_fields__}
        sizes.append(SizeResult(**{**known, "wrong": sum(line["wrong"] for line in lines)}))
    return TransportResult(
        sizes=tuple(sizes),
        identical=len({r["digest"] for r in own}) == 1,
        flows=own[0]["flows"],
        retransmits=sum(r["retransmits"] for r in own),
        cpu_s_per_gib=sum(r["allreduce_cpu_s_per_gib"] for r in own) / len(own),
        peak_rss_mib=max(r["peak_rss_mib"] for r in own),
    )


if __name__ == "__main__":
    run_command(AllReduceBenchmark)
