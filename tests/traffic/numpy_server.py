# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server in numpy: traffic/engine/root.c again, in other words. It sends through an `Endpoint`, and so it
answers workers over links that lose, double and delay packets (rig.py)."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from ipaddress import IPv4Address

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.membership.assignment import Assignment, TreePart
from netfold.traffic.packets.transport import Address
from netfold.traffic.packets.wire import VERSION, Flag, Kind, Records, Verdict, wellformed
from netfold.traffic.server.slots import SlotPool
from tests.traffic.batches import BATCH, BatchEndpoint, Endpoint, Inbox, Rows, Waiter, senders

_UNKNOWN = -1


class _Tree:
    """One tree's pool, the bit of each child number, and who may send as which child."""

    def __init__(self, part: TreePart, lanes: int) -> None:
        self.slots = part.slots
        self.pool = SlotPool(part.slots, lanes, len(part.children), root=True)
        self.bit = np.full(1 << 16, _UNKNOWN, np.int32)
        self.bit[list(part.children)] = np.arange(len(part.children))
        pairs = zip(part.children, part.sources, strict=False)
        allowed = {child << 32 | int(IPv4Address(a)) for child, addresses in pairs for a in addresses}
        self._allowed = np.array(sorted(allowed), np.uint64)

    def sent_by(
        self, children: NDArray[np.unsignedinteger], sources: NDArray[np.uint32]
    ) -> NDArray[np.bool_]:
        """Whether each packet of a child comes from an address that is the child's. Shapes (n,)."""
        if not len(self._allowed):
            return np.ones(len(children), np.bool_)
        pairs = children.astype(np.uint64) << np.uint64(32) | sources
        place = np.minimum(np.searchsorted(self._allowed, pairs), len(self._allowed) - 1)
        genuine: NDArray[np.bool_] = self._allowed[place] == pairs
        return genuine


class NumpyServer:
    """The root of all trees of an assignment that name their `children`.

    `verdicts` counts packets by verdict number, as the switches do. `serve` runs until `stop`, from
    another thread.
    """

    NAP = 0.0005  # lets packets gather: a turn costs the same for one as for fifty

    def __init__(
        self,
        assignment: Assignment,
        local: str = "0.0.0.0",
        reply_to: Sequence[Address] = (),
        endpoint: Endpoint | None = None,
    ) -> None:
        self.verdicts = np.zeros(32, np.int64)
        self._endpoint = endpoint or BatchEndpoint(Address(local, assignment.udp_port), ecn=True)
        self._waiter = Waiter((self._endpoint,))
        self._reply_to = np.array([address.name() for address in reply_to], np.uint8).reshape(-1, 16)
        self._inbox = Inbox(BATCH, assignment.lanes, ecn=True)
        self._results = Rows(BATCH, assignment.lanes)
        self._new: Assignment | None = None
        self._stopped = threading.Event()
        self._take_over(assignment)

    def _take_over(self, assignment: Assignment) -> None:
        """A new epoch: the slots of the old one are of no use to anybody."""
        self._assignment = assignment
        self._trees = {part.tree: _Tree(part, assignment.lanes) for part in assignment.trees if part.children}
        records = self._results.records
        records["version_kind"] = VERSION << 4 | Kind.RESULT
        records["lanes"] = assignment.lanes

    def assign(self, assignment: Assignment) -> None:
        """Goes on with a new epoch (same job, port and lanes); may be called from another thread."""
        self._new = assignment
        self._waiter.wake()

    def stop(self) -> None:
        """Ends `serve`; may be called from another thread."""
        self._stopped.set()
        self._waiter.wake()

    def serve(self) -> None:
        """Adds up until `stop`. Raises TransportError if the socket fails."""
        while not self._stopped.is_set():
            if self._new is not None:
                assignment, self._new = self._new, None
                self._take_over(assignment)
            count = self._endpoint.receive(self._inbox)
            if count == 0:
                self._waiter.wait(3600.0)
            else:
                self._handle(count)
                if BATCH // 16 <= count < BATCH // 4:
                    time.sleep(self.NAP)

    def _handle(self, count: int) -> None:
        inbox = self._inbox
        records, names, congested = inbox.records[:count], inbox.names(count), inbox.congested(count)
        good = wellformed(records, inbox.sizes(count), self._assignment.lanes)
        good &= records["version_kind"] == (VERSION << 4 | Kind.GRADIENT)
        self.verdicts[Verdict.MALFORMED] += count - int(np.count_nonzero(good))
        for number in np.unique(records["tree"][good]).tolist():
            mine = good & (records["tree"] == number)
            tree = self._trees.get(number)
            if tree is None:
                self.verdicts[Verdict.UNADMITTED] += int(np.count_nonzero(mine))
            elif mine.all():
                self._add(tree, records, names, congested)
            else:
                self._add(tree, records[mine], names[mine], congested[mine])

    def _add(
        self, tree: _Tree, records: Records, names: NDArray[np.uint8], congested: NDArray[np.bool_]
    ) -> None:
        bits = tree.bit[records["child"]]
        tags = records["tag"].astype(np.uint32)
        ports, sources = senders(names)
        known = (bits != _UNKNOWN) & (ports == self._assignment.udp_port)
        known &= tree.sent_by(records["child"], sources)
        current = (tags >> 20) == self._assignment.epoch
        good = known & current
        if not good.all():
            self.verdicts[Verdict.UNADMITTED] += int(np.count_nonzero(~known))
            self.verdicts[Verdict.STALE_EPOCH] += int(np.count_nonzero(known & ~current))
            records, names, congested = records[good], names[good], congested[good]
            bits, tags = bits[good], tags[good]
        outcomes = tree.pool.gradients(
            tags,
            records["slot"].astype(np.int64),
            bits,
            records["flags"] | congested * np.uint8(Flag.CONGESTION),
            records["exponent"],
            records["lane"],
        )
        self.verdicts += np.bincount(outcomes.verdicts, minlength=len(self.verdicts))
        leaving = len(outcomes.source)
        if leaving == 0:
            return
        source, out = records[outcomes.source], self._results.records[:leaving]
        for field in ("tree", "tag", "slot", "child"):
            out[field] = source[field]
        out["flags"] = outcomes.flags
        out["exponent"] = outcomes.exponents
        out["lane"] = outcomes.lanes
        first = outcomes.verdicts[outcomes.source] == Verdict.RESULT_SENT
        self._reply(first, names[outcomes.source])

    def _reply(self, first: NDArray[np.bool_], names: NDArray[np.uint8]) -> None:
        everything = np.arange(len(first))
        if not len(self._reply_to):
            self._send(everything, names)
            return
        self._send(everything[~first], names[~first])
        for name in self._reply_to:
            self._send(everything[first], np.broadcast_to(name, (int(first.sum()), 16)))

    def _send(self, rows: NDArray[np.intp], names: NDArray[np.uint8]) -> None:
        if len(rows):
            self._results.point(rows)
            self._results.address(names)
            self._endpoint.send(self._results, len(rows))

    def counts(self) -> dict[str, int]:
        """The verdicts by name, those that occurred."""
        return {v.name.lower(): int(self.verdicts[v]) for v in Verdict if self.verdicts[v]}

    def close(self) -> None:
        self._waiter.close()
        self._endpoint.close()
