# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold run`: a real model trains through the switches of a fabric, and the run says what happened.

Two jobs, one after the other: the training, whose every sum is checked, and arrays of one size, which show what the
links give. Then both once more as a TCP ring over the same links, for comparison.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from netfold.controller.planning.plan import Loads, Plan
from netfold.controller.planning.plot import plot_plan
from netfold.testbed import counters
from netfold.testbed.deployment import Deployment, Results, Setup
from netfold.testbed.disturbance import Disturbance
from netfold.testbed.errors import RunError
from netfold.testbed.report import AllReduce, Report
from netfold.topologies.network.caller import as_caller
from netfold.traffic.packets.wire import FRAME_OVERHEAD_BYTES, packet_bytes
from netfold.traffic.workloads import HIDDEN_UNITS

AGGREGATED = ("absorbed", "result_sent", "sum_sent")
RING_PORT = 29500
RESULTS, PICTURE = "run.json", "fabric.png"


@dataclass(frozen=True)
class Options:
    """What to run. `epochs` are passes over the training images, with so many `hidden` units; `bandwidth_bytes` the
    arrays of the second job, reduced `iterations` times; `timeout_s` bounds each of the steps, None: by what is usual
    for the target."""

    setup: Setup = field(default_factory=Setup)
    scheme: str = "panama"
    epochs: int = 12
    bandwidth_bytes: int = 1 << 20
    iterations: int = 8
    ring: bool = True
    timeout_s: float | None = None
    out: Path = Path("out")
    disturbance: Disturbance = field(default_factory=Disturbance)
    hidden: int = HIDDEN_UNITS


class Watcher:
    """Who is told how a run goes; does nothing by itself."""

    def step(self, text: str) -> None: ...

    def progress(self, fraction: float, text: str) -> None: ...


class Run:
    """One run of `options`: `execute` does it and cleans up after itself, also when it fails; `write` keeps what came
    of it."""

    def __init__(self, options: Options, watcher: Watcher) -> None:
        self.options = options
        self.watcher = watcher
        self.system = Deployment(options.setup, watcher.step)
        self._timeout_s = options.timeout_s or self.system.patience.step_s
        if len(self.system.workers) < 2:
            raise RunError(
                f"fabric {options.setup.fabric} has {len(self.system.workers)} workers; a run needs two"
            )

    def execute(self) -> Report:
        """Raises RunError, netfold.topologies.network.errors.NetworkError."""
        started = time.monotonic()
        self._check_out()
        self.options.disturbance.check(self.system.fabric)
        options, system = self.options, self.system
        train: list[object] = ["--workload", "digits", "--epochs", options.epochs]
        train += ["--hidden", options.hidden]
        reduce: list[object] = ["--workload", "sizes", "--bytes", options.bandwidth_bytes]
        reduce += ["--iterations", options.iterations]
        disturbance = options.disturbance
        with system:
            disturbance.lose(system.net)
            restarting = disturbance.restarting(system.net, self.watcher.step)
            training, _, _ = self._job("training", train, restarting)
            bandwidth, plan, loads = self._job("bandwidth", reduce, lambda: None)
            lost = disturbance.lost(system.net)
            verdicts = counters.read_verdicts(system.net)
            rings: tuple[Results | None, Results | None] = (None, None)
            if options.ring:
                rings = (
                    self._ring("training", train, RING_PORT),
                    self._ring("bandwidth", reduce, RING_PORT + 1),
                )
            target, rate_mbps = system.net.target.name, system.link_mbps
        self._plan, self._loads = plan, loads
        seconds = time.monotonic() - started
        return self._report(target, plan, rate_mbps, training, bandwidth, rings, verdicts, lost, seconds)

    def write(self, report: Report) -> None:
        """Writes run.json and fabric.png. Both belong to the user who called sudo, if one did. Raises RunError."""
        self.watcher.step("drawing the fabric")
        with tempfile.TemporaryDirectory(prefix="netfold-") as folder:
            picture = Path(folder) / PICTURE
            plot_plan(self.system.fabric, self._plan, picture, self._loads)
            contents = {RESULTS: report.to_json().encode(), PICTURE: picture.read_bytes()}
        try:
            with as_caller():
                for name, content in contents.items():
                    (self.options.out / name).write_bytes(content)
        except OSError as error:
            raise RunError(f"{self.options.out / name} cannot be written: {error.strerror}") from error

    def _check_out(self) -> None:
        """Before minutes are spent on what could not be written down."""
        out = self.options.out
        try:
            with as_caller():
                out.mkdir(parents=True, exist_ok=True)
                for path in (out, *(p for p in (out / RESULTS, out / PICTURE) if p.exists())):
                    if not os.access(path, os.W_OK, effective_ids=True):
                        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        except OSError as error:
            raise RunError(
                f"{error.filename} cannot be written: {error.strerror}; choose another --out"
            ) from error

    def _job(
        self, name: str, flags: list[object], disturb: Callable[[], None]
    ) -> tuple[Results, Plan, Loads]:
        """Runs one job, and `disturb` again and again beside it; gives the workers' results, the plan, and the loads of
        the links while it ran."""
        system, net = self.system, self.system.net
        self.watcher.step(f"{name}: a job of {len(system.workers)} workers")
        before = counters.read_link_bytes(net)
        job = system.start_job(
            name, flags, scheme=self.options.scheme, elements=self.options.bandwidth_bytes // 4
        )

        def meanwhile() -> None:
            self._show(job.progress, name)
            disturb()

        results = system.finish(job, self._timeout_s, meanwhile)
        seconds = time.monotonic() - job.started
        return results, job.plan, counters.measured_loads(net, before, counters.read_link_bytes(net), seconds)

    def _ring(self, name: str, flags: list[object], port: int) -> Results:
        self.watcher.step(f"{name}: the same as a TCP ring")
        group, progress = self.system.start_ring(name, flags, port)
        return group.wait(self._timeout_s, lambda: self._show(progress, f"{name}, ring"))

    def _show(self, progress: Path, name: str) -> None:
        lines = progress.read_text().splitlines() if progress.exists() else []
        if not lines:
            return
        last = json.loads(lines[-1])
        done, total = last.get("epoch", len(lines)), last.get("epochs", 0)
        words = ", ".join(
            f"{k} {v:.4g}" for k, v in last.items() if k in ("loss", "accuracy") and v is not None
        )
        self.watcher.progress(done / total if total else 0.0, f"{name}: {words}" if words else name)

    # ---- what happened -------------------------------------------------------------------------------------------

    def _report(
        self,
        target: str,
        plan: Plan,
        rate_mbps: float,
        training: Results,
        bandwidth: Results,
        rings: tuple[Results | None, Results | None],
        verdicts: Mapping[str, Mapping[str, int]],
        lost: int | None,
        seconds: float,
    ) -> Report:
        trained, measured = _slowest(training), _slowest(bandwidth)
        training_ring, bandwidth_ring = (None if r is None else _slowest(r) for r in rings)
        first = next(iter(training.values()))
        lanes = self.options.setup.lanes
        payload_rate = rate_mbps * 4 * lanes / (packet_bytes(lanes) + FRAME_OVERHEAD_BYTES)
        return Report(
            fabric=self.system.fabric.name,
            target=target,
            target_reason=self.system.target_reason,
            scheme=plan.algorithm,
            workers=len(self.system.workers),
            lanes=lanes,
            link_mbps=rate_mbps,
            accuracy=first["accuracy"],
            reference_accuracy=first["reference_accuracy"],
            identical=all(
                len({r["digest"] for r in results.values()}) == 1 for results in (training, bandwidth)
            ),
            wrong_elements=trained.wrong_elements + measured.wrong_elements,
            allreduce_ms_p50=trained.ms_p50,
            allreduce_ms_p99=trained.ms_p99,
            bandwidth_bytes=self.options.bandwidth_bytes,
            algbw_mbps=measured.algbw_mbps,
            goodput_mbps_per_worker=measured.algbw_mbps,
            goodput_of_link=measured.algbw_mbps / payload_rate,
            packets_aggregated=sum(counts.get(v, 0) for counts in verdicts.values() for v in AGGREGATED),
            retransmits=trained.retransmits + measured.retransmits,
            ring_algbw_mbps=None if bandwidth_ring is None else bandwidth_ring.algbw_mbps,
            training=trained,
            training_ring=training_ring,
            bandwidth=measured,
            bandwidth_ring=bandwidth_ring,
            seconds=seconds,
            switches=verdicts,
            frames_lost=lost,
            restarted=self.options.disturbance.restart,
        )


def _slowest(results: Results) -> AllReduce:
    """An all-reduce is as fast as its slowest worker."""
    rows = list(results.values())
    return AllReduce(
        ms_p50=max(r["allreduce_ms_p50"] for r in rows),
        ms_p99=max(r["allreduce_ms_p99"] for r in rows),
        algbw_mbps=min(r["algbw_mbps"] for r in rows),
        wrong_elements=sum(r["wrong_elements"] for r in rows),
        checked_elements=sum(r["checked_elements"] for r in rows),
        retransmits=sum(r["retransmits"] for r in rows),
    )
