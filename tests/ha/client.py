# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""An operator that submits and cancels jobs and withdraws elements, one request after the other, at the controller that
leads; and the members of the jobs that were acknowledged."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence

import grpc
import yaml

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.channels import open_aio_channel
from netfold.protocol.connection import Connection
from tests.ha.checker import Kind, Request
from tests.ha.member import Member

CALL_S = 4.0
"""A request may have been granted or not after this time."""
REFUSED = {
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}
EXPECTED = {*REFUSED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
PAUSE_S = 0.5
LEASE_MS = 60_000
"""The lease is longer than all faults together, so that no fault ends a job."""
MOST_JOBS = 6
HOSTS = tuple(f"h{n}" for n in range(1, 9))
ELEMENTS = ("spine1", "spine2", "leaf1-spine1", "leaf2-spine2", "h8")


class Client:
    """`note` gets each request after its end."""

    def __init__(self, where: Connection, note: Callable[[Request], None]) -> None:
        self._where = where
        self._note = note
        self._jobs: list[str] = []
        """Jobs that may be there, and of which no cancellation was acknowledged."""
        self.members: dict[str, list[Member]] = {}
        """The members by job. In some jobs no process runs yet."""
        self._submitted = 0
        self.outcomes: Counter[str] = Counter()
        """Requests by the name of their status code, and details of codes that no fault explains."""

    async def run(self, seed: int, for_s: float) -> None:
        """Make random requests for so long."""
        draws, loop = random.Random(f"requests {seed}"), asyncio.get_running_loop()
        until = loop.time() + for_s
        while loop.time() < until:
            await self._any(draws)
            await asyncio.sleep(draws.uniform(0, PAUSE_S))

    async def until_acknowledged(self, within_s: float) -> bool:
        """Submit jobs until one is acknowledged, and cancel it. False if none is in time."""
        until = asyncio.get_running_loop().time() + within_s
        while asyncio.get_running_loop().time() < until:
            if name := await self._submit(HOSTS[:2]):
                await self._cancel(name)
                return True
            await asyncio.sleep(PAUSE_S)
        return False

    async def _any(self, draws: random.Random) -> None:
        kind, element = draws.random(), draws.choice(ELEMENTS)
        hosts = draws.sample(HOSTS[:7], draws.randint(2, 4))
        if len(self._jobs) >= MOST_JOBS or (self._jobs and kind < 0.25):
            await self._cancel(self._jobs[0])
        elif kind < 0.65:
            await self._submit(sorted(hosts), has_members=draws.random() < 0.5)
        elif kind < 0.8:
            intent = draws.choice((pb.CORDON, pb.DRAIN))
            request = pb.WithdrawElementsRequest(elements=[element], intent=intent)
            await self._make(Kind.WITHDRAW, element, "WithdrawElements", request)
        else:
            request = pb.GiveBackElementsRequest(elements=[element])
            await self._make(Kind.GIVE_BACK, element, "GiveBackElements", request)

    async def _submit(self, hosts: Sequence[str], *, has_members: bool = False) -> str:
        """The name of the job; "" without an acknowledgment."""
        self._submitted += 1
        name = f"job{self._submitted}"
        limits = {"join_s": 86_400, "lease_ms": LEASE_MS}
        job = limits | {"name": name, "workers": list(hosts), "scheme": "switchml", "rate": 1}
        request = pb.SubmitJobRequest(spec_yaml=yaml.safe_dump(job))
        code = await self._make(Kind.SUBMIT, name, "SubmitJob", request)
        if code not in REFUSED:
            self._jobs.append(name)
        if code is grpc.StatusCode.OK:
            self.members[name] = [Member(self._where, name, host) for host in hosts if has_members]
        return name if code is grpc.StatusCode.OK else ""

    async def _cancel(self, name: str) -> None:
        code = await self._make(Kind.CANCEL, name, "CancelJob", pb.CancelJobRequest(name=name))
        if code in (grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND):  # its submission may have been in doubt
            self._jobs.remove(name)
            await self._end_members(name)

    async def _end_members(self, name: str) -> None:
        for member in self.members.pop(name, []):
            await member.leave()

    async def close(self) -> None:
        for name in list(self.members):
            await self._end_members(name)

    async def step_down(self) -> None:
        await self._call("StepDown", pb.StepDownRequest())

    async def _make(self, kind: Kind, name: str, method: str, request: object) -> grpc.StatusCode:
        code = await self._call(method, request)
        self._note(Request(kind, name, code is grpc.StatusCode.OK))
        self.outcomes[code.name] += 1
        return code

    async def _call(self, method: str, request: object) -> grpc.StatusCode:
        try:
            async with asyncio.timeout(CALL_S), open_aio_channel(self._where, CALL_S) as channel:
                await getattr(pb_grpc.ControllerStub(channel), method)(request, timeout=CALL_S)
        except grpc.aio.AioRpcError as error:
            if error.code() not in EXPECTED:
                self.outcomes[f"({method}: {error.details()})"] += 1
            return error.code()
        except TimeoutError:
            return grpc.StatusCode.DEADLINE_EXCEEDED
        return grpc.StatusCode.OK
