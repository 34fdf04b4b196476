# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Members for programs that know nothing of netfold: their connections are installed as a worker's are, and with a new
epoch they hear that nothing is added up any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from netfold.controller.jobs.records import MISMATCHED, JobState
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.connection import Connection
from netfold.topologies.spec import load_fabric
from netfold.traffic.errors import AllReduceTimeoutError, JobFailedError
from netfold.traffic.roce.adopted import AdoptedQueuePairs, Adoption
from tests.controller.deployment import Deployment, served

HOSTS = ("h1", "h2", "h5", "h6")
SPEC = (
    f"name: j\nworkers: [{', '.join(HOSTS)}]\nparameter_servers: 0\ntransport: roce\nscheme: switchml\n"
    "lease_ms: 30000\n"
)


@asynccontextmanager
async def members_of(tmp_path: Path) -> AsyncIterator[tuple[Deployment, rpc.ControllerStub, list[Adoption]]]:
    """Four members of a job, none of which has connections yet."""
    async with served(load_fabric("leaf-spine-2x2"), tmp_path, lanes=256) as (deployment, stub):
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC))
        members = [Adoption(Connection(f"unix:{tmp_path}/s"), "j", h) for h in HOSTS]
        try:
            yield deployment, stub, members
        finally:
            for member in members:
                await asyncio.to_thread(member.close)


async def adopt(members: list[Adoption]) -> None:
    for rank, member in enumerate(members):
        window = await asyncio.to_thread(
            member.adopt, AdoptedQueuePairs(100 + rank, 200 + rank, 1000 * rank), 20.0
        )
        assert window == 32  # half the slots, which are what a queue of 64 packets has room for


async def test_connections_that_are_there_already_are_added_up(tmp_path: Path):
    async with members_of(tmp_path) as (deployment, _, members):
        await adopt(members[:3])
        with pytest.raises(AllReduceTimeoutError, match="another worker has not registered"):
            await asyncio.to_thread(members[0].wait_added_up, 0.01)
        await adopt(members)
        for member in members:
            await asyncio.to_thread(member.wait_added_up, 20.0)
        deployment.assert_exact()
        registered = deployment.job("j").registered
        [connection] = registered["h2"].connections
        assert (connection.send_qpn, connection.recv_qpn, connection.first_psn) == (101, 201, 1000)
        for member in members:
            await asyncio.to_thread(member.close)
        await deployment.until(lambda: deployment.state("j") is JobState.DONE, "the job is done")


async def test_in_a_new_epoch_they_hear_that_nothing_is_added_up(tmp_path: Path):
    async with members_of(tmp_path) as (deployment, _, members):
        await adopt(members)
        deployment.controller.jobs.members.heartbeat("j", "h1", unusable_epoch=deployment.job("j").epoch)
        for member in members:
            await asyncio.to_thread(member.wait_ended)
            assert member.end_reason == "the job needs new connections"
        with pytest.raises(JobFailedError, match="new connections"):
            await asyncio.to_thread(members[0].wait_added_up, 20.0)


async def test_why_tells_of_workers_that_called_with_different_arrays(tmp_path: Path):
    async with members_of(tmp_path) as (deployment, stub, members):
        await adopt(members)
        await asyncio.to_thread(members[0].wait_added_up, 20.0)
        job = deployment.job("j")
        seen = tuple(
            e.model_copy(update={"calls": MISMATCHED}) if e.host == "h2" else e for e in job.queue_pairs
        )
        deployment.controller.jobs.lifecycle.commit(job.model_copy(update={"queue_pairs": seen}))
        steps = (await stub.ExplainJob(pb.JobName(name="j"))).steps
        assert any("called with different arrays" in s for s in steps)
