# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings as files of JSON lines: written in bounded space, and checked when they are read, as they come from
elsewhere."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from netfold.controller.recording.lines import VERSION, LineKind

log = logging.getLogger(__name__)

MAX_FILE_BYTES = 64 << 20
MAX_LINE_BYTES = 64 << 20


class RecordingError(Exception):
    """A recording cannot be read or written; the message has the file, the line and what is expected."""


class RecordingFile:
    """Takes at most `max_bytes` on disk: at half of that, and when another recording starts at PATH, the file becomes
    PATH.old. Files start with a segment, so each can be read alone. A file that cannot be written, as on a full disk,
    ends the recording and not the controller."""

    def __init__(self, path: Path, max_bytes: int = MAX_FILE_BYTES) -> None:
        """Raises RecordingError."""
        self._path = path
        self._max_bytes = max_bytes
        self._size = 0
        self._file: TextIO | None
        try:
            if path.exists():
                path.replace(old_half(path))
            self._file = self._open()
        except OSError as error:
            raise RecordingError(f"recording {path} cannot be written: {error.strerror}") from error

    def start_segment(self, lines: Iterable[str]) -> None:
        if self._file is not None and self._size > self._max_bytes // 2:
            try:
                self._file.close()
                self._path.replace(old_half(self._path))
                self._file = self._open()
            except OSError as error:
                self._give_up(error)
        self.append(lines)

    def append(self, lines: Iterable[str]) -> None:
        if self._file is None:
            return
        try:
            for line in lines:
                self._size += self._file.write(line + "\n")
            self._file.flush()
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> TextIO:
        self._size = 0
        return self._path.open("w", encoding="utf-8")

    def _give_up(self, error: OSError) -> None:
        log.error("recording %s ends: %s", self._path, error)
        self._file = None


def write_recording(path: Path, lines: Iterable[str]) -> None:
    """A recording that is complete, in place of the file. Raises RecordingError."""
    try:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"recording {path} cannot be written: {error.strerror}") from error


def old_half(path: Path) -> Path:
    """The file that a full recording file became."""
    return path.with_name(path.name + ".old")


def read_recording(path: Path) -> Iterator[str]:
    """The lines of a recording; of its older half first, where that lies beside it. A last line that was cut off while
    it was written is left out. Raises RecordingError."""
    older = old_half(path)
    for file in (older, path) if older.is_file() else (path,):
        yield from _read(file)


def _read(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES):
                number += 1
                if not line.endswith("\n"):
                    if number == 1:
                        raise RecordingError(f"{path}:1: expected a whole line that describes the fabric")
                    return
                _check(f"{path}:{number}", line, first=number == 1)
                yield line.rstrip("\n")
            if number == 0:
                raise RecordingError(f"{path}: is empty; expected a recording (docs/reference/recording.md)")
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RecordingError(f"{path}: expected text in UTF-8: {error.reason}") from error


def _check(place: str, line: str, *, first: bool) -> None:
    try:
        row = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{place}: expected a JSON object: {error}") from error
    kind = row.get("kind") if isinstance(row, dict) else None
    if first and kind != LineKind.FABRIC:
        raise RecordingError(f"{place}: expected a line of kind 'fabric' first; is this a recording?")
    if kind == LineKind.FABRIC:
        _check_fabric(place, row)
    elif kind in (LineKind.STATE, LineKind.CHANGE):
        _check_time(place, row)
        sections = row.get("state")
        if not isinstance(sections, dict) or not all(isinstance(s, dict) for s in sections.values()):
            raise RecordingError(f"{place}: expected 'state' to be an object of sections")
    elif kind == LineKind.EVENT:
        _check_time(place, row)
        if not isinstance(row.get("event"), str) or not isinstance(row.get("text"), str):
            raise RecordingError(f"{place}: expected an event to have the texts 'event' and 'text'")
    else:
        raise RecordingError(f"{place}: kind {kind!r} is unknown; expected one of {', '.join(LineKind)}")


def _check_fabric(place: str, row: dict[str, Any]) -> None:
    if row.get("version") != VERSION:
        raise RecordingError(
            f"{place}: the recording has version {row.get('version')!r}; this netfold reads {VERSION}"
        )
    for name, keys in (("switches", ("name",)), ("hosts", ("name", "switch")), ("links", ("a", "b"))):
        rows = row.get(name)
        if not isinstance(rows, list) or not all(
            isinstance(r, dict) and all(isinstance(r.get(k), str) for k in keys) for r in rows
        ):
            raise RecordingError(f"{place}: expected '{name}' to be a list of objects with {', '.join(keys)}")


def _check_time(place: str, row: dict[str, Any]) -> None:
    at = row.get("at")
    if not isinstance(at, int | float) or isinstance(at, bool) or not math.isfinite(at):
        raise RecordingError(f"{place}: expected 'at' to be seconds, not {at!r}")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
