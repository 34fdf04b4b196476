# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the counters `port_rx` and `port_tx`: packets and bytes that each port of a switch received and sent, those of
jobs apart from cross traffic, at port * 2 + 1 and port * 2 (p4src/v1model/netfold.p4). A counter adds the length with
which a packet came, and a targeted one may leave with another. So `targeted_tx` counts the targeted packets that leave
by their form, at port * 2 without lanes and at port * 2 + 1 with lanes, and each form has one length.

One request, made once for a connection, reads all wanted cells of a switch. It is sent periodically, twice as often
while the load of the ports changes. Each reading is also the keepalive of the connection: a switch that hangs closes no
connection, but it answers no read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NoReturn

import finsy as fy
import numpy as np
from finsy.proto import p4r
from numpy.typing import NDArray

from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, FRAMING_BYTES, packet_bytes

PORT_RX, PORT_TX, TARGETED_TX = "port_rx", "port_tx", "targeted_tx"

SHORT_FRAME_BYTES = 60
"""Bytes of a packet without lanes: cards pad its frame to the least one of Ethernet."""

UNKNOWN: Final = -1

PortCounts = NDArray[np.int64]
"""Bytes on the wire since the switch started, framing included. A row for each port whose `port_rx` is read, then for
each port whose `port_tx` is read, has [cross traffic, jobs]; UNKNOWN if the program has no such counter. The array is
read-only."""

FAST_POLL_FACTOR = 0.5
"""Fraction of the period after which a changed load is read again."""


class AnswerError(Exception):
    """The switch's answer does not fit the request."""


def cell(port: int, is_job_traffic: bool) -> int:
    return port * 2 + is_job_traffic


class PortReader:
    """Reads the received bytes of `rx_ports` and the sent bytes of `tx_ports` from a switch with this P4Info, whose
    packets have `lanes`."""

    def __init__(
        self,
        schema: fy.P4Schema,
        device_id: int,
        lanes: int,
        rx_ports: Sequence[int],
        tx_ports: Sequence[int],
    ) -> None:
        self.request = p4r.ReadRequest(device_id=device_id)
        self._places: dict[tuple[int, int], int] = {}
        self._frame_bytes: dict[tuple[int, int], int] = {}
        whole = FRAME_OVERHEAD_BYTES + packet_bytes(lanes)
        first_rows = {PORT_RX: 0, PORT_TX: len(rx_ports), TARGETED_TX: len(rx_ports)}
        for name, first_row in first_rows.items():
            counter = schema.counters.get(name)
            if counter is None:
                continue
            for row, port in enumerate(rx_ports if name == PORT_RX else tx_ports, first_row):
                for second in (False, True):
                    at = cell(port, second)
                    entry = p4r.CounterEntry(counter_id=counter.id, index=p4r.Index(index=at))
                    self.request.entities.add(counter_entry=entry)
                    self._places[counter.id, at] = 2 * row + (second or name == TARGETED_TX)
                    if name == TARGETED_TX:
                        self._frame_bytes[counter.id, at] = whole if second else SHORT_FRAME_BYTES
        self._zeros = [UNKNOWN] * 2 * (len(rx_ports) + len(tx_ports))
        for place in self._places.values():
            self._zeros[place] = 0
        self._counts: PortCounts = np.full((len(rx_ports) + len(tx_ports), 2), UNKNOWN, np.int64)

    def __bool__(self) -> bool:
        """True if the program has port counters."""
        return bool(self._places)

    def counts(self, responses: Iterable[p4r.ReadResponse]) -> PortCounts:
        """The counts of an answer; the same object as before if nothing has changed. Raises AnswerError."""
        found: dict[tuple[int, int], int] = {}
        cells = 0
        try:
            for response in responses:
                for entity in response.entities:
                    entry = entity.counter_entry
                    at, data = (entry.counter_id, entry.index.index), entry.data
                    packets, each = data.packet_count, self._frame_bytes.get(at)
                    frames = data.byte_count if each is None else each * packets
                    found[at] = frames + FRAMING_BYTES * packets
                    cells += 1
            if cells != len(self._places) or found.keys() != self._places.keys():
                raise AnswerError(f"{len(found)} different cells of {cells}, expected {len(self._places)}")
            sums = self._zeros.copy()
            for at, count in found.items():
                sums[self._places[at]] += count
            counts = np.array(sums, np.int64).reshape(-1, 2)
        except OverflowError as error:
            raise AnswerError(f"a count is too large: {error}") from error
        if not np.array_equal(counts, self._counts):
            self._counts = counts
        return self._counts


class PortCounterPoller:
    """Polls by `poll()`, which reads, and returns True while the load changes; `now`: the clock of the event loop."""

    def __init__(
        self, poll: Callable[[], Awaitable[bool]], period_s: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._poll = poll
        self._period_s = period_s
        self._now = now

    async def run(self) -> NoReturn:
        """Poll until canceled, or until a reading fails: raises SwitchUnreachableError, AnswerError."""
        while True:
            began = self._now()
            period_s = self._period_s * (FAST_POLL_FACTOR if await self._poll() else 1.0)
            # counters have no event
            await asyncio.sleep(max(0.0, began + period_s - self._now()))
