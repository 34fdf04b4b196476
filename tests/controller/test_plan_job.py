# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans that the controller makes and does not keep: `netfold plan --live`."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner

from netfold.controller.jobs.stored_fabric import fabric_text
from netfold.controller.jobs.submitter import LimitError, Submitter, TenantLimits
from netfold.controller.jobs.token_buckets import WITHIN_S, PlanningBudget
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.operator.plan_command import app
from netfold.controller.operator.status_commands import usage
from netfold.controller.switches import failed_elements
from netfold.controller.switches.failed_elements import FailedElements, element_named
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine, single_switch
from tests.controller.deployment import asked, deployed, ready, served

FABRIC = leaf_spine(2, 2, 2)
PAIR = single_switch(2)
SPEC = "name: {}\nworkers: [{}]\nscheme: switchml\nrate: {}\nmin_rate: {}\nlease_ms: 60000\n"


def nodes_of(plan: dict[str, Any]) -> set[str]:
    return {node for link in plan["loads"]["links"] for node in link.split("->")}


async def test_a_plan_of_the_controller_avoids_elements_and_counts_all_jobs(tmp_path):
    async with served(FABRIC, tmp_path) as (deployment, stub):
        await deployment.run(SPEC.format("first", "h1, h3", 60, 60))

        async def planned(*without: str, name: str = "what-if", rate: int = 40) -> dict[str, Any]:
            spec = SPEC.format(name, "h2, h4", rate, rate)
            answer = await stub.PlanJob(pb.PlanJobRequest(spec_yaml=spec, without=without))
            return json.loads(answer.plan_json)

        for spine, other in (("spine1", "spine2"), ("spine2", "spine1")):
            assert spine not in nodes_of(plan := await planned(spine))
            assert other in nodes_of(plan)
            assert "first" not in json.dumps(plan)
        first = deployment.job("first").placement.plan
        (free,) = {"spine1", "spine2"} - {node for link in first.loads.links for node in link}
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await planned(free, rate=50)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await planned(free, rate=50, name="first"))["rate"] == 50, "in its own place"
        with pytest.raises(grpc.aio.AioRpcError, match="'spine7' is no switch") as caught:
            await planned("spine7")
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(grpc.aio.AioRpcError, match="it is left out"):
            await planned("spine1", "spine2")
        assert [j.name for j in deployment.controller.state.registry.all()] == ["first"]


async def test_a_plan_without_many_names_does_not_hold_up_the_controller(tmp_path, monkeypatch):
    """Users may send as many names as a message has room for."""
    looked_up = []

    def noted(fabric: Fabric, name: str) -> FailedElements:
        looked_up.append((name, threading.current_thread() is threading.main_thread()))
        return element_named(fabric, name)

    monkeypatch.setattr(failed_elements, "element_named", noted)
    async with ready(FABRIC, tmp_path) as deployment:
        spec, without = SPEC.format("what-if", "h2, h4", 40, 40), ["spine1"] * 10_000
        await deployment.controller.requests.plan(spec, without=without)
    assert looked_up == [("spine1", False)]


async def test_a_plan_is_refused_for_what_the_submission_would_be_refused_for(tmp_path):
    """One job has all slots of the switch, and little of its links."""
    spec = "name: {}\nworkers: [h1, h2]\nscheme: switchml\nrate: 5\nlease_ms: 60000\n"
    async with ready(single_switch(2, slots=16), tmp_path) as deployment:
        requests = deployment.controller.requests
        await requests.submit(spec.format("first"), queue=False)
        for refused in (
            requests.plan(spec.format("own")),
            requests.submit(spec.format("own"), queue=False),
        ):
            with pytest.raises(RefusedError, match="16 of 16 slots in use"):
                await refused
        assert (await requests.plan(spec.format("first"))).rate == 5, "in its own place"


async def test_the_commands_show_a_live_plan_and_the_usage_of_tenants(tmp_path):
    fabric_file = tmp_path / "fabric.yaml"
    fabric_file.write_text(fabric_text(PAIR))
    async with deployed(PAIR, tmp_path) as deployment, asked(deployment):
        await deployment.settled()
        job = tmp_path / "job.yaml"
        job.write_text(SPEC.format("what-if", "h1, h2", 40, 10))
        where = ["--controller", f"unix:{tmp_path}/s"]

        async def run(command, *arguments: str) -> Any:
            return await asyncio.to_thread(CliRunner().invoke, command, [*arguments, *where])

        live = [str(fabric_file), str(job), "--live"]
        done = await run(app, *live, "--json", "--seed", "3")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["rate"] == 40
        done = await run(app, *live, "--compare", "--json")
        assert done.exit_code == 0, done.output
        assert {row["scheme"] for row in json.loads(done.stdout)} >= {"switchml", "auto"}
        assert (await run(app, *live, "--without", "s1")).exit_code == 3
        assert (await run(app, *live, "--without", "s9")).exit_code == 2
        done = await asyncio.to_thread(CliRunner().invoke, app, [str(fabric_file), "--without", "s1"])
        assert done.exit_code == 2
        caller = Submitter("alice", "vision", TenantLimits(weight=2.0))
        await deployment.controller.requests.submit(job.read_text(), caller, queue=False)
        await deployment.runs("what-if")
        (row,) = json.loads((await run(usage, "--json")).stdout)["tenants"]
        assert (row["tenant"], row["weight"], row["installed"], row["queued"]) == ("vision", 2.0, 1, 0)
        assert row["promised_bits"] > 0 < row["slot_seconds"]
        assert "vision" in (await run(usage)).stdout


def test_a_tenant_that_has_used_its_planning_seconds_waits_for_more():
    now = [0.0]
    budget = PlanningBudget(lambda: now[0])
    limited = Submitter("alice", "vision", TenantLimits(planning=60.0))
    budget.check(limited)
    with budget.spent(limited):
        now[0] += 90.0  # a plan that began in time is made
    with pytest.raises(LimitError, match=r"tenant 'vision': .*; its limit is planning=60"):
        budget.check(limited)
    budget.check(Submitter("bob", "speech", TenantLimits(planning=1.0)))
    budget.check(Submitter("root", "site"))
    now[0] += WITHIN_S / 2 + 1
    budget.check(limited)


async def test_a_tenant_is_charged_for_its_own_plans_and_not_for_those_ahead(tmp_path, monkeypatch):
    """After a start of the controller, the first submission plans reservations for all jobs ahead of it."""
    bob = Submitter("bob", "speech", TenantLimits(planning=50.0))
    text = "name: {}\nworkers: [h1, h2]\nscheme: switchml\n"
    async with ready(PAIR, tmp_path) as deployment:
        placements, now, planned = deployment.controller.planning.placements, [0.0], []
        budget = placements._budget = PlanningBudget(lambda: now[0])
        submit = deployment.controller.requests.submit
        await submit(text.format("runs"), queue=False)
        await submit(text.format("waits") + "priority: 1\n", queue=True)
        reserve = placements._planning.reservation

        async def slow(resolved, *args, **options):
            planned.append(resolved.file.name)
            now[0] += 40.0
            return await reserve(resolved, *args, **options)

        monkeypatch.setattr(placements, "_check_name", lambda _: placements._queue._reservations.clear())
        monkeypatch.setattr(placements._planning, "reservation", slow)
        await submit(text.format("own"), bob, queue=True)
        assert planned[:2] == ["waits", "own"]
        assert budget._buckets.amount("speech", a_second=0.0, depth=50.0) == 10.0
