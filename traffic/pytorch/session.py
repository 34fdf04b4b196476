# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The calls of a process group, in order, to their reducer. A thread of its own starts them, so that neither the
program nor the backward pass waits for the network.

    Session.submit    from the program, or from DistributedDataParallel's reducer
      -> _start_calls the thread: waits for a CUDA copy if there is one, then
      -> Reducer      in_network.InNetworkReducer, host_reducer.HostReducer or local_rank.LocalRankReducer
      -> TensorCall.done, from a thread of the reducer
"""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from netfold.traffic.errors import TrafficError
from netfold.traffic.membership.host import bindable
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.membership.process_jobs import EnteredJob
from netfold.traffic.pytorch.flight_recorder import FlightEntry, FlightRecorder
from netfold.traffic.pytorch.host_reducer import HostReducer, LocalRank
from netfold.traffic.pytorch.in_network import InNetworkReducer
from netfold.traffic.pytorch.local_rank import LocalRankReducer
from netfold.traffic.pytorch.rendezvous import RankLayout, read_key
from netfold.traffic.pytorch.reporter import NoReporter, Reporter, StoreReporter
from netfold.traffic.pytorch.shared_memory import accept_rank, connect_leader, listen
from netfold.traffic.pytorch.step_times import CallTime
from netfold.traffic.pytorch.tensor_call import NetworkUse, Reducer, TensorCall, can_continue
from netfold.traffic.pytorch.work import NetfoldWork
from netfold.traffic.worker.call_dump import CALL_DUMPS
from netfold.traffic.worker.worker import Worker


class Session:
    """The calls of a rank. Thread-safe. All ranks submit the same calls in the same order. `has_targets`: calls may
    have blocks; equal at all ranks."""

    def __init__(
        self,
        reducer: Reducer,
        reporter: Reporter,
        job: EnteredJob | None,
        recorder: FlightRecorder,
        *,
        has_targets: bool = False,
    ) -> None:
        self.has_targets = has_targets
        self.backends: set[Any] = set()
        """Those of the groups that are not destroyed: PyTorch's checks hold their side in C++ alone."""
        self._reducer = reducer
        self._job = job
        self.reporter = reporter
        self._recorder = recorder
        self._watched: set[NetfoldWork] = set()
        self._calls: queue.SimpleQueue[tuple[TensorCall, FlightEntry] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()  # of the three below
        self._failure: Exception | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._start_calls, name="netfold torch calls", daemon=True)
        self._thread.start()
        CALL_DUMPS.add(recorder)
        reducer.on_end(self._fail)

    def submit(self, call: TensorCall) -> None:
        """Returns at once; the call ends with its `done`."""
        times = self.reporter.submitted(call.tensor.nbytes)
        entry = self._recorder.begin(call.kind, call.tensor.numel(), call.tensor.dtype)
        self._calls.put((replace(call, done=lambda error: self._complete(call, times, entry, error)), entry))

    def _start_calls(self) -> None:
        while (submitted := self._calls.get()) is not None:
            call, entry = submitted
            entry.started = time.time_ns()
            try:
                if self._failure is not None:
                    raise self._failure
                call.ready()
                self._reducer.start(call)
            except Exception as error:  # every call ends with its `done`
                call.done(error)

    def _complete(
        self, call: TensorCall, times: CallTime, entry: FlightEntry, error: Exception | None
    ) -> None:
        times.done = time.monotonic()
        entry.end(error)
        if error is not None and not can_continue(error):
            self._fail(error)
        call.done(error)

    def _fail(self, error: Exception) -> None:
        with self._lock:
            is_first = self._failure is None
            self._failure = self._failure or error
            watched, self._watched = self._watched, set()
        if is_first:
            CALL_DUMPS.dump(self._recorder, f"{error}")
            self._reducer.abort(f"{error}")
        for work in watched:
            work.finish(error)

    def watch(self, theirs: Any, where: str) -> Any:
        """A collective of Gloo that ends with the group, too: Gloo itself notices only the end of a neighbor."""
        try:
            future = theirs.get_future()
        except RuntimeError:  # some of Gloo's have none, and are waited for
            return theirs
        work = NetfoldWork([], where, self.reporter.waiting)

        def on_done(future: Any) -> None:
            with self._lock:
                self._watched.discard(work)
            work.finish_as(future)

        with self._lock:
            failure = self._failure
            if failure is None:
                self._watched.add(work)
        if failure is not None:
            work.finish(failure)
        future.add_done_callback(on_done)
        return work

    @property
    def failure(self) -> Exception | None:
        """Why no further call is possible."""
        return self._failure

    def abort(self, cause: str) -> None:
        """Notifies the other ranks that this one cannot continue."""
        self._reducer.abort(cause)

    def close(self) -> None:
        """Ends the calls in flight, and leaves the job."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._failure = self._failure or TrafficError("the process group is destroyed")
        self._calls.put(None)
        self._thread.join()
        self.reporter.finish(self._network_use())
        self._reducer.close()
        if self._job is not None:
            self._job.leave()

    def _network_use(self) -> NetworkUse | None:
        """None after the job has ended."""
        try:
            return self._reducer.network_use()
        except TrafficError:
            return None


def open_session(
    layout: RankLayout, store: Any, rank: int, recorder: FlightRecorder, timeout: float
) -> Session:
    """Joins the layout's job, and the other ranks of this host, within `timeout` seconds. `store`: with the session's
    prefix. Raises TrafficError, ConnectError."""
    job = _enter_job(layout, rank) if layout.job else None
    deadline = time.monotonic() + timeout
    try:
        reducer, worker = _open_reducer(layout, store, rank, deadline)
        first = layout.ranks_on_host(rank)[0]
        has_targets = bool(layout.job) and _agree_on_targets(store, rank, first, worker, deadline)
    except BaseException:
        if job is not None:
            job.leave()
        raise
    return Session(reducer, _open_reporter(layout, store, rank), job, recorder, has_targets=has_targets)


def _agree_on_targets(
    store: Any, rank: int, first_on_host: int, hosts: InNetworkReducer | None, deadline: float
) -> bool:
    """Whether calls have blocks. Rank 0 publishes it, because another rank may have joined in another epoch. A member
    that knows no targets publishes nothing. The assignments of its job have none, and no host waits for it."""
    key = f"targets of {first_on_host}"
    if hosts is None:
        return read_key(store, key, deadline) == b"1"
    agreed = hosts.has_targets
    if rank and agreed:
        agreed = read_key(store, "targets of 0", deadline) == b"1"
    store.set(key, str(int(agreed)))
    return agreed


def _enter_job(layout: RankLayout, rank: int) -> EnteredJob:
    host = layout.names[layout.places[rank]]
    return EnteredJob(layout.connection(), layout.job, host, f"rank {rank} at host {host}")


def _open_reporter(layout: RankLayout, store: Any, rank: int) -> Reporter:
    if not layout.report:
        return NoReporter()
    return StoreReporter(store, rank, len(layout.places), layout.job, layout.report)


def _open_reducer(
    layout: RankLayout, store: Any, rank: int, deadline: float
) -> tuple[Reducer, InNetworkReducer | None]:
    """The reducer of a rank, and that over hosts, if this rank has it."""
    ranks = layout.ranks_on_host(rank)
    if rank != ranks[0]:
        leader = read_key(store, f"leader{ranks[0]}", deadline).decode()
        return LocalRankReducer(connect_leader(leader, rank)), None
    local_ranks = _accept_ranks(store, ranks, deadline)
    hosts = _join(layout, rank, deadline) if layout.job else None
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


def _join(layout: RankLayout, rank: int, deadline: float) -> InNetworkReducer:
    where = layout.connection()
    place = layout.places[rank]
    membership = ControllerMembership(where, layout.job, layout.names[place])
    try:
        membership.wait(max(0.0, deadline - time.monotonic()))
        worker = Worker(membership, bindable(layout.addresses[place]))
    except BaseException:
        membership.close()
        raise
    return InNetworkReducer(worker, where, layout.job, layout.names[place])
