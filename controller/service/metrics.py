# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics for Prometheus, made from the controller's state when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from netfold.controller.core import Controller
from netfold.controller.jobs.records import JobState
from netfold.controller.lifecycle.presence import TreeProgress
from netfold.controller.service.server import ListenError


@contextmanager
def metrics_server(controller: Controller, port: int) -> Iterator[None]:
    """Serve http://127.0.0.1:PORT/metrics; port 0 serves nothing. Raises ListenError."""
    if not port:
        yield
        return
    registry = CollectorRegistry(auto_describe=True)
    registry.register(ControllerCollector(controller))
    try:
        server, thread = start_http_server(port, addr="127.0.0.1", registry=registry)
    except OSError as error:
        raise ListenError(f"metrics cannot be served at port {port}: {error}") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class ControllerCollector(Collector):
    """Runs in the web server's thread; it copies each dictionary whole before it walks over it."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def collect(self) -> Iterator[Metric]:
        yield self._packets()
        yield from self._switches()
        yield from self._jobs()
        yield from self._members()
        yield from self._links()

    def _packets(self) -> Metric:
        packets = CounterMetricFamily(
            "netfold_packets",
            "Packets by verdict (docs/protocol.md, section 4).",
            labels=["switch", "job", "verdict"],
        )
        for (switch, job, verdict), count in dict(self._controller.counters.totals).items():
            packets.add_metric([switch, job, verdict.label], count)
        return packets

    def _switches(self) -> Iterator[Metric]:
        fleet, pools = self._controller.fleet, self._controller.book.occupancy()
        rows = [(name, session.health, pools[name]) for name, session in fleet.sessions.items()]
        yield _gauge(
            "netfold_switch_ready", "1 if the switch is connected.", {n: h.ready for n, h, _ in rows}
        )
        yield _gauge("netfold_slots", "Slots of the switch.", {n: p.slots for n, _, p in rows})
        yield _gauge("netfold_slots_in_use", "Slots that jobs hold.", {n: p.in_use for n, _, p in rows})
        reconcile = {n: h.converge_s for n, h, _ in rows}
        yield _gauge("netfold_reconcile_seconds", "Time that the last difference took to write.", reconcile)
        repaired = CounterMetricFamily(
            "netfold_repaired_entries", "Entries that had drifted.", labels=["switch"]
        )
        audits = CounterMetricFamily(
            "netfold_audits", "Times that the switch was read back.", labels=["switch"]
        )
        for name, health, _ in rows:
            repaired.add_metric([name], health.repaired)
            audits.add_metric([name], health.audits)
        yield repaired
        yield audits
        down = GaugeMetricFamily("netfold_links_down", "Links between switches that do not work.")
        down.add_metric([], len(self._controller.broken.links))
        yield down

    def _jobs(self) -> Iterator[Metric]:
        jobs = [j for j in self._controller.book.all() if not j.state.over]
        state = GaugeMetricFamily(
            "netfold_job_state", "1 for the state the job is in.", labels=["job", "state"]
        )
        for job in jobs:
            for possible in JobState:
                state.add_metric([job.name, possible.value], job.state is possible)
        yield state
        yield _gauge("netfold_job_epoch", "Epoch of the job.", {j.name: j.epoch for j in jobs}, "job")
        wire, fabric = self._controller.options.wire, self._controller.fabric
        planned = {j.name: wire.bits_per_second(fabric, j.placement.plan.rate) for j in jobs if j.placement}
        yield _gauge("netfold_job_rate_bits_per_second", "What each worker may send.", planned, "job")

    def _members(self) -> Iterator[Metric]:
        live = [j.name for j in self._controller.book.all() if not j.state.over]
        reports = {(job, h): r for job in live for h, r in self._controller.presence.of(job).items()}
        chunks = CounterMetricFamily(
            "netfold_chunks", "Chunks that a member got results of.", labels=["job", "host"]
        )
        again = CounterMetricFamily("netfold_retransmissions", "Chunks sent again.", labels=["job", "host"])
        overflows = CounterMetricFamily(
            "netfold_overflows", "Results with an overflow.", labels=["job", "host"]
        )
        goodput = GaugeMetricFamily(
            "netfold_goodput_bits_per_second", "Of the member's calls.", labels=["job", "host"]
        )
        for holder, report in reports.items():
            chunks.add_metric(holder, report.chunks)
            again.add_metric(holder, report.retransmits)
            overflows.add_metric(holder, report.overflows)
            goodput.add_metric(holder, report.goodput_mbps * 1e6)
        yield from (chunks, again, overflows, goodput)
        yield from _trees({holder: r.trees for holder, r in reports.items()})

    def _links(self) -> Iterator[Metric]:
        unit = self._controller.options.wire.bits_per_second(self._controller.fabric, 1.0)
        labels = ["sender", "receiver"]
        foreign = GaugeMetricFamily(
            "netfold_link_foreign_bits_per_second", "What is no job's, by direction of a link.", labels=labels
        )
        jobs = GaugeMetricFamily("netfold_link_jobs_bits_per_second", "Packets of jobs.", labels=labels)
        for link, load in self._controller.loads.all().items():
            foreign.add_metric(link, load.foreign * unit)
            jobs.add_metric(link, load.jobs * unit)
        yield from (foreign, jobs)


def _trees(reports: Mapping[tuple[str, str], tuple[TreeProgress, ...]]) -> Iterator[Metric]:
    """Of the present epochs, so they are gauges: they begin again at 0."""
    labels = ["job", "host", "tree"]
    marks = GaugeMetricFamily("netfold_tree_marked_ratio", "Results with a congestion mark.", labels=labels)
    losses = GaugeMetricFamily(
        "netfold_tree_resent_ratio", "Packets sent again, over results.", labels=labels
    )
    trips = GaugeMetricFamily("netfold_tree_round_trip_seconds", "Smoothed.", labels=labels)
    for (job, host), trees in reports.items():
        for tree in trees:
            marks.add_metric([job, host, str(tree.tree)], tree.marks)
            losses.add_metric([job, host, str(tree.tree)], tree.losses)
            trips.add_metric([job, host, str(tree.tree)], tree.rtt_ms / 1e3)
    yield from (marks, losses, trips)


def _gauge(name: str, text: str, values: dict[str, float], label: str = "switch") -> Metric:
    gauge = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        gauge.add_metric([key], value)
    return gauge
