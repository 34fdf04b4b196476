# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`make roce`: jobs of real RDMA endpoints, on links that lose nothing, on links that do, and beside other traffic."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from netfold.testbed.counters import read_contributions, read_verdicts
from netfold.testbed.errors import RunError
from netfold.testbed.roce.bandwidth import Messages, plain_connection, ring
from netfold.testbed.roce.lab import Call, Lab
from netfold.topologies.network.faults import Faults

RC_COUNTERS = {
    "retried": "completer_retry_err",
    "NAKs": "out_of_seq_request",
    "duplicates": "duplicate_request",
    "RNR": "send_rnr_err",
    "packets": "sent_pkts",
}
"""What rxe counts, by the word that is shown. `out_of_seq_request`: packets behind a gap, answered by a NAK."""


@dataclass(frozen=True)
class Options:
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


@dataclass(frozen=True)
class Row:
    """One size on links with this loss: the slowest machine's seconds, and elements that were wrong anywhere."""

    what: str
    bytes: int
    seconds: float
    wrong: int


@dataclass(frozen=True)
class Losses:
    """Packets of a step: those that workers had to send, those that links lost (acknowledgments too), and those that
    devices sent again."""

    needed: int
    lost: int
    sent_again: int


@dataclass
class Report:
    """All that happened. By step: `counters` of the devices, by switch and verdict what the switches did, `losses`. By
    machine `ring`: MB/s of its `ib_send_bw` as a worker."""

    machines: list[str]
    rows: list[Row] = field(default_factory=list)
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    verdicts: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    losses: dict[str, Losses] = field(default_factory=dict)
    plain: dict[str, float] = field(default_factory=dict)
    ring: dict[str, float] = field(default_factory=dict)

    @property
    def wrong(self) -> int:
        return sum(row.wrong for row in self.rows)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")


class Run:
    """Does it all on one lab."""

    def __init__(self, options: Options, tell: Callable[[str], None]) -> None:
        self._options = options
        self._tell = tell

    def execute(self) -> Report:
        """Raises RunError, NetworkError."""
        options = self._options
        with Lab(options.per_leaf, options.fabric, self._tell) as lab:
            report = Report(lab.hosts)
            for loss in options.losses:
                self._lossy(lab, loss)
                most = options.most_with_loss if loss else max(options.sizes)
                what = f"{loss:.1%} loss" if loss else "no loss"
                self._step(lab, report, what, [s for s in options.sizes if s <= most])
            lab.deployment.net.clear_faults()
            if options.plain:
                self._beside_plain_connection(lab, report)
                self._perftest_as_workers(lab, report)
            return report

    def _lossy(self, lab: Lab, loss: float) -> None:
        """All links lose, in both directions, before the leaf and behind it."""
        net = lab.deployment.net
        for seed, link in enumerate(lab.deployment.fabric.links):
            faults = Faults(loss=loss, seed=1 + seed)
            net.set_faults(link.a, link.b, faults)
            net.set_faults(link.b, link.a, faults)

    def _step(self, lab: Lab, report: Report, what: str, sizes: Sequence[int]) -> None:
        name = f"roce-{len(report.counters)}"
        self._tell(f"{what}: {', '.join(map(_bytes, sizes))} on {len(lab.hosts)} machines")
        net, options = lab.deployment.net, self._options
        before, seen = lab.counters(), read_verdicts(net)
        came, lost = read_contributions(net), net.lost_by_faults()
        lab.submit(name, slots=options.slots)
        text = ",".join(map(str, sizes))
        calls = lab.reduce(
            name, f"--sizes {text} --timeout {self._options.timeout_s}", self._options.timeout_s
        )
        report.rows += _rows(what, calls)
        after, then = lab.counters(), read_verdicts(net)
        report.losses[what] = _losses(lab, calls, came, lost)
        report.counters[what] = {
            word: sum(after[h].get(c, 0) - before[h].get(c, 0) for h in after)
            for word, c in RC_COUNTERS.items()
        }
        report.verdicts[what] = {
            s: {v: n - seen.get(s, {}).get(v, 0) for v, n in counts.items() if n > seen.get(s, {}).get(v, 0)}
            for s, counts in then.items()
        }
        for row in report.rows[-len(sizes) :]:
            self._tell(f"  {_bytes(row.bytes)}: {row.seconds:.2f} s, {row.wrong} elements wrong")

    def _beside_plain_connection(self, lab: Lab, report: Report) -> None:
        """ib_send_bw between two of the machines, alone and while the job runs."""
        self._tell("ib_send_bw between two of the machines, alone and beside a job")
        report.plain["alone"] = plain_connection(lab)
        lab.submit("beside")
        sizes = ",".join(["65536"] * 4)
        running = lab.start("beside", f"--sizes {sizes} --iterations 4 --timeout {self._options.timeout_s}")
        report.plain["beside"] = plain_connection(lab)
        calls = lab.finish(running, self._options.timeout_s)
        report.rows += _rows("beside ib_send_bw", {h: c[:1] for h, c in calls.items()})
        wrong = sum(c.wrong for made in calls.values() for c in made)
        if wrong:
            raise RunError(f"beside ib_send_bw {wrong} elements were wrong")

    def _perftest_as_workers(self, lab: Lab, report: Report) -> None:
        self._tell("ib_send_bw of all machines in the rings of a job, added up")
        lab.submit("perftest", scheme="switchml")
        report.ring = ring(lab, "perftest", Messages(), self._options.timeout_s)


def _losses(
    lab: Lab, calls: dict[str, list[Call]], came: Mapping[str, int], lost: Mapping[tuple[str, str], int]
) -> Losses:
    """Since leaves had counted `came` packets of machines and links had lost `lost`. What a machine SENDs reaches its
    leaf or is lost there; acknowledgments are lost there too, but there is hardly one for a hundred SENDs."""
    net = lab.deployment.net
    came_now = read_contributions(net)
    gone = {link: count - lost.get(link, 0) for link, count in net.lost_by_faults().items()}
    leaf = net.fabric.attachment
    sent = sum(came_now[h] - came[h] + gone[h, leaf(h)] for h in lab.hosts)
    needed = sum(made[-1].packets for made in calls.values())
    return Losses(needed, sum(gone.values()), max(0, sent - needed))


def _rows(what: str, calls: dict[str, list[Call]]) -> list[Row]:
    return [
        Row(what, same[0].bytes, max(c.seconds for c in same), sum(c.wrong for c in same))
        for same in zip(*calls.values(), strict=True)
    ]


def _bytes(size: int) -> str:
    for unit, factor in (("MB", 1 << 20), ("KB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size} bytes"


def render(report: Report) -> Any:
    """Tables for the terminal."""
    from rich.console import Group  # noqa: PLC0415 (only where something is shown)
    from rich.table import Table  # noqa: PLC0415

    times = Table(title=f"all-reduce over RoCE on {len(report.machines)} machines")
    for column in ("links", "array", "seconds", "MB/s a machine", "wrong elements"):
        times.add_column(column, justify="left" if column == "links" else "right")
    for row in report.rows:
        rate = row.bytes / row.seconds / 1e6
        times.add_row(row.what, _bytes(row.bytes), f"{row.seconds:.3f}", f"{rate:.2f}", str(row.wrong))
    devices = Table(title="what the RDMA devices counted, over all machines")
    devices.add_column("links")
    for word in RC_COUNTERS:
        devices.add_column(word, justify="right")
    for what, counts in report.counters.items():
        devices.add_row(what, *(str(counts[w]) for w in RC_COUNTERS))
    losses = Table(title="packets sent again")
    for column in ("links", "needed", "lost on links", "sent again", "for each lost one"):
        losses.add_column(column, justify="left" if column == "links" else "right")
    for what, of in report.losses.items():
        ratio = f"{of.sent_again / of.lost:.1f}" if of.lost else "-"
        losses.add_row(what, str(of.needed), str(of.lost), str(of.sent_again), ratio)
    verdicts = Table(title="what the switches did with packets")
    for column in ("links", "switch", "verdicts"):
        verdicts.add_column(column)
    for what, switches in report.verdicts.items():
        for switch, counts in switches.items():
            verdicts.add_row(what, switch, ", ".join(f"{v} {n}" for v, n in counts.items()))
    shown: list[Any] = [times, devices, losses, verdicts]
    if report.ring:
        rates = ", ".join(f"{host} {rate:.2f} MB/s" for host, rate in report.ring.items())
        shown.append(f"ib_send_bw as a job's workers, added up: {rates}")
    if report.plain:
        rates = ", ".join(f"{what} {rate:.2f} MB/s" for what, rate in report.plain.items())
        shown.append(f"ib_send_bw between two machines: {rates}")
    return Group(*shown)
