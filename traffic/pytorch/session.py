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
import threading
import time
from dataclasses import replace
from typing import Any

from netfold.traffic.errors import TrafficError
from netfold.traffic.membership.process_jobs import EnteredJob
from netfold.traffic.pytorch.flight_recorder import FlightEntry, FlightRecorder
from netfold.traffic.pytorch.joining import join_or_agree_on_gloo
from netfold.traffic.pytorch.rendezvous import RankLayout
from netfold.traffic.pytorch.report import NoReporter, Reporter, StoreReporter
from netfold.traffic.pytorch.step_times import CallTime
from netfold.traffic.pytorch.tensor_call import NetworkUse, Reducer, TensorCall, can_continue
from netfold.traffic.pytorch.work import NetfoldWork
from netfold.traffic.worker.call_dump import CALL_DUMPS


class Session:
    """The calls of a rank. Thread-safe. All ranks submit the same calls in the same order. `has_targets`: calls may
    have blocks; equal at all ranks. `fallback_reason`: why all calls go by Gloo; "": they do not."""

    def __init__(
        self,
        reducer: Reducer,
        reporter: Reporter,
        job: EnteredJob | None,
        recorder: FlightRecorder,
        *,
        has_targets: bool = False,
        fallback_reason: str = "",
    ) -> None:
        self.has_targets = has_targets
        self.fallback_reason = fallback_reason
        self.backends: set[Any] = set()
        """Backends of the groups that are not destroyed. PyTorch's checks hold only the part of each that is C++'s."""
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
        submitted = replace(call, done=lambda error: self._complete(call, times, entry, error))
        with self._lock:
            if not self._closed:
                self._calls.put((submitted, entry))
                return
            failure = self._failure
        submitted.done(failure)  # of a group that outlives its world's session

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
        work = NetfoldWork([], where, self.reporter.waiting, theirs)

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
        if self.fallback_reason:  # there is no job whose end would end Gloo's calls
            self._fail(TrafficError(cause))

    def close(self) -> None:
        """Ends the calls in flight, and leaves the job."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            has_failed = self._failure is not None
            self._failure = self._failure or TrafficError("the process group is destroyed")
        self._calls.put(None)
        self._thread.join()
        self.reporter.finish(self._network_use())
        self._reducer.close()
        if self._job is not None:
            self._job.leave(has_failed=has_failed)

    def _network_use(self) -> NetworkUse | None:
        """None after the job has ended."""
        try:
            return self._reducer.network_use()
        except TrafficError:
            return None


def open_session(
    layout: RankLayout,
    store: Any,
    rank: int,
    recorder: FlightRecorder,
    timeout: float,
    run: str = "",
) -> Session:
    """Joins the layout's job, and the other ranks of this host, within `timeout` seconds; or goes by Gloo, as all ranks
    do. `store`: with the session's prefix. `run`: in which others find the job. Raises TrafficError, ConnectError."""
    joined = join_or_agree_on_gloo(layout, store, rank, time.monotonic() + timeout, run)
    return Session(
        joined.reducer,
        _open_reporter(layout, store, rank, "" if joined.fallback_reason else layout.job),
        joined.job,
        recorder,
        has_targets=joined.has_targets,
        fallback_reason=joined.fallback_reason,
    )


def _open_reporter(layout: RankLayout, store: Any, rank: int, job: str) -> Reporter:
    if not layout.report:
        return NoReporter()
    return StoreReporter(store, rank, len(layout.places), job, layout.report)
