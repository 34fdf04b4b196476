# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Members of a job at a deployment: each a JoinJob stream with heartbeats."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from netfold.controller.scheduling.planning_client import PlanBackend
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import single_switch
from tests.controller.deployment import Deployment, MemberStream, served

SPEC = "name: job\nscheme: switchml\nworkers: [h1, h2, h3]\nlease_ms: 400\non_worker_loss: continue\n"


class Members:
    """Open streams by host."""

    def __init__(self, stub, beat_s: float = 0.1) -> None:
        self.stub = stub
        self._beat_s = beat_s
        self.streams: dict[str, MemberStream] = {}
        self._beats: dict[str, asyncio.Task[None]] = {}

    async def join(self, host: str) -> MemberStream:
        """A new worker of the host; one that was there before sends no more."""
        if host in self.streams:
            self.die(host)
        stream = self.streams[host] = MemberStream(self.stub, "job", host)
        await stream.say()
        self._beats[host] = asyncio.create_task(self._beat(stream))
        return stream

    def die(self, host: str) -> None:
        """No further heartbeat; the stream stays open."""
        self._beats.pop(host).cancel()
        self.streams.pop(host)

    async def leave(self, host: str, calls: int = 0) -> None:
        """After so many calls of the job. Returns when the controller has taken notice."""
        stream = self.streams[host]
        self.die(host)
        await stream.say(leave=True, report=pb.Report(next_call=calls))
        await stream.call.done_writing()
        await stream.drain()

    async def told(self, workers: int, after_epoch: int = 0) -> dict[str, pb.Assignment]:
        """By host the next assignment of so many workers in an epoch later than `after_epoch`."""
        found = {}
        for host, stream in self.streams.items():
            while True:
                notice = await stream.hear()
                told = notice.assignment
                if notice.HasField("assignment") and told.workers == workers and told.epoch > after_epoch:
                    found[host] = told
                    break
        assert len({a.epoch for a in found.values()}) == 1
        return found

    async def left(self, host: str) -> pb.WorkersLeft:
        """The next update about workers that have left."""
        while True:
            update = await self.streams[host].hear()
            if update.HasField("workers_left"):
                return update.workers_left

    async def _beat(self, stream: MemberStream) -> None:
        while True:
            await asyncio.sleep(self._beat_s)
            await stream.say()


@asynccontextmanager
async def running(
    tmp_path: Path,
    spec: str = SPEC,
    plans: PlanBackend | None = None,
    fabric: Fabric | None = None,
    hosts: tuple[str, ...] = ("h1", "h2", "h3"),
    beat_s: float = 0.1,
) -> AsyncIterator[tuple[Deployment, Members]]:
    """A running job of `hosts`, all of which have joined."""
    async with served(fabric or single_switch(5), tmp_path, plans=plans) as (deployment, stub):
        await deployment.run(spec)
        members = Members(stub, beat_s)
        for host in hosts:
            await members.join(host)
        first = await members.told(len(hosts))
        assert not any(a.allow_newcomers for a in first.values())
        yield deployment, members
        for host in list(members.streams):
            members.die(host)
        await deployment.settled_exactly()
