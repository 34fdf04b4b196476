# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`make roce`: jobs of RDMA endpoints on links without and with loss and beside cross traffic; and the same arrays
without machines, in UDP and as a TCP ring."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from netfold.testbed.counters import read_contributions, read_verdicts
from netfold.testbed.errors import RunError
from netfold.testbed.fault_injection import FaultInjection
from netfold.testbed.roce.bandwidth import Messages, plain_connection, ring
from netfold.testbed.roce.lab import CallReport, Lab
from netfold.testbed.submitted_job import Results
from netfold.traffic.errors import TrafficError

RC_COUNTERS = {
    "retried": "completer_retry_err",
    "NAKs": "out_of_seq_request",
    "duplicates": "duplicate_request",
    "RNR": "send_rnr_err",
    "packets": "sent_pkts",
}
"""rxe's counters by displayed name. `out_of_seq_request`: packets after a gap, answered by a NAK."""


@dataclass(frozen=True)
class RoceRunOptions:
    """`per_leaf` machines at each leaf; `sizes` in bytes; `losses` as fractions, of each direction of each link;
    `slots` of the jobs' trees, None: the controller chooses."""

    per_leaf: int
    sizes: Sequence[int]
    losses: Sequence[float]
    most_with_loss: int
    plain: bool
    timeout_s: float
    slots: int | None = None
    fabric: str = "leaf-spine-2x2"


NO_LOSS = "no loss"
ROCE, UDP, RING = "RoCE", "UDP", "TCP ring"
RING_PORT = 29500
PEERS_CALLS = 3
"""Calls per size in UDP and in the ring; their times are means."""


@dataclass(frozen=True)
class SizeRow:
    """One size on links with one loss rate: the slowest worker's seconds, and the wrong elements of all workers."""

    what: str
    bytes: int
    seconds: float
    wrong: int
    workers: str = ROCE


@dataclass(frozen=True)
class Losses:
    """Packets of a step: contributions of the workers, losses of the links (acks included), retransmissions of the
    devices."""

    contributions: int
    lost: int
    retransmitted: int


@dataclass
class RoceReport:
    """The results. By step: `counters` of the devices, `verdicts` by switch, `losses`. `ring`: MB/s of `ib_send_bw`
    as a worker, by machine. `failed`: the error that ended the run."""

    machines: list[str]
    rows: list[SizeRow] = field(default_factory=list)
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    verdicts: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    losses: dict[str, Losses] = field(default_factory=dict)
    plain: dict[str, float] = field(default_factory=dict)
    ring: dict[str, float] = field(default_factory=dict)
    failed: str = ""

    @property
    def wrong(self) -> int:
        return sum(row.wrong for row in self.rows)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")


class RoceRun:
    """Runs all steps on one lab."""

    def __init__(self, options: RoceRunOptions, on_step: Callable[[str], None]) -> None:
        self._options = options
        self._on_step = on_step

    def execute(self) -> RoceReport:
        """The report has the completed steps even after an error. Raises RunError, NetworkError if the lab does not
        start."""
        with Lab(self._options.per_leaf, self._options.fabric, self._on_step, boot=False) as lab:
            report = RoceReport(lab.hosts)
            try:
                self._steps(lab, report)
            except (RunError, TrafficError) as error:
                report.failed = f"{error}" + (
                    f" (the last job: {why})" if (why := lab.last_job_reason()) else ""
                )
            return report

    def _steps(self, lab: Lab, report: RoceReport) -> None:
        options = self._options
        self._without_machines(lab, report)
        lab.boot()
        for loss in options.losses:
            lab.testbed.net.clear_faults()
            FaultInjection(loss).start_loss(lab.testbed.net)
            most = options.most_with_loss if loss else max(options.sizes)
            what = f"{loss:.1%} loss" if loss else NO_LOSS
            self._step(lab, report, what, [s for s in options.sizes if s <= most])
        lab.testbed.net.clear_faults()
        if options.plain:
            self._beside_plain_connection(lab, report)
            self._perftest_as_workers(lab, report)

    def _without_machines(self, lab: Lab, report: RoceReport) -> None:
        """On the same hosts before machines replace them: processes in their namespaces."""
        options, testbed = self._options, lab.testbed
        self._on_step(
            f"{', '.join(map(_bytes, options.sizes))} on {len(lab.hosts)} hosts in UDP, and as a TCP ring"
        )
        text = ",".join(map(str, options.sizes))
        flags = ["--workload", "sizes", "--sizes", text, "--dtype", "int32", "--iterations", PEERS_CALLS]
        job = testbed.submit("udp", flags, lab.hosts, numerics={"mode": "integer"}, parameter_servers=0)
        report.rows += _rows_of(UDP, job.result(options.timeout_s))
        group, _ = testbed.start_ring("tcp", flags, RING_PORT, lab.hosts)
        report.rows += _rows_of(RING, group.wait(options.timeout_s, testbed.check))

    def _step(self, lab: Lab, report: RoceReport, what: str, sizes: Sequence[int]) -> None:
        name = f"roce-{len(report.counters)}"
        self._on_step(f"{what}: {', '.join(map(_bytes, sizes))} on {len(lab.hosts)} machines")
        net, options = lab.testbed.net, self._options
        before, seen = lab.counters(), read_verdicts(net)
        received, lost = read_contributions(net), net.lost_by_faults()
        lab.submit(name, slots=options.slots)
        text = ",".join(map(str, sizes))
        calls = lab.reduce(
            name, f"--sizes {text} --timeout {self._options.timeout_s}", self._options.timeout_s
        )
        report.rows += _rows(what, calls)
        after, then = lab.counters(), read_verdicts(net)
        report.losses[what] = _losses(lab, calls, received, lost)
        report.counters[what] = {
            word: sum(after[h].get(c, 0) - before[h].get(c, 0) for h in after)
            for word, c in RC_COUNTERS.items()
        }
        report.verdicts[what] = {
            s: {v: n - seen.get(s, {}).get(v, 0) for v, n in counts.items() if n > seen.get(s, {}).get(v, 0)}
            for s, counts in then.items()
        }
        for row in report.rows[-len(sizes) :]:
            self._on_step(f"  {_bytes(row.bytes)}: {row.seconds:.2f} s, {row.wrong} elements wrong")

    def _beside_plain_connection(self, lab: Lab, report: RoceReport) -> None:
        """ib_send_bw between two machines, alone and beside a job."""
        self._on_step("ib_send_bw between two machines, alone and beside a job")
        report.plain["alone"] = plain_connection(lab)
        lab.submit("beside")
        running = lab.start("beside", f"--sizes 65536 --iterations 16 --timeout {self._options.timeout_s}")
        report.plain["beside"] = plain_connection(lab)
        calls = lab.finish(running, self._options.timeout_s)
        report.rows += _rows("beside ib_send_bw", {h: c[:1] for h, c in calls.items()})
        wrong = sum(c.wrong for made in calls.values() for c in made)
        if wrong:
            raise RunError(f"beside ib_send_bw {wrong} elements were wrong")

    def _perftest_as_workers(self, lab: Lab, report: RoceReport) -> None:
        self._on_step("ib_send_bw of all machines as workers of a job, aggregated")
        lab.submit("perftest", scheme="switchml", reroute="off")
        report.ring = ring(lab, "perftest", Messages(), self._options.timeout_s)


def _losses(
    lab: Lab,
    calls: dict[str, list[CallReport]],
    received: Mapping[str, int],
    lost: Mapping[tuple[str, str], int],
) -> Losses:
    """Since the leaves had counted `received` packets and links had lost `lost`. A SEND reaches the leaf or is lost
    on the way. Lost acks count as lost SENDs, but there is about one ack per hundred SENDs."""
    net = lab.testbed.net
    received_now = read_contributions(net)
    lost_now = {link: count - lost.get(link, 0) for link, count in net.lost_by_faults().items()}
    leaf = net.fabric.attachment
    sent = sum(received_now[h] - received[h] + lost_now[h, leaf(h)] for h in lab.hosts)
    contributions = sum(made[-1].packets for made in calls.values())
    return Losses(contributions, sum(lost_now.values()), max(0, sent - contributions))


def _rows(what: str, calls: dict[str, list[CallReport]]) -> list[SizeRow]:
    return [
        SizeRow(what, same[0].bytes, max(c.seconds for c in same), sum(c.wrong for c in same))
        for same in zip(*calls.values(), strict=True)
    ]


def _rows_of(workers: str, results: Results) -> list[SizeRow]:
    """Rows of processes, which report the mean of each size."""
    by_size = zip(*(one["sizes"] for one in results.values()), strict=True)
    return [
        SizeRow(
            NO_LOSS,
            same[0]["size"],
            max(r["time_us"] for r in same) / 1e6,
            sum(r["wrong"] for r in same),
            workers,
        )
        for same in by_size
    ]


def _bytes(size: int) -> str:
    for unit, factor in (("MB", 1 << 20), ("KB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size} bytes"


def render(report: RoceReport) -> Any:
    """Tables for the terminal."""
    from rich.console import Group  # noqa: PLC0415 (only where something is shown)
    from rich.table import Table  # noqa: PLC0415

    times = Table(title=f"all-reduce on {len(report.machines)} hosts: machines (RoCE) or processes")
    for column in ("workers", "links", "array", "seconds", "MB/s each", "wrong elements"):
        times.add_column(column, justify="left" if column in ("workers", "links") else "right")
    for row in report.rows:
        shown_as = (f"{row.seconds:.3f}", f"{row.bytes / row.seconds / 1e6:.2f}", str(row.wrong))
        times.add_row(row.workers, row.what, _bytes(row.bytes), *shown_as)
    devices = Table(title="counters of the RDMA devices, all machines")
    devices.add_column("links")
    for word in RC_COUNTERS:
        devices.add_column(word, justify="right")
    for what, counts in report.counters.items():
        devices.add_row(what, *(str(counts[w]) for w in RC_COUNTERS))
    losses = Table(title="retransmissions")
    for column in ("links", "contributions", "lost on links", "retransmitted", "per lost packet"):
        losses.add_column(column, justify="left" if column == "links" else "right")
    for what, of in report.losses.items():
        ratio = f"{of.retransmitted / of.lost:.1f}" if of.lost else "-"
        losses.add_row(what, str(of.contributions), str(of.lost), str(of.retransmitted), ratio)
    verdicts = Table(title="verdicts of the switches")
    for column in ("links", "switch", "verdicts"):
        verdicts.add_column(column)
    for what, switches in report.verdicts.items():
        for switch, counts in switches.items():
            verdicts.add_row(what, switch, ", ".join(f"{v} {n}" for v, n in counts.items()))
    shown: list[Any] = [times, devices, losses, verdicts]
    if report.ring:
        rates = ", ".join(f"{host} {rate:.2f} MB/s" for host, rate in report.ring.items())
        shown.append(f"ib_send_bw as workers of a job, aggregated: {rates}")
    if report.plain:
        rates = ", ".join(f"{what} {rate:.2f} MB/s" for what, rate in report.plain.items())
        shown.append(f"ib_send_bw between two machines: {rates}")
    return Group(*shown)
