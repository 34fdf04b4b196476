# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The same in a running network: a job and TCP flows over a link between two switches, or out of one worker."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import yaml

from netfold.measure import tcp_sink
from netfold.measure.fairness import hosts
from netfold.measure.fairness.shares import SETTLING, Shares
from netfold.measure.fairness.short_flows import LOAD, SIZE, Short, summary
from netfold.testbed.counters import read_link_bytes
from netfold.testbed.deployment import Deployment, Setup
from netfold.testbed.errors import RunError

MBPS, EDGE_MBPS, FLOWS, EVERY_S = 50, 200, 4, 0.25
WORLD = f"Mininet, {MBPS} Mbit/s"
ENDLESS = 1_000_000
BYTES = 1 << 20
BEGUN_S = 30.0


@dataclass(frozen=True)
class Case:
    """`flows` of a control against a job; `uplink`: they leave from the host of worker w1, whose link is shared."""

    control: str
    ecn: bool
    flows: int
    uplink: bool = False

    @property
    def against(self) -> str:
        name = self.control + ("-ecn" if self.ecn else "")
        return name + (" uplink" if self.uplink else "")


CASES = (
    *(Case(control, ecn, n) for control in ("cubic", "reno") for ecn in (False, True) for n in (1, 2, 4)),
    Case("cubic", False, 1, uplink=True),
    Case("cubic", True, 1, uplink=True),
)
QUICK = (
    Case("cubic", False, 1),
    Case("cubic", True, 1),
    Case("reno", False, 2),
    Case("cubic", False, 1, uplink=True),
)


def spec() -> str:
    """The shared link as a fabric's file; of `uplink` cases w1's own link is as slow."""
    own = {f"w{i + 1}": {"at": "s1" if i % 2 == 0 else "s2", "rate": EDGE_MBPS} for i in range(4)}
    own["w1"]["rate"] = MBPS
    for i in range(FLOWS):
        own[f"t{i + 1}"] = {"at": "s1", "rate": EDGE_MBPS}
        own[f"r{i + 1}"] = {"at": "s2", "rate": EDGE_MBPS}
    return yaml.safe_dump(
        {
            "name": "shared-link",
            "unit": "Mbit/s",
            "defaults": {"link": {"queue": 64}, "switch": {"capacity": 10 * EDGE_MBPS}},
            "switches": {s: {"role": "leaf"} for s in ("s1", "s2")},
            "hosts": own,
            "links": [{"between": ["s1", "s2"], "rate": MBPS}],
        }
    )


class Testbed:
    """One network for all cases; a context manager."""

    def __init__(self, seconds: float, tell: Callable[[str], None]) -> None:
        self._seconds, self._tell = seconds, tell
        self._open = ExitStack()

    def __enter__(self) -> Testbed:
        try:
            folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="netfold-")))
            file = folder / "shared-link.yaml"
            file.write_text(spec())
            self._system = self._open.enter_context(Deployment(Setup(str(file)), self._tell))
            for i in range(FLOWS):
                self._open.enter_context(tcp_sink.listening(self._system.net, f"r{i + 1}", hosts.PORT))
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def job(self, name: str, congestion: str, workers: Sequence[str]) -> None:
        """An endless one; returns when its first array is through. Raises RunError."""
        flags = ["--workload", "sizes", "--bytes", BYTES, "--iterations", ENDLESS, "--congestion", congestion]
        keys = {"scheme": "panama", "elements": BYTES // 4, "options": {"trees": 1}}
        link = workers[0], self._system.fabric.attachment(workers[0])
        before, deadline = read_link_bytes(self._system.net)[link], time.monotonic() + BEGUN_S
        self._system.start_job(name, flags, workers, **keys)
        while read_link_bytes(self._system.net)[link] - before < BYTES:
            self._system.check()
            if time.monotonic() > deadline:
                raise RunError(f"job {name} sent less than an array in {BEGUN_S:.0f} s")
            time.sleep(EVERY_S)  # counters tell nobody that they grow

    def shares(self, case: Case) -> Shares:
        """Jobs are running already."""
        net, seconds = self._system.net, self._seconds
        self._tell(f"{case.flows} {case.against}")
        if case.control not in hosts.available():
            raise RunError(f"this kernel has no TCP {case.control}")
        hosts.allow_marks(net, case.ecn)
        senders = ["w1"] * case.flows if case.uplink else [f"t{i + 1}" for i in range(case.flows)]
        with ExitStack() as flows:
            for i, sender in enumerate(senders):
                there = net.addressing.hosts[f"r{i + 1}"].ip
                flows.callback(hosts.end, hosts.start(net, sender, "bulk", there, hosts.PORT, case.control))
            came = [("s2", f"r{i + 1}") for i in range(case.flows)]
            times, carried = self._watch([("w1", "s1"), *came], seconds)
        if case.uplink:  # what leaves w1 is the job's and the flow's
            carried = [[row[0] - sum(row[1:]), *row[1:]] for row in carried]
        first = int(SETTLING * len(times))
        span = (times[-1] - times[first]) * MBPS * 1e6 / 8
        shares = tuple((b - a) / span for a, b in zip(carried[first], carried[-1], strict=True))
        series = tuple(
            tuple((b - a) * 8 / (MBPS * 1e6 * (t - s)) for a, b in zip(one, other, strict=True))
            for s, t, one, other in zip(times, times[1:], carried, carried[1:], strict=False)
        )
        return Shares(WORLD, case.against, 1, case.flows, shares, tuple(times[1:]), series)

    def _watch(
        self, links: Sequence[tuple[str, str]], seconds: float
    ) -> tuple[list[float], list[list[float]]]:
        net, began = self._system.net, time.monotonic()
        times, carried = [], []
        while True:
            counted = read_link_bytes(net)
            times.append(time.monotonic() - began)
            carried.append([float(counted[link]) for link in links])
            if times[-1] >= seconds:
                return times, carried
            self._system.check()
            # samples at even times are the experiment
            time.sleep(max(0.0, began + len(times) * EVERY_S - time.monotonic()))

    def short(self, control: str, ecn: bool, beside: str) -> Short:
        """Short flows between t1 and r1, beside what runs."""
        net = self._system.net
        self._tell(f"short flows beside {beside}")
        hosts.allow_marks(net, ecn)
        rate = LOAD * MBPS * 1e6 / 8 / SIZE * 4
        there = net.addressing.hosts["r1"].ip
        process = hosts.start(net, "t1", "short", there, hosts.PORT, control, SIZE, rate, self._seconds)
        output, _ = process.communicate(timeout=self._seconds + 2 * hosts.PATIENCE_S)
        if process.returncode:
            raise RunError("the short TCP flows ended early")
        found = json.loads(output)
        name = control + ("-ecn" if ecn else "")
        return summary(WORLD, name, beside, found["seconds"], found["unfinished"])


def measured(
    seconds: float, cases: Sequence[Case], tell: Callable[[str], None]
) -> tuple[list[Shares], list[Short]]:
    """All cases, and short flows beside nothing, a `panama` job and a fixed window. Raises RunError, NetworkError."""
    shares: list[Shares] = []
    short: list[Short] = []
    kinds = sorted({(c.control, c.ecn) for c in cases if c.control == "cubic"})
    for beside in ("nothing", "panama", "fixed"):
        with Testbed(seconds, tell) as testbed:
            if beside != "nothing":
                testbed.job("one", beside, ("w1", "w2"))
            short += [testbed.short(control, ecn, beside) for control, ecn in kinds]
            if beside == "panama":
                shares += [testbed.shares(c) for c in cases]
    return shares, short
