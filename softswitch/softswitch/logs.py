# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Logs: to standard error, or in the format of simple_switch_grpc with --log-console and --log-file."""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import sys
import threading
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from google.protobuf.message import DecodeError

TRACE = 5
"""Below logging.DEBUG: the steps of an action."""


class LogLevel(StrEnum):
    """The levels of simple_switch_grpc."""

    TRACE = "trace"
    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"
    OFF = "off"

    @property
    def number(self) -> int:
        """The level of Python's logging."""
        return _NUMBERS[self]


_NUMBERS = {
    LogLevel.TRACE: TRACE,
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARN: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
    LogLevel.OFF: logging.CRITICAL + 1,
}


@dataclass(frozen=True)
class LogFile:
    """BMv2's --log-file NAME: NAME.txt, rotated to NAME.1.txt ... at `max_bytes`. `flush`: after each line."""

    name: Path
    flush: bool = False
    max_bytes: int = 5 << 20
    kept: int = 3


class Bmv2Formatter(logging.Formatter):
    """[HH:MM:SS.mmm] [bmv2] [D] [thread N] message"""

    def __init__(self) -> None:
        super().__init__(
            "[%(asctime)s.%(msecs)03d] [bmv2] [%(letter)s] [thread %(native)d] %(message)s", "%H:%M:%S"
        )

    def format(self, record: logging.LogRecord) -> str:
        record.letter = "T" if record.levelno < logging.DEBUG else record.levelname[0]
        record.native = threading.get_native_id()
        return super().format(record)


def set_up_logs(level: LogLevel, device_id: int, *, console: bool, file: LogFile | None) -> None:
    """Sets the destination of all logs of this process. Raises OSError if the file cannot be written."""
    handler: logging.Handler
    if file is not None:
        handler = _file_handler(file)
    elif console:
        handler = logging.StreamHandler(sys.stdout)
    else:
        handler = logging.StreamHandler(sys.stderr)
    if console or file is not None:
        handler.setFormatter(Bmv2Formatter())
    else:
        handler.setFormatter(logging.Formatter(f"%(asctime)s %(levelname)s device {device_id}: %(message)s"))
    handler.addFilter(shorten_grpc_tracebacks)
    # Below INFO only this package logs.
    logging.basicConfig(level=max(level.number, logging.INFO), handlers=[handler])
    logging.getLogger("softswitch").setLevel(level.number)


def shorten_grpc_tracebacks(record: logging.LogRecord) -> bool:
    """A log filter: one line in place of the traceback of an error inside gRPC (a client's abrupt disconnect), of a
    call that gRPC has canceled for that, or of a message that cannot be decoded."""
    if record.name.partition(".")[0] != "grpc":
        return True
    kind, error, _ = record.exc_info or (None, None, None)
    message = record.getMessage() if kind is None else f"{record.getMessage()}: {kind.__name__}: {error}"
    # gRPC writes the traceback of a call that its server's stop has canceled into the message, or into the error.
    first, _, trace = message.partition("\nTraceback (most recent call last):")
    if kind is None:
        is_theirs = asyncio.CancelledError.__name__ in trace
    else:
        is_theirs = kind.__module__.startswith("grpc.") or kind in (asyncio.CancelledError, DecodeError)
    if is_theirs:
        record.msg, record.args, record.exc_info, record.exc_text = first, (), None, None
    return True


def _file_handler(file: LogFile) -> logging.Handler:
    handler = _Rotating(f"{file.name}.txt", maxBytes=file.max_bytes, backupCount=file.kept)
    handler.namer = lambda name: f"{file.name}.{name.rpartition('.')[2]}.txt"
    handler.flush_each = file.flush
    return handler


class _Rotating(logging.handlers.RotatingFileHandler):
    flush_each = False

    def flush(self) -> None:
        if self.flush_each:
            super().flush()

    def close(self) -> None:
        self.flush_each = True
        super().close()
