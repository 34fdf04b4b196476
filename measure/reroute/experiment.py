# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold measure reroute`: what jobs lose when TCP flows fill the links of a spine, and what re-routing gives back.

One job or two, with a worker in each rack, reduce arrays one after the other. At the onset other hosts of the racks, a
ring of racks, start to send TCP over the links of the first spine, both ways; later they stop. The same once for each
way of choosing trees:

static      one tree, over that spine, whatever happens
ecmp        equal parts over both spines, as ECMP spreads flows, whatever happens
r-inart     one tree at first; planned again with the split fixed, as published
re-routed   one tree at first, or more; planned again with any split
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from netfold.measure.progress import one_by_one
from netfold.measure.tcp_flows import Foreign
from netfold.testbed.deployment import Deployment, RunningJob, Setup
from netfold.testbed.errors import RunError
from netfold.testbed.processes import POLL_S
from netfold.topologies.fabric import Fabric

MODEL, MODEL_ELEMENTS = "resnet50", 25_557_032
LOOK_S = 0.03
STEADY_S = 3.0
"""After the onset and after the end of the load: what is timed is what is left when everybody had time to react."""

MODES: Mapping[str, Mapping[str, Any]] = {
    "static": {"options": {"trees": 1}, "reroute": "off"},
    "ecmp": {"options": {"trees": 2}, "reroute": "off"},
    "r-inart": {"options": {"trees": 1}, "reroute": "fixed-split"},
    "re-routed": {"options": {"trees": 2}, "reroute": "on"},
}


@dataclass(frozen=True)
class Case:
    load: float
    jobs: int
    mode: str

    def __str__(self) -> str:
        return f"{self.mode}, {self.jobs} job{'s' if self.jobs > 1 else ''}, TCP on {self.load:.0%}"

    @property
    def name(self) -> str:
        """That jobs' names begin with."""
        return f"{self.mode}-{self.load * 100:.0f}-{self.jobs}"


@dataclass(frozen=True)
class Experiment:
    """`size` is in bytes; `loads` are parts of the links between switches. A load begins `before_s` after the first
    iterations, and lasts `load_s`; the jobs go on for about `after_s`."""

    setup: Setup
    modes: Sequence[str] = tuple(MODES)
    jobs: Sequence[int] = (1, 2)
    size: int = 1 << 18
    loads: Sequence[float] = (0.6, 0.7, 0.8)
    before_s: float = 3.0
    load_s: float = 8.0
    after_s: float = 5.0
    timeout_s: float = 120.0

    @property
    def cases(self) -> list[Case]:
        return [Case(*case) for case in itertools.product(self.loads, self.jobs, self.modes)]


@dataclass(frozen=True)
class Move:
    """A new epoch: when, and what the job is promised since then (fabric units)."""

    at: float
    epoch: int
    rate: float
    why: str


@dataclass(frozen=True)
class Row:
    """One job in one mode beside one load. Times of iterations are medians in milliseconds; None: it did none. Others
    are seconds since the onset, or (`back_s`, `restored_s`) since the end of the load; None: it did not move, or was
    not seen to get there. `settled_s`: iterations are as short as they stay; `restored_s`: as before the load."""

    load: float
    mode: str
    jobs: int
    job: str
    before_ms: float | None
    under_ms: float | None
    after_ms: float | None
    reaction_s: float | None
    settled_s: float | None
    back_s: float | None
    restored_s: float | None
    moved: list[float]
    """Second since the onset of each new epoch."""
    wrong_elements: int
    timeline: list[tuple[float, float]] = field(default_factory=list)
    """Second since the onset at which an iteration ended, and its milliseconds."""

    @property
    def slowdown(self) -> float | None:
        return self.under_ms / self.before_ms if self.under_ms and self.before_ms else None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "slowdown": self.slowdown}


class Rerouting:
    """One experiment; `run` gives a row for each load, number of jobs, mode and job."""

    def __init__(self, experiment: Experiment, tell: Callable[[str], None]) -> None:
        self._experiment = experiment
        self._tell = tell
        self._system = Deployment(experiment.setup, tell)
        self._racks = racks(self._system.fabric)
        if len(self._racks) < 2 or min(len(r) for r in self._racks) < 3:
            raise RunError(f"{self._system.fabric.name}: it takes two racks of three workers or more")
        unknown = [m for m in experiment.modes if m not in MODES]
        if unknown:
            raise RunError(f"there is no way '{unknown[0]}'; there are {', '.join(MODES)}")

    def run(self) -> list[Row]:
        """Raises RunError, netfold.topologies.network.errors.NetworkError."""
        rows = []
        with self._system as system:
            senders = [r[-2:] for r in self._racks]
            pairs = [
                (a, b)
                for here, there in zip(senders, [*senders[1:], senders[0]], strict=True)
                for a, b in zip(here, there, strict=True)
            ]
            self._tell("looking for TCP connections over the first spine")
            with Foreign(system.net, pairs, self._spine()) as foreign:
                for case in one_by_one(self._experiment.cases, str, self._tell):
                    rows += self._measure(case, foreign)
        return rows

    def _spine(self) -> str:
        """The one that the first job's one tree has as its root."""
        fabric = self._system.fabric
        leaf = fabric.attachment(self._racks[0][0])
        return next(n for n in fabric.ports[leaf] if not fabric.is_host(n))

    def _measure(self, case: Case, foreign: Foreign) -> list[Row]:
        system, experiment = self._system, self._experiment
        running = [self._start(case, number) for number in range(case.jobs)]
        moves: dict[str, list[Move]] = {j.name: [] for j in running}
        begun = self._begun(running)
        following = [self._follow(job.name, moves[job.name]) for job in running]
        onset, end = begun + experiment.before_s, begun + experiment.before_s + experiment.load_s
        steps: list[tuple[float, Callable[[], None]]] = [
            (onset, lambda: foreign.go(self._flow_mbps(case.load))),
            (end, foreign.stop),
        ]

        def meanwhile() -> None:
            """Called again and again until all jobs are done: what is due before the next call, when it is due."""
            if steps and steps[0][0] < time.monotonic() + POLL_S:
                time.sleep(max(0.0, steps[0][0] - time.monotonic()))
                steps.pop(0)[1]()

        rows = []
        try:
            for job, follower in zip(running, following, strict=True):
                results = system.finish(job, experiment.timeout_s, meanwhile)
                follower.join()
                wrong = sum(r["wrong_elements"] for r in results.values())
                rows.append(row(case, job, moves[job.name], onset, end, wrong))
        finally:
            foreign.stop()
        return rows

    def _begun(self, running: Sequence[RunningJob]) -> float:
        """Now, when every job has done an iteration. Raises RunError."""
        deadline = time.monotonic() + self._experiment.timeout_s
        while not all(j.progress.exists() for j in running):
            self._system.check()
            if time.monotonic() > deadline:
                raise RunError("no job did an iteration in time")
            time.sleep(LOOK_S)  # a worker in a host writes the file, and nobody says so
        return time.monotonic()

    def _start(self, case: Case, number: int) -> RunningJob:
        experiment, system = self._experiment, self._system
        seconds = experiment.before_s + experiment.load_s + experiment.after_s
        each = experiment.size * 8 / (system.link_mbps * 1e6) * 1.3
        flags = ["--workload", MODEL, "--scale", experiment.size / 4 / MODEL_ELEMENTS]
        flags += ["--iterations", max(8, round(seconds / each))]
        workers = [rack[number] for rack in self._racks]
        keys = {
            "scheme": "panama",
            "parameter_servers": 0,
            "elements": experiment.size // 4,
            **MODES[case.mode],
        }
        return system.start_job(f"{case.name}-{number + 1}", flags, workers, **keys)

    def _follow(self, name: str, moves: list[Move]) -> threading.Thread:
        """A thread that notes where the job is and each move, until it is over."""

        def note() -> None:
            with suppress(RunError):  # of a controller that is gone: who waits for the job says it
                for job in self._system.service.watch(name, None):
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
        return wire / 2 * PAYLOAD


PAYLOAD = 1448 / 1538
"""Of a TCP segment's bytes on the wire."""


def racks(fabric: Fabric) -> list[list[str]]:
    """The workers of each rack."""
    found: dict[str, list[str]] = {}
    for host in fabric.hosts:
        if not host.parameter_server:
            found.setdefault(fabric.attachment(host.name), []).append(host.name)
    return list(found.values())


def row(case: Case, job: RunningJob, moves: Sequence[Move], onset: float, end: float, wrong: int) -> Row:
    """What the first worker's iterations and the controller's epochs say."""
    ended = _ended(job.progress)
    times = [(b, (b - a) * 1e3) for a, b in itertools.pairwise(ended)]

    def median(since: float, until: float) -> float | None:
        """Of those that lie within; of those that reach into it where none does."""
        inside = [ms for at, ms in times if since <= at - ms / 1e3 and at <= until]
        reaching = [ms for at, ms in times if since < at and at - ms / 1e3 < until]
        return statistics.median(inside or reaching) if reaching else None

    def as_short(since: float, until: float, ms_then: float | None) -> float | None:
        """From `since` to the end of the first iteration behind it that takes about `ms_then`."""
        short = (at for at, ms in times if ms_then and at - ms / 1e3 >= since and ms <= 1.2 * ms_then)
        at = next(short, math.inf)
        return at - since if at <= until else None

    first = next((m for m in moves[1:] if onset <= m.at <= end), None)
    back = next((m for m in moves[1:] if m.at > end), None)
    before, under = median(onset - 3.0, onset), median(onset + STEADY_S, end)
    settled = None if first is None else as_short(first.at, end, under)
    return Row(
        load=case.load,
        mode=case.mode,
        jobs=case.jobs,
        job=job.name,
        before_ms=before,
        under_ms=under,
        after_ms=median(end + STEADY_S, ended[-1]),
        reaction_s=None if first is None else first.at - onset,
        settled_s=None if first is None or settled is None else first.at + settled - onset,
        back_s=None if back is None else back.at - end,
        restored_s=as_short(end, ended[-1], before),
        moved=[round(m.at - onset, 3) for m in moves[1:]],
        wrong_elements=wrong,
        timeline=[(round(at - onset, 3), round(ms, 1)) for at, ms in times],
    )


def _ended(progress: Path) -> list[float]:
    return [json.loads(line)["at"] for line in progress.read_text().splitlines()]
