# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the switch, one type per cause. p4runtime/status.py maps each to a canonical code."""

from __future__ import annotations

MESSAGE_MAX = 1500


class SwitchError(Exception):
    """Base of all errors of the switch. A failed operation changes nothing."""


class PipelineError(SwitchError):
    """The program cannot be loaded: the JSON is malformed, or the C compiler is missing or failed. Truncates the
    message, which may quote the program."""

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= MESSAGE_MAX else f"{message[:MESSAGE_MAX]} ...")


class UnsupportedConstructError(PipelineError):
    """The program uses a construct that the switch does not support."""

    def __init__(self, construct: str, source_file: str | None = None, line: int | None = None) -> None:
        self.construct = construct
        self.source_file = source_file
        self.line = line
        where = f" at {source_file}:{line}" if source_file is not None else ""
        super().__init__(f"unsupported construct: {construct}{where}")


class ControlError(SwitchError):
    """A control operation failed; the message has the object and the expected value."""


class AlreadyExistsError(ControlError):
    """The object exists."""


class NotFoundError(ControlError):
    """No such object, or no entry with that key."""


class ResourceExhaustedError(ControlError):
    """A table, profile or group is full."""


class InvalidArgumentError(ControlError):
    """A value is out of range, of the wrong length or kind, or refers to something that does not exist."""


class OutOfRangeError(InvalidArgumentError):
    """A number or an index does not fit."""


class InUseError(InvalidArgumentError):
    """The object to delete is referenced."""


class PermissionDeniedError(ControlError):
    """The object is constant (const entries, const default action)."""
