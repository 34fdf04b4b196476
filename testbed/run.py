# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold run`: trains a real model through the switches of a fabric and reports the results.

Two jobs in sequence: the training, with every sum checked, and arrays of one size, which measure the links. Both are
repeated as a TCP ring over the same links.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from netfold.controller.drawing.fabric_picture import MeasuredLoads, fabric_plot
from netfold.controller.drawing.plot import render
from netfold.controller.planning.plan import Plan
from netfold.controller.recording.recording_file import read_recording
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, packet_bytes
from netfold.testbed import counters
from netfold.testbed.errors import RunError, RunTimeoutError
from netfold.testbed.fault_injection import FaultInjection
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.modes import NetworkMode
from netfold.testbed.network.sudo_user import as_sudo_user
from netfold.testbed.processor_load import ProcessorLoad, ProcessorMeter
from netfold.testbed.report import AllReduce, FastLinks, RunReport
from netfold.testbed.submitted_job import Results
from netfold.testbed.testbed import Testbed
from netfold.testbed.web_page import WebPage
from netfold.traffic.workloads import HIDDEN_UNITS

AGGREGATED = ("accumulated", "result_sent", "sum_sent")
RING_PORT = 29500
RESULTS, RECORDING = "run.json", "recording.jsonl"
LOGS = "logs"
PICTURES = {"fabric.png": "png", "fabric.svg": "svg"}


@dataclass(frozen=True)
class RunOptions:
    """Options of a run. `testbed`: makes the testbed, with further options; `epochs`: passes over the training images;
    `bandwidth_bytes`: arrays of the second job, reduced `iterations` times; `timeout_s`: of each step, None: the
    target's default; `page`: descriptor of a live page's socket, None: no page; `fast_mbps`: rate of links over which
    the arrays are reduced once more, None: not."""

    testbed: Callable[..., Testbed] = Testbed
    scheme: str = "panama"
    epochs: int = 12
    bandwidth_bytes: int = 1 << 20
    iterations: int = 8
    ring: bool = True
    timeout_s: float | None = None
    out: Path = Path("out")
    faults: FaultInjection = field(default_factory=FaultInjection)
    hidden: int = HIDDEN_UNITS
    page: int | None = None
    fast_mbps: float | None = None


class RunObserver:
    """Receives the progress of a run; ignores it by default."""

    def on_step(self, text: str) -> None: ...

    def on_progress(self, fraction: float, text: str) -> None: ...


class Run:
    """One run of `options`: `execute` runs it and always cleans up; `write` writes its results."""

    def __init__(self, options: RunOptions, observer: RunObserver) -> None:
        self.options = options
        self.observer = observer
        self.system = options.testbed(on_step=observer.on_step)
        self._meter: ProcessorMeter | None = None
        self._recording = ""
        self._logs_in: Path | None = None
        self._timeout_s = options.timeout_s or self.system.timeouts.step_s
        if len(self.system.workers) < 2:
            raise RunError(
                f"fabric {self.system.fabric.name} has {len(self.system.workers)} workers; expected at least 2"
            )

    def execute(self) -> RunReport:
        """Raises RunError, netfold.testbed.network.errors.NetworkError."""
        started = time.monotonic()
        self._check_out()
        self.options.faults.check(self.system.fabric)
        options, system = self.options, self.system
        train: list[object] = ["--workload", "digits", "--epochs", options.epochs]
        train += ["--hidden", options.hidden]
        reduce = self._reducing()
        faults = options.faults
        self._meter = meter = ProcessorMeter()
        with system, self._page(), self._kept_logs():
            faults.start_loss(system.net)
            restarting = faults.restarting(system.net, self.observer.on_step)
            training, _, _ = self._job("training", train, restarting)
            bandwidth, plan, loads = self._job("bandwidth", reduce, lambda: None)
            lost = faults.lost(system.net)
            verdicts = counters.read_verdicts(system.net)
            rings: tuple[Results | None, Results | None] = (None, None)
            if options.ring and system.mode is not NetworkMode.USERLAND:
                rings = (
                    self._ring("training", train, RING_PORT),
                    self._ring("bandwidth", reduce, RING_PORT + 1),
                )
            target, rate_mbps = system.net.target.name, system.link_mbps
            self._recording = "".join(f"{line}\n" for line in read_recording(system.controller.recording))
        self._plan, self._loads = plan, loads
        load = meter.read()
        fast = None if options.fast_mbps is None else self._over_fast_links(rate_mbps)
        seconds = time.monotonic() - started
        return self._report(
            target, plan, rate_mbps, training, bandwidth, rings, verdicts, lost, seconds, load, fast
        )

    def _reducing(self) -> list[object]:
        """Options of a member that reduces arrays of one size."""
        options = self.options
        size: list[object] = ["--workload", "sizes", "--sizes", options.bandwidth_bytes]
        return [*size, "--iterations", options.iterations]

    def _over_fast_links(self, link_mbps: float) -> FastLinks:
        """The arrays once more, over a network of its own whose links have another rate."""
        first = self.system
        assert self.options.fast_mbps is not None
        scale = (first.scale or 1.0) * self.options.fast_mbps / link_mbps
        self.system = self.options.testbed(scale=scale, on_step=self.observer.on_step)
        try:
            with self.system as system:
                results, _, _ = self._job("bandwidth", self._reducing(), lambda: None)
                ring: Results | None = None
                if self.options.ring and system.mode is not NetworkMode.USERLAND:
                    ring = self._ring("bandwidth", self._reducing(), RING_PORT)
                identical = len({r["digest"] for r in results.values()}) == 1
                beside = None if ring is None else _slowest(ring)
                return FastLinks(system.link_mbps, _slowest(results), beside, identical)
        finally:
            self.system = first

    def failure_notes(self) -> str:
        """Why a failed run may be this machine's fault, and where its logs are; "" if there is neither."""
        warning = "" if self._meter is None else self._meter.read().warning(self.system.wanted_target)
        kept = f"logs: {self._logs_in}" if self._logs_in is not None else ""
        return "; ".join(filter(None, (warning, kept)))

    @contextmanager
    def _kept_logs(self) -> Iterator[None]:
        """After a failure the output folder has the logs of members and controller: the run's own folder goes with the
        network."""
        try:
            yield
        except (RunError, NetworkError):
            folder = self.system.directory
            logs = {p.relative_to(folder): p.read_bytes() for p in sorted(folder.rglob("*.log"))}
            kept = self.options.out / LOGS
            with suppress(OSError), as_sudo_user():
                for path, content in logs.items():
                    (kept / path).parent.mkdir(parents=True, exist_ok=True)
                    (kept / path).write_bytes(content)
                self._logs_in = kept
            raise

    @contextmanager
    def _page(self) -> Iterator[None]:
        """The live page, if it is wanted, once the system runs."""
        if self.options.page is None:
            yield
            return
        with WebPage(self.system.controller.address, self.system.directory, self.options.page) as page:
            self.observer.on_step(f"live page: {page.address}")
            yield

    def write(self, report: RunReport) -> None:
        """Writes run.json, recording.jsonl and fabric.png and .svg, as the user of sudo if there is one. Raises
        RunError."""
        self.observer.on_step("drawing the fabric")
        picture = fabric_plot(self.system.fabric, self._plan, self._loads)
        contents = {
            RESULTS: report.to_json().encode(),
            RECORDING: self._recording.encode(),
            **{name: render(picture, form) for name, form in PICTURES.items()},
        }
        try:
            with as_sudo_user():
                for name, content in contents.items():
                    (self.options.out / name).write_bytes(content)
        except OSError as error:
            raise RunError(f"{self.options.out / name} cannot be written: {error.strerror}") from error

    def _check_out(self) -> None:
        """Checks the output folder before the run, which takes minutes."""
        out = self.options.out
        try:
            with as_sudo_user():
                out.mkdir(parents=True, exist_ok=True)
                files = [out / name for name in (RESULTS, RECORDING, *PICTURES)]
                for path in (out, *(p for p in files if p.exists())):
                    if not os.access(path, os.W_OK, effective_ids=True):
                        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        except OSError as error:
            raise RunError(
                f"{error.filename} cannot be written: {error.strerror}; choose another --out"
            ) from error

    def _job(
        self, name: str, flags: list[object], poll: Callable[[], None]
    ) -> tuple[Results, Plan, MeasuredLoads]:
        """Runs one job and calls `poll` periodically; the workers' results, the plan, and the links' mean loads during
        its all-reduces."""
        system, net = self.system, self.system.net
        self.observer.on_step(f"{name}: a job of {len(system.workers)} workers")
        before = net.link_bytes()
        job = system.submit(
            name, flags, scheme=self.options.scheme, elements=self.options.bandwidth_bytes // 4
        )

        def meanwhile() -> None:
            self._show(job.progress, name)
            poll()

        with _naming_the_timeout():
            results = job.result(self._timeout_s, meanwhile)
        seconds = max(r["allreduce_seconds"] for r in results.values())
        loads = counters.measured_loads(net, before, net.link_bytes(), seconds)
        interval = f"mean of the {seconds:.3g} s in which job '{name}' reduced arrays"
        return results, job.plan, MeasuredLoads(loads, interval)

    def _ring(self, name: str, flags: list[object], port: int) -> Results:
        self.observer.on_step(f"{name}: TCP ring")
        group, progress = self.system.start_ring(name, flags, port)
        with _naming_the_timeout():
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
        self.observer.on_progress(done / total if total else 0.0, f"{name}: {words}" if words else name)

    # ---- report -------------------------------------------------------------------------------------------

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
        load: ProcessorLoad,
        fast: FastLinks | None,
    ) -> RunReport:
        trained, measured = _slowest(training), _slowest(bandwidth)
        training_ring, bandwidth_ring = (None if r is None else _slowest(r) for r in rings)
        first = next(iter(training.values()))
        lanes = self.system.lanes
        payload_rate = rate_mbps * 4 * lanes / (packet_bytes(lanes) + FRAME_OVERHEAD_BYTES)
        goodput_of_link = measured.algbw_mbps / payload_rate
        return RunReport(
            fabric=self.system.fabric.name,
            network=self.system.mode,
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
            )
            and (fast is None or fast.identical),
            wrong_elements=trained.wrong_elements
            + measured.wrong_elements
            + (fast.netfold.wrong_elements if fast else 0),
            allreduce_ms_p50=trained.ms_p50,
            allreduce_ms_p99=trained.ms_p99,
            bandwidth_bytes=self.options.bandwidth_bytes,
            algbw_mbps=measured.algbw_mbps,
            goodput_mbps_per_worker=measured.algbw_mbps,
            goodput_of_link=goodput_of_link,
            packets_aggregated=sum(counts.get(v, 0) for counts in verdicts.values() for v in AGGREGATED),
            retransmits=trained.retransmits + measured.retransmits,
            probes=trained.probes + measured.probes,
            ring_algbw_mbps=None if bandwidth_ring is None else bandwidth_ring.algbw_mbps,
            training=trained,
            training_ring=training_ring,
            bandwidth=measured,
            bandwidth_ring=bandwidth_ring,
            seconds=seconds,
            switches=verdicts,
            frames_lost=lost,
            restarted=self.options.faults.restart,
            warning=load.warning(target, goodput_of_link),
            fast=fast,
        )


@contextmanager
def _naming_the_timeout() -> Iterator[None]:
    """Adds the option to the error of a step that takes too long."""
    try:
        yield
    except RunTimeoutError as error:
        raise RunTimeoutError(f"{error}; --timeout SECONDS allows more") from error


def _slowest(results: Results) -> AllReduce:
    """An all-reduce takes as long as its slowest worker."""
    rows = list(results.values())
    return AllReduce(
        ms_p50=max(r["allreduce_ms_p50"] for r in rows),
        ms_p99=max(r["allreduce_ms_p99"] for r in rows),
        algbw_mbps=min(r["algbw_mbps"] for r in rows),
        wrong_elements=sum(r["wrong_elements"] for r in rows),
        checked_elements=sum(r["checked_elements"] for r in rows),
        retransmits=sum(r["retransmits"] for r in rows),
        probes=sum(r["probes"] for r in rows),
        busy=sum(r["busy"] for r in rows) / len(rows),
    )
