# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Limits of a tenant: each refuses what is one too much, with its name and value, and concerns no other tenant."""

from __future__ import annotations

import math

import grpc
import pytest

from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.submitter import LastingLimitError, LimitError, Submitter, TenantLimits
from netfold.controller.service.access import AccessRefusal
from netfold.controller.service.access_control import MAX_DELAY_S, CallRates
from netfold.controller.service.identities import Identity, Role
from netfold.topologies.generators import single_switch
from tests.controller.deployment import Deployment, ready


def spec(name: str, hosts: str, extra: str = "rate: 5\n") -> str:
    return f"name: {name}\nworkers: [{hosts}]\nscheme: switchml\nlease_ms: 60000\n{extra}"


async def refused(deployment: Deployment, caller: Submitter, text: str, *, queue: bool = False) -> str:
    with pytest.raises(LimitError) as caught:
        await deployment.controller.requests.submit(text, caller, queue=queue)
    return str(caught.value)


async def test_each_limit_of_jobs_names_itself_and_its_value(tmp_path):
    async with ready(single_switch(8), tmp_path) as deployment:
        submit, registry = deployment.controller.requests.submit, deployment.controller.state.registry

        def of(**limits: float) -> Submitter:
            return Submitter("alice", "vision", TenantLimits(**limits))  # type: ignore[arg-type]

        await submit(spec("first", "h1, h2"), of(jobs=1), queue=False)
        second = spec("second", "h3, h4")
        assert "1 jobs have not ended; its limit is jobs=1" in await refused(deployment, of(jobs=1), second)
        high = spec("second", "h3, h4", "rate: 5\npriority: 7\n")
        assert "priority is 7; its limit is priority=0" in await refused(deployment, of(priority=0), high)
        message = await refused(deployment, of(rate=15.0), second)
        assert "its jobs would have 20 at second's rate of 5; its limit is rate=15" in message
        message = await refused(deployment, of(rate=100.0), spec("second", "h3, h4", ""))
        assert "job 'second' has no `rate`; its limit is rate=100" in message
        never = (
            ({"priority": 0}, high),
            ({"rate": 9.0}, second),
            ({"rate": 9.0}, spec("second", "h3, h4", "")),
        )
        for limits, text in never:
            with pytest.raises(LastingLimitError, match="its limit is "):
                await submit(text, of(**limits), queue=True)
        await submit(second, Submitter("bob", "speech", TenantLimits(jobs=1, rate=10.0)), queue=False)
        full = spec("full", "h1, h2", "rate: 1000\nmin_rate: 100\n")
        assert (await submit(full, of(queued=1), queue=True)).state is JobState.QUEUED
        again = full.replace("full", "again")
        assert "1 jobs are queued; its limit is queued=1" in await refused(
            deployment, of(queued=1), again, queue=True
        )
        with pytest.raises(LimitError, match="its limit is rate=10"):
            registry.check_workers(of(rate=10.0), "first", 1)
        registry.check_workers(of(), "first", 1)


def test_a_flood_of_calls_is_refused_and_a_pause_ends_that():
    now = [0.0]
    rates = CallRates(lambda: now[0])
    flooding = Identity("alice", "vision", Role.USER, limits=TenantLimits(calls=10))
    other = Identity("bob", "speech", Role.USER)
    assert [rates.delay_s(flooding, "GetJob") for _ in range(100)] == [0.0] * 100
    assert [rates.delay_s(flooding, "GetJob") for _ in range(50)] == pytest.approx(
        [n / 10 for n in range(1, 51)]
    )
    refusal = rates.delay_s(flooding, "GetJob")
    assert isinstance(refusal, AccessRefusal)
    assert refusal.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "its limit is calls=10" in refusal.message
    assert refusal.after_s > 0, "a caller that repeats it at once has to wait"
    assert rates.delay_s(flooding, "JoinJob") == 0.0, "a refused member would end its job"
    assert rates.delay_s(other, "GetJob") == 0.0
    now[0] = 0.1
    assert rates.delay_s(flooding, "GetJob") == pytest.approx(MAX_DELAY_S)
    assert isinstance(rates.delay_s(flooding, "GetJob"), AccessRefusal)
    now[0] = 20.0
    assert rates.delay_s(flooding, "GetJob") == 0.0


@pytest.mark.parametrize(
    ("role", "calls", "is_limited"),
    [
        (Role.USER, None, True),
        (Role.VIEWER, None, True),
        (Role.USER, math.inf, False),
        (Role.OPERATOR, None, False),
        (Role.MEMBER, None, False),
    ],
)
def test_calls_are_limited_unless_the_file_says_otherwise(role, calls, is_limited):
    """64 ranks that start with a user's token make a few calls each."""
    rates = CallRates(lambda: 0.0)
    caller = Identity("alice", "vision", role, limits=TenantLimits(calls=calls))
    answers = [rates.delay_s(caller, "ListHosts") for _ in range(1000)]
    assert isinstance(answers[-1], AccessRefusal) is is_limited
    assert not any(isinstance(a, AccessRefusal) for a in answers[: 4 * 64])
