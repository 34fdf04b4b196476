# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Processor time of softswitch's core for a packet, without I/O, beside a bare loop over the lanes.

python -m netfold.evaluation.speed.core_ns [--lanes 256,64] [--threads 1,2] [--rounds 20] [--against FOLDER]
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Annotated

import typer
from finsy.proto import p4r
from rich.table import Table
from softswitch.build.native import build_shared, default_cache_dir
from softswitch.p4runtime import device
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch

from netfold.evaluation.core.command import Integers, integers, run_command
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.speed.switch_loads import SLOTS, WORKERS, aggregation
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, HEADER_BYTES
from netfold.testbed.errors import RunError

LOOP = Path(__file__).with_name("core_loop.c")
PLACES = {"caches": (4000, 16), "memory": (20, 8192)}
"""Passes of a round, and chunks of a pass, by where the frames lie."""
ROUND = (
    "from netfold.evaluation.speed.core_ns import print_round; print_round({lanes}, {frames!r}, {threads})"
)


class Load(ctypes.Structure):
    """struct load of core_loop.c."""

    _fields_ = (
        ("switch", ctypes.c_void_p),
        ("frames", ctypes.c_char_p * 16),
        *((name, ctypes.c_uint32) for name in ("bytes", "hosts", "slots", "tag_at", "slot_at")),
        *((name, ctypes.c_uint32) for name in ("lanes_at", "lanes", "chunks", "shard", "shards")),
    )


@dataclass(frozen=True)
class CoreRow(Row):
    """Nanoseconds of processor time for a packet that the core receives; it sends as many. The bare loop reads the same
    frames, adds to slots and writes the sums. `quiet_ns` is the 5th percentile of the core in the quietest round,
    the others are medians; ratios are medians of pairs that ran in turn. A speedup is the number of threads
    over the ratio of a packet's time to that with the fewest threads of the command."""

    revision: str
    lanes: int
    frames: str
    threads: int
    quiet_ns: float
    core_ns: float
    bare_ns: float
    ratio_to_bare: float
    speedup: float
    bare_speedup: float
    ratio_to_other: float | None


COLUMNS = (
    Column[CoreRow]("revision", lambda r: r.revision, is_text=True),
    Column[CoreRow]("lanes", lambda r: r.lanes),
    Column[CoreRow]("frames in", lambda r: r.frames, is_text=True),
    Column[CoreRow]("threads", lambda r: r.threads),
    Column[CoreRow]("quiet, ns", lambda r: r.quiet_ns, ".0f"),
    Column[CoreRow]("core, ns", lambda r: r.core_ns, ".0f"),
    Column[CoreRow]("bare, ns", lambda r: r.bare_ns, ".0f"),
    Column[CoreRow]("to bare", lambda r: r.ratio_to_bare, ".2f"),
    Column[CoreRow]("speedup", lambda r: r.speedup, ".2f"),
    Column[CoreRow]("bare speedup", lambda r: r.bare_speedup, ".2f"),
    Column[CoreRow]("to other", lambda r: r.ratio_to_other, ".3f"),
)


@dataclass(frozen=True)
class CoreNs(Experiment[CoreRow]):
    """Processor time of softswitch's core for a packet, without I/O, beside a bare loop over the lanes.

    The core is the root of a tree of four hosts. Frames lie in the caches, or in memory: in a pool that the caches do
    not hold. Passes of the core and of the loop alternate in one process, and each round has a process of its own.
    Threads have their own slots and frames, as those of softswitch's data plane, and run at the same time.
    `--against` names the softswitch folder of another checkout, whose rounds alternate with those of this one."""

    name = "bench-core-ns"
    lanes: Annotated[Integers, integers("Lanes of a packet.")] = Integers((256, 64))
    threads: Annotated[Integers, integers("Threads of the data plane; their rounds alternate.")] = Integers(
        (1,)
    )
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, each of some 300,000 packets.")] = 20
    against: Annotated[Path | None, typer.Option(help="softswitch's folder in another checkout.")] = None

    def rows(self, notify: Notify) -> Iterator[CoreRow]:
        """Raises RunError."""
        for lanes in self.lanes:
            for frames in PLACES:
                notify(f"{lanes} lanes, frames in the {frames}")
                yield from compare(lanes, frames, self.threads, self.rounds, self.against)

    def tables(self, rows: Sequence[CoreRow]) -> Iterable[Table]:
        return [table("The core of softswitch", COLUMNS, rows)]


@dataclass(frozen=True)
class Round:
    """Nanoseconds of one round: the medians of its passes, and the 5th percentile of the core's."""

    core_ns: float
    bare_ns: float
    quiet_ns: float


def compare(
    lanes: int, frames: str, threads: Sequence[int], rounds: int, against: Path | None
) -> Iterator[CoreRow]:
    folders = {"this": None, **({str(against): against} if against else {})}
    found: dict[tuple[str, int], list[Round]] = {(name, count): [] for name in folders for count in threads}
    for _ in range(rounds):
        for (name, count), measured in found.items():
            measured.append(one_round(lanes, frames, count, folders[name]))
    for (name, count), measured in found.items():
        fewest = found[name, min(threads)]
        other = found.get((str(against), count))
        yield CoreRow(
            name,
            lanes,
            frames,
            count,
            min(r.quiet_ns for r in measured),
            median(r.core_ns for r in measured),
            median(r.bare_ns for r in measured),
            median(r.core_ns / r.bare_ns for r in measured),
            median(count * a.core_ns / b.core_ns for a, b in zip(fewest, measured, strict=True)),
            median(count * a.bare_ns / b.bare_ns for a, b in zip(fewest, measured, strict=True)),
            median(a.core_ns / b.core_ns for a, b in zip(measured, other, strict=True)) if other else None,
        )


def one_round(lanes: int, frames: str, threads: int, softswitch: Path | None) -> Round:
    """Measure the softswitch of a folder, the installed one by default, in a process of its own: where code and data
    lie changes the figures. Raises RunError."""
    paths = [str(softswitch)] if softswitch else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}
    command = (sys.executable, "-P", "-c", ROUND.format(lanes=lanes, frames=frames, threads=threads))
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RunError("the process that measures the core failed; its error is above")
    return Round(**json.loads(done.stdout))


def print_round(lanes: int, frames: str, threads: int) -> None:
    """Print the Round of this process as JSON. Raises RunError."""
    load = aggregation(lanes)
    passes, chunks = PLACES[frames]
    folder = default_cache_dir()

    def open_pipeline(config: p4r.ForwardingPipelineConfig) -> Pipeline:
        return Pipeline.load(config.p4_device_config, folder, threads=threads)

    loaded = device.load(load.config, open_pipeline)
    library = ctypes.CDLL(str(build_shared([LOOP], folder, name="core_loop")))
    library.core_loop.restype = ctypes.c_int64
    for update in load.updates:
        loaded.forwarding.write(update)
    switch = Switch(threads=threads)
    switch.swap(loaded.forwarding.pipeline)
    given_frames = (ctypes.c_char_p * 16)(*load.frames)
    size, lanes_at = len(load.frames[0]), FRAME_OVERHEAD_BYTES + HEADER_BYTES
    places = (load.tag_at, load.slot_at, lanes_at)
    given = Load(switch.handle, given_frames, size, WORKERS, SLOTS, *places, lanes, chunks, 0, threads)
    core, bare = (ctypes.c_double * (passes * threads))(), (ctypes.c_double * (passes * threads))()
    missing = library.core_loop(ctypes.byref(given), passes, threads, core, bare)
    if missing:
        raise RunError(f"the core sent {-missing} frames less than it received")
    typer.echo(json.dumps(asdict(Round(median(core), median(bare), quantiles(core, n=20)[0]))))


if __name__ == "__main__":
    run_command(CoreNs)
