# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""From a submitted job to entries in switches and assignments in the workers' hands, and away again."""

from __future__ import annotations

import asyncio

from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.spec import load_fabric
from tests.controller.deployment import MemberStream, asked, deployed


async def test_a_job_from_submission_to_its_last_worker(tmp_path):
    async with deployed(load_fabric("single"), tmp_path) as deployment, asked(deployment) as stub:
        spec = "name: demo\nworkers: 4\nparameter_servers: 0\nscheme: switchml\n"
        submitted = await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec))
        assert submitted.state in (pb.INSTALLING, pb.RUNNING)
        members = [MemberStream(stub, "demo", f"h{i}") for i in range(1, 5)]
        for rank, member in enumerate(members):
            await member.say()
            told = (await member.hear()).assignment
            assert (told.rank, told.workers, told.lanes) == (rank, 4, 32)
            assert told.trees[0].share == 1.0
            assert told.trees[0].child == rank
            assert 2 * told.trees[0].window <= told.trees[0].slots
        deployment.assert_exact()
        for member in members:
            await member.say(leave=True)
        async with asyncio.timeout(5):
            job = await stub.GetJob(pb.JobName(name="demo"))
            while job.state != pb.DONE:
                job = await stub.GetJob(pb.JobName(name="demo"))
        await deployment.settled_exactly()
