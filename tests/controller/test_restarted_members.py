# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Processes of members that are started again within their leases: no epoch is of two processes of a host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import cast

import grpc
import pytest

from netfold.controller.service.member_service import MemberService
from netfold.controller.service.messages import Context
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.topologies.generators import single_switch
from tests.controller.deployment import Deployment, MemberStream, asked, deployed

HOSTS = ("h1", "h2", "ps1")
SPEC = "name: job\nworkers: [h1, h2]\nscheme: none\nrate: 20\n"


async def started(stub, earlier: dict[str, MemberStream] | None = None) -> dict[str, MemberStream]:
    """A stream of each member, of the processes of `earlier` ones."""
    streams = {h: MemberStream(stub, "job", h, earlier and earlier[h]) for h in HOSTS}
    for stream in streams.values():
        await stream.say()
    return streams


async def first_epoch(deployment: Deployment, stub, policy: str) -> dict[str, MemberStream]:
    """A job whose root is a parameter server; the streams of its members, which have its first epoch."""
    await deployment.settled()
    await deployment.run(f"{SPEC}on_worker_loss: {policy}\n")
    streams = await started(stub)
    assert {(await s.hear()).assignment.epoch for s in streams.values()} == {1}
    return streams


def a_deployment(tmp_path: Path) -> AbstractAsyncContextManager[Deployment]:
    return deployed(single_switch(2, parameter_servers=1), tmp_path)


@asynccontextmanager
async def another_controller(
    tmp_path: Path,
) -> AsyncIterator[tuple[pb_grpc.ControllerStub, dict[str, MemberStream]]]:
    """The controller that follows one whose job was in its first epoch, and the streams at the one before."""
    async with a_deployment(tmp_path) as deployment:
        async with asked(deployment) as stub:
            streams = await first_epoch(deployment, stub, "fail")
        await deployment.kill()
        deployment.start()
        async with asked(deployment) as stub:
            yield stub, streams


async def expect_loss(again: MemberStream, other: MemberStream) -> None:
    await again.say()
    ended = (await again.hear()).ended
    assert ended.state == pb.FAILED
    assert ended.reason.startswith("the worker of h2 was started again")
    while not (update := await other.hear()).HasField("ended"):
        pass
    assert update.ended == ended


async def test_a_worker_that_is_started_again_ends_its_job_at_the_next_controller(tmp_path):
    async with another_controller(tmp_path) as (stub, streams):
        h1 = MemberStream(stub, "job", "h1", streams["h1"])
        await h1.say(epoch=1)
        await expect_loss(MemberStream(stub, "job", "h2"), h1)


async def test_a_worker_that_is_started_again_between_two_epochs_ends_its_job(tmp_path):
    """Another controller has received its stream, and could not assign an epoch to it yet."""
    async with a_deployment(tmp_path) as deployment:
        async with asked(deployment) as stub:
            streams = await first_epoch(deployment, stub, "fail")
        await deployment.switches["s1"].stop()
        controller = deployment.controller
        controller.jobs.epochs.start(controller.state.registry.get("job"), "for the test")
        await deployment.kill()
        deployment.start()
        async with asked(deployment) as stub:
            back = {h: MemberStream(stub, "job", h, streams[h]) for h in ("h1", "h2")}
            for host, stream in back.items():
                await stream.say(epoch=1)
                while not deployment.controller.state.member_status.is_connected("job", host):
                    await asyncio.sleep(0)
            await expect_loss(MemberStream(stub, "job", "h2"), back["h1"])


@pytest.mark.parametrize("epoch", [0, 1], ids=["without its assignment", "with it"])
async def test_a_member_that_comes_again_to_another_controller_keeps_its_epoch(tmp_path, epoch):
    """Also one that has not received what the last controller has sent."""
    async with another_controller(tmp_path) as (stub, streams):
        for host in HOSTS:
            stream = MemberStream(stub, "job", host, streams[host])
            await stream.say(epoch=epoch)
            assert (await stream.hear()).assignment.epoch == 1


@pytest.mark.parametrize("leaves", [False, True])
async def test_a_process_that_another_one_has_replaced_is_refused(tmp_path, leaves):
    async with a_deployment(tmp_path) as deployment, asked(deployment) as stub:
        streams = await first_epoch(deployment, stub, "continue")
        again = MemberStream(stub, "job", "ps1")
        await again.say()
        assert (await again.hear()).assignment.epoch == 2
        first = MemberStream(stub, "job", "ps1", streams["ps1"])
        await first.say(epoch=1, leave=leaves)
        with pytest.raises(grpc.aio.AioRpcError, match="another worker of 'ps1' has joined"):
            await first.call.read()
        await again.say(unusable_epoch=2)
        assert (await again.hear()).assignment.epoch == 3
        assert not deployment.job("job").member("ps1").left


NO_CONTEXT = cast(Context, None)


async def first_message(process: int, stream: int) -> AsyncIterator[pb.MemberUpdate]:
    """It is there at once, without a turn of the loop."""
    yield pb.MemberUpdate(job="job", host="h1", process=process, stream=stream, supports_targets=True)
    await asyncio.Event().wait()


async def test_no_epoch_is_of_two_processes_that_join_in_one_turn(tmp_path):
    async with a_deployment(tmp_path) as deployment:
        await deployment.settled()
        await deployment.run(f"{SPEC}on_worker_loss: fail\n")
        service = MemberService(deployment.controller.state, deployment.controller.jobs.members)
        streams = [service.join(first_message(process, 1), NO_CONTEXT) for process in (7, 8)]
        first, second = await asyncio.gather(*map(anext, streams))
        assert first.assignment.epoch == 1
        assert second.ended.reason.startswith("the worker of h1 was started again")


async def test_a_stream_that_waited_for_the_store_does_not_replace_a_newer_one(tmp_path):
    async with a_deployment(tmp_path) as deployment:
        await deployment.settled()
        await deployment.run(f"{SPEC}on_worker_loss: fail\n")
        state = deployment.controller.state
        service = MemberService(state, deployment.controller.jobs.members)
        older, newer = (service.join(first_message(7, number), NO_CONTEXT) for number in (1, 2))
        waits = asyncio.ensure_future(anext(older, None))
        while not deployment.job("job").member("h1").joined:
            await asyncio.sleep(0)
        assert (await anext(newer)).assignment.epoch == 1
        assert await waits is None
        assert state.member_status.is_connected("job", "h1")
