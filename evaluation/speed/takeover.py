# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Times without a change after faults of a controller and of etcd, and what a store in etcd costs, beside SQLite.

python -m netfold.evaluation.speed.takeover [--rounds 8] [--parts faults,changes,jobs]
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from netfold.controller.jobs.engine import NotLeaderError, StoreError
from netfold.controller.service.daemon import GC_THRESHOLDS
from netfold.controller.service.leadership import STEP_DOWN_S
from netfold.evaluation.core.command import Words, expect, run_command, words
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.evaluation.speed.controller_processes import STEADY_S, Controllers, Relay
from netfold.evaluation.speed.etcd_cluster import EtcdCluster, until_it_answers
from netfold.evaluation.speed.store_times import (
    CHANGES,
    FABRIC,
    ManyJobs,
    change_times,
    fill,
    join_time,
    lost_spine_time,
    many_jobs,
    open_time,
)
from netfold.testbed.errors import RunError

MEMBERS = 3
OUTAGE_S = 8.0
"""Time without a majority: longer than a lease and the time after which all controllers stand by."""
STORES = SQLITE, ETCD = "SQLite", "etcd"
PARTS = ("faults", "changes", "jobs")
MANY_ROUNDS, MAX_TRIES = 3, 3
"""Rounds of what takes long, at most."""
WORKERS_JOIN, JOIN_RATIO = "1,024 workers join", 1.3
OPENED, STARTED, TAKEN_OVER = "the store is read", "a controller starts", "leader: kill -9"
SPINE_LOST = "a spine below all jobs lost its registers"
JOB_GOALS_S = {OPENED: 0.0, STARTED: 5.0, TAKEN_OVER: 5.0, SPINE_LOST: 0.0}


class TakeoverFault(StrEnum):
    LEADER_KILLED = "leader: kill -9"
    LEADER_STOPPED = "leader: SIGSTOP"
    LEADER_CUT = "leader: cut from etcd"
    STEP_DOWN = "step-down"
    FOLLOWER_KILLED = "a follower of etcd lost"
    ETCD_LEADER_KILLED = "etcd's leader lost"
    ETCD_LEADER_STOPPED = "etcd's leader stopped"
    BOTH_KILLED = "both leaders lost"
    NO_MAJORITY = "majority lost, from its return on"


GOALS_S = {
    TakeoverFault.LEADER_KILLED: 3.0,
    TakeoverFault.LEADER_STOPPED: 3.0,
    TakeoverFault.LEADER_CUT: 3.0,
    TakeoverFault.STEP_DOWN: 1.0,
    TakeoverFault.FOLLOWER_KILLED: 0.2,
    TakeoverFault.ETCD_LEADER_KILLED: 4.0,
    TakeoverFault.ETCD_LEADER_STOPPED: 4.0,
    TakeoverFault.BOTH_KILLED: 10.0,
    TakeoverFault.NO_MAJORITY: 5.0,
}
OF_SQLITE = (TakeoverFault.LEADER_KILLED, TakeoverFault.STEP_DOWN)
"""A stopped leader keeps its lock: systemd ends it, by the unit's WatchdogSec."""


@dataclass(frozen=True)
class TakeoverRow(Row):
    """`what`: a fault, whose time is the longest one without an acknowledged change, or a change. `goal_s`: 0 without
    one. `load`: the machine's load average at the end."""

    part: str
    what: str
    store: str
    times_s: tuple[float, ...]
    goal_s: float
    load: float

    @property
    def p50_s(self) -> float:
        return float(np.percentile(self.times_s, 50))

    @property
    def p99_s(self) -> float:
        return float(np.percentile(self.times_s, 99))


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.{0 if seconds >= 0.1 else 1}f}"


COLUMNS = (
    Column[TakeoverRow]("what", lambda r: r.what, is_text=True),
    Column[TakeoverRow]("store", lambda r: r.store, is_text=True),
    Column[TakeoverRow]("n", lambda r: len(r.times_s), "d"),
    Column[TakeoverRow]("p50 ms", lambda r: _ms(r.p50_s)),
    Column[TakeoverRow]("p99 ms", lambda r: _ms(r.p99_s)),
    Column[TakeoverRow]("goal ms", lambda r: 1e3 * r.goal_s or None, ",.0f"),
    Column[TakeoverRow]("load", lambda r: r.load, ".1f"),
)


@dataclass(frozen=True)
class Takeover(Experiment[TakeoverRow]):
    """Times without a change after faults of a controller and of etcd, and of changes to a store, beside SQLite.

    Three controllers of a store in etcd and two of a file run on this machine, with a caller of each that changes
    something fifty times a second. etcd is reached by relays, which cut a controller from it. The store is on disk."""

    name = "bench-takeover"
    rounds: Annotated[int, typer.Option(min=1, help="Times that each fault happens.")] = 8
    parts: Annotated[Words, words(f"Some of {', '.join(PARTS)}.")] = Words(PARTS)
    faults: Annotated[Words, words("Faults, by their names in lower case.")] = Words(
        f.name.lower() for f in TakeoverFault
    )
    jobs: Annotated[int, typer.Option(min=1, help="Jobs of 8 workers in the store of many jobs.")] = 1000
    large: Annotated[int, typer.Option(min=1, help="Jobs of 1,024 workers in it.")] = 10

    def __post_init__(self) -> None:
        expect("--parts", self.parts, PARTS)
        expect("--faults", self.faults, tuple(f.name.lower() for f in TakeoverFault))

    def rows(self, notify: Notify) -> Iterator[TakeoverRow]:
        if shutil.which("etcd") is None:
            raise RunError("etcd is not on PATH: apt-get install etcd-server")
        gc.set_threshold(*GC_THRESHOLDS)
        try:
            yield from self._rows(notify)
        except (StoreError, TimeoutError) as error:
            raise RunError(f"the machine is too busy for a store: {error}") from error

    def _rows(self, notify: Notify) -> Iterator[TakeoverRow]:
        if "faults" in self.parts:
            for store in STORES:
                yield from self._fault_rows(store, notify)
        if "changes" in self.parts:
            yield from self._change_rows(notify)
        if "jobs" in self.parts:
            yield from self._job_rows(notify)

    # ---- faults ----------------------------------------------------------------------------------

    def _fault_rows(self, store: str, notify: Notify) -> Iterator[TakeoverRow]:
        faults = [TakeoverFault[name.upper()] for name in self.faults]
        if store == SQLITE:
            faults = [fault for fault in faults if fault in OF_SQLITE]
        with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner, ExitStack() as stack:
            trial = Trial(Path(folder), store)
            stack.callback(trial.close)
            stack.callback(lambda: runner.run(trial.stop()))
            runner.run(trial.start())
            for fault in faults:
                notify(f"{store}: {fault}")
                times = [runner.run(trial.time_of(fault)) for _ in range(self.rounds)]
                yield _row("faults", fault, store, times, GOALS_S[fault] if store == ETCD else 0.0)

    # ---- changes ---------------------------------------------------------------------------------

    def _change_rows(self, notify: Notify) -> Iterator[TakeoverRow]:
        with stores() as state_of:
            for what, (change, count) in CHANGES.items():
                for store in STORES:
                    notify(f"{store}: {what}")
                    times = change_times(state_of(store), change, min(count, 25 * self.rounds))
                    yield _row("changes", what, store, times)
            made = many_jobs(0, 1)
            found: dict[str, list[float]] = {store: [] for store in STORES}
            notify(WORKERS_JOIN)
            for store in STORES * min(self.rounds, MANY_ROUNDS):  # in turn: their ratio counts
                state = state_of(store)
                fill(state, made)
                found[store].append(join_time(state, made))
            yield _row("changes", WORKERS_JOIN, SQLITE, found[SQLITE])
            yield _row(
                "changes", WORKERS_JOIN, ETCD, found[ETCD], JOIN_RATIO * float(np.median(found[SQLITE]))
            )

    # ---- many jobs -------------------------------------------------------------------------------

    def _job_rows(self, notify: Notify) -> Iterator[TakeoverRow]:
        made = many_jobs(self.jobs, self.large)
        for store in STORES:
            with stores() as state_of:
                found: dict[str, list[float]] = {what: [] for what in JOB_GOALS_S}
                for number in range(min(self.rounds, MANY_ROUNDS)):
                    notify(f"{store}: many jobs, round {number + 1}")
                    state = state_of(store)
                    fill(state, made)
                    found[OPENED].append(open_time(state, made))
                    found[SPINE_LOST].append(self._lost_spine_time(state_of, store, made))
                    for what, seconds in zip(
                        (STARTED, TAKEN_OVER), asyncio.run(lead_times(state)), strict=True
                    ):
                        found[what].append(seconds)
            for what, times in found.items():
                yield _row("jobs", what, store, times, JOB_GOALS_S[what])

    def _lost_spine_time(self, state_of: Callable[[str], str], store: str, made: ManyJobs) -> float:
        """On a machine with other work a process may lose its lease meanwhile: it is measured again."""
        tries = itertools.count(1)
        while True:
            state = state_of(store)
            fill(state, made)
            try:
                return lost_spine_time(state, made)
            except NotLeaderError:
                if next(tries) == MAX_TRIES:
                    raise

    def tables(self, rows: Sequence[TakeoverRow]) -> Iterable[Table]:
        titles = {
            "faults": "Longest time without a change around a fault",
            "changes": "Time of a change",
            "jobs": f"{self.jobs:,} jobs of 8 workers and {self.large} of 1,024",
        }
        for part, title in titles.items():
            if own := [row for row in rows if row.part == part]:
                yield table(title, COLUMNS, own)


def _row(part: str, what: str, store: str, times: Sequence[float], goal_s: float = 0.0) -> TakeoverRow:
    return TakeoverRow(part, str(what), store, tuple(times), goal_s, os.getloadavg()[0])


@contextmanager
def stores() -> Iterator[Callable[[str], str]]:
    """A function that names a new store of a kind; those of etcd have three members."""
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        folder = Path(text)
        cluster = EtcdCluster(folder, folder, MEMBERS)
        stack.callback(cluster.close)
        until_it_answers(cluster.address("none"), folder / "m0.log")
        names = (f"store{number}" for number in itertools.count())

        def state_of(store: str) -> str:
            name = next(names)
            return cluster.address(name) if store == ETCD else str(folder / f"{name}.db")

        yield state_of


async def lead_times(state: str) -> tuple[float, float]:
    """Seconds from the start of a controller to its first change; and from the end of one that leads to the first
    change of its standby. The switches are away, for less time than jobs wait for them."""
    with tempfile.TemporaryDirectory() as folder:
        controllers = Controllers(Path(folder), [state] * 2, FABRIC)
        since = time.monotonic()
        async with controllers.calling():
            started = await controllers.first_change(since)
            await controllers.until_whole()
            since = time.monotonic()
            controllers.kill(controllers.primary)
            return started, await controllers.first_change(since)


class Trial:
    """Controllers with one store, and what happens to them. Each fault begins and ends with controllers that are
    whole."""

    def __init__(self, folder: Path, store: str) -> None:
        self._folder = folder
        self._cluster = EtcdCluster(folder, folder, MEMBERS) if store == ETCD else None
        self._relays = [Relay() for _ in range(MEMBERS)]
        self._controllers: Controllers
        self._calling = AsyncExitStack()

    @property
    def _members(self) -> int:
        return MEMBERS if self._cluster else 0

    @property
    def _etcd(self) -> EtcdCluster:
        assert self._cluster is not None
        return self._cluster

    async def start(self) -> None:
        states = [str(self._folder / "store.db")] * 2
        if self._cluster is not None:
            until_it_answers(self._cluster.address("none"), self._folder / "m0.log")
            states = [await self._relayed(n) for n in range(MEMBERS)]
        self._controllers = Controllers(self._folder, states)
        await self._calling.enter_async_context(self._controllers.calling())

    async def _relayed(self, number: int) -> str:
        """The address of the store for a controller, whose own member comes first."""
        ports = [await self._relays[number].listen(client) for client, _ in self._etcd.ports]
        members = ",".join(f"127.0.0.1:{port}" for port in ports[number:] + ports[:number])
        return f"etcd://{members}/takeover"

    async def stop(self) -> None:
        await self._calling.aclose()

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    async def time_of(self, fault: TakeoverFault) -> float:
        """The longest time without a change after a fault; without a majority of etcd, after its return."""
        await self._controllers.until_whole(self._members, STEADY_S)
        await asyncio.sleep(random.random())  # a lease is renewed three times a second
        led = self._controllers.primary
        etcd_led = await asyncio.to_thread(self._etcd.leader) if self._cluster else 0
        since = time.monotonic()
        mend = await self._cause(fault, led, etcd_led)
        if fault is TakeoverFault.NO_MAJORITY:
            await asyncio.sleep(OUTAGE_S)
            since = time.monotonic()
            mend()
        gap = await self._controllers.gap_after(since)
        if fault is not TakeoverFault.NO_MAJORITY:
            mend()
        if fault is TakeoverFault.STEP_DOWN:
            await asyncio.sleep(STEP_DOWN_S)  # in which it does not lead again
        return gap

    async def _cause(self, fault: TakeoverFault, led: int, etcd_led: int) -> Callable[[], None]:
        """Cause a fault of the controller and the member of etcd that lead. Return what mends it."""
        controllers, follower = self._controllers, (etcd_led + 1) % MEMBERS
        match fault:
            case TakeoverFault.LEADER_KILLED:
                controllers.kill(led)
                return lambda: controllers.start(led)
            case TakeoverFault.LEADER_STOPPED:
                controllers.pause(led)
                return lambda: controllers.resume(led)
            case TakeoverFault.LEADER_CUT:
                self._relays[led].cut()
                return self._relays[led].mend
            case TakeoverFault.STEP_DOWN:
                await controllers.step_down()
                return lambda: None
            case TakeoverFault.FOLLOWER_KILLED:
                self._etcd.kill(follower)
                return lambda: self._etcd.start(follower)
            case TakeoverFault.ETCD_LEADER_KILLED:
                self._etcd.kill(etcd_led)
                return lambda: self._etcd.start(etcd_led)
            case TakeoverFault.ETCD_LEADER_STOPPED:
                self._etcd.pause(etcd_led)
                return lambda: self._etcd.resume(etcd_led)
            case TakeoverFault.BOTH_KILLED:
                controllers.kill(led)
                self._etcd.kill(etcd_led)
                return lambda: self._both_start(etcd_led, led)
            case TakeoverFault.NO_MAJORITY:
                for number in (follower, (follower + 1) % MEMBERS):
                    self._etcd.pause(number)
                return lambda: self._majority_returns(follower)

    def _both_start(self, etcd_led: int, led: int) -> None:
        self._etcd.start(etcd_led)
        self._controllers.start(led)

    def _majority_returns(self, follower: int) -> None:
        for number in (follower, (follower + 1) % MEMBERS):
            self._etcd.resume(number)


if __name__ == "__main__":
    run_command(Takeover)
