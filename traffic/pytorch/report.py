# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Why training is not faster: where the time of a step goes, over all ranks, and what binds. Each rank collects its
times, and the report of all ranks is written when the process group ends. NETFOLD_REPORT=1 or TorchOptions(report=...)
requests it."""

from __future__ import annotations

import contextlib
import json
import logging
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, Self

import torch.distributed as dist

from netfold.traffic.pytorch.step_times import CallTime, StepTime, StepTimes
from netfold.traffic.pytorch.tensor_call import NetworkUse

MIN_DELAY_MS, MIN_DELAY_PART = 1.0, 0.02
"""A rank is late if the others wait longer for it: milliseconds, and part of the step."""
COMPUTE_BOUND = 0.1
"""Exposed part of a step below which computing binds."""
LATE_PART = 0.3
"""Part of the exposed time from which a late rank binds."""
PLAN_PART = 0.9
"""Part of the link's rate below which the plan binds."""
LOSS_PART = 0.02
"""Retransmissions for each packet from which loss binds."""
SMALL_CALL_BYTES = 1 << 14
"""Mean size of a collective below which its round trip binds."""

log = logging.getLogger("netfold.torch")

COLLECT_TIMEOUT_S = 5.0
"""Rank 0 waits so long for the other ranks' times: a rank that died has none."""


@dataclass(frozen=True)
class RankTimes:
    """A rank's part of the report. `by_netfold`, `by_gloo`: collectives by name, and why Gloo has them; their times
    there are not in `steps`."""

    rank: int
    steps: tuple[StepTime, ...]
    by_netfold: dict[str, int]
    by_gloo: dict[str, int]
    network: NetworkUse | None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: bytes) -> Self:
        found = json.loads(text)
        network = found["network"]
        return cls(
            found["rank"],
            tuple(StepTime(**step) for step in found["steps"]),
            found["by_netfold"],
            found["by_gloo"],
            None if network is None else NetworkUse(**network),
        )


@dataclass(frozen=True)
class TrainingReport:
    """Medians over steps; times in milliseconds, rates in Mbit/s. `step`: of the slowest rank. `late_rank`: the rank
    whose first collective of a step the others wait for the most often, -1 if none; `late_ms`: how long."""

    job: str
    ranks: int
    missing: tuple[int, ...]
    steps: int
    step_ms: float
    exposed_ms: float
    hidden_ms: float
    calls: float
    nbytes: float
    goodput_mbps: float
    late_rank: int
    late_part: float
    late_ms: float
    by_netfold: dict[str, int]
    by_gloo: dict[str, int]
    network: NetworkUse | None

    @property
    def computing_ms(self) -> float:
        """A step without any communication."""
        return self.step_ms - self.exposed_ms

    @property
    def verdict(self) -> str:
        """Return the bottleneck, in one sentence."""
        if self.by_gloo and not self.by_netfold:
            return "Gloo carries all collectives, which are not measured"
        if not self.steps:
            return "no step was measured: no optimizer of PyTorch ended two steps with collectives between"
        exposed = self.exposed_ms / self.step_ms
        network = self.network
        if exposed < COMPUTE_BOUND:
            return f"computing: {1 - exposed:.0%} of a step; the network could win {exposed:.0%} at most"
        if self.late_rank >= 0 and self.late_ms > LATE_PART * self.exposed_ms:
            return f"rank {self.late_rank} comes {self.late_ms:.0f} ms late ({self.late_part:.0%} of steps)"
        if network is not None and network.retransmits > LOSS_PART * network.packets:
            return f"loss: {network.retransmits / network.packets:.0%} of packets are retransmitted"
        if network is not None and 0 < network.planned_mbps < PLAN_PART * network.link_mbps:
            return (
                f"the plan gives {network.planned_mbps:.0f} of {network.link_mbps:.0f} Mbit/s: other jobs and cross "
                f"traffic have the rest (netfold job explain {self.job})"
            )
        if self.calls and self.nbytes / self.calls < SMALL_CALL_BYTES:
            size = self.nbytes / self.calls / 1024
            return f"round trips: {self.calls:.0f} collectives of {size:.1f} KiB a step; larger buckets have fewer"
        return "the network: fewer bytes a step (numerics half) or a faster link would win"

    def lines(self) -> list[str]:
        if not self.steps:
            return [f"netfold: {self.verdict}", *self._ways()]
        calls = f"{self.nbytes / 1e6:.2f} MB, {self.goodput_mbps:.1f} Mbit/s while in flight"
        lines = [
            f"netfold: {self.steps} steps of {self.ranks} ranks, {self.step_ms:.1f} ms each (median)",
            f"  computing               {self.computing_ms:8.1f} ms   a step without any communication",
            f"  communication, exposed  {self.exposed_ms:8.1f} ms   the program waits",
            f"  communication, hidden   {self.hidden_ms:8.1f} ms   behind computing",
            f"  collectives             {self.calls:8.0f}      {calls}",
        ]
        if self.network is not None:
            lines.append(f"  network                 {_rates(self.network)}")
        if self.late_rank >= 0:
            late = f"rank {self.late_rank} in {self.late_part:.0%} of steps, {self.late_ms:.1f} ms"
            lines.append(f"  last to arrive          {late}")
        lines += self._ways()
        if self.missing:
            lines.append(f"  no times from           ranks {', '.join(map(str, self.missing))}")
        return [*lines, f"  binds                   {self.verdict}"]

    def _ways(self) -> list[str]:
        ways = {"by netfold           ": self.by_netfold, "by Gloo, not measured": self.by_gloo}
        return [f"  {way}   {_counts(names)}" for way, names in ways.items() if names]


def _counts(names: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(names.items()))


def _rates(network: NetworkUse) -> str:
    planned = f"{network.planned_mbps:.0f} Mbit/s planned" if network.planned_mbps else "no rate planned"
    link = f" of the link's {network.link_mbps:.0f}" if network.link_mbps else ""
    return f"{planned}{link}, {network.retransmits} of {network.packets} packets retransmitted"


def summarize(job: str, ranks: int, found: Sequence[RankTimes]) -> TrainingReport:
    """The report of the ranks whose times arrived, in any order."""
    number = min(len(one.steps) for one in found)
    by_step = list(zip(*(one.steps[len(one.steps) - number :] for one in found), strict=True))
    slowest = [max(steps, key=lambda s: s.total) for steps in by_step]
    delays: dict[int, list[float]] = defaultdict(list)
    for steps in by_step:
        last, delay = _last(steps)
        if delay > max(MIN_DELAY_MS, MIN_DELAY_PART * steps[last].total):
            delays[found[last].rank].append(delay)
    late_rank = max(delays, key=lambda rank: len(delays[rank]), default=-1)
    late = delays.get(late_rank, [])
    in_flight = sum(s.in_flight for s in slowest)
    return TrainingReport(
        job=job,
        ranks=ranks,
        missing=tuple(sorted(set(range(ranks)) - {one.rank for one in found})),
        steps=number,
        step_ms=_median([s.total for s in slowest]),
        exposed_ms=_median([statistics.median_high(s.exposed for s in steps) for steps in by_step]),
        hidden_ms=_median([max(0.0, s.in_flight - s.exposed) for s in slowest]),
        calls=_median([s.calls for s in slowest]),
        nbytes=_median([s.nbytes for s in slowest]),
        goodput_mbps=8e-3 * sum(s.nbytes for s in slowest) / in_flight if in_flight else 0.0,
        late_rank=late_rank,
        late_part=len(late) / number if number else 0.0,
        late_ms=_median(late),
        by_netfold=next((one.by_netfold for one in found if one.rank == 0), {}),
        by_gloo=next((one.by_gloo for one in found if one.rank == 0), {}),
        network=next((one.network for one in found if one.network is not None), None),
    )


def _last(steps: Sequence[StepTime]) -> tuple[int, float]:
    """Index of the rank that submitted the step's first collective last, and how many milliseconds the others waited
    for it: its own collective took the least time."""
    last = min(range(len(steps)), key=lambda i: steps[i].first)
    return last, statistics.median_high(s.first for s in steps) - steps[last].first


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0


class Reporter(Protocol):
    """The receiver of a session's reports."""

    def submitted(self, nbytes: int) -> CallTime:
        """A collective begins. Its `done` is to be set when it ends."""

    def waiting(self) -> AbstractContextManager[None]:
        """The program waits for a collective inside."""

    def by_netfold(self, name: str) -> None:
        """netfold carries a collective."""

    def by_gloo(self, name: str) -> None:
        """Gloo carries a collective, or all of a group. `name`: with the reason."""

    def finish(self, network: NetworkUse | None) -> None:
        """The session ends."""


class NoReporter:
    """The program wants no report."""

    def submitted(self, nbytes: int) -> CallTime:
        return CallTime(0.0, nbytes)

    def waiting(self) -> AbstractContextManager[None]:
        return nullcontext()

    def by_netfold(self, name: str) -> None:
        pass

    def by_gloo(self, name: str) -> None:
        pass

    def finish(self, network: NetworkUse | None) -> None:
        pass


class StoreReporter:
    """Exchanges times through torch's store. `store`: with the session's prefix. `destination`: 1 for lines on stderr,
    else the path of a JSON file, at rank 0."""

    def __init__(self, store: Any, rank: int, ranks: int, job: str, destination: str) -> None:
        self._store = store
        self._rank = rank
        self._ranks = ranks
        self._job = job
        self._destination = destination
        self._times = StepTimes()
        self._by_netfold: Counter[str] = Counter()
        self._by_gloo: Counter[str] = Counter()

    def submitted(self, nbytes: int) -> CallTime:
        return self._times.submitted(nbytes)

    def waiting(self) -> AbstractContextManager[None]:
        return self._times.waiting()

    def by_netfold(self, name: str) -> None:
        self._by_netfold[name] += 1

    def by_gloo(self, name: str) -> None:
        self._by_gloo[name] += 1

    def finish(self, network: NetworkUse | None) -> None:
        self._times.close()
        ways = (dict(self._by_netfold), dict(self._by_gloo))
        mine = RankTimes(self._rank, tuple(self._times.steps()), *ways, network)
        try:
            if self._rank:
                self._store.set(f"report{self._rank}", mine.to_json())
            else:
                write(summarize(self._job, self._ranks, [mine, *self._others()]), self._destination)
        except (OSError, RuntimeError) as error:  # torch's errors for a store that has ended
            log.warning("no report: %s", error)

    def _others(self) -> list[RankTimes]:
        found, deadline = [], time.monotonic() + COLLECT_TIMEOUT_S
        for rank in range(1, self._ranks):
            with contextlib.suppress(dist.DistStoreError):
                left = max(0.01, deadline - time.monotonic())
                self._store.wait([f"report{rank}"], timedelta(seconds=left))
                found.append(RankTimes.read(self._store.get(f"report{rank}")))
        return found


def write(report: TrainingReport, destination: str) -> None:
    """Raises OSError."""
    if destination == "1":
        sys.stderr.write("\n".join(report.lines()) + "\n")
    else:
        Path(destination).write_text(
            json.dumps({**asdict(report), "verdict": report.verdict}, indent=2) + "\n"
        )
