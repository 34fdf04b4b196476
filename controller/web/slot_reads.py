# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the slot of a chunk at the switches of its tree, for pages. However many pages ask, a switch answers few
READ packets."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc

MAX_SWITCHES = 32
"""Switches of one request. The page asks for those nearest to the root."""

READS_PER_S = 10.0
"""Half of the calls that a tenant may make by default: the page of a user leaves room for the others."""

MAX_WAIT_S = 2.0
"""Reads of all pages wait for their turn at most this long, and are refused beyond it."""

READ_TIMEOUT_S = 3.0
SHOWN_LANES = 8


@dataclass(frozen=True)
class SlotRequest:
    """A slot of a tree, and the switches at which it is read. `shows_values`: the reader has shown a token, and may see
    values of gradients."""

    job: str
    tree: int
    slot: int
    switches: tuple[str, ...]
    shows_values: bool = False

    @classmethod
    def of(
        cls, parameters: Mapping[str, str], switches: list[str], *, shows_values: bool = False
    ) -> SlotRequest:
        """Take it from a query's parameters. Raises ValueError."""
        if not 1 <= len(switches) <= MAX_SWITCHES:
            raise ValueError(f"{len(switches)} switches; expected 1 to {MAX_SWITCHES}")
        tree, slot = _number(parameters, "tree"), _number(parameters, "slot")
        return cls(parameters.get("job", ""), tree, slot, tuple(switches), shows_values)


class ReadPace:
    """The times at which reads may begin, READS_PER_S of them a second."""

    def __init__(self) -> None:
        self._next = 0.0

    def reserve(self, count: int) -> list[float] | None:
        """Return the seconds until each read may begin; None if the first would wait too long."""
        now = time.monotonic()
        first = max(now, self._next)
        if first - now > MAX_WAIT_S:
            return None
        self._next = first + count / READS_PER_S
        return [first - now + number / READS_PER_S for number in range(count)]


async def read_slots(
    stub: pb_grpc.ControllerStub, request: SlotRequest, delays_s: list[float]
) -> dict[str, dict[str, Any]]:
    """Return by switch what its slot holds, or an `error`. Without `shows_values` there are no `lanes`, unless the job
    is a sandbox, whose values are made by hand. `delays_s`: until each read begins."""
    reads = [_read(stub, request, *read) for read in zip(request.switches, delays_s, strict=True)]
    rows = dict(zip(request.switches, await asyncio.gather(*reads), strict=True))
    if not request.shows_values and not await _is_sandbox(stub, request.job):
        for row in rows.values():
            row.pop("lanes", None)
    return rows


async def _is_sandbox(stub: pb_grpc.ControllerStub, job: str) -> bool:
    try:
        return bool((await stub.GetJob(pb.JobName(name=job), timeout=READ_TIMEOUT_S)).sandbox)
    except grpc.aio.AioRpcError:
        return False


async def _read(
    stub: pb_grpc.ControllerStub, request: SlotRequest, switch: str, delay_s: float
) -> dict[str, Any]:
    await asyncio.sleep(delay_s)
    message = pb.ReadSlotRequest(switch=switch, job=request.job, slot=request.slot, tree=request.tree)
    try:
        contents = await stub.ReadSlot(message, timeout=READ_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            return {"error": f"no answer within {READ_TIMEOUT_S:g} s"}
        return {"error": error.details() or error.code().name}
    return {
        "epoch": contents.epoch,
        "chunk": contents.round * contents.slots + request.slot,
        "contributors": list(contents.contributors),
        "missing": list(contents.missing),
        "overflow": contents.overflow,
        "exponent": contents.exponent,
        "lanes": list(contents.lanes[:SHOWN_LANES]),
    }


def _number(parameters: Mapping[str, str], name: str) -> int:
    text = parameters.get(name, "")
    if not re.fullmatch("[0-9]{1,5}", text) or int(text) > 0xFFFF:
        raise ValueError(f"{name} is '{text[:20]}'; expected 0 to {0xFFFF}")
    return int(text)
