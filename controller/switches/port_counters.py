# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The counters `arrivals` and `departures`: what each port of a switch took in and sent out, packets of jobs apart from
all others, at port * 2 + 1 and port * 2 (p4src/v1model/netfold.p4).

All cells that are wanted of a switch come in one request, which is made once for a connection. An answer is most often
the last one with other numbers of as many digits in it: these are taken from where they were then.
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
"""A byte of a number (a varint: seven bits in each, the low ones first) that another one follows."""

_DIGITS = 9
"""Bytes of a number below 2^63."""

_BYTES, _PACKETS = 13, 15
"""Which numbers of a cell these are."""

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
        data = np.frombuffer(b"".join(messages) + b"\0", np.uint8)
        counts = None if self._layout is None else self._layout.counts(data, self._counts)
        if counts is None:
            counts = self._decoded(messages, data)
        self._messages, self._counts = messages, counts
        return counts

    def _decoded(self, messages: list[bytes], data: NDArray[np.uint8]) -> PortCounts:
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
        self._layout = _layout(data, pieces, order)
        return counts


@dataclass(frozen=True)
class _Layout:
    """Of an answer, a 0 behind it: which bits (`mask`) of its bytes are as they were (`fixed`) where it has the same
    numbers of the same length; and for each cell that is not 0, of what `place`, at which bytes the digits of its
    bytes and packets are and what they are worth (that 0 stands for what shorter numbers lack)."""

    mask: NDArray[np.uint8]
    fixed: NDArray[np.uint8]
    places: NDArray[np.int64]
    digits_at: NDArray[np.int64]
    worth: NDArray[np.int64]

    def counts(self, data: NDArray[np.uint8], before: PortCounts) -> PortCounts | None:
        """None: it is laid out otherwise."""
        if len(data) != len(self.mask) or (data & self.mask).tobytes() != self.fixed.tobytes():
            return None
        found = before.copy()
        found.reshape(-1)[self.places] = (data[self.digits_at] & (_MORE - 1)).astype(np.int64) @ self.worth
        return found


def _layout(data: NDArray[np.uint8], pieces: list[bytes], order: list[int]) -> _Layout | None:
    """Of an answer whose cells all are 0 or have bytes and packets."""
    mask = np.full(len(data), 0xFF, np.uint8)
    spans: list[tuple[range, range]] = []
    places, first = [], 0
    for piece, place in zip(pieces, order, strict=True):
        ends = [first + at + 1 for at, byte in enumerate(piece) if byte < _MORE]
        first += len(piece)
        if len(ends) == _FULL:
            spans.append((range(ends[_BYTES - 1], ends[_BYTES]), range(ends[_PACKETS - 1], ends[_PACKETS])))
            places.append(place)
        elif len(ends) not in _EMPTY:
            return None
    most = max((len(span) for both in spans for span in both), default=0)
    if most > _DIGITS:
        return None
    digits_at = np.full((len(spans), 2, most), len(data) - 1)
    for row, both in enumerate(spans):
        for which, span in enumerate(both):
            digits_at[row, which, : len(span)] = span
            mask[span.start : span.stop] = _MORE
    worth = (_MORE ** np.arange(most, dtype=np.int64)) * np.array([[1], [FRAMING_BYTES]])
    flat = digits_at.reshape(len(spans), 2 * most)
    return _Layout(mask, data & mask, np.array(places, np.int64), flat, worth.reshape(-1))


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
