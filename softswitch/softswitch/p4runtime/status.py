# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of requests: a canonical code and a message, one per update of a Write."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from finsy.proto import p4r, rpc_status
from google.protobuf import any_pb2

from softswitch.errors import (
    AlreadyExistsError,
    InUseError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    PipelineError,
    ResourceExhaustedError,
    SwitchError,
    UnsupportedConstructError,
)

# gRPC clients accept 8 KiB of trailing metadata by default, and drop all details beyond.
DETAILS_BUDGET = 7 * 1024
DETAILS_MAX = 256  # codes that fit
MESSAGE_MAX = 1500
ERROR_SPACE = "softswitch"
"""`space` of p4.v1.Error and p4.v1.StreamError."""


class Code(IntEnum):
    """google.rpc.Code, the canonical codes that this server gives."""

    OK = 0
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class StatusError(Exception):
    """A rejected request, update or stream message."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message if len(message) <= MESSAGE_MAX else f"{message[:MESSAGE_MAX]} ..."


# The most specific type first.
_CODES: tuple[tuple[type[SwitchError], Code], ...] = (
    (AlreadyExistsError, Code.ALREADY_EXISTS),
    (NotFoundError, Code.NOT_FOUND),
    (ResourceExhaustedError, Code.RESOURCE_EXHAUSTED),
    (OutOfRangeError, Code.OUT_OF_RANGE),
    (InUseError, Code.FAILED_PRECONDITION),
    (InvalidArgumentError, Code.INVALID_ARGUMENT),
    (PermissionDeniedError, Code.PERMISSION_DENIED),
    (UnsupportedConstructError, Code.UNIMPLEMENTED),
    (PipelineError, Code.INVALID_ARGUMENT),
)


def invalid(message: str) -> StatusError:
    """An INVALID_ARGUMENT to raise."""
    return StatusError(Code.INVALID_ARGUMENT, message)


def from_switch(error: SwitchError) -> StatusError:
    """The status of an error of the switch."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), Code.INTERNAL)
    return StatusError(code, str(error))


def write_details(results: Sequence[StatusError | None]) -> bytes:
    """google.rpc.Status with one p4.v1.Error per update (specification, Write RPC), serialized.

    Shortens the messages to a client's default limit. If the codes alone exceed it, truncates the list and notes that
    in the status.
    """
    shown = results[:DETAILS_MAX]
    for limit in (None, 200, 80, 30, 0):
        status = _status(shown, limit)
        if status.ByteSize() <= DETAILS_BUDGET and len(shown) == len(results):
            return status.SerializeToString()
    fit = 0
    room = DETAILS_BUDGET - 128
    for detail in status.details:
        room -= detail.ByteSize() + 4
        if room < 0:
            break
        fit += 1
    del status.details[fit:]
    status.message = f"Write failure. The results of the first {fit} of {len(results)} updates fit here."
    return status.SerializeToString()


def _status(results: Sequence[StatusError | None], limit: int | None) -> rpc_status.Status:
    status = rpc_status.Status(code=Code.UNKNOWN, message="Write failure.")
    for result in results:
        error = p4r.Error(canonical_code=Code.OK)
        if result is not None:
            message = result.message if limit is None else result.message[:limit]
            error = p4r.Error(canonical_code=result.code, message=message, space=ERROR_SPACE)
        detail = any_pb2.Any()
        detail.Pack(error)
        status.details.append(detail)
    return status
