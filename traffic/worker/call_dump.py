# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the last calls of the workers of this process to files, for a program that hangs: when a call times out, and
at SIGUSR1. Both need NETFOLD_DUMP_DIR, a folder."""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO, Any, Literal, Protocol

from netfold.protocol.environment import Variable
from netfold.traffic.membership.calls import CALL_TIMES, CallRecord

log = logging.getLogger("netfold.dump")

SIGNAL = signal.SIGUSR1
_LIBRARY_FOLDERS = (f"{Path(__file__).parents[2]}{os.sep}", f"{Path(os.__file__).parent}{os.sep}", "<frozen ")
_LIBRARY_PARTS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class Dumper(Protocol):
    """An object with calls to write."""

    def dump_to(self, folder: Path, reason: str) -> None:
        """Writes a file of its own, in place of its last one. Raises OSError."""


class CallDumps:
    """The dumpers of this process, which have one signal in common."""

    def __init__(self) -> None:
        self._dumpers: weakref.WeakSet[Dumper] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._writing = threading.Lock()  # as two dumps at once would write to one file

    def add(self, dumper: Dumper) -> None:
        """Dumps it, too, from now on. Takes SIGUSR1 where the program has no handler of its own."""
        if dump_folder() is None:
            return
        with self._lock:
            self._dumpers.add(dumper)
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(SIGNAL) is signal.SIG_DFL:
            signal.signal(SIGNAL, self._on_signal)

    def dump(self, dumper: Dumper, reason: str) -> None:
        """Dumps one, if there is a folder. A folder that takes no files is no reason for the program to fail."""
        folder = dump_folder()
        if folder is None:
            return
        try:
            with self._writing:
                folder.mkdir(parents=True, exist_ok=True)
                dumper.dump_to(folder, reason)
        except OSError as error:
            log.warning("the calls cannot be written to %s: %s", folder, error)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Writes in a thread: a lock that a dumper needs may be held by the code that the signal interrupted."""
        threading.Thread(target=self._dump_all, name="netfold dump").start()

    def _dump_all(self) -> None:
        with self._lock:
            dumpers = list(self._dumpers)
        for dumper in (*dumpers, _Stacks()):
            self.dump(dumper, f"{SIGNAL.name}")


class _Stacks:
    """Where the threads of this process are."""

    def dump_to(self, folder: Path, reason: str) -> None:
        with new_file(folder / f"netfold-stacks-{os.getpid()}.txt") as file:
            faulthandler.dump_traceback(file)


CALL_DUMPS = CallDumps()


def dump_folder() -> Path | None:
    folder = os.environ.get(Variable.DUMP_DIR, "")
    return Path(folder) if folder else None


@contextmanager
def new_file(path: Path, kind: Literal["t", "b"] = "t") -> Iterator[IO[Any]]:
    """A file that replaces the one of `path` once it is whole. It follows no link that another user has planted in the
    folder. Raises OSError."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with part.open(f"x{kind}") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_calls(path: Path, header: dict[str, Any], calls: Sequence[CallRecord]) -> None:
    """Writes JSON lines: the header, then the calls in the order of submission, with times in seconds since 1970.
    Raises OSError."""
    with new_file(path) as file:
        for line in _lines(header, calls):
            file.write(f"{json.dumps(line)}\n")


def _lines(header: dict[str, Any], calls: Sequence[CallRecord]) -> Iterator[dict[str, Any]]:
    now = time.time()
    since_1970 = now - time.monotonic()
    yield {**header, "pid": os.getpid(), "time": now, "calls": len(calls)}
    for call in calls:
        fields = call._asdict()
        times = {name: since_1970 + fields[name] if fields[name] else None for name in CALL_TIMES}
        yield {**fields, **times}


def program_location() -> str:
    """File, line and function in which the main thread is, outside of libraries if there is such a place; empty:
    unknown."""
    frame = innermost = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    found = frame or innermost
    return "" if found is None else f"{found.f_code.co_filename}:{found.f_lineno} in {found.f_code.co_name}"


def _is_library(file: str) -> bool:
    return file.startswith(_LIBRARY_FOLDERS) or any(part in file for part in _LIBRARY_PARTS)
