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

from traffic.assignment import Assignment, TreePart
from traffic.channels import NEVER, Channels, make_channels
from traffic.congestion import CongestionControl
from traffic.errors import RoundsExhausted
from traffic.rtt import RttEstimator
from traffic.transport import Endpoint, Inbox
from traffic.wire import ROUNDS
from traffic.work import Work

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
        self._per_second = share * rate_mbps * 1e6 / (8 * wire_bytes)
        burst = max(self.BURST_LEAST, share * self.BURST_PACKETS)
        self._depth = max(burst, self._per_second * self.BURST_SECONDS)
        self._tokens = self._depth
        self._filled = now

    def allowance(self, now: float) -> int:
        if self._per_second == 0:
            return self.UNLIMITED
        self._tokens = min(self._depth, self._tokens + (now - self._filled) * self._per_second)
        self._filled = now
        return max(0, int(self._tokens))

    def spend(self, packets: int) -> None:
        self._tokens -= packets

    def wait(self) -> float:
        """Seconds until a quarter of a burst may go."""
        if self._per_second == 0:
            return 0.0
        return max(0.0, (self._depth / 4 - self._tokens) / self._per_second)


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

    @property
    def done(self) -> bool:
        return self._left == 0

    @property
    def blocked(self) -> bool:
        """Whether the socket took less than was to be sent."""
        return len(self._backlog) > 0

    def state(self) -> dict[str, float]:
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
        count = found.results
        if count == 0:
            return 0
        delay = None
        self._first_back = min(self._first_back, now)
        if found.fresh:
            sent = found.sent_sum / found.fresh
            self.rtt.sample(now - sent)
            if sent >= self._first_back:
                delay = now - sent - self.rtt.minimum
            self._newest_back = max(self._newest_back, found.sent_max)
        else:
            self.rtt.progress()
        self._probed_at = 0.0
        self.under_way -= count
        self._congestion.on_results(count, found.marked, delay)
        self._left -= count
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
