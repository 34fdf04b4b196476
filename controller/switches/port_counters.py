# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The counters `arrivals` and `departures`: what each port of a switch took in and sent out, packets of jobs apart from
all others, at port * 2 + 1 and port * 2 (p4src/v1model/netfold.p4).

All cells that are wanted of a switch come in one request, which is made once for a connection. It goes below finsy's
objects: at 64 switches they would cost more than all the rest of reading.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import finsy as fy
from finsy.proto import p4r

ARRIVALS, DEPARTURES = "arrivals", "departures"

FRAMING_BYTES = 24
"""Preamble, check sequence and gap: what a frame takes of a link beyond what a switch counts."""


def cell(port: int, of_a_job: bool) -> int:
    return port * 2 + of_a_job


@dataclass(frozen=True)
class PortCount:
    """Bytes on the wire since the switch started, framing included."""

    foreign: int = 0
    jobs: int = 0


@dataclass(frozen=True)
class PortCounts:
    """By port; a counter that the switch's program does not have is empty."""

    arrivals: dict[int, PortCount]
    departures: dict[int, PortCount]


class PortReader:
    """Of the `incoming` ports what arrives and of the `outgoing` ones what departs, from a switch with `schema`."""

    def __init__(
        self, schema: fy.P4Schema, device_id: int, incoming: Iterable[int], outgoing: Iterable[int]
    ) -> None:
        self._names: dict[int, str] = {}
        self.request = p4r.ReadRequest(device_id=device_id)
        for name, ports in ((ARRIVALS, incoming), (DEPARTURES, outgoing)):
            counter = schema.counters.get(name)
            if counter is None:
                continue
            self._names[counter.id] = name
            for port in ports:
                for of_a_job in (False, True):
                    index = p4r.Index(index=cell(port, of_a_job))
                    entry = p4r.CounterEntry(counter_id=counter.id, index=index)
                    self.request.entities.add(counter_entry=entry)

    def __bool__(self) -> bool:
        """There is something to read."""
        return bool(self._names)

    def counts(self, answers: Iterable[p4r.ReadResponse]) -> PortCounts:
        found: dict[str, dict[int, list[int]]] = {ARRIVALS: {}, DEPARTURES: {}}
        for answer in answers:
            for entity in answer.entities:
                entry = entity.counter_entry
                data, at = entry.data, entry.index.index
                pair = found[self._names[entry.counter_id]].setdefault(at >> 1, [0, 0])
                pair[at & 1] = data.byte_count + FRAMING_BYTES * data.packet_count
        by_port = {n: {port: PortCount(*pair) for port, pair in rows.items()} for n, rows in found.items()}
        return PortCounts(by_port[ARRIVALS], by_port[DEPARTURES])
