# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes Prometheus metrics from the state of the controller at each scrape."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from netfold.controller.jobs.program_records import NO_ROLLOUT
from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.withdrawal import Intent
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.member_status import TreeProgress
from netfold.controller.service.listening import ListenError, reason
from netfold.controller.subsystems import Planning, Switches
from netfold.controller.switches.failed_elements import NO_ELEMENTS

log = logging.getLogger(__name__)

CONNECTIONS_MAX = 16
REQUEST_S = 10.0
"""Seconds for a whole scrape."""
TURN_S = 10.0
"""Seconds after which a loop that has not turned is in trouble; a busy machine's turns take less."""


@contextmanager
def metrics_server(
    collector: ControllerCollector, port: int, idle_s: Callable[[], float], descriptor: int | None = None
) -> Iterator[None]:
    """Serve /metrics and /healthz at http://127.0.0.1:PORT; port 0 serves nothing. `idle_s`: seconds since the
    controller's event loop has turned. `descriptor`: of a socket that listens there. Raises ListenError."""
    if not port:
        yield
        return
    listener = listen_for_scrapes(port) if descriptor is None else socket.socket(fileno=os.dup(descriptor))
    registry = CollectorRegistry(auto_describe=True)
    registry.register(collector)
    with _Server(listener, _with_health(make_wsgi_app(registry), idle_s)) as server:
        thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def _with_health(application: WSGIApplication, idle_s: Callable[[], float]) -> WSGIApplication:
    """Answer /healthz: 200 while this process leads and its loop turns, else 503. A standby serves nothing here."""

    def route(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") != "/healthz":
            return application(environ, start_response)
        idle = idle_s()
        is_well = idle < TURN_S
        status = "200 OK" if is_well else "503 Service Unavailable"
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [b"leads\n" if is_well else f"the event loop has stood still for {idle:.0f} s\n".encode()]

    return route


def listen_for_scrapes(port: int) -> socket.socket:
    """A socket that listens at 127.0.0.1. Raises ListenError."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        why = reason(error, port, "--metrics-port")
        raise ListenError(f"metrics cannot be served at 127.0.0.1:{port}: {why}") from error


class _Server(ThreadingWSGIServer):
    """Serves at a socket that listens. Any process of the machine may connect: a connection has REQUEST_S, and at
    CONNECTIONS_MAX the next one replaces the oldest."""

    def __init__(self, listener: socket.socket, application: WSGIApplication) -> None:
        super().__init__(listener.getsockname(), _Handler, bind_and_activate=False)
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float] = {}
        self.socket.close()
        self.socket = listener
        self.server_name, self.server_port = listener.getsockname()
        self.setup_environ()
        self.set_app(application)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= CONNECTIONS_MAX:
                self._end(next(iter(self._open)))
            self._open[request] = time.monotonic() + REQUEST_S
        threading.Thread(
            target=self.process_request_thread, args=(request, client_address), name="scrape", daemon=True
        ).start()

    def service_actions(self) -> None:
        """Close connections that are over time; the server calls this several times a second."""
        now = time.monotonic()
        with self._lock:
            for request in [r for r, deadline in self._open.items() if deadline < now]:
                self._end(request)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a scrape by %s failed", client_address, exc_info=True)

    def _end(self, request: socket.socket) -> None:
        """End a connection; its thread notices and closes it."""
        del self._open[request]
        with suppress(OSError):  # the other end has closed it
            request.shutdown(socket.SHUT_RDWR)


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Write nothing, because a scrape is no event for the log."""


class ControllerCollector(Collector):
    """Collects metrics in the thread of the web server, so it copies a dictionary before it iterates over it."""

    def __init__(self, state: ControllerState, switches: Switches, planning: Planning) -> None:
        self._state = state
        self._switches = switches
        self._rollouts = planning.rollouts

    def collect(self) -> Iterator[Metric]:
        yield self._packets()
        yield from self._switch_metrics()
        yield self._rollout()
        yield from self._jobs()
        yield from self._members()
        yield from self._links()
        yield from self._tenants()

    def _packets(self) -> Metric:
        packets = CounterMetricFamily(
            "netfold_packets",
            "Packets by verdict (docs/reference/protocol.md, section 4).",
            labels=["switch", "job", "verdict"],
        )
        for (switch, job, verdict), count in dict(self._switches.counters.totals).items():
            packets.add_metric([switch, job, verdict.label], count)
        return packets

    def _switch_metrics(self) -> Iterator[Metric]:
        fleet, pools = self._switches.fleet, self._state.registry.occupancy()
        rows = [(name, session.health, pools[name]) for name, session in fleet.sessions.items()]
        yield _gauge(
            "netfold_switch_ready", "1 if the switch is connected.", {n: h.ready for n, h, _ in rows}
        )
        yield _gauge("netfold_slots", "Slots of the switch.", {n: p.slots for n, _, p in rows})
        yield _gauge("netfold_slots_in_use", "Slots that jobs hold.", {n: p.in_use for n, _, p in rows})
        reconcile = {n: h.converge_s for n, h, _ in rows}
        yield _gauge("netfold_reconcile_seconds", "Duration of the last write of differences.", reconcile)
        repaired = CounterMetricFamily(
            "netfold_repaired_entries", "Entries repaired after drift.", labels=["switch"]
        )
        audits = CounterMetricFamily("netfold_audits", "Audits of the switch's entries.", labels=["switch"])
        for name, health, _ in rows:
            repaired.add_metric([name], health.repaired)
            audits.add_metric([name], health.audits)
        yield repaired
        yield audits
        down = GaugeMetricFamily("netfold_links_down", "Links between switches that are down.")
        down.add_metric([], len(self._state.failures.failed.links))
        yield down
        miscabled = GaugeMetricFamily(
            "netfold_miscabled_ports", "Ports whose cable leads elsewhere than the fabric's file says."
        )
        miscabled.add_metric([], len(self._state.failures.miscablings))
        yield miscabled
        withdrawn = GaugeMetricFamily(
            "netfold_withdrawn_elements",
            "Switches, links and hosts that operators have withdrawn (docs/how-to/maintenance.md).",
            labels=["intent"],
        )
        by_intent = self._state.failures.by_intent
        for intent in Intent:
            withdrawn.add_metric([intent], len(by_intent.get(intent, NO_ELEMENTS).names))
        yield withdrawn

    def _rollout(self) -> Metric:
        gauge = GaugeMetricFamily(
            "netfold_rollout_switches",
            "Switches of the last rollout of a program: done, under way, failed, and waiting, also if it has ended.",
            labels=["progress"],
        )
        counts = (self._rollouts.record or NO_ROLLOUT).progress
        for progress, count in counts.items():
            gauge.add_metric([progress], count)
        return gauge

    def _jobs(self) -> Iterator[Metric]:
        jobs = [j for j in self._state.registry.all() if not j.state.is_terminal]
        state = GaugeMetricFamily(
            "netfold_job_state", "1 for the state the job is in.", labels=["job", "state"]
        )
        for job in jobs:
            for possible in JobState:
                state.add_metric([job.name, possible.value], job.state is possible)
        yield state
        yield _gauge("netfold_job_epoch", "Epoch of the job.", {j.name: j.epoch for j in jobs}, "job")
        packet_model, fabric = self._state.packet_model, self._state.fabric
        planned = {
            j.name: packet_model.bits_per_second(fabric, j.placement.plan.rate) for j in jobs if j.placement
        }
        yield _gauge("netfold_job_rate_bits_per_second", "Reserved rate of each worker.", planned, "job")

    def _members(self) -> Iterator[Metric]:
        live = [j.name for j in self._state.registry.all() if not j.state.is_terminal]
        reports = {(job, h): r for job in live for h, r in self._state.member_status.of(job).items()}
        chunks = CounterMetricFamily(
            "netfold_chunks", "Chunks whose result the member received.", labels=["job", "host"]
        )
        retransmits = CounterMetricFamily(
            "netfold_retransmissions", "Retransmitted chunks.", labels=["job", "host"]
        )
        reencoded_chunks = CounterMetricFamily(
            "netfold_reencoded_chunks",
            "Chunks sent twice, at another scale or for special values.",
            labels=["job", "host"],
        )
        socket_errors = CounterMetricFamily(
            "netfold_socket_errors",
            "Socket errors that the member survived: ICMP errors, packets that its kernel dropped.",
            labels=["job", "host"],
        )
        goodput = GaugeMetricFamily(
            "netfold_goodput_bits_per_second",
            "Goodput of the member's all-reduce calls.",
            labels=["job", "host"],
        )
        for holder, report in reports.items():
            chunks.add_metric(holder, report.chunks)
            retransmits.add_metric(holder, report.retransmits)
            reencoded_chunks.add_metric(holder, report.reencoded_chunks)
            socket_errors.add_metric(holder, report.socket_errors)
            goodput.add_metric(holder, report.goodput_mbps * 1e6)
        yield from (chunks, retransmits, reencoded_chunks, socket_errors, goodput)
        yield from _trees({holder: r.trees for holder, r in reports.items()})

    def _links(self) -> Iterator[Metric]:
        unit = self._state.packet_model.bits_per_second(self._state.fabric, 1.0)
        labels = ["sender", "receiver"]
        cross_traffic = GaugeMetricFamily(
            "netfold_link_cross_traffic_bits_per_second",
            "Load of one direction of a link that is no job's.",
            labels=labels,
        )
        jobs = GaugeMetricFamily(
            "netfold_link_jobs_bits_per_second",
            "Load of one direction of a link by packets of jobs.",
            labels=labels,
        )
        rate = GaugeMetricFamily(
            "netfold_link_rate_bits_per_second", "Rate of one direction of a link.", labels=labels
        )
        for link, load in self._switches.loads.all().items():
            rate.add_metric(link, self._state.fabric.link(*link).rate * unit)
            cross_traffic.add_metric(link, load.cross_traffic * unit)
            jobs.add_metric(link, load.jobs * unit)
        yield from (cross_traffic, jobs, rate)

    def _tenants(self) -> Iterator[Metric]:
        registry = self._state.registry
        slots = CounterMetricFamily(
            "netfold_tenant_slot_seconds",
            "Slots of switches that its jobs held, over time.",
            labels=["tenant"],
        )
        bits = CounterMetricFamily(
            "netfold_tenant_promised_bits", "Rates promised to its workers, over time.", labels=["tenant"]
        )
        share = GaugeMetricFamily(
            "netfold_tenant_recent_share_ratio",
            "Part of the fabric that its jobs have held lately, of slots or of rates, whichever is more.",
            labels=["tenant"],
        )
        for tenant, row in registry.usage().items():
            slots.add_metric([tenant], row.slot_seconds)
            bits.add_metric([tenant], row.promised_bits)
            share.add_metric([tenant], row.recent_share(registry.ledger.whole))
        yield from (slots, bits, share)


def _trees(reports: Mapping[tuple[str, str], tuple[TreeProgress, ...]]) -> Iterator[Metric]:
    """Metrics of trees. They are gauges, because they restart at 0 in each epoch."""
    labels = ["job", "host", "tree"]
    marks = GaugeMetricFamily(
        "netfold_tree_ecn_marked_ratio", "Fraction of results with an ECN mark.", labels=labels
    )
    losses = GaugeMetricFamily(
        "netfold_tree_retransmission_ratio", "Retransmitted packets over results.", labels=labels
    )
    trips = GaugeMetricFamily("netfold_tree_srtt_seconds", "Smoothed RTT.", labels=labels)
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
