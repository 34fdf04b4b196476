# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that come back to a job that runs, or that are added to it: which are members from which epoch on."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import grpc
import pytest

from netfold.controller.planning.plan import Plan
from netfold.controller.scheduling.job_planner import PlanRequest
from netfold.controller.service.standby import ServiceProxy
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.netfold_pb2_grpc import ControllerServicer
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import single_switch
from tests.controller.deployment import MemberStream, PlanThread, ready, served
from tests.controller.members import SPEC, Members, running


async def test_a_new_worker_at_a_lost_ones_host_is_in_from_the_next_epoch_on(tmp_path):
    async with running(tmp_path) as (deployment, members):
        members.die("h2")
        without = await members.told(2)
        assert [without[h].rank for h in ("h1", "h3")] == [0, 1]
        await members.join("h2")
        again = await members.told(3)
        assert [again[h].rank for h in ("h1", "h2", "h3")] == [0, 1, 2]
        assert all(a.allow_newcomers for a in again.values())
        assert again["h1"].epoch > without["h1"].epoch
        job = deployment.job("job")
        assert (job.excluded, job.rejoining) == ((), ())


async def test_workers_are_added_to_a_job_that_runs(tmp_path):
    async with running(tmp_path) as (_, members):
        stranger = MemberStream(members.stub, "job", "h5")
        await stranger.say()
        with pytest.raises(grpc.aio.AioRpcError, match="no member"):
            await stranger.call.read()
        await members.stub.AddWorkers(pb.AddWorkersRequest(name="job", hosts=["h5", "h4"]))
        why = " ".join((await members.stub.ExplainJob(pb.JobName(name="job"))).steps)
        assert "h5, h4 were added and have not joined yet" in why
        await members.join("h4")
        four = await members.told(4)
        assert [four[h].rank for h in ("h1", "h2", "h3", "h4")] == [0, 1, 2, 3]
        await members.join("h5")
        five = await members.told(5)
        assert [five[h].rank for h in ("h1", "h2", "h3", "h5", "h4")] == [0, 1, 2, 3, 4]
        for hosts in (["h5"], ["h99"]):
            with pytest.raises(grpc.aio.AioRpcError, match=r"member of job 'job' already|no host"):
                await members.stub.AddWorkers(pb.AddWorkersRequest(name="job", hosts=hosts))


class HeldPlans(PlanThread):
    """Plans wait while `open` is not set; `asked` is set when one does."""

    def __init__(self, fabric: Fabric) -> None:
        super().__init__(fabric)
        self.open, self.asked = asyncio.Event(), asyncio.Event()
        self.open.set()

    async def plan(self, request: PlanRequest) -> Plan:
        self.asked.set()
        await self.open.wait()
        return await super().plan(request)


async def test_a_worker_that_leaves_before_its_first_epoch_delays_no_other_worker(tmp_path):
    plans = HeldPlans(single_switch(5))
    async with running(tmp_path, plans=plans) as (deployment, members):
        members.die("h3")
        without = await members.told(2)
        plans.open.clear()
        plans.asked.clear()
        await members.join("h3")
        await plans.asked.wait()
        await members.leave("h3")
        job = deployment.job("job")
        assert (job.excluded, job.rejoining) == (("h3",), ())
        plans.open.set()
        await deployment.idle()
        job = deployment.job("job")
        assert (job.epoch, job.excluded) == (without["h1"].epoch, ("h3",))
        await members.join("h3")
        assert (await members.told(3)).keys() == {"h1", "h2", "h3"}


async def test_all_workers_of_an_epoch_have_ranks_among_the_same(tmp_path):
    """Also one that joins when another is lost, and the next epoch is still planned."""
    plans = HeldPlans(single_switch(5))
    async with served(single_switch(5), tmp_path, plans=plans) as (deployment, stub):
        await deployment.run(SPEC)
        plans.open.clear()
        deployment.controller.jobs.members.handle_loss("job", "h2", "h2 is lost")
        members = Members(stub)
        await members.join("h3")
        last = (await members.told(3))["h3"]
        assert (last.rank, last.epoch) == (2, deployment.job("job").epoch)
        plans.open.set()
        await members.told(2, after_epoch=last.epoch)


async def test_a_worker_that_left_may_come_back(tmp_path):
    async with running(tmp_path) as (deployment, members):
        epoch = deployment.job("job").epoch
        await members.leave("h3")
        await members.join("h3")
        again = await members.told(3, after_epoch=epoch)
        assert [again[h].rank for h in ("h1", "h2", "h3")] == [0, 1, 2]
        assert all(a.allow_newcomers for a in again.values())
        job = deployment.job("job")
        assert (job.excluded, job.rejoining, job.member("h3").left) == ((), (), False)


async def test_a_worker_that_left_a_job_of_fixed_size_may_not_come_back(tmp_path):
    async with running(tmp_path, SPEC.replace("continue", "fail")) as (_, members):
        await members.leave("h3")
        stream = MemberStream(members.stub, "job", "h3")
        await stream.say()
        with pytest.raises(grpc.aio.AioRpcError, match="'h3' has left job 'job'"):
            await stream.call.read()


async def test_a_later_stream_of_a_member_replaces_its_earlier_ones(tmp_path):
    async with running(tmp_path) as (deployment, members):
        earlier, epoch = members.streams["h3"], deployment.job("job").epoch
        await members.join("h3")
        await members.told(3, after_epoch=epoch)
        with pytest.raises(grpc.aio.AioRpcError, match="another worker of 'h3' has joined"):
            await earlier.drain()
        with suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
            await earlier.say(leave=True)
        job = deployment.job("job")
        assert not job.member("h3").left


async def test_what_is_added_survives_the_controller(tmp_path):
    async with ready(single_switch(4), tmp_path) as deployment:
        await deployment.run(SPEC)
        deployment.controller.jobs.members.add("job", ("h4",))
        await deployment.restart()
        job = deployment.job("job")
        assert (job.added, job.excluded) == (("h4",), ("h4",))
        assert deployment.controller.state.registry.resolved_job("job").workers == (
            "h1",
            "h2",
            "h3",
            "h4",
        )


def test_a_controller_that_is_served_hands_every_call_on():
    own = {name for name in vars(ControllerServicer) if not name.startswith("_")}
    assert own <= vars(ServiceProxy).keys()
