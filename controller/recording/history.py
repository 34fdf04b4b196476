# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The lines of a recording in memory, bounded: the oldest segments are dropped."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

MAX_BYTES = 32 << 20


@dataclass
class _Segment:
    """`first` is the number of its first line."""

    first: int
    lines: list[str] = field(default_factory=list)
    size: int = 0


class History:
    """Lines are numbered from 0. A reader holds the number of the next line that it wants; one that falls behind what
    is kept continues at a segment's start, where the whole state is."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._segments: deque[_Segment] = deque()
        self._size = 0
        self._end = 0
        self._grown = asyncio.Event()
        self.closed = False

    @property
    def end(self) -> int:
        """The number of the line that comes next."""
        return self._end

    @property
    def segment_size(self) -> int:
        """Bytes of the newest segment."""
        return self._segments[-1].size if self._segments else 0

    @property
    def segment_start(self) -> int:
        """The number of the newest segment's first line."""
        return self._segments[-1].first if self._segments else 0

    def start_segment(self, lines: Sequence[str]) -> None:
        """`lines` have the fabric and the whole state."""
        self._segments.append(_Segment(self._end))
        self.append(lines)
        while self._size > self._max_bytes and len(self._segments) > 1:
            self._size -= self._segments.popleft().size

    def append(self, lines: Iterable[str]) -> None:
        """Raises IndexError before the first segment."""
        segment = self._segments[-1]
        for line in lines:
            segment.lines.append(line)
            segment.size += len(line)
            self._size += len(line)
            self._end += 1
        self._wake()

    def close(self) -> None:
        """No line follows: readers end."""
        self.closed = True
        self._wake()

    def read(self, start: int, limit: int = 1000) -> tuple[list[str], int]:
        """At most `limit` lines from number `start` on, and the number to continue with."""
        for segment in self._segments:
            if start < segment.first + len(segment.lines):
                offset = max(0, start - segment.first)
                lines = list(islice(segment.lines, offset, offset + limit))
                return lines, segment.first + offset + len(lines)
        return [], self._end

    async def wait(self, start: int) -> None:
        """Returns when there is a line of number `start` or more, or the history is closed."""
        while self._end <= start and not self.closed:
            await self._grown.wait()

    def _wake(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()
