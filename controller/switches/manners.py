# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""finsy's and gRPC's manners, in a session's terms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import cast

import finsy as fy
from finsy.proto import p4r

from netfold.controller.switches.endpoint import Tls


def read(switch: fy.Switch, wanted: Sequence[fy.p4entity.P4Entity]) -> AsyncIterator[object]:
    # finsy's overloads call an async generator a coroutine
    return cast(AsyncIterator[object], switch.read(wanted))


async def read_raw(switch: fy.Switch, request: p4r.ReadRequest) -> list[p4r.ReadResponse]:
    """The answers as they came: finsy's objects cost ten times what reading does."""
    assert switch._p4client is not None
    return [answer async for answer in switch._p4client.request_iter(request)]


def credentials(tls: Tls) -> fy.GRPCCredentialsTLS:
    return fy.GRPCCredentialsTLS(
        cacert=tls.ca, cert=tls.cert, private_key=tls.key, target_name_override=tls.server_name
    )


def asked_to_stop() -> bool:
    """This task was canceled, and not only a call within it."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def cause(error: fy.P4ClientError) -> str:
    """What the first refused update met, or else the call."""
    for detail in error.details.values():
        return f"{detail.canonical_code.name}: {detail.message}"
    return f"{error.code.name}: {error.message}"
