# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's side of one tree in one epoch: which chunk goes when, and what its result is taken for.

The rules and why they are right are in docs/protocol.md, section 5. In short: chunk c and c + A/2 share a
*channel*; c + A/2 goes only when the result of c is in; at most `window` chunks are under way, but a chunk
below the highest one sent never waits for the window. A chunk is sent again when one that was sent later
came back, or when its time is up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.errors import RoundsExhausted
from netfold.traffic.membership.assignment import Assignment, TreePart
from netfold.traffic.packets.transport import Endpoint, Inbox
from netfold.traffic.packets.wire import ROUNDS
from netfold.traffic.worker.channels import NEVER, Channels, make_channels
from netfold.traffic.worker.congestion import CongestionControl
from netfold.traffic.worker.rtt import RttEstimator
from netfold.traffic.worker.turns import FlowState, PacerState
from netfold.traffic.worker.work import Work

_NONE: NDArray[np.int64] = np.empty(0, np.int64)


class Pacer:
    """Lets through at most `share` of `rate_mbps` of packets of `wire_bytes`, in bursts of a few
    milliseconds; 0: no limit.

    Each tree has its own: a plan sizes every edge of a tree for the tree's share of the rate. Trees that drew
    on one allowance would go one after the other, each as fast as its narrowest edge at the whole rate.
    """

    BURST_SECONDS = 0.004
    BURST_PACKETS = 16
    BURST_LEAST = 4
    UNLIMITED = 1 << 30

    def __init__(self, rate_mbps: float, wire_bytes: int, now: float, share: float = 1.0) -> None:
        self.per_second = share * rate_mbps * 1e6 / (8 * wire_bytes)
        burst = max(self.BURST_LEAST, share * self.BURST_PACKETS)
        self.depth = max(burst, self.per_second * self.BURST_SECONDS)
        self.tokens = self.depth
        self.filled = now

    def allowance(self, now: float) -> int:
        if self.per_second == 0:
            return self.UNLIMITED
        self.tokens = min(self.depth, self.tokens + (now - self.filled) * self.per_second)
        self.filled = now
        return max(0, int(self.tokens))

    def spend(self, packets: int) -> None:
        self.tokens -= packets

    def wait(self) -> float:
        """Seconds until a quarter of a burst may go."""
        if self.per_second == 0:
            return 0.0
        return max(0.0, (self.depth / 4 - self.tokens) / self.per_second)


class Flow:
    """One tree in one epoch. `start` gives it work; `on_results`, `on_timer` and `pump` move it until
    `done`."""

    PROBES = 4  # chunks sent again when nothing comes back at all, but at most a quarter of what is under way

    def __init__(
        self,
        assignment: Assignment,
        part: TreePart,
        endpoint: Endpoint,
        congestion: CongestionControl,
        pacer: Pacer,
    ) -> None:
        self.part = part
        self.rtt = RttEstimator()
        self.retransmits = 0
        self.probes = 0  # of them, those sent because nothing came back
        self.under_way = 0
        self._endpoint = endpoint
        self._congestion = congestion
        self._pacer = pacer
        self._epoch = assignment.epoch
        self._channels: Channels = make_channels(
            part.slots, assignment.lanes, assignment.epoch, part.tree, part.child
        )
        self.state = FlowState(
            pacer=PacerState(depth=pacer.depth, per_second=pacer.per_second)
        )  # for stretches of turns
        self.portable = False  # whether turns.c can move this work (the endpoint is the session's affair)
        self._work: Work | None = None
        self._base = self._end = self._highest = 0
        self._left = 0
        self._backlog = _NONE  # channels whose packet the socket did not take yet
        self._held_back = False  # the pacer let less go than the window
        self._first_back = (
            NEVER  # what went before the work's first result came may have waited for other workers
        )
        self._newest_back = 0.0  # when the youngest chunk was sent whose result is in
        self._shrank_at = 0.0
        self._probed_at = 0.0  # when probes went last, with nothing back since

    def start(self, work: Work) -> None:
        """Takes the next chunk numbers of the epoch for `work`. Raises RoundsExhausted if they do not
        suffice."""
        end = self._end + work.count
        if end > ROUNDS * self.part.slots:
            raise RoundsExhausted(
                f"tree {self.part.tree}: epoch {self._epoch} has {ROUNDS * self.part.slots - self._end} chunk "
                f"numbers left and the call needs {work.count}; the job needs a new epoch"
            )
        self._work = work
        self._base, self._end, self._left = self._end, end, work.count
        self._channels.begin(work, self._base)
        self._first_back = NEVER
        self.portable = self._channels.lend(self.state)
        if self.portable:
            self.state.fd, self.state.end = self._endpoint.fileno(), end

    @property
    def done(self) -> bool:
        return self._left == 0

    @property
    def blocked(self) -> bool:
        """Whether the socket took less than was to be sent."""
        return len(self._backlog) > 0

    def report(self) -> dict[str, float]:
        """For reports: the tree, its window in chunks, and the round trip in milliseconds."""
        return {
            "tree": self.part.tree,
            "window": self._congestion.window,
            "limit": self.part.window,
            "rtt_ms": round(self.rtt.smoothed * 1e3, 3),
            "rtt_min_ms": round(self.rtt.minimum * 1e3, 3),
            "retransmits": self.retransmits,
            "probes": self.probes,
        }

    def missing(self) -> str:
        """What is missing, for an error message."""
        assert self._work is not None
        waiting = np.sort(self._channels.due[self._channels.busy]) - self._base
        return (
            f"tree {self.part.tree} (to {self.part.destination}): {self._left} of {self._work.count} "
            f"results, under way {len(waiting)}, the first is chunk {waiting[0] if len(waiting) else 'none'}"
        )

    def on_results(self, inbox: Inbox, received: int, now: float) -> int:
        """Takes the results of this tree that it waits for among the first `received` that came; gives how
        many."""
        found = self._channels.take(inbox, received)
        if found.results:
            self.under_way -= found.results
            self._left -= found.results
            rtt = now - found.sent_sum / found.fresh if found.fresh else None
            self._account(found.results, found.marked, rtt, found.sent_max, now, now)
        return found.results

    def _account(
        self, results: int, marked: int, rtt: float | None, sent_max: float, first_back: float, now: float
    ) -> None:
        """What follows from `results` that came from `first_back` to `now`; `rtt` is the mean of those that went only
        once, if there are any, and `sent_max` when the latest of these went."""
        delay = None
        self._first_back = min(self._first_back, first_back)
        if rtt is not None:
            self.rtt.sample(rtt)
            if now - rtt >= self._first_back:
                delay = rtt - self.rtt.minimum
            self._newest_back = max(self._newest_back, sent_max)
        else:
            self.rtt.progress()
        self._probed_at = 0.0
        self._congestion.on_results(results, marked, delay)

    def lend(self) -> None:
        """Lets a stretch of turns begin here; only if `portable`."""
        state, pacer = self.state, self._pacer
        state.window, state.under_way, state.left = self._congestion.window, self.under_way, self._left
        state.highest, state.patience = self._highest, self._congestion.patience
        state.pacer.tokens, state.pacer.filled = pacer.tokens, pacer.filled
        state.newest_back, state.reordering = self._newest_back, self.rtt.reordering
        state.probed_at, state.timeout = self._probed_at, self.rtt.timeout

    def take_back(self) -> int:
        """Goes on from where a stretch of turns ended; gives how many results came in it."""
        state, pacer, found = self.state, self._pacer, self.state.found
        self.under_way, self._left, self._highest = state.under_way, state.left, state.highest
        pacer.tokens, pacer.filled = state.pacer.tokens, state.pacer.filled
        self._held_back = bool(state.held_back)
        if state.order_taken < state.order_count:
            self._backlog = self._channels.listed(state.order_taken, state.order_count)
        count: int = found.count
        if count:
            if found.overflowed:
                self._channels.check_overflow()
            rtt = state.rtt_sum / found.fresh if found.fresh else None
            self._account(count, found.marked, rtt, found.sent_max, state.first_back, state.last_back)
        return count

    def pump(self, now: float) -> int:
        """Sends what the window and the pacer let go; gives how many packets."""
        self._flush()
        self._held_back = False
        if self.blocked or self._left == self.under_way:
            return 0
        room = max(0, self._congestion.window - self.under_way)
        out = self._channels.emit(self._end, self._highest, room, self._allowance(now), now)
        count = len(out.channels)
        self._held_back = out.held_back
        if count:
            self._highest = out.highest
            self.under_way += count
            self._send(out.channels)
        return count

    def _allowance(self, now: float) -> int:
        """A work of one chunk is a question, not a stream: it goes at once, and what follows pays for it."""
        assert self._work is not None
        return max(int(self._work.count == 1), self._pacer.allowance(now))

    def _send(self, channels: NDArray[np.int64]) -> None:
        """Sends the packets that `rows` points at."""
        count = len(channels)
        self._pacer.spend(count)
        took = self._endpoint.send(self._channels.rows, count)
        self._backlog = channels[took:].copy() if took < count else _NONE

    def _flush(self) -> None:
        if self.blocked:
            self._channels.rows.point(self._backlog)
            self._backlog = self._backlog[self._endpoint.send(self._channels.rows, len(self._backlog)) :]

    def on_timer(self, now: float) -> None:
        """Sends again what was overtaken or is overdue."""
        if self.under_way == 0 or self.blocked:
            return
        lost, oldest = self._channels.overdue(self._newest_back - self.rtt.reordering)
        if len(lost):
            if now - self._shrank_at > self.rtt.smoothed:
                self._shrank_at = now
                self._congestion.on_loss()
        elif now - max(oldest, self._probed_at) >= self.rtt.timeout:
            self._probed_at = now
            waiting, _ = self._channels.overdue(NEVER)
            count = max(1, min(self.PROBES, self.under_way // 4))
            lost = waiting[np.argsort(self._channels.sent_at[waiting], kind="stable")[:count]]
            self.probes += len(lost)
            self.rtt.expired()
        if len(lost):
            self._resend(lost, now)

    def _resend(self, channels: NDArray[np.int64], now: float) -> None:
        """The packets still lie in the rows of their channels, so what goes is what went before, byte by
        byte."""
        allowed = channels[: self._pacer.allowance(now)]
        self._channels.resent[allowed] = True
        self._channels.sent_at[allowed] = now
        self._channels.rows.point(allowed)
        self.retransmits += len(allowed)
        self._send(allowed)

    def next_turn(self, now: float) -> float:
        """When `on_timer` or `pump` has to be called next, if nothing comes in before."""
        pump = now + self._pacer.wait() if self._held_back else float("inf")
        if self.under_way == 0:
            return pump
        return min(pump, max(self._channels.overdue(0.0)[1], self._probed_at) + self.rtt.timeout)
