# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Collects a rank's times and writes the report of all ranks when the process group ends. NETFOLD_REPORT=1 or
TorchOptions(report=...) requests it."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import torch.distributed as dist

from netfold.traffic.pytorch.report import RankTimes, TrainingReport, summarize
from netfold.traffic.pytorch.step_times import CallTime, StepTimes
from netfold.traffic.pytorch.tensor_call import NetworkUse

log = logging.getLogger("netfold.torch")

COLLECT_TIMEOUT_S = 5.0
"""Rank 0 waits so long for the other ranks' times: a rank that died has none."""


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
