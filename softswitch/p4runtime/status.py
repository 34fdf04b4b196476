# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What a refused request is told: a canonical code and a sentence, one per update of a Write."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from finsy.proto import p4r, rpc_status
from google.protobuf import any_pb2

from netfold.softswitch.errors import (
    AlreadyExists,
    InUse,
    InvalidArgument,
    NotFound,
    OutOfRange,
    PermissionDenied,
    PipelineError,
    ResourceExhausted,
    SwitchError,
    UnsupportedConstruct,
)

# gRPC clients take 8 KiB of trailing metadata unless told otherwise; more, and they see no detail at all.
DETAILS_BUDGET = 7 * 1024
DETAILS_MAX = 256  # more codes than fit
MESSAGE_MAX = 1500


class Code(IntEnum):
    """google.rpc.Code, the canonical codes that this server gives."""

    OK = 0
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class Refused(Exception):
    """A request, an update or a stream message that the server does not carry out."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message if len(message) <= MESSAGE_MAX else f"{message[:MESSAGE_MAX]} ..."


# The most specific type first.
_CODES: tuple[tuple[type[SwitchError], Code], ...] = (
    (AlreadyExists, Code.ALREADY_EXISTS),
    (NotFound, Code.NOT_FOUND),
    (ResourceExhausted, Code.RESOURCE_EXHAUSTED),
    (OutOfRange, Code.OUT_OF_RANGE),
    (InUse, Code.FAILED_PRECONDITION),
    (InvalidArgument, Code.INVALID_ARGUMENT),
    (PermissionDenied, Code.PERMISSION_DENIED),
    (UnsupportedConstruct, Code.UNIMPLEMENTED),
    (PipelineError, Code.INVALID_ARGUMENT),
)


def invalid(message: str) -> Refused:
    """An INVALID_ARGUMENT to raise."""
    return Refused(Code.INVALID_ARGUMENT, message)


def from_switch(error: SwitchError) -> Refused:
    """The refusal that stands for an error of the switch."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), Code.INTERNAL)
    return Refused(code, str(error))


def write_details(results: Sequence[Refused | None]) -> bytes:
    """google.rpc.Status with one p4.v1.Error per update (specification, Write RPC), serialized.

    When the whole would not fit in a client's default limit the sentences are shortened; when the codes alone would
    not, the list ends with the last that does, and the status says so.
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


def _status(results: Sequence[Refused | None], limit: int | None) -> rpc_status.Status:
    status = rpc_status.Status(code=Code.UNKNOWN, message="Write failure.")
    for result in results:
        error = p4r.Error(canonical_code=Code.OK)
        if result is not None:
            message = result.message if limit is None else result.message[:limit]
            error = p4r.Error(canonical_code=result.code, message=message, space="netfold")
        detail = any_pb2.Any()
        detail.Pack(error)
        status.details.append(detail)
    return status
