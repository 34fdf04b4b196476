# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Measures fairness in a running network: a job and TCP flows over a link between two switches, or out of one
worker."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from netfold.evaluation.core.experiment import Notify
from netfold.evaluation.testbed import tcp_sink
from netfold.evaluation.testbed.fairness import hosts
from netfold.evaluation.testbed.fairness.shares import SETTLING, SharesRow
from netfold.evaluation.testbed.fairness.short_flows import LOAD, SIZE, ShortFlowsRow, summarize
from netfold.testbed.errors import RunError
from netfold.testbed.testbed import Testbed
from netfold.topologies.fabric import Fabric, Host, Link, Switch, SwitchRole

MBPS, EDGES, FLOWS, SAMPLE_S = 50.0, 4, 4, 0.25
"""EDGES: how much faster than the shared link the others are."""
ENDLESS = 1_000_000
BYTES = 1 << 20
FIRST_ARRAY_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class TcpCase:
    """`flows` of a congestion control beside a job; `uplink`: they start at worker w1's host and share its link."""

    control: str
    ecn: bool
    flows: int
    uplink: bool = False

    @property
    def against(self) -> str:
        name = self.control + ("-ecn" if self.ecn else "")
        return name + (" uplink" if self.uplink else "")


CASES = (
    *(TcpCase(control, ecn, n) for control in ("cubic", "reno") for ecn in (False, True) for n in (1, 2, 4)),
    TcpCase("cubic", False, 1, uplink=True),
    TcpCase("cubic", True, 1, uplink=True),
)
QUICK = (
    TcpCase("cubic", False, 1),
    TcpCase("cubic", True, 1),
    TcpCase("reno", False, 2),
    TcpCase("cubic", False, 1, uplink=True),
)


def shared_link(mbps: float) -> Fabric:
    """Two switches and their link, which is shared. w1's link has the same rate, for `uplink` cases."""
    edge = EDGES * mbps
    capacity = 10.0 * edge
    switches = tuple(Switch(s, SwitchRole.LEAF, capacity) for s in ("s1", "s2"))
    links = [Link(f"w{i + 1}", f"s{i % 2 + 1}", edge if i else mbps) for i in range(4)]
    for i in range(FLOWS):
        links += [Link(f"t{i + 1}", "s1", edge), Link(f"r{i + 1}", "s2", edge)]
    own = tuple(Host(link.a) for link in links)
    return Fabric("shared-link", own, switches, (*links, Link("s1", "s2", mbps)))


class SharedLinkNetwork:
    """The network of all cases; a context manager."""

    def __init__(self, mbps: float, seconds: float, notify: Notify) -> None:
        self._mbps, self._seconds, self._notify = mbps, seconds, notify
        self._link = f"Mininet, {mbps:g} Mbit/s"
        self._open = ExitStack()

    def __enter__(self) -> SharedLinkNetwork:
        try:
            self._system = self._open.enter_context(Testbed(shared_link(self._mbps), on_step=self._notify))
            for i in range(FLOWS):
                self._open.enter_context(tcp_sink.listening(self._system.net, f"r{i + 1}", hosts.PORT))
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def job(self, name: str, congestion: str, workers: Sequence[str]) -> None:
        """Starts an endless job; returns when its first array is sent. Raises RunError."""
        flags = ["--workload", "sizes", "--sizes", BYTES, "--iterations", ENDLESS, "--congestion", congestion]
        keys = {"scheme": "panama", "elements": BYTES // 4, "options": {"trees": 1}}
        link = workers[0], self._system.fabric.attachment(workers[0])
        before, deadline = self._system.net.link_bytes()[link], time.monotonic() + FIRST_ARRAY_TIMEOUT_S
        self._system.submit(name, flags, workers, **keys)
        while self._system.net.link_bytes()[link] - before < BYTES:
            self._system.check()
            if time.monotonic() > deadline:
                raise RunError(f"job {name} sent less than an array in {FIRST_ARRAY_TIMEOUT_S:.0f} s")
            time.sleep(SAMPLE_S)  # counters have no events

    def shares(self, case: TcpCase) -> SharesRow:
        """Beside the running jobs."""
        net, seconds = self._system.net, self._seconds
        self._notify(f"{case.flows} {case.against}")
        if case.control not in hosts.available():
            raise RunError(f"this kernel has no TCP {case.control}")
        hosts.set_ecn(net, case.ecn)
        senders = ["w1"] * case.flows if case.uplink else [f"t{i + 1}" for i in range(case.flows)]
        with ExitStack() as flows:
            for i, sender in enumerate(senders):
                there = net.addressing.hosts[f"r{i + 1}"].ip
                flows.callback(hosts.end, hosts.start(net, sender, "bulk", there, hosts.PORT, case.control))
            received = [("s2", f"r{i + 1}") for i in range(case.flows)]
            times, carried = self._watch([("w1", "s1"), *received], seconds)
        if case.uplink:  # w1 sends both the job's and the flow's bytes
            carried = [[row[0] - sum(row[1:]), *row[1:]] for row in carried]
        first = int(SETTLING * len(times))
        span = (times[-1] - times[first]) * self._mbps * 1e6 / 8
        shares = tuple((b - a) / span for a, b in zip(carried[first], carried[-1], strict=True))
        series = tuple(
            tuple((b - a) * 8 / (self._mbps * 1e6 * (t - s)) for a, b in zip(one, other, strict=True))
            for s, t, one, other in zip(times, times[1:], carried, carried[1:], strict=False)
        )
        return SharesRow(self._link, case.against, 1, case.flows, shares, tuple(times[1:]), series)

    def _watch(
        self, links: Sequence[tuple[str, str]], seconds: float
    ) -> tuple[list[float], list[list[float]]]:
        net, began = self._system.net, time.monotonic()
        times, carried = [], []
        while True:
            counted = net.link_bytes()
            times.append(time.monotonic() - began)
            carried.append([float(counted[link]) for link in links])
            if times[-1] >= seconds:
                return times, carried
            self._system.check()
            # samples at even times are the experiment
            time.sleep(max(0.0, began + len(times) * SAMPLE_S - time.monotonic()))

    def short_flows(self, control: str, ecn: bool, beside: str) -> ShortFlowsRow:
        """Short flows between t1 and r1, beside the running jobs."""
        net = self._system.net
        self._notify(f"short flows beside {beside}")
        hosts.set_ecn(net, ecn)
        rate = LOAD * self._mbps * 1e6 / 8 / SIZE * 4
        there = net.addressing.hosts["r1"].ip
        process = hosts.start(net, "t1", "short", there, hosts.PORT, control, SIZE, rate, self._seconds)
        output, _ = process.communicate(timeout=self._seconds + 2 * hosts.FLOW_TIMEOUT_S)
        if process.returncode:
            raise RunError("the short TCP flows ended early")
        found = json.loads(output)
        name = control + ("-ecn" if ecn else "")
        return summarize(self._link, name, beside, found["seconds"], found["unfinished"])


def measured(
    mbps: float, seconds: float, cases: Sequence[TcpCase], notify: Notify
) -> Iterator[SharesRow | ShortFlowsRow]:
    """Short flows beside nothing, a `panama` job and a job with a fixed window; then all cases beside the `panama` job.
    Raises RunError, NetworkError."""
    kinds = sorted({(c.control, c.ecn) for c in cases if c.control == "cubic"})
    for beside in ("nothing", "panama", "fixed"):
        with SharedLinkNetwork(mbps, seconds, notify) as network:
            if beside != "nothing":
                network.job("one", beside, ("w1", "w2"))
            for control, ecn in kinds:
                yield network.short_flows(control, ecn, beside)
            if beside == "panama":
                for case in cases:
                    yield network.shares(case)
