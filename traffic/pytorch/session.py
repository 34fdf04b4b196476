# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The calls of a process group, one after the other, to whoever carries them: a thread of its own hands them over, so
that neither the program nor the backward pass waits for the network.

    Session.submit    from the program, or from DistributedDataParallel's reducer
      -> _hand_over   the thread: a CUDA copy that has to arrive first, then
      -> call.Carrier network.Network, leader.Leader or member.Member
      -> Call.done    from their threads
"""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from netfold.api.connection import connection
from netfold.traffic.errors import TrafficError
from netfold.traffic.membership.host import bindable
from netfold.traffic.membership.membership import Attending
from netfold.traffic.pytorch.call import Call, Carrier, in_step
from netfold.traffic.pytorch.leader import Leader, Sibling
from netfold.traffic.pytorch.member import Member
from netfold.traffic.pytorch.network import Network
from netfold.traffic.pytorch.places import Plan
from netfold.traffic.pytorch.shared import call_leader, listen, take_sibling
from netfold.traffic.worker.worker import Worker


class Session:
    """A rank's part in a plan. Thread-safe; calls come in the order of `submit`, the same at all ranks."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._broken: Exception | None = None
        self._books = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._hand_over, name="netfold torch calls", daemon=True)
        self._thread.start()

    def submit(self, call: Call) -> None:
        """Returns at once; the call's `done` hears what came of it."""
        self._calls.put(replace(call, done=lambda error: self._over(call, error)))

    def _hand_over(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                if self._broken is not None:
                    raise self._broken
                call.ready()
                self._carrier.start(call)
            except Exception as error:  # whatever it is: somebody waits for the call
                call.done(error)

    def _over(self, call: Call, error: Exception | None) -> None:
        if not in_step(error):
            with self._books:
                first, self._broken = self._broken is None, self._broken or error
            if first:
                self._carrier.give_up()
        call.done(error)

    def give_up(self) -> None:
        """Tells the others that this rank does not go on."""
        self._carrier.give_up()

    def close(self) -> None:
        """Ends what is under way, and leaves the job."""
        with self._books:
            if self._closed:
                return
            self._closed = True
            self._broken = self._broken or TrafficError("the process group is destroyed")
        self._calls.put(None)
        self._thread.join()
        self._carrier.close()


def open_session(plan: Plan, store: Any, rank: int, timeout: float) -> Session:
    """Joins the plan's job, and the ranks that share this host. Raises TrafficError, ConnectError."""
    beside = plan.beside(rank)
    if rank != beside[0]:
        return Session(Member(call_leader(store.get(f"leader{beside[0]}").decode(), rank)))
    siblings = _siblings(store, beside, timeout)
    hosts = _join(plan, rank, timeout) if plan.job else None
    if hosts is not None and len(plan.places) == plan.hosts:
        return Session(hosts)
    return Session(Leader(siblings, hosts, plan.hosts, len(plan.places)))


def _siblings(store: Any, beside: Sequence[int], timeout: float) -> list[Sibling]:
    """The other ranks of this host, in their order."""
    if len(beside) == 1:
        return []
    name = f"netfold-{secrets.token_hex(8)}"
    deadline = time.monotonic() + timeout
    with listen(name) as listener:
        store.set(f"leader{beside[0]}", name)
        came = dict(take_sibling(listener, max(0.01, deadline - time.monotonic())) for _ in beside[1:])
    return [Sibling(rank, came[rank]) for rank in beside[1:]]


def _join(plan: Plan, rank: int, timeout: float) -> Network:
    where = connection()
    place = plan.places[rank]
    membership = Attending(where, plan.job, plan.names[place])
    try:
        membership.wait(timeout)
        worker = Worker(membership, bindable(plan.addresses[place]))
    except BaseException:
        membership.close()
        raise
    return Network(worker, where, plan.job)
