# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that leave while others stay (docs/reference/protocol.md, 5.7): which member learns what, and which epoch
follows."""

from __future__ import annotations

import pytest

from netfold.controller.jobs.records import JobState
from netfold.topologies.generators import single_switch
from tests.controller.members import SPEC, running
from tests.controller.test_newcomers import HeldPlans

FIXED = SPEC.replace("continue", "fail")
FOUR = ("h1", "h2", "h3", "h4")


@pytest.mark.parametrize(("spec", "is_final"), [(SPEC, False), (FIXED, True)], ids=["elastic", "fixed"])
async def test_the_others_learn_which_worker_left_after_how_many_calls(spec, is_final, tmp_path):
    async with running(tmp_path, spec) as (deployment, members):
        epoch = deployment.job("job").epoch
        await members.leave("h3", calls=10)
        for host in ("h1", "h2"):
            left = await members.left(host)
            assert (list(left.hosts), left.epoch, left.calls, left.call_limit) == (["h3"], epoch, 10, 10)
            assert left.final is is_final
        assert deployment.state("job") is JobState.RUNNING
        assert deployment.job("job").epoch == epoch, "a call may need no other epoch"
        await members.leave("h2", calls=7)
        left = await members.left("h1")
        assert (list(left.hosts), left.calls) == (["h2"], 7), "the first call that a worker is missing from"


async def test_an_elastic_job_continues_without_the_workers_that_left(tmp_path):
    async with running(tmp_path, SPEC) as (deployment, members):
        epoch = deployment.job("job").epoch
        await members.leave("h3", calls=10)
        for host in ("h1", "h2"):
            await members.left(host)
            await members.streams[host].say(unusable_epoch=epoch)
        two = await members.told(2, after_epoch=epoch)
        assert [two[h].rank for h in ("h1", "h2")] == [0, 1]
        assert not any(a.HasField("workers_left") for a in two.values())
        await members.leave("h1", calls=20)
        await members.left("h2")
        await members.streams["h2"].say(unusable_epoch=two["h2"].epoch)
        one = await members.told(1, after_epoch=two["h2"].epoch)
        assert one.keys() == {"h2"}
        await members.leave("h2", calls=40)
        job = deployment.job("job")
        assert (job.state, job.reason) == (
            JobState.DONE,
            "every worker left: h3 after 10 calls; h1 after 20 calls; h2 after 40 calls",
        )


async def test_a_fixed_job_gets_an_epoch_for_results_that_are_missing_and_for_no_call(tmp_path):
    """A worker in the first two's last call may need a result that only one of them has: no call is made anew."""
    async with running(tmp_path, FIXED) as (deployment, members):
        epoch = deployment.job("job").epoch
        await members.leave("h3", calls=10)
        await members.left("h1")
        await members.streams["h1"].say(unusable_epoch=epoch)
        for assignment in (await members.told(2, after_epoch=epoch)).values():
            left = assignment.workers_left
            assert (list(left.hosts), left.epoch, left.calls, left.call_limit) == (["h3"], 0, 10, 0)
            assert left.final
        for host in ("h1", "h2"):
            await members.leave(host, calls=10)
        assert deployment.job("job").reason == "every worker left"


async def test_a_quorum_lets_a_fixed_job_continue_while_enough_workers_stay(tmp_path):
    spec = FIXED.replace("[h1, h2, h3]", "[h1, h2, h3, h4]") + "quorum: 3\nparameter_servers: 0\n"
    async with running(tmp_path, spec, hosts=FOUR) as (deployment, members):
        epoch = deployment.job("job").epoch
        await members.leave("h4", calls=5)
        assert not (await members.left("h1")).final
        await members.streams["h1"].say(unusable_epoch=epoch)
        three = await members.told(3, after_epoch=epoch)
        assert {a.quorum for a in three.values()} == {3}
        await members.leave("h3", calls=9)
        assert (await members.left("h1")).final


@pytest.mark.parametrize(("spec", "state"), [(SPEC, JobState.FAILED), (FIXED, JobState.FAILED)])
async def test_a_parameter_server_that_leaves_is_lost(spec, state, tmp_path):
    """It is the only one: there is no other plan."""
    spec = spec.replace("switchml", "none") + "parameter_servers: [ps1]\n"
    async with running(tmp_path, spec, fabric=single_switch(4, parameter_servers=1)) as (deployment, members):
        await members.join("ps1")
        await members.leave("ps1")
        await deployment.until(lambda: deployment.state("job") is state, "it has failed")
        assert "ps1 left" in deployment.job("job").reason


async def test_a_departure_survives_the_controller(tmp_path):
    async with running(tmp_path, SPEC) as (deployment, members):
        await members.leave("h3", calls=10)
        await deployment.restart()
        [h3] = deployment.job("job").departed
        assert (h3.host, h3.calls) == ("h3", 10)


async def test_a_controller_starts_in_an_epoch_that_a_worker_has_left_for_good(tmp_path):
    """The epoch has targets, one of them for that worker, until the next one is planned."""
    plans = HeldPlans(single_switch(5))
    async with running(tmp_path, FIXED, plans=plans) as (deployment, members):
        epoch = deployment.job("job").epoch
        await members.leave("h3", calls=10)
        plans.open.clear()
        await members.streams["h1"].say(unusable_epoch=epoch)
        await deployment.until(lambda: deployment.job("job").excluded == ("h3",), "it is without h3")
        before = deployment.held()
        await deployment.restart()
        assert deployment.held() == before
        plans.open.set()
