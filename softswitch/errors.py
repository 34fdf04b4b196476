# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The errors of the embedded switch, one type per cause. p4runtime/status.py gives each its canonical code."""

from __future__ import annotations

MESSAGE_MAX = 1500


class SwitchError(Exception):
    """Base of all errors the switch raises. Nothing is half-applied when one is raised."""


class PipelineError(SwitchError):
    """The program cannot be loaded: the JSON is malformed, or the C compiler is missing or failed. What is said of the
    program is cut: it may be of any length."""

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= MESSAGE_MAX else f"{message[:MESSAGE_MAX]} ...")


class UnsupportedConstruct(PipelineError):
    """The program uses something that the switch does not run; it is refused rather than run wrong."""

    def __init__(self, construct: str, source_file: str | None = None, line: int | None = None) -> None:
        self.construct = construct
        self.source_file = source_file
        self.line = line
        where = f" at {source_file}:{line}" if source_file is not None else ""
        super().__init__(f"unsupported construct: {construct}{where}")


class ControlError(SwitchError):
    """A control operation was refused: what it named, where, and what would be right."""


class AlreadyExists(ControlError):
    """The object is there already."""


class NotFound(ControlError):
    """No such object, or no entry with that key."""


class ResourceExhausted(ControlError):
    """A table, profile or group is full."""


class InvalidArgument(ControlError):
    """A value is out of range, of the wrong length or kind, or refers to something that does not exist."""


class OutOfRange(InvalidArgument):
    """A number or an index does not fit."""


class InUse(InvalidArgument):
    """What is to be deleted is referred to."""


class PermissionDenied(ControlError):
    """The object is constant (const entries, const default action)."""
