# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`make roce`: jobs of real RDMA endpoints, on links that lose nothing, on links that do, and beside other traffic."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from netfold.testbed.counters import read_verdicts
from netfold.testbed.errors import RunError
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

PLAIN_MESSAGES, PLAIN_BYTES, PLAIN_PORT = 200, 16384, 18515


@dataclass(frozen=True)
class Options:
    """`per_leaf` machines at each leaf; `sizes` in bytes; `losses` as fractions, of each direction of each link."""

    per_leaf: int
    sizes: Sequence[int]
    losses: Sequence[float]
    most_with_loss: int
    plain: bool
    timeout_s: float
    fabric: str = "leaf-spine-2x2"


@dataclass(frozen=True)
class Row:
    """One size on links with this loss: the slowest machine's seconds, and elements that were wrong anywhere."""

    what: str
    bytes: int
    seconds: float
    wrong: int


@dataclass
class Report:
    """All that happened. By step: `counters` of the devices, and by switch and verdict what the switches did."""

    machines: list[str]
    rows: list[Row] = field(default_factory=list)
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    verdicts: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    plain: dict[str, float] = field(default_factory=dict)

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
        before, seen = lab.counters(), read_verdicts(lab.deployment.net)
        lab.submit(name)
        text = ",".join(map(str, sizes))
        calls = lab.reduce(
            name, f"--sizes {text} --timeout {self._options.timeout_s}", self._options.timeout_s
        )
        report.rows += _rows(what, calls)
        after, then = lab.counters(), read_verdicts(lab.deployment.net)
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


def plain_connection(lab: Lab) -> float:
    """MB/s of a plain connection across the fabric. Raises RunError if it breaks."""
    first, last = (lab.machines[h] for h in (lab.hosts[0], lab.hosts[-1]))
    flags = f"-d rxe0 -x 1 -m 1024 -s {PLAIN_BYTES} -n {PLAIN_MESSAGES} -u 16 -p {PLAIN_PORT} -F"
    server = last.start(f"ib_send_bw {flags}")
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        if f":{PLAIN_PORT:04X}" in last.run("cat /proc/net/tcp /proc/net/tcp6", 10.0):
            break
        time.sleep(0.2)  # the server in the machine says nothing when it listens
    output = first.run(f"ib_send_bw {flags} {last.address}", 300.0)
    last.result(server, 60.0, "ib_send_bw")
    for line in output.splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] == str(PLAIN_BYTES):
            return float(words[3])
    raise RunError("ib_send_bw did not say how fast it was")


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
    verdicts = Table(title="what the switches did with packets")
    for column in ("links", "switch", "verdicts"):
        verdicts.add_column(column)
    for what, switches in report.verdicts.items():
        for switch, counts in switches.items():
            verdicts.add_row(what, switch, ", ".join(f"{v} {n}" for v, n in counts.items()))
    shown: list[Any] = [times, devices, verdicts]
    if report.plain:
        rates = ", ".join(f"{what} {rate:.2f} MB/s" for what, rate in report.plain.items())
        shown.append(f"ib_send_bw between two machines: {rates}")
    return Group(*shown)
