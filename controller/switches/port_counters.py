# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The counters `arrivals` and `departures`: what each port of a switch took in and sent out, packets of jobs apart from
all others, at port * 2 + 1 and port * 2 (p4src/v1model/netfold.p4).

All cells that are wanted of a switch come in one request, which is made once for a connection. Of an answer only the
cells are decoded that another value was in before: on most ports nothing happens.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import finsy as fy
import numpy as np
from finsy.proto import p4r
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

ARRIVALS, DEPARTURES = "arrivals", "departures"

FRAMING_BYTES = 24
"""Preamble, check sequence and gap: what a frame takes of a link beyond what a switch counts."""

UNKNOWN: Final = -1

PortCounts = NDArray[np.int64]
"""Bytes on the wire since the switch started, framing included: a row for each port whose arrivals are read, then for
each whose departures are, of [others, jobs]; UNKNOWN where the switch's program has no such counter. Not written to."""

_ENTITY = 0x0A
"""How an entity begins in a ReadResponse; its length follows, one byte as these are short."""


class AnswerError(Exception):
    """This is no answer to the request."""


def cell(port: int, of_a_job: bool) -> int:
    return port * 2 + of_a_job


class PortReader:
    """Of the `incoming` ports what arrives and of the `outgoing` ones what departs, from a switch with `schema`."""

    def __init__(
        self, schema: fy.P4Schema, device_id: int, incoming: Iterable[int], outgoing: Iterable[int]
    ) -> None:
        self.request = p4r.ReadRequest(device_id=device_id)
        self._places: dict[tuple[int, int], int] = {}
        rows = 0
        for name, ports in ((ARRIVALS, incoming), (DEPARTURES, outgoing)):
            counter = schema.counters.get(name)
            for port in ports:
                for of_a_job in (False, True) if counter is not None else ():
                    assert counter is not None
                    at = cell(port, of_a_job)
                    entry = p4r.CounterEntry(counter_id=counter.id, index=p4r.Index(index=at))
                    self.request.entities.add(counter_entry=entry)
                    self._places[counter.id, at] = 2 * rows + of_a_job
                rows += 1
        self._messages: list[bytes] = []
        self._pieces: list[bytes] = []
        self._values = [UNKNOWN] * (2 * rows)
        self._counts: PortCounts = np.full((rows, 2), UNKNOWN, np.int64)

    def __bool__(self) -> bool:
        """There is something to read."""
        return bool(self._places)

    def counts(self, answer: Iterable[bytes]) -> PortCounts:
        """From the encoded messages of an answer; the same object where nothing has changed. Raises AnswerError."""
        messages = list(answer)
        if messages == self._messages:
            return self._counts
        pieces = [piece for message in messages for piece in _pieces(message)]
        if len(pieces) != len(self._places):
            raise AnswerError(f"{len(pieces)} cells in place of {len(self._places)}")
        old = self._pieces or [b""] * len(pieces)
        changed = b"".join(new for new, before in zip(pieces, old, strict=True) if new != before)
        values, places = self._values.copy(), self._places
        try:
            for entity in p4r.ReadResponse.FromString(changed).entities:
                entry = entity.counter_entry
                data = entry.data
                values[places[entry.counter_id, entry.index.index]] = (
                    data.byte_count + FRAMING_BYTES * data.packet_count
                )
        except (DecodeError, KeyError) as error:
            raise AnswerError(f"a cell that was not asked for: {error}") from error
        self._messages, self._pieces, self._values = messages, pieces, values
        self._counts = np.array(values, np.int64).reshape(-1, 2)
        return self._counts


def _pieces(message: bytes) -> list[bytes]:
    """A ReadResponse's entities, as they are encoded. Raises AnswerError."""
    found, at = [], 0
    try:
        while at < len(message):
            end = at + 2 + message[at + 1]
            if message[at] != _ENTITY or message[at + 1] > 127 or end > len(message):
                raise AnswerError("an answer that holds more than cells of counters")
            found.append(message[at:end])
            at = end
    except IndexError:
        raise AnswerError("an answer that is cut off") from None
    return found
