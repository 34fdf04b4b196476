# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The counters `arrivals` and `departures`: what each port of a switch took in and sent out, packets of jobs apart from
all others, at port * 2 + 1 and port * 2 (p4src/v1model/netfold.p4).

All cells that are wanted of a switch come in one request, which is made once for a connection. An answer is most often
the last one with other numbers in it: these are taken from where they were then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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

_MORE = 0x80
"""A byte of a number that another one follows."""

_FULL, _EMPTY = 16, (10, 12)
"""Numbers of a cell that has bytes and packets, and of one that is 0: tags, lengths, id and index, and then the data
with theirs."""


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
        self._layout: _Layout | None = None
        self._counts: PortCounts = np.full((rows, 2), UNKNOWN, np.int64)

    def __bool__(self) -> bool:
        """There is something to read."""
        return bool(self._places)

    def counts(self, answer: Iterable[bytes]) -> PortCounts:
        """From the encoded messages of an answer; the same object where nothing has changed. Raises AnswerError."""
        messages = list(answer)
        if messages == self._messages:
            return self._counts
        numbers = _varints(b"".join(messages))
        if self._layout is not None and self._layout.is_that_of(numbers):
            counts = self._layout.counts(numbers, self._counts)
        else:
            counts = self._decoded(messages, numbers)
        self._messages, self._counts = messages, counts
        return counts

    def _decoded(self, messages: list[bytes], numbers: NDArray[np.uint64]) -> PortCounts:
        pieces = [piece for message in messages for piece in _pieces(message)]
        if len(pieces) != len(self._places):
            raise AnswerError(f"{len(pieces)} cells in place of {len(self._places)}")
        counts, order = self._counts.copy(), []
        try:
            for entity in p4r.ReadResponse.FromString(b"".join(messages)).entities:
                entry = entity.counter_entry
                order.append(self._places[entry.counter_id, entry.index.index])
                counts.flat[order[-1]] = entry.data.byte_count + FRAMING_BYTES * entry.data.packet_count
        except (DecodeError, KeyError, OverflowError) as error:
            raise AnswerError(f"a cell that was not asked for: {error}") from error
        if len(set(order)) != len(self._places):
            raise AnswerError("a cell that is there twice")
        self._layout = _layout(numbers, pieces, order)
        return counts


@dataclass(frozen=True)
class _Layout:
    """Of an answer all of whose numbers are varints: what they were, which of them (`fixed`) say what the others are,
    and where the bytes and packets are of the cells (`places`) that are not 0."""

    numbers: NDArray[np.uint64]
    fixed: NDArray[np.bool_]
    bytes_at: NDArray[np.int64]
    places: NDArray[np.int64]

    def is_that_of(self, numbers: NDArray[np.uint64]) -> bool:
        return len(numbers) == len(self.numbers) and not ((numbers != self.numbers) & self.fixed).any()

    def counts(self, numbers: NDArray[np.uint64], before: PortCounts) -> PortCounts:
        found = before.copy()
        packets = numbers[self.bytes_at + 2].astype(np.int64)
        found.reshape(-1)[self.places] = numbers[self.bytes_at].astype(np.int64) + FRAMING_BYTES * packets
        return found


def _layout(numbers: NDArray[np.uint64], pieces: list[bytes], places: list[int]) -> _Layout | None:
    """Of an answer whose cells all are 0 or have bytes and packets."""
    sizes = np.array([sum(byte < _MORE for byte in piece) for piece in pieces])
    firsts = np.cumsum(sizes) - sizes
    full = sizes == _FULL
    if not np.isin(sizes, (*_EMPTY, _FULL)).all() or sizes.sum() != len(numbers):
        return None
    fixed = np.ones(len(numbers), np.bool_)
    fixed[firsts + 1] = fixed[firsts + 3] = False  # lengths
    fixed[firsts[full] + 11] = fixed[firsts[full] + 13] = fixed[firsts[full] + 15] = False
    return _Layout(numbers, fixed, firsts[full] + 13, np.array(places)[full])


def _varints(message: bytes) -> NDArray[np.uint64]:
    """The numbers that a message consists of whose fields all are varints or messages of such."""
    data = np.frombuffer(message, np.uint8)
    ends = np.flatnonzero(data < _MORE)
    if not len(ends) or ends[-1] != len(data) - 1:
        return np.zeros(0, np.uint64)
    firsts = np.concatenate(([0], ends[:-1] + 1))
    within = np.arange(len(data)) - np.repeat(firsts, ends - firsts + 1)
    return np.add.reduceat((data & (_MORE - 1)).astype(np.uint64) << (7 * within).astype(np.uint64), firsts)


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
