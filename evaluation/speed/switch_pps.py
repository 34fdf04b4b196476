# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packets a second, and per second of processor time, of a switch; and its latency. Needs root.

python -m netfold.evaluation.speed.switch_pps [--loads router,netfold-64] [--seconds 3] [--rounds 3]
python -m netfold.evaluation.speed.switch_pps --loads bitmap-32,bitmap-64,bitmap-256 --targets softswitch --rounds 5
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from netfold.evaluation.core.command import Words, expect, run_command, words
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.core.progress import one_by_one
from netfold.evaluation.speed import switch_targets
from netfold.evaluation.speed.switch_loads import (
    SLOTS,
    WORKERS,
    SwitchLoad,
    aggregation,
    bitmap,
    roce,
    router,
)
from netfold.evaluation.speed.switch_targets import Target, compiled, namespace, process
from netfold.protocol.wire import FRAMING_BYTES
from netfold.testbed.errors import RunError

WINDOW = 128
WARM_UP_S = 1.0
LOADS: dict[str, Callable[[Path], SwitchLoad]] = {
    "router": lambda _: router(),
    "netfold-64": lambda _: aggregation(64),
    "netfold-256": lambda _: aggregation(256),
    "float-64": lambda _: aggregation(64, floats=True),
    "roce-64": lambda _: roce(64),
    "roce-256": lambda _: roce(256),
}
"""Made with a folder for compiled programs."""
BITMAPS: dict[str, Callable[[Path], SwitchLoad]] = {
    f"bitmap-{bits}": partial(bitmap, bits) for bits in (32, 64, 128, 256)
}
"""Loads for comparison among each other: netfold-64 by programs of several widths. 128 bits need p4c."""
TARGETS: dict[str, Target] = {
    "softswitch": switch_targets.softswitch,
    "softswitch_runs": switch_targets.softswitch_runs,
    "softswitch_threads": switch_targets.softswitch_threads,
    "softswitch_xdp": switch_targets.softswitch_xdp,
    "softswitch_dpdk": switch_targets.softswitch_dpdk,
    "forwarder": switch_targets.forwarder,
    "forwarder_xdp": switch_targets.forwarder_xdp,
    "forwarder_af_xdp": switch_targets.forwarder_af_xdp,
    "testpmd": switch_targets.testpmd,
    "bmv2": switch_targets.bmv2,
    "bmv2_v1model": switch_targets.bmv2_v1model,
}


OF_DPDK = ("softswitch_dpdk", "testpmd")
RUNS = ("softswitch_runs", "softswitch_threads")
"""Targets whose hosts send runs of frames as one, and whose links carry them whole."""


@dataclass(frozen=True)
class SwitchRow(Row):
    """The best of several rounds. A packet is one that the switch receives; it sends as many. `cpu_s` and
    `pps_per_cpu_s` count all threads of the switch's process, user and system, with the kernel's work for them.
    `latency_us`: with one chunk in flight, from the hosts' first frame until each host has its answer, their own
    sockets included. Ratios are of pps_per_cpu_s; None: the peer was not measured."""

    target: str
    load: str
    frame_bytes: int
    pps: float
    cpu_s: float
    pps_per_cpu_s: float
    latency_us: float
    retransmitted: int
    ratio_to_bmv2: float | None = None
    ratio_to_forwarder: float | None = None
    ratio_to_forwarder_xdp: float | None = None

    def cores(self, gbps: float) -> float:
        """Return the cores that ports of this rate together fill (docs/reference/servers.md)."""
        return gbps * 1e9 / (8 * (self.frame_bytes + FRAMING_BYTES)) / self.pps_per_cpu_s


COLUMNS = (
    Column[SwitchRow]("target", lambda r: r.target, is_text=True),
    Column[SwitchRow]("load", lambda r: r.load, is_text=True),
    Column[SwitchRow]("bytes", lambda r: r.frame_bytes),
    Column[SwitchRow]("pps", lambda r: r.pps, ",.0f"),
    Column[SwitchRow]("CPU s", lambda r: r.cpu_s, ".2f"),
    Column[SwitchRow]("pps per CPU s", lambda r: r.pps_per_cpu_s, ",.0f"),
    Column[SwitchRow]("latency us", lambda r: r.latency_us, ".1f"),
    Column[SwitchRow]("to BMv2", lambda r: r.ratio_to_bmv2, ".2f"),
    Column[SwitchRow]("to forwarder", lambda r: r.ratio_to_forwarder, ".2f"),
    Column[SwitchRow]("to XDP", lambda r: r.ratio_to_forwarder_xdp, ".2f"),
    Column[SwitchRow]("cores of 25 Gbit/s", lambda r: r.cores(25), ".1f"),
    Column[SwitchRow]("of 100", lambda r: r.cores(100), ".1f"),
    Column[SwitchRow]("of 2 x 100", lambda r: r.cores(200), ".1f"),
)


@dataclass(frozen=True)
class SwitchPps(Experiment[SwitchRow]):
    """Packets a second, and per second of processor time, of a switch. Needs root.

    Four hosts, each on a veth link, send through one switch: chunks that it aggregates (netfold, by lanes; float, of
    float32; roce; bitmap, by the bits of a node's bitmap), or the shortest frames that it routes. Targets are
    softswitch (with runs of 16 frames as one, too, and then with two threads; by AF_XDP; by DPDK over AF_PACKET), BMv2
    where it is on PATH, with the program in its own form and with softswitch's, and plain forwarders: in C, by
    AF_PACKET, with sends of AF_XDP, and with AF_XDP in both directions, and DPDK's testpmd over AF_PACKET. Those of
    DPDK are left out where dpdk-testpmd is not on PATH. Each round measures all loads at all targets in turn."""

    name = "bench-switch-pps"
    needs_namespaces = True
    loads: Annotated[Words, words(f"Loads, some of {', '.join((*LOADS, *BITMAPS))}.")] = Words(LOADS)
    targets: Annotated[Words, words(f"Targets, some of {', '.join(TARGETS)}.")] = Words(TARGETS)
    seconds: Annotated[float, typer.Option(help="Duration of each measurement.")] = 3.0
    rounds: Annotated[int, typer.Option(min=1, help="Rounds over all loads; the best counts.")] = 1

    def __post_init__(self) -> None:
        expect("--loads", self.loads, (*LOADS, *BITMAPS))
        expect("--targets", self.targets, tuple(TARGETS))

    @cached_property
    def bmv2(self) -> switch_targets.Bmv2Version | None:
        with tempfile.TemporaryDirectory() as folder:
            return switch_targets.find_bmv2(Path(folder))

    def rows(self, notify: Notify) -> Iterator[SwitchRow]:
        """Yield the best row of each load and target, in the last round. Raises RunError."""
        has_dpdk = shutil.which(switch_targets.TESTPMD)
        measured = [name for name in self.targets if not name.startswith("bmv2") or self.bmv2]
        measured = [name for name in measured if name not in OF_DPDK or has_dpdk]
        with tempfile.TemporaryDirectory() as folder:
            loads = [{**LOADS, **BITMAPS}[name](Path(folder)) for name in self.loads]
            best: dict[str, dict[str, SwitchRow]] = {load.name: {} for load in loads}
            cases = [(number, load) for number in range(self.rounds) for load in loads]
            for number, load in one_by_one(cases, lambda case: case[1].name, notify):
                found = best[load.name]
                for name in measured:
                    row = one_row(name, TARGETS[name], load, self.seconds, Path(folder))
                    found[name] = row if name not in found else better(row, found[name])
                if number == self.rounds - 1:
                    yield from (with_ratios(row, found) for row in found.values())

    def tables(self, rows: Sequence[SwitchRow]) -> Iterable[Table]:
        caption = (
            f"BMv2: {self.bmv2}" if self.bmv2 else "BMv2: simple_switch_grpc is not on PATH, or is softswitch"
        )
        return [table("One switch of four ports", COLUMNS, rows, caption)]

    def document(self, rows: Sequence[SwitchRow]) -> dict[str, Any]:
        return {**super().document(rows), "bmv2": self.bmv2 and asdict(self.bmv2)}


def better(a: SwitchRow, b: SwitchRow) -> SwitchRow:
    """The row of the higher rate, with the lower latency."""
    best = max(a, b, key=lambda row: row.pps_per_cpu_s)
    return replace(best, latency_us=min(a.latency_us, b.latency_us))


def with_ratios(row: SwitchRow, rows: dict[str, SwitchRow]) -> SwitchRow:
    def ratio(peer: str) -> float | None:
        return row.pps_per_cpu_s / rows[peer].pps_per_cpu_s if peer in rows else None

    return replace(
        row,
        ratio_to_bmv2=ratio("bmv2"),
        ratio_to_forwarder=ratio("forwarder"),
        ratio_to_forwarder_xdp=ratio("forwarder_xdp"),
    )


def one_row(name: str, target: Target, load: SwitchLoad, seconds: float, folder: Path) -> SwitchRow:
    """Raises RunError. Each of the two runs has a switch of its own: the slots of a used one hold newer tags."""
    chunks, elapsed, used, retransmitted = drive(target, load, WINDOW, seconds, folder, name in RUNS)
    alone, alone_elapsed, _, _ = drive(target, load, 1, min(seconds, 1.0), folder, name in RUNS)
    if not chunks or not alone:
        raise RunError(f"{name} completed no chunk of {load.name}")
    packets, latency_us = chunks * WORKERS, alone_elapsed / alone * 1e6
    size = len(load.frames[0])
    return SwitchRow(
        name, load.name, size, packets / elapsed, used, packets / used, latency_us, retransmitted
    )


def drive(
    target: Target, load: SwitchLoad, window: int, seconds: float, folder: Path, runs: bool
) -> tuple[int, float, float, int]:
    """Completed chunks, seconds, the target's processor time, retransmitted chunks."""
    with namespace(f"nfpps{os.getpid()}", runs) as space, target(space, load, folder) as running:
        return _drive(space, load, window, seconds, running, folder, runs)


def _drive(
    space: str,
    load: SwitchLoad,
    window: int,
    seconds: float,
    target: subprocess.Popen[str],
    folder: Path,
    runs: bool,
) -> tuple[int, float, float, int]:
    numbers = (*(("-r",) if runs else ()), window, SLOTS, load.tag_at, load.slot_at, WARM_UP_S, seconds)
    ports = [f"h{port}" for port in range(1, WORKERS + 1)]
    command = ("ip", "netns", "exec", space, compiled("workers", folder), *numbers, *ports)
    with process(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as workers:
        assert workers.stdin is not None
        assert workers.stdout is not None
        with workers.stdin as sink:
            for frame in load.frames:
                os.write(sink.fileno(), struct.pack("=I", len(frame)) + frame)
        assert workers.stdout.readline() == "begin\n", "the workers did not start"
        before = cpu_seconds(target.pid)
        end = workers.stdout.readline().split()
        used = cpu_seconds(target.pid) - before
    return int(end[1]), float(end[2]), used, int(end[3])


def cpu_seconds(pid: int) -> float:
    """Processor time of all threads of a process so far."""
    return sum(map(task_seconds, Path(f"/proc/{pid}/task").iterdir()))


def task_seconds(task: Path) -> float:
    """Processor time of one thread, by its folder in /proc."""
    return int((task / "schedstat").read_text().split()[0]) / 1e9


if __name__ == "__main__":
    run_command(SwitchPps)
