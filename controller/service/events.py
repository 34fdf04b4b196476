# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Events: one JSON line for each call that changes something, with its caller and outcome, in files next to the store.

A file has the events of a day (UTC). A thread writes and reads, so that a slow disk delays no call; what it cannot take
is counted, and no call waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import os
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

log = logging.getLogger(__name__)

KEPT_DAYS = 30
MAX_BYTES = 64 << 20
"""Limit of all files together: the oldest go first."""
MAX_DAY_BYTES = MAX_BYTES // 4
"""Events of a day beyond that are counted in the log, and not kept: a flood must not displace the days before."""
MAX_TENANT_BYTES = MAX_DAY_BYTES // 8
"""Events of a day beyond that, by the users of one tenant, are not kept: they must not displace those of others."""
MAX_WAITING = 10_000
LINES_A_READ = 100
OTHERS_POLL_S = 1.0
"""Seconds between two readings of files that another process may write, as a primary and its standby do."""
MAX_SECONDS = 4e9
"""Times beyond that, in the year 2096, have no date on all platforms."""
_SUFFIX = ".jsonl"


@dataclass(frozen=True)
class Event:
    """`at`: seconds since 1970. `caller`: its name, or its role. `target`: the job or the elements. `outcome`: a status
    code of gRPC, in lower case."""

    at: float
    call: str
    caller: str
    tenant: str
    source: str
    target: str
    outcome: str
    message: str = ""

    def line(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True)
class Position:
    """A place in the events: a file and an offset."""

    file: str = ""
    offset: int = 0


class EventFiles:
    """Events in `folder`. Several processes may write there, as a primary and its standby do."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: deque[tuple[str, bytes]] = deque()  # name of the file, line
        self._lost = 0
        self._day = ""
        self._bytes_of_tenants: Counter[str] = Counter()  # on that day, by this process
        self._due = threading.Event()
        self._is_closing = False
        self._grown = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write_all, name="events", daemon=True)
        self._thread.start()

    def add(self, event: Event, tenant: str = "") -> None:
        """Have the thread write the event. `tenant`: of a caller whose events are bounded."""
        day, line = _file_of(event.at), event.line()
        if len(self._waiting) >= MAX_WAITING or not self._has_room(day, len(line), tenant):
            self._lost += 1
            return
        self._waiting.append((day, line))
        self._due.set()

    def _has_room(self, day: str, size: int, tenant: str) -> bool:
        if not tenant:
            return True
        if day != self._day:
            self._day = day
            self._bytes_of_tenants.clear()
        self._bytes_of_tenants[tenant] += size
        return self._bytes_of_tenants[tenant] <= MAX_TENANT_BYTES

    def close(self) -> None:
        """Write what waits, and end."""
        self._is_closing = True
        self._due.set()
        self._thread.join(timeout=2.0)

    async def read(self, since: float, *, follow: bool) -> AsyncIterator[list[str]]:
        """The lines of events at `since` or later (seconds since 1970); with `follow` those that come, too."""
        position = Position(_file_of(since) if 0.0 <= since < MAX_SECONDS else "")
        while True:
            grown = self._grown
            lines, position = await asyncio.to_thread(self._read, position)
            shown = [line for line in lines if _at(line) >= since]
            if shown:
                yield shown
            if not lines:
                if not follow or self._is_closing:
                    return
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(OTHERS_POLL_S):
                        await grown.wait()

    # ---- the thread --------------------------------------------------------------------------------

    def _write_all(self) -> None:
        while not self._is_closing or self._waiting:
            self._due.wait()
            self._due.clear()
            lines = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if lines:
                self._write(lines)
                asyncio.run_coroutine_threadsafe(self._wake(), self._loop)

    async def _wake(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()

    def _write(self, lines: list[tuple[str, bytes]]) -> None:
        lost, self._lost = self._lost, 0
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in dict.fromkeys(day for day, _ in lines):
                lost += self._append(self._folder / name, [line for day, line in lines if day == name])
            self._remove_old()
        except OSError as error:
            log.error("%d events cannot be written to %s: %s", len(lines), self._folder, error)
        if lost:
            log.error("%d events were too many, and are not kept", lost)

    def _append(self, path: Path, lines: list[bytes]) -> int:
        """Append what fits; return the number of lines that do not."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            room = MAX_DAY_BYTES - os.fstat(descriptor).st_size
            fitting: list[bytes] = []
            for line in lines:
                room -= len(line)
                if room < 0:
                    break
                fitting.append(line)
            os.write(descriptor, b"".join(fitting))
        finally:
            os.close(descriptor)
        return len(lines) - len(fitting)

    def _files(self) -> list[Path]:
        """All files, the oldest first."""
        return sorted(self._folder.glob(f"*{_SUFFIX}")) if self._folder.is_dir() else []

    def _remove_old(self) -> None:
        files = self._files()
        sizes = [file.stat().st_size for file in files]
        while len(files) > KEPT_DAYS or sum(sizes) > MAX_BYTES:
            files.pop(0).unlink(missing_ok=True)
            sizes.pop(0)

    def _read(self, start: Position) -> tuple[list[str], Position]:
        """Some lines from a position on, and the position after them."""
        for file in self._files():
            if file.name < start.file:
                continue
            offset = start.offset if file.name == start.file else 0
            with file.open("rb") as opened:
                opened.seek(offset)
                lines: list[str] = []
                while len(lines) < LINES_A_READ and (line := opened.readline()).endswith(b"\n"):
                    lines.append(line.decode().removesuffix("\n"))
                    offset += len(line)
            if lines:
                return lines, Position(file.name, offset)
        return [], start


def _at(line: str) -> float:
    """The time of a line; that of one which a full disk has cut is none."""
    try:
        return float(json.loads(line)["at"])
    except (ValueError, TypeError, KeyError):
        return math.nan


def _file_of(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}{_SUFFIX}"
