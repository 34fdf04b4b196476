# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Loss of jobs when TCP flows fill the links of a spine, and gain of re-routing.

One job or two, with a worker in each rack, reduce arrays one after the other. At the onset other hosts of the racks, a
ring of racks, start to send TCP over the links of the first spine in both directions; later they stop. This is repeated
for each mode of choosing trees:

static      one tree over that spine, never changed
ecmp        equal shares over both spines, as ECMP spreads flows, never changed
r-inart     starts with one tree; planned again with the split fixed, as published
re-routed   starts with one tree or more; planned again with any split
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from netfold.controller.drawing.chart import legend, series
from netfold.controller.drawing.palette import GRID
from netfold.controller.drawing.plot import Plot
from netfold.evaluation.core.command import (
    ArrayBytes,
    Floats,
    Integers,
    Lanes,
    Target,
    Words,
    floats,
    integers,
    words,
)
from netfold.evaluation.core.experiment import Column, Experiment, Notify, table
from netfold.evaluation.core.progress import one_by_one
from netfold.evaluation.testbed.reroute_row import Case, Move, RerouteRow, reroute_row
from netfold.evaluation.testbed.tcp_flows import CrossTraffic
from netfold.testbed.errors import RunError
from netfold.testbed.processes import POLL_S
from netfold.testbed.submitted_job import SubmittedJob
from netfold.testbed.testbed import Testbed
from netfold.topologies.addressing import FIRST_GRPC_PORT
from netfold.topologies.fabric import Fabric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODEL, MODEL_ELEMENTS = "resnet50", 25_557_032
PROGRESS_POLL_S = 0.03
TCP_PAYLOAD = 1448 / 1538
"""Part of a TCP segment's bytes on the wire that is payload."""

MODES: Mapping[str, Mapping[str, Any]] = {
    "static": {"options": {"trees": 1}, "reroute": "off"},
    "ecmp": {"options": {"trees": 2}, "reroute": "off"},
    "r-inart": {"options": {"trees": 1}, "reroute": "fixed-split"},
    "re-routed": {"options": {"trees": 2}, "reroute": "on"},
}

COLUMNS = (
    Column[RerouteRow]("TCP", lambda r: r.load, ".0%"),
    Column[RerouteRow]("jobs", lambda r: r.jobs),
    Column[RerouteRow]("trees", lambda r: r.mode, is_text=True),
    Column[RerouteRow]("job", lambda r: r.job, is_text=True),
    Column[RerouteRow]("before ms", lambda r: r.before_ms, ".0f"),
    Column[RerouteRow]("under ms", lambda r: r.under_ms, ".0f"),
    Column[RerouteRow]("after ms", lambda r: r.after_ms, ".0f"),
    Column[RerouteRow]("slower", lambda r: r.slowdown, ".2f"),
    Column[RerouteRow]("moved s", lambda r: r.reaction_s, ".2f"),
    Column[RerouteRow]("settled s", lambda r: r.settled_s, ".2f"),
    Column[RerouteRow]("back s", lambda r: r.back_s, ".2f"),
    Column[RerouteRow]("as before s", lambda r: r.restored_s, ".2f"),
    Column[RerouteRow]("moves", lambda r: len(r.moved)),
    Column[RerouteRow]("wrong", lambda r: r.wrong_elements),
)


@dataclass(frozen=True)
class Rerouting(Experiment[RerouteRow]):
    """TCP flows fill a spine's links while jobs train: time per iteration static, by ECMP, and re-routed.

    static: one tree over that spine. ecmp: equal shares over both spines. r-inart: planned again with the split fixed.
    re-routed: with any split. "moved": from the onset of the flows to the new epoch; "settled": until iterations are
    as short as they stay; "as before": from the end of the flows until iterations are as short as before them. A case
    takes some 25 s, all 24 ten minutes; --load, --jobs and --modes take fewer."""

    name = "measure-reroute"
    needs_namespaces = True
    fabric: Annotated[
        str, typer.Argument(help="A leaf-spine fabric: its YAML file, or the name of a spec of netfold.")
    ] = "leaf-spine-4x2"
    modes: Annotated[Words, words("Modes of choosing trees to compare.")] = Words(MODES)
    jobs: Annotated[Integers, integers("Numbers of jobs that run at the same time.")] = Integers((1, 2))
    size: ArrayBytes = 1 << 17
    loads: Annotated[Floats, floats("Load of the spine's links by TCP flows, as fractions.", "--load")] = (
        Floats((0.6, 0.7, 0.8))
    )
    scale: Annotated[float, typer.Option(help="Rates on the wire over those of the fabric's file.")] = 0.05
    load_s: Annotated[
        float, typer.Option("--load-seconds", min=6, help="Seconds for which the flows send.")
    ] = 8.0
    target: Target = "auto"
    lanes: Lanes = 256
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds for the jobs of one mode.")
    ] = 120.0
    before_s: float = 3.0
    """Time from the first iterations to the onset of the load."""
    after_s: float = 5.0
    """Time for which the jobs continue after the load, about."""
    network: str | None = None
    first_grpc_port: int = FIRST_GRPC_PORT

    def __post_init__(self) -> None:
        if not all(0.05 <= load <= 1 for load in self.loads):
            raise typer.BadParameter("--load takes fractions of a link, 0.05 to 1")

    def testbed(self, notify: Notify) -> Testbed:
        return Testbed(
            self.fabric,
            target=self.target,
            lanes=self.lanes,
            scale=self.scale,
            name=self.network,
            first_grpc_port=self.first_grpc_port,
            on_step=notify,
        )

    def has_failed(self, rows: Sequence[RerouteRow]) -> bool:
        return any(r.wrong_elements for r in rows)

    def rows(self, notify: Notify) -> Iterator[RerouteRow]:
        """Yield a row for each load, number of jobs, mode and job. Raises RunError, NetworkError."""
        unknown = [m for m in self.modes if m not in MODES]
        if unknown:
            raise RunError(f"unknown mode '{unknown[0]}': expected {', '.join(MODES)}")
        run = _Run(self, notify)
        cases = [Case(*case) for case in itertools.product(self.loads, self.jobs, self.modes)]
        with run.traffic() as traffic:
            for case in one_by_one(cases, str, notify):
                yield from run.measure(case, traffic)

    def tables(self, rows: Sequence[RerouteRow]) -> Iterable[Table]:
        title = f"{self.fabric}: iterations before, under and after TCP on a spine's links"
        return [table(title, COLUMNS, rows)]

    def plots(self, rows: Sequence[RerouteRow]) -> Iterable[Plot]:
        loads, counts = sorted({r.load for r in rows}), sorted({r.jobs for r in rows})
        size = (6.0 * len(counts) + 1.5, 3.2 * len(loads) + 0.6)
        return [Plot(lambda figure: _draw(figure, rows, self.load_s), size)]


class _Run:
    def __init__(self, experiment: Rerouting, notify: Notify) -> None:
        self._experiment = experiment
        self._notify = notify
        self._system = experiment.testbed(notify)
        self._racks = racks(self._system.fabric)
        if len(self._racks) < 2 or min(len(r) for r in self._racks) < 3:
            raise RunError(f"{self._system.fabric.name}: expected at least two racks of three workers")

    @contextmanager
    def traffic(self) -> Iterator[CrossTraffic]:
        """The running network, with TCP connections over the first spine."""
        with self._system as system:
            senders = [r[-2:] for r in self._racks]
            pairs = [
                (a, b)
                for here, there in zip(senders, [*senders[1:], senders[0]], strict=True)
                for a, b in zip(here, there, strict=True)
            ]
            self._notify("searching TCP connections over the first spine")
            with CrossTraffic(system.net, pairs, self._spine()) as traffic:
                yield traffic

    def _spine(self) -> str:
        """The root of the first job's tree, if it has one tree."""
        fabric = self._system.fabric
        leaf = fabric.attachment(self._racks[0][0])
        return next(n for n in fabric.ports[leaf] if not fabric.is_host(n))

    def measure(self, case: Case, traffic: CrossTraffic) -> list[RerouteRow]:
        experiment = self._experiment
        running = [self._start(case, number) for number in range(case.jobs)]
        moves: dict[str, list[Move]] = {j.name: [] for j in running}
        started = self._wait_for_iterations(running)
        following = [self._follow(job.name, moves[job.name]) for job in running]
        onset = started + experiment.before_s
        end = onset + experiment.load_s
        steps: list[tuple[float, Callable[[], None]]] = [
            (onset, lambda: traffic.start(self._flow_mbps(case.load))),
            (end, traffic.stop),
        ]

        def meanwhile() -> None:
            """Called in a loop until all jobs are complete. Executes a step that is due before the next call."""
            if steps and steps[0][0] < time.monotonic() + POLL_S:
                # the time of a step is the experiment's
                time.sleep(max(0.0, steps[0][0] - time.monotonic()))
                steps.pop(0)[1]()

        rows = []
        try:
            for job, follower in zip(running, following, strict=True):
                results = job.result(experiment.timeout_s, meanwhile)
                follower.join()
                wrong = sum(r["wrong_elements"] for r in results.values())
                rows.append(reroute_row(case, job, moves[job.name], onset, end, wrong))
        finally:
            traffic.stop()
        return rows

    def _wait_for_iterations(self, running: Sequence[SubmittedJob]) -> float:
        """Returns the time at which every job has completed an iteration. Raises RunError."""
        deadline = time.monotonic() + self._experiment.timeout_s
        while not all(j.progress.exists() for j in running):
            self._system.check()
            if time.monotonic() > deadline:
                raise RunError(f"no iteration within {self._experiment.timeout_s:g} s")
            time.sleep(PROGRESS_POLL_S)  # workers in hosts write the files, without notification
        return time.monotonic()

    def _start(self, case: Case, number: int) -> SubmittedJob:
        experiment, system = self._experiment, self._system
        seconds = experiment.before_s + experiment.load_s + experiment.after_s
        each = experiment.size * 8 / (system.link_mbps * 1e6) * 1.3
        flags = ["--workload", MODEL, "--model-scale", experiment.size / 4 / MODEL_ELEMENTS]
        flags += ["--iterations", max(8, round(seconds / each))]
        workers = [rack[number] for rack in self._racks]
        keys = {
            "scheme": "panama",
            "parameter_servers": 0,
            "elements": experiment.size // 4,
            **MODES[case.mode],
        }
        return system.submit(f"{case.name}-{number + 1}", flags, workers, **keys)

    def _follow(self, name: str, moves: list[Move]) -> threading.Thread:
        """A thread that records the job's epochs until it has ended."""

        def note() -> None:
            with suppress(RunError):  # of an unreachable controller: finish() reports it
                for job in self._system.controller.watch(name, None):
                    if job.plan_json and (not moves or job.epoch != moves[-1].epoch):
                        rate = float(json.loads(job.plan_json)["rate"])
                        moves.append(Move(time.monotonic(), job.epoch, rate, job.reason))

        thread = threading.Thread(target=note, daemon=True)
        thread.start()
        return thread

    def _flow_mbps(self, load: float) -> float:
        """Payload of each flow; two share a link between switches."""
        fabric = self._system.fabric
        leaf, spine = fabric.attachment(self._racks[0][0]), self._spine()
        wire = self._system.net.rate_bps(leaf, spine) / 1e6 * load
        return wire / 2 * TCP_PAYLOAD


def racks(fabric: Fabric) -> list[list[str]]:
    """The workers of each rack."""
    found: dict[str, list[str]] = {}
    for host in fabric.hosts:
        if not host.parameter_server:
            found.setdefault(fabric.attachment(host.name), []).append(host.name)
    return list(found.values())


def _draw(figure: Figure, rows: Sequence[RerouteRow], load_s: float) -> None:
    """A panel for each load and number of jobs; of several jobs the first."""
    loads, counts = sorted({r.load for r in rows}), sorted({r.jobs for r in rows})
    modes = list(dict.fromkeys(r.mode for r in rows))
    axes = figure.subplots(len(loads), len(counts), squeeze=False, sharex=True, sharey=True)
    for (load, count), axis in zip(itertools.product(loads, counts), axes.flat, strict=True):
        axis.axvspan(0, load_s, color=GRID, label="TCP on a spine's links")
        for r in (r for r in rows if (r.load, r.jobs) == (load, count) and r.job.endswith("-1")):
            times, durations = zip(*r.timeline, strict=True) if r.timeline else ((), ())
            axis.plot(times, durations, label=r.mode, **series(modes.index(r.mode)) | {"markersize": 2.0})
        axis.set_title(f"{count} job{'s' if count > 1 else ''}, TCP on {load:.0%}")
        axis.set_ylim(bottom=0)
    figure.supxlabel("seconds since the onset of the TCP flows")
    figure.supylabel("duration of an iteration, ms")
    legend(figure, list(axes.flat))
