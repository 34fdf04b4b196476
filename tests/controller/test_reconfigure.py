# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""All workers of a job are replaced at once: the next generation joins the same job in a new epoch."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.jobs.withdrawal import Intent
from netfold.controller.lifecycle.allocation import ranges_of
from netfold.controller.lifecycle.background_tasks import STORE_RETRY_S
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.generators import leaf_spine, single_switch
from tests.controller.deployment import (
    TIMEOUTS,
    Deployment,
    MemberStream,
    asked,
    deployed,
    full_disk,
    served,
)
from tests.controller.test_races import HeldPlans

HOSTS = ("h1", "h2", "h3")
SPEC = "name: job\nscheme: switchml\nworkers: [h1, h2, h3]\non_worker_loss: reconfigure\njoin_s: {}\nlease_ms: {}\n"


class Job:
    """The job of a deployment, and the streams of its workers."""

    def __init__(self, deployment: Deployment, stub) -> None:
        self.deployment = deployment
        self.stub = stub
        self.streams: dict[str, MemberStream] = {}

    @property
    def record(self) -> JobRecord:
        return self.deployment.job("job")

    async def join(self, hosts=HOSTS, generation: int = 0) -> dict[str, pb.Assignment]:
        """New processes of the hosts; their assignments."""
        self.streams = {host: MemberStream(self.stub, "job", host) for host in hosts}
        for stream in self.streams.values():
            await stream.say(generation=generation)
        updates = {host: await stream.hear() for host, stream in self.streams.items()}
        assert all(update.HasField("assignment") for update in updates.values()), updates
        found = {host: update.assignment for host, update in updates.items()}
        assert len({(one.epoch, one.workers) for one in found.values()}) == 1
        return found

    async def reconfigure(self, workers=(), generation: int = 0, request_id: str = "") -> pb.Job:
        request = pb.ReconfigureJobRequest(
            name="job",
            generation=generation,
            workers=workers,
            interrupted_by="the test",
            request_id=request_id,
        )
        return await self.stub.ReconfigureJob(request)

    async def ended(self) -> list[str]:
        """The reasons that the streams end with."""
        found = []
        for stream in self.streams.values():
            update = await stream.hear()
            assert update.HasField("ended"), update
            found.append(update.ended.reason)
        return found

    async def becomes(self, state: JobState) -> JobRecord:
        async with asyncio.timeout(20):
            while self.record.state is not state:
                await self.deployment.controller.state.changes.wait()
        return self.record


@asynccontextmanager
async def running(tmp_path, join_s: float = 60, lease_ms: int = 20_000, hosts: int = 4) -> AsyncIterator[Job]:
    async with served(single_switch(hosts), tmp_path) as (deployment, stub):
        await deployment.run(SPEC.format(join_s, lease_ms))
        job = Job(deployment, stub)
        await job.join()
        yield job
        await deployment.settled_exactly()


def slots_of(record: JobRecord) -> object:
    assert record.placement is not None
    return {
        switch: [(r.base, r.size) for r in ranges] for switch, ranges in ranges_of(record.placement).items()
    }


async def test_the_next_workers_have_plan_and_slots_of_those_before(tmp_path):
    async with running(tmp_path) as job:
        before = job.record
        answer = await job.reconfigure(HOSTS)
        assert answer.generation == 1
        assert all("generation 1" in reason for reason in await job.ended())
        found = await job.join(generation=1)
        after = job.record
        assert {one.epoch for one in found.values()} == {before.epoch + 1}
        assert after.placement.plan is before.placement.plan
        assert slots_of(after) == slots_of(before)
        assert [one.rank for one in found.values()] == [0, 1, 2]
        assert not any(one.allow_newcomers for one in found.values())
        assert {one.targets for one in found.values()} == {pb.TARGETS_ON}


async def test_an_interruption_ends_the_calls_of_all_and_not_the_job(tmp_path):
    async with running(tmp_path) as job:
        before = job.record
        assert (await job.reconfigure()).interrupted
        assert await job.ended() == ["interrupted by the test"] * 3
        assert job.record.state is JobState.RUNNING
        late = MemberStream(job.stub, "job", "h1")
        await late.say()
        with pytest.raises(grpc.aio.AioRpcError, match="no workers of generation 0"):
            await late.call.read()
        await job.reconfigure(HOSTS)
        await job.join(generation=1)
        assert slots_of(job.record) == slots_of(before)


@pytest.mark.parametrize("epoch", [0, 1], ids=["without an assignment", "with one"])
async def test_a_worker_of_an_earlier_generation_is_refused(tmp_path, epoch):
    """Its stream was broken meanwhile, so that it has not received the end of its part."""
    async with running(tmp_path) as job:
        first = job.streams["h2"]
        await job.reconfigure(HOSTS)
        await job.join(generation=1)
        members = job.record.members
        for fields in ({}, {"leave": True}, {"unusable_epoch": 1}):
            again = MemberStream(job.stub, "job", "h2", first)
            await again.say(epoch=epoch, **fields)
            with pytest.raises(grpc.aio.AioRpcError, match="no workers of generation 0"):
                await again.call.read()
        assert job.record.members == members
        assert job.record.epoch == 2


@pytest.mark.parametrize("workers", [("h1", "h3"), ("h3", "h1")])
async def test_fewer_workers_have_a_new_plan_of_the_same_job(tmp_path, workers):
    async with running(tmp_path) as job:
        answer = await job.reconfigure(workers)
        found = await job.join(workers, generation=1)
        assert {host: one.rank for host, one in found.items()} == {"h1": 0, "h3": 1}
        assert {one.workers for one in found.values()} == {2}
        assert {one.epoch for one in found.values()} == {2}
        assert {one.targets for one in found.values()} == {pb.TARGETS_ON}
        assert [m.host for m in answer.members] == list(HOSTS)
        await job.reconfigure(HOSTS, generation=1)
        found = await job.join(HOSTS, generation=2)
        assert {one.workers for one in found.values()} == {3}
        assert {one.epoch for one in found.values()} == {3}


async def test_a_host_that_is_added_joins_with_the_next_workers(tmp_path):
    async with running(tmp_path) as job:
        await job.stub.AddWorkers(pb.AddWorkersRequest(name="job", hosts=["h4"]))
        await job.reconfigure(("h4", "h1", "h2"))
        found = await job.join(("h1", "h2", "h4"), generation=1)
        assert [one.rank for one in found.values()] == [0, 1, 2]
        assert {one.targets for one in found.values()} == {pb.TARGETS_ON}


async def test_a_lost_worker_ends_the_part_of_all(tmp_path):
    async with running(tmp_path, lease_ms=300) as job:
        reasons = await job.ended()
        assert all("lease of" in reason for reason in reasons)
        assert job.record.interrupted
        await job.reconfigure(HOSTS)
        await job.join(generation=1)


async def test_a_worker_that_is_started_again_ends_the_part_of_all(tmp_path):
    async with running(tmp_path) as job:
        again = MemberStream(job.stub, "job", "h2")
        await again.say()
        assert all("was started again" in reason for reason in await job.ended())
        assert job.record.state is JobState.RUNNING


async def test_a_job_without_next_workers_ends(tmp_path):
    async with running(tmp_path, join_s=0.5) as job:
        await job.reconfigure()
        ended = await job.becomes(JobState.FAILED)
        assert ended.reason == "interrupted by the test, and no other workers came in time"


async def test_next_workers_that_do_not_join_end_the_job(tmp_path):
    async with running(tmp_path, join_s=0.5) as job:
        await job.reconfigure(HOSTS)
        job.streams.pop("h3")
        for host in ("h1", "h2"):
            await MemberStream(job.stub, "job", host).say(generation=1)
        assert "h3 did not join" in (await job.becomes(JobState.FAILED)).reason


async def test_the_next_workers_have_their_own_time_to_join(tmp_path):
    """The time of the generation before ends meanwhile."""
    async with running(tmp_path, join_s=2) as job:
        await asyncio.sleep(1.5)
        await job.reconfigure()
        await asyncio.sleep(1)
        await job.reconfigure(HOSTS)
        await asyncio.sleep(1.5)
        await job.join(generation=1)


async def test_a_request_is_of_the_generation_that_the_job_has(tmp_path):
    async with running(tmp_path) as job:
        await job.reconfigure(HOSTS)
        await job.join(generation=1)
        assert not (await job.reconfigure()).interrupted
        with pytest.raises(grpc.aio.AioRpcError, match="expected generation 0"):
            await job.reconfigure(HOSTS)
        with pytest.raises(grpc.aio.AioRpcError, match="h4 is no worker of job 'job'"):
            await job.reconfigure(("h1", "h4"), generation=1)
        assert job.record.epoch == 2


async def test_of_two_requests_at_once_one_is_refused(tmp_path):
    """Both are planned, as neither has all hosts."""
    async with running(tmp_path) as job:
        both = (job.reconfigure(workers) for workers in (("h1", "h2"), ("h2", "h3")))
        answers = await asyncio.gather(*both, return_exceptions=True)
        refused = [answer for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
        assert len(refused) == 1
        assert "has workers of generation 1" in refused[0].details()
        assert (job.record.generation, job.record.epoch, len(job.record.workers)) == (1, 2, 2)


@pytest.mark.parametrize("workers", [HOSTS, ("h1", "h2")], ids=["same plan", "another plan"])
async def test_a_repeated_request_has_the_answer_of_the_first(tmp_path, workers):
    """The first answer was lost; a request of another caller is refused meanwhile."""
    async with running(tmp_path) as job:
        first = await job.reconfigure(workers, request_id="one")
        again = await job.reconfigure(workers, request_id="one")
        assert (again.generation, again.epoch) == (first.generation, first.epoch) == (1, 2)
        for other in ("two", ""):
            with pytest.raises(grpc.aio.AioRpcError, match="has workers of generation 1"):
                await job.reconfigure(workers, request_id=other)
        with pytest.raises(grpc.aio.AioRpcError, match="has workers of generation 1"):
            await job.reconfigure(("h2", "h3"), request_id="one")
        found = await job.join(workers, generation=1)
        assert {one.epoch for one in found.values()} == {2}
        await job.reconfigure(workers, generation=1, request_id="three")
        with pytest.raises(grpc.aio.AioRpcError, match="has workers of generation 2"):
            await job.reconfigure(workers, request_id="one")


async def test_a_request_is_repeated_while_it_is_planned(tmp_path):
    async with running(tmp_path) as job:
        both = (job.reconfigure(("h1", "h2"), request_id="one") for _ in range(2))
        first, second = await asyncio.gather(*both)
        assert first.epoch == second.epoch == 2
        assert (job.record.generation, job.record.epoch) == (1, 2)


async def test_another_controller_knows_the_request(tmp_path):
    async with deployed(single_switch(4), tmp_path) as deployment:
        async with asked(deployment) as stub:
            await deployment.settled()
            await deployment.run(SPEC.format(60, 20_000))
            job = Job(deployment, stub)
            await job.join()
            await job.reconfigure(HOSTS, request_id="one")
        await deployment.restart()
        async with asked(deployment) as stub:
            job = Job(deployment, stub)
            assert (await job.reconfigure(HOSTS, request_id="one")).generation == 1
            await job.join(generation=1)


async def test_jobs_of_another_policy_are_not_reconfigured(tmp_path):
    async with served(single_switch(3), tmp_path) as (deployment, stub):
        spec = "name: job\nscheme: switchml\nworkers: [h1, h2, h3]\n"
        await deployment.run(spec)
        job = Job(deployment, stub)
        with pytest.raises(grpc.aio.AioRpcError, match="with `on_worker_loss: fail`"):
            await job.reconfigure(HOSTS)
        assert (await job.reconfigure()).state == pb.CANCELED
        assert job.record.reason == "canceled by the test"


@pytest.mark.parametrize("is_interrupted", [False, True])
async def test_another_controller_knows_the_generation(tmp_path, is_interrupted):
    async with deployed(single_switch(4), tmp_path) as deployment:
        async with asked(deployment) as stub:
            await deployment.settled()
            await deployment.run(SPEC.format(60, 20_000))
            job = Job(deployment, stub)
            await job.join()
            await job.reconfigure(() if is_interrupted else HOSTS)
        await deployment.kill()
        deployment.start()
        async with asked(deployment) as stub:
            job = Job(deployment, stub)
            await deployment.settled()
            late = MemberStream(stub, "job", "h1")
            await late.say(epoch=1)
            with pytest.raises(grpc.aio.AioRpcError, match="no workers of generation 0"):
                await late.call.read()
            if is_interrupted:
                await job.reconfigure(HOSTS)
            found = await job.join(generation=1)
            assert {one.epoch for one in found.values()} == {2}


async def test_workers_that_leave_end_the_job(tmp_path):
    async with running(tmp_path) as job:
        await job.reconfigure(HOSTS)
        await job.join(generation=1)
        for stream in job.streams.values():
            await stream.say(leave=True)
        await job.becomes(JobState.DONE)


async def test_an_interrupted_job_outlives_another_start_of_the_controller(tmp_path):
    """Its workers have left no leases that end it before `join_s`."""
    timeouts = dataclasses.replace(TIMEOUTS, start=0.2)
    async with deployed(single_switch(4), tmp_path, timeouts=timeouts) as deployment:
        async with asked(deployment) as stub:
            await deployment.settled()
            await deployment.run(SPEC.format(60, 300))
            job = Job(deployment, stub)
            await job.join()
            await job.reconfigure()
        await deployment.restart()
        async with asked(deployment) as stub:
            assert not deployment.controller.jobs.lifecycle.lease_holders
            job = Job(deployment, stub)
            await job.reconfigure(HOSTS)
            await job.join(generation=1)


async def test_a_loss_that_is_stored_late_is_not_of_the_next_workers(tmp_path):
    """The store refuses the end of their part, and the next workers are to join before it takes it."""
    async with running(tmp_path, lease_ms=300) as job:
        deployment = job.deployment
        change = deployment.store.change
        deployment.store.change = full_disk
        lifecycle = deployment.controller.jobs.lifecycle
        await deployment.until(lambda: not lifecycle.lease_holders, "leases end")
        deployment.store.change = change
        await job.reconfigure(HOSTS)
        await asyncio.sleep(STORE_RETRY_S + 0.3)
        assert job.record.state is JobState.RUNNING
        await job.join(generation=1)


async def test_a_host_is_named_once(tmp_path):
    async with running(tmp_path) as job:
        with pytest.raises(grpc.aio.AioRpcError, match="h1 is named twice"):
            await job.reconfigure(("h1", "h1", "h2"))
        assert job.record.generation == 0


@pytest.mark.parametrize("host", ["h1", "stranger"])
async def test_a_request_of_many_names_does_not_stop_the_controller(host: str, tmp_path):
    """One of 8 MiB, for a job of 1000 workers, would end the leases of all jobs."""

    class Name(str):
        __slots__ = ()
        comparisons = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Name.comparisons += 1
            return str.__eq__(self, other)

    async with running(tmp_path, hosts=9) as job:
        reconfigurations, count = job.deployment.controller.planning.reconfigurations, 1000
        with pytest.raises(RefusedError, match=r"h1 is named twice|no worker of job"):
            await reconfigurations.reconfigure("job", 0, tuple(Name(host) for _ in range(count)), "")
        assert Name.comparisons <= 2 * count
        names = (*(f"h{number}" for number in range(4, 10)), *[host] * count)
        with pytest.raises(RefusedError, match=f"'{host}' is"):
            job.deployment.controller.jobs.members.add("job", tuple(map(Name, names)))
        assert Name.comparisons <= 5 * count


@pytest.mark.parametrize("is_interrupted", [False, True])
async def test_a_lost_parameter_server_ends_the_job(tmp_path, is_interrupted):
    """No other one comes in its place."""
    fabric = single_switch(2, parameter_servers=1)
    async with asyncio.timeout(30), served(fabric, tmp_path) as (deployment, stub):
        spec = "name: job\nworkers: 2\nscheme: none\nrate: 20\non_worker_loss: reconfigure\nlease_ms: {}\n"
        await deployment.run(spec.format(1000))
        job = Job(deployment, stub)
        await job.join(("h1", "h2", "ps1"))
        workers = [job.streams["h1"], job.streams["h2"]]
        if is_interrupted:
            await job.reconfigure()
            await job.reconfigure(("h1", "h2"))
            workers = [MemberStream(stub, "job", host) for host in ("h1", "h2")]
        while job.record.state is not JobState.FAILED:
            for worker in workers:
                await worker.say(generation=job.record.generation)
            await asyncio.sleep(0.2)
            assert not job.record.interrupted
        assert "the lease of ps1 expired" in job.record.reason


async def test_a_controller_that_starts_gives_the_next_workers_their_time(tmp_path):
    """The time of the generation before does not count."""
    timeouts = dataclasses.replace(TIMEOUTS, start=0.1)
    async with deployed(single_switch(4), tmp_path, timeouts=timeouts) as deployment:
        async with asked(deployment) as stub:
            await deployment.settled()
            await deployment.run(SPEC.format(2, 20_000))
            job = Job(deployment, stub)
            await job.join()
            await asyncio.sleep(2)
            await job.reconfigure(HOSTS)
            await deployment.settled()
        await deployment.restart()
        async with asked(deployment) as stub:
            await asyncio.sleep(0.5)
            await Job(deployment, stub).join(generation=1)


async def test_a_broken_link_does_not_end_a_job_without_workers(tmp_path):
    """The host behind it may be the one that the next workers do without."""
    timeouts = dataclasses.replace(TIMEOUTS, restart=0.2)
    async with served(single_switch(4), tmp_path, timeouts=timeouts) as (deployment, stub):
        await deployment.run(SPEC.format(60, 20_000))
        job = Job(deployment, stub)
        await job.join()
        await job.reconfigure()
        down = frozenset((frozenset(("s1", "h2")),))
        deployment.controller.switches.failure_monitor.links_changed(down)
        await asyncio.sleep(1)
        await deployment.idle()
        await job.reconfigure(("h1", "h3"))
        await job.join(("h1", "h3"), generation=1)


@pytest.mark.parametrize("workers", [("h1", "h3"), ("h1", "h4")])
async def test_workers_are_replaced_while_their_job_is_planned_anew(tmp_path, workers):
    """The job leaves a drained spine meanwhile."""
    fabric = leaf_spine(2, 2, 2)
    plans = HeldPlans(fabric)
    async with served(fabric, tmp_path, plans=plans) as (deployment, stub):
        spec = "name: job\nscheme: switchml\nworkers: [h1, h3, h4]\nrate: 20\non_worker_loss: reconfigure\n"
        await deployment.run(spec)
        job = Job(deployment, stub)
        await job.join(("h1", "h3", "h4"))
        await job.reconfigure(("h1", "h3"))
        await job.join(("h1", "h3"), generation=1)
        (spine,) = (n for n in job.record.nodes if n.startswith("spine"))
        await plans.held()
        deployment.controller.planning.maintenance.withdraw([spine], Intent.DRAIN)
        await plans.made()
        replaced = asyncio.create_task(job.reconfigure(workers, generation=1))
        await asyncio.sleep(0.2)
        plans.gate.set()
        await replaced
        await job.join(workers, generation=2)
        await deployment.idle()
        assert spine not in job.record.nodes
        assert (job.record.generation, job.record.state) == (2, JobState.RUNNING)
        assert set(job.record.workers) == set(workers)
