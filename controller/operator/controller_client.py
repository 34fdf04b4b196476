# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of the command line to the controller; errors become exit codes and messages."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Annotated, Any, NoReturn, TypeVar

import grpc
import typer
from google.protobuf.json_format import MessageToDict
from rich.console import Console

from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.channels import ANSWER_S, open_aio_channel
from netfold.protocol.connection import ConnectError, Connection
from netfold.protocol.options import ControllerOptions
from netfold.protocol.unreachable import unreachable_reason

BAD_INPUT, REFUSED, NO_CONTROLLER, NO_JOB, JOB_FAILED = 2, 3, 4, 5, 6
_EXITS = {
    grpc.StatusCode.INVALID_ARGUMENT: BAD_INPUT,
    grpc.StatusCode.ALREADY_EXISTS: BAD_INPUT,
    grpc.StatusCode.RESOURCE_EXHAUSTED: REFUSED,
    grpc.StatusCode.NOT_FOUND: NO_JOB,
    grpc.StatusCode.ABORTED: JOB_FAILED,  # a switch does not answer
    grpc.StatusCode.FAILED_PRECONDITION: NO_CONTROLLER,  # a standby, whose message names the primary
    grpc.StatusCode.UNAVAILABLE: NO_CONTROLLER,
    grpc.StatusCode.UNAUTHENTICATED: NO_CONTROLLER,
    grpc.StatusCode.DEADLINE_EXCEEDED: NO_CONTROLLER,
}

NOTICE_AFTER_S, LISTEN_TIMEOUT_S = 0.5, 60.0
"""Waiting time for a controller to listen: before the notice to the user, and after it."""

Result = TypeVar("Result")

JobArgument = Annotated[str, typer.Argument(help="The job's name.")]


class CallFailedError(Exception):
    """A call to the controller failed. `code`: exit code of the command."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def duration_s(option: str, text: str) -> float:
    """The seconds of a duration such as 5m. Another text ends the command."""
    found = re.fullmatch(r"(\d{1,9})([smhd])", text)
    if found is None:
        fail(BAD_INPUT, f"{option} is '{text}'; expected a number and s, m, h or d, such as 5m")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]


def call_controller(
    where: ControllerOptions,
    request: Callable[[pb_grpc.ControllerStub], Awaitable[Result]],
    *,
    wait: bool = False,
) -> Result:
    """Runs `request`; a failure becomes an exit code and a line. `wait`: wait up to `LISTEN_TIMEOUT_S` for a controller
    that does not listen yet."""
    try:
        return try_controller(where, request, wait_s=LISTEN_TIMEOUT_S if wait else 0.0)
    except CallFailedError as error:
        fail(error.code, str(error))


def try_controller(
    where: ControllerOptions,
    request: Callable[[pb_grpc.ControllerStub], Awaitable[Result]],
    *,
    wait_s: float = 0.0,
) -> Result:
    """As `call_controller`, with the seconds to wait for a controller. Raises CallFailedError."""

    async def run(to: Connection) -> Result:
        async with AsyncExitStack() as stack:
            opened = open_aio_channel(to, wait_s or ANSWER_S, wait_for_ready=wait_s > 0)
            opening = asyncio.create_task(stack.enter_async_context(opened))
            if wait_s and not (await asyncio.wait([opening], timeout=NOTICE_AFTER_S))[0]:
                note(f"no controller answers at {to.address} yet; waiting for one, at most {wait_s:g} s")
            return await request(pb_grpc.ControllerStub(await opening))

    try:
        to = where.connection()
    except ConnectError as error:
        raise CallFailedError(BAD_INPUT, str(error)) from error
    try:
        return asyncio.run(run(to))
    except grpc.aio.AioRpcError as error:
        raise _call_failed(error, to) from error


def _call_failed(error: grpc.aio.AioRpcError, to: Connection) -> CallFailedError:
    code, details = _EXITS.get(error.code(), NO_CONTROLLER), str(error.details())
    if error.code() in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
        return CallFailedError(code, f"the controller at {to.address} refuses the call: {details}")
    if code == NO_CONTROLLER and error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
        reason = unreachable_reason(to, details)
        return CallFailedError(code, f"no controller answers at {to.address}: {reason}")
    return CallFailedError(code, details)


def plain(message: Any) -> Any:
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2))


def note_standby(primary: str) -> None:
    """One line beside the answer, on standard error, if a standby gave it; `primary` is "" if it did not."""
    if primary:
        note(f"a standby answers, from what is stored; the primary serves at {primary}")


def note(what: str) -> None:
    Console(stderr=True).print(
        f"netfold: {what}", style="yellow", markup=False, highlight=False, soft_wrap=True
    )


def fail(code: int, message: str | None) -> NoReturn:
    Console(stderr=True).print(
        f"netfold: {message}", style="red", markup=False, highlight=False, soft_wrap=True
    )
    raise typer.Exit(code)
