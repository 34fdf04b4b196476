# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One epoch of a job on a worker: its sockets, its flows, and the loop that moves packets until all work
is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from netfold.traffic.errors import AllReduceTimeout
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.packets.transport import (
    BATCH,
    Address,
    Endpoint,
    Inbox,
    TransportError,
    UdpEndpoint,
    Waiter,
)
from netfold.traffic.packets.wire import FRAME_OVERHEAD_BYTES, packet_bytes
from netfold.traffic.worker.congestion import Congestion
from netfold.traffic.worker.flow import Flow, Pacer
from netfold.traffic.worker.turns import make_turns
from netfold.traffic.worker.work import Work

Connect: TypeAlias = Callable[[Address, Sequence[Address]], Sequence[Endpoint]]


def connect_udp(local: Address, peers: Sequence[Address]) -> Sequence[Endpoint]:
    """A socket for each root, all at the job's port, which no other process of this host can take."""
    endpoints: list[UdpEndpoint] = []
    try:
        for peer in peers:
            if endpoints:
                endpoints[0].share(True)
            endpoints.append(UdpEndpoint(local, peer, ecn=True, shared=bool(endpoints)))
    except TransportError:
        for endpoint in endpoints:
            endpoint.close()
        raise
    for endpoint in endpoints:
        endpoint.share(False)
    return endpoints


class Session:
    """The flows of one assignment. Not thread-safe but for `wake`."""

    TICK = 0.001  # seconds between two looks at the timers while packets come in
    STRETCH = 0.005  # seconds at most between two looks at `watch` and the deadline while packets come in
    LONGEST_WAIT = 0.25
    NAP_MAX = 0.003
    NAP_MIN = 0.0001

    def __init__(
        self, assignment: Assignment, local: str, congestion: Congestion, connect: Connect = connect_udp
    ) -> None:
        self.assignment = assignment
        self._clock = time.monotonic
        port = assignment.udp_port
        roots = list(dict.fromkeys(part.destination for part in assignment.trees))
        endpoints = connect(Address(local, port), [Address(root, port) for root in roots])
        self._endpoints: dict[str, Endpoint] = dict(zip(roots, endpoints, strict=True))
        wire_bytes = FRAME_OVERHEAD_BYTES + packet_bytes(assignment.lanes)
        self.flows = tuple(
            Flow(
                assignment,
                part,
                self._endpoints[part.destination],
                congestion.start(part.window),
                Pacer(assignment.rate_mbps, wire_bytes, self._clock(), part.share),
            )
            for part in assignment.trees
        )
        self._inbox = Inbox(BATCH, assignment.lanes, ecn=True)
        self._waiter = Waiter(tuple(self._endpoints.values()))
        self._turns = make_turns(tuple(self._endpoints.values()), self._inbox)
        self._gap = 0.0  # seconds between two results, smoothed
        self._received_at = self._clock()
        self.agreed_call = False  # whether the workers know of each other in which call they are
        self.broken = False  # a call was given up half-way: chunk numbers differ between workers

    @property
    def retransmits(self) -> int:
        return sum(flow.retransmits for flow in self.flows)

    def wake(self) -> None:
        """Makes a running `run` look at its `watch` at once; may be called from another thread."""
        self._waiter.wake()

    def run(self, works: Sequence[tuple[Flow, Work]], deadline: float, watch: Callable[[], None]) -> None:
        """Sends the works of different flows and takes their results.

        `watch` is called in every turn and raises what ends the run early. Raises AllReduceTimeout at
        `deadline` (time.monotonic), RoundsExhausted, TransportError.
        """
        active = []
        for flow, work in works:
            if work.count:
                flow.start(work)
                active.append(flow)
        now = self._clock()
        timers_at = now + self.TICK
        for flow in active:
            flow.pump(now)
        while active:
            carried = self._turns is not None and all(flow.portable and not flow.blocked for flow in active)
            got, lacking = self._carry(active, now, timers_at) if carried else (self._receive(), False)
            active = [flow for flow in active if not flow.done]
            if not active:
                return  # what has arrived counts, whatever else there is to be told
            watch()
            now = self._clock()
            if now >= deadline:
                raise self._timeout(active, now)
            if lacking or (not carried and (got == 0 or now >= timers_at)):
                timers_at = now + self.TICK
                for flow in active:
                    flow.on_timer(now)
            if carried and got:
                continue
            for flow in active:
                flow.pump(now)
            self._rest(got, active, now, deadline)

    def _carry(self, active: Sequence[Flow], now: float, timers_at: float) -> tuple[int, bool]:
        """A stretch of turns without Python; gives how many results came, and whether packets are to go again."""
        assert self._turns is not None
        got = self._turns.run(active, now + self.STRETCH, timers_at, self._received_at)
        self._received_at = self._turns.received_at
        return got, self._turns.lacking

    def _receive(self) -> int:
        total = 0
        for endpoint in self._endpoints.values():
            count = endpoint.receive(self._inbox)
            if count:
                now = self._clock()
                for flow in self.flows:
                    if not flow.done:
                        flow.on_results(self._inbox, count, now)
                total += count
        if total:
            now = self._clock()
            gap = min(self.NAP_MAX, (now - self._received_at) / total)
            self._gap += (gap - self._gap) / 8
            self._received_at = now
        return total

    def _rest(self, got: int, active: Sequence[Flow], now: float, deadline: float) -> None:
        """Waits for packets. While many are under way it first lets some of them gather, as interrupt
        moderation does: the cost of a turn is the same for one packet as for fifty."""
        if got == BATCH:
            return
        if got:
            nap = min(self.NAP_MAX, self._gap * max(flow.under_way for flow in active) / 4)
            if nap >= self.NAP_MIN:
                time.sleep(nap)
            return
        until = min(deadline, now + self.LONGEST_WAIT, *(flow.next_turn(now) for flow in active))
        if any(flow.blocked for flow in active):
            until = min(until, now + self.TICK)
        self._waiter.wait(max(0.0, until - self._clock()))

    def _timeout(self, active: Sequence[Flow], now: float) -> AllReduceTimeout:
        quiet = now - self._received_at
        return AllReduceTimeout(
            f"job {self.assignment.job}, epoch {self.assignment.epoch}, rank {self.assignment.rank}: the "
            f"deadline passed, the last packet came {quiet:.1f} s ago; missing: "
            + "; ".join(flow.missing() for flow in active)
        )

    def close(self) -> None:
        self._waiter.close()
        for endpoint in self._endpoints.values():
            endpoint.close()
