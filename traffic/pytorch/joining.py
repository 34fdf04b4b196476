# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A rank joins the job of its group, and the other ranks of its host. Where the program chose Gloo for a job that does
not start, no rank makes a call before all have the same decision:

    each rank   joins, and publishes that it has, or why it has not
    rank 0      reads this of all ranks, and publishes the decision: the job, Gloo, or an error
    each rank   follows it, and decides nothing itself
"""

from __future__ import annotations

import contextlib
import functools
import json
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from netfold.protocol.connection import ConnectError
from netfold.traffic.errors import TrafficError
from netfold.traffic.membership.host import bindable
from netfold.traffic.membership.jobs import cancel_job
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.membership.process_jobs import EnteredJob
from netfold.traffic.pytorch.host_reducer import HostReducer, LocalRank
from netfold.traffic.pytorch.in_network import InNetworkReducer
from netfold.traffic.pytorch.local_rank import LocalRankReducer
from netfold.traffic.pytorch.published import Decision, first_rank_is_older, read_decision, read_outcome
from netfold.traffic.pytorch.rendezvous import RankLayout, read_key
from netfold.traffic.pytorch.shared_memory import accept_rank, connect_leader, listen
from netfold.traffic.pytorch.tensor_call import Reducer, TensorCall
from netfold.traffic.worker.worker import Worker

_OUTCOME_S = 10.0
"""Seconds after the time for the start within which a rank publishes its outcome; else it is lost."""
_WAIT = timedelta(seconds=0.5)
_CANCEL_S = 3.0
_LEAVE_S = 2.0


class NoReducer:
    """A `tensor_call.Reducer` where Gloo carries all calls."""

    def start(self, call: TensorCall) -> None:
        raise TrafficError("all calls of this group go by Gloo")

    def on_end(self, callback: Callable[[Exception], None]) -> None:
        pass

    def abort(self, cause: str) -> None:
        pass

    def network_use(self) -> None:
        return None

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Joined:
    """The parts of a rank that has joined, or goes by Gloo as all ranks do. `job`: None where there is none.
    `fallback_reason`: why all calls go by Gloo; "": they do not."""

    reducer: Reducer
    job: EnteredJob | None = None
    has_targets: bool = False
    fallback_reason: str = ""

    def close(self, *, has_failed: bool = False) -> None:
        self.reducer.close()
        if self.job is not None:
            self.job.leave(has_failed=has_failed)


def join_or_agree_on_gloo(
    layout: RankLayout, store: Any, rank: int, deadline: float, run: str = ""
) -> Joined:
    """Raises TrafficError, ConnectError."""
    if layout.fallback_reason:
        return Joined(NoReducer(), fallback_reason=layout.fallback_reason)
    if not layout.start_s:
        return _join(layout, store, rank, deadline, run)
    start_deadline = time.monotonic() + layout.start_s
    joined, failure = None, ""
    try:
        joined = _join(layout, store, rank, min(deadline, start_deadline), run)
    except (TrafficError, ConnectError, OSError, MemoryError) as error:
        failure = f"{error}" or type(error).__name__
    try:
        reason = _agree(layout, store, rank, failure, start_deadline)
    except BaseException:
        _leave(joined, has_failed=True)
        raise
    if joined is not None and not reason:
        return joined
    _leave(joined)
    return Joined(NoReducer(), fallback_reason=reason)


def _agree(layout: RankLayout, store: Any, rank: int, failure: str, start_deadline: float) -> str:
    """The reason for which all ranks go by Gloo; "": all have joined. `failure`: of this rank. Raises TrafficError at
    all ranks where one is lost."""
    if rank:
        store.set(f"outcome{rank}", json.dumps(failure))
        decision = read_decision(read_key(store, "decision", start_deadline + 2 * _OUTCOME_S))
        if decision.error:
            raise TrafficError(f"rank 0: {decision.error}")
        return decision.reason
    try:
        others = [
            read_outcome(read_key(store, f"outcome{other}", start_deadline + _OUTCOME_S), other)
            for other in range(1, len(layout.places))
        ]
    except TrafficError as error:
        store.set("decision", json.dumps(asdict(Decision(f"{error}", ""))))
        raise
    failures = [f"rank {number}: {text}" for number, text in enumerate([failure, *others]) if text]
    reason = failures[0] if failures else ""
    store.set("decision", json.dumps(asdict(Decision("", reason))))
    if reason:
        with contextlib.suppress(ConnectError):  # its token's file may be gone; the decision is published
            cancel_job(layout.connection(), layout.job, f"rank 0: all ranks go by Gloo: {reason}", _CANCEL_S)
    return reason


def _leave(joined: Joined | None, *, has_failed: bool = False) -> None:
    """Leaves in the background where the controller is away, which a member waits for."""
    if joined is not None:
        close = functools.partial(joined.close, has_failed=has_failed)
        thread = threading.Thread(target=close, name="netfold leaves the job", daemon=True)
        thread.start()
        thread.join(_LEAVE_S)


def _join(layout: RankLayout, store: Any, rank: int, deadline: float, run: str) -> Joined:
    """Raises TrafficError, ConnectError."""
    job = _enter_job(layout, rank, run) if layout.job else None
    reducer: Reducer = NoReducer()
    try:
        reducer, worker = _open_reducer(layout, store, rank, deadline)
        has_targets = bool(layout.job) and _agree_on_targets(layout, store, rank, worker, deadline)
        if layout.is_kept and layout.is_one_version and not layout.start_s:
            _await_ranks(layout, store, rank, reducer, deadline)
    except BaseException:
        _leave(Joined(reducer, job), has_failed=True)
        raise
    return Joined(reducer, job, has_targets)


def _await_ranks(layout: RankLayout, store: Any, rank: int, reducer: Reducer, deadline: float) -> None:
    """Wait until all ranks have joined. A rank that goes on may end the generation, as the ranks that follow do, and a
    rank that has not joined it yet would fail. Raises TrafficError."""
    failures: list[Exception] = []
    reducer.on_end(failures.append)
    store.set(f"joined{rank}", "")
    keys = [f"joined{other}" for other in range(len(layout.places))]
    while True:
        try:
            store.wait(keys, _WAIT)
        except dist.DistStoreError as error:  # a store that has ended raises DistNetworkError
            if failures:
                raise TrafficError(f"a rank did not join: {failures[0]}") from failures[0]
            if time.monotonic() >= deadline:
                raise TrafficError("timeout: a rank did not join within the group's timeout") from error
        else:
            return


def _agree_on_targets(
    layout: RankLayout, store: Any, rank: int, hosts: InNetworkReducer | None, deadline: float
) -> bool:
    """Whether calls have blocks. Rank 0 decides it, because another rank may have joined in another epoch. The first
    rank of a host publishes it there. Raises TrafficError."""
    first = layout.ranks_on_host(rank)[0]
    key = f"targets of {first}"
    if hosts is None and first_rank_is_older(layout, store, first):
        raise TrafficError(
            f"rank {first}, the first one of this host, has an older netfold than rank {rank}; expected the same at "
            "all ranks of a host"
        )
    if hosts is None:
        return read_key(store, key, deadline) == b"1"
    if rank == 0:
        agreed = layout.is_one_version and hosts.has_targets
    else:
        is_published = hosts.has_targets if layout.is_one_version else _await_targets(store, hosts, deadline)
        agreed = is_published and read_key(store, "targets of 0", deadline) == b"1"
    store.set(key, str(int(agreed)))
    return agreed


def _await_targets(store: Any, hosts: InNetworkReducer, deadline: float) -> bool:
    """Whether rank 0 publishes if calls have blocks, as far as is known at the deadline. It may be of a version that
    knows no targets: then the job has none from the epoch on in which it joins."""
    while hosts.has_targets and time.monotonic() < deadline:
        with contextlib.suppress(dist.DistStoreError):
            store.wait(["targets of 0"], _WAIT)
            return True
    return hosts.has_targets


def _enter_job(layout: RankLayout, rank: int, run: str) -> EnteredJob:
    if layout.entered is not None:
        return layout.entered
    host = layout.names[layout.places[rank]]
    generation = layout.generation if layout.is_kept else None
    where, member = layout.connection(), f"rank {rank} at host {host}"
    return EnteredJob(where, layout.job, host, member, generation=generation, run=run)


def _open_reducer(
    layout: RankLayout, store: Any, rank: int, deadline: float
) -> tuple[Reducer, InNetworkReducer | None]:
    """The reducer of a rank, and that over hosts, if this rank has it."""
    ranks = layout.ranks_on_host(rank)
    if rank != ranks[0]:
        leader = read_key(store, f"leader{ranks[0]}", deadline).decode()
        return LocalRankReducer(connect_leader(leader, rank)), None
    local_ranks = _accept_ranks(store, ranks, deadline)
    try:
        hosts = _join_hosts(layout, rank, deadline) if layout.job else None
    except BaseException:
        for local in local_ranks:
            local.sock.close()
        raise
    if hosts is not None and len(layout.places) == layout.hosts:
        return hosts, hosts
    reducer = HostReducer(local_ranks, hosts, layout.hosts, len(layout.places))
    if hosts is not None:
        hosts.report_waiting(reducer.waiting)
    return reducer, hosts


def _accept_ranks(store: Any, ranks: Sequence[int], deadline: float) -> list[LocalRank]:
    """The other ranks of this host, in ascending order."""
    if len(ranks) == 1:
        return []
    name = f"netfold-{secrets.token_hex(8)}"
    with listen(name) as listener:
        store.set(f"leader{ranks[0]}", name)
        accepted = dict(accept_rank(listener, deadline) for _ in ranks[1:])
    return [LocalRank(rank, accepted[rank]) for rank in ranks[1:]]


def _join_hosts(layout: RankLayout, rank: int, deadline: float) -> InNetworkReducer:
    where = layout.connection()
    place = layout.places[rank]
    membership = ControllerMembership(where, layout.job, layout.names[place], generation=layout.generation)
    try:
        membership.wait(max(0.0, deadline - time.monotonic()))
        worker = Worker(membership, bindable(layout.addresses[place]))
    except BaseException:
        membership.close(is_done=False)
        raise
    return InNetworkReducer(worker, where, layout.job, layout.names[place], layout.kept_job)
