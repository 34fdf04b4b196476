# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Elements of the fabric are withdrawn for maintenance: over the service, and by commands."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import grpc
import pytest
import typer
from typer.testing import CliRunner

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.withdrawal import Intent
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.events import CapacityFreed, MaintenanceRequested, MoveFailed
from netfold.controller.operator import fabric_commands
from netfold.controller.scheduling import migration_scheduler
from netfold.controller.service import servicer
from netfold.controller.service.metrics import ControllerCollector
from netfold.controller.service.server import serving
from netfold.controller.service.servicer import service_of
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.generators import leaf_spine
from tests.controller.deployment import Deployment, asked, code_of, deployed, ready, served

JOB = "name: job\nworkers: [h1, h3]\nscheme: switchml\nrate: 20\n"


def _switches(deployment: Deployment) -> set[str]:
    return {s for s in deployment.job("job").nodes if s in deployment.switches}


async def _runs_over(deployment: Deployment, spine: str) -> None:
    """The job runs over this spine."""
    maintenance = deployment.controller.planning.maintenance
    await deployment.settled()
    other = {"spine1": "spine2", "spine2": "spine1"}[spine]
    maintenance.withdraw([other], Intent.CORDON)
    await deployment.run(JOB)
    maintenance.give_back([other])
    assert spine in _switches(deployment)


async def test_a_job_leaves_a_drained_spine_and_the_status_says_so(tmp_path):
    async with deployed(leaf_spine(2, 2, 2), tmp_path) as deployment, asked(deployment) as stub:
        await _runs_over(deployment, "spine1")
        request = pb.WithdrawElementsRequest(elements=["spine1"], intent=pb.DRAIN, reason="new fans")
        [element] = (await stub.WithdrawElements(request)).elements
        assert (element.name, element.reason, [j.name for j in element.jobs]) == (
            "spine1",
            "new fans",
            ["job"],
        )
        await deployment.until(lambda: "spine1" not in _switches(deployment), "it has left")
        assert deployment.state("job") is JobState.RUNNING
        [element] = (await stub.GetFabricStatus(pb.FabricStatusRequest())).elements
        assert not element.jobs
        status = await stub.GetStatus(pb.StatusRequest())
        assert (list(status.withdrawn_elements), list(status.failed_elements)) == (["spine1"], [])
        await stub.GiveBackElements(pb.GiveBackElementsRequest(elements=["spine1"]))
        assert not (await stub.GetFabricStatus(pb.FabricStatusRequest())).elements


async def test_a_job_that_cannot_leave_is_named_with_the_reason(tmp_path):
    async with deployed(leaf_spine(2, 2, 2), tmp_path) as deployment, asked(deployment) as stub:
        await _runs_over(deployment, "spine1")
        spines = pb.WithdrawElementsRequest(elements=["spine1", "spine2", "leaf1"], intent=pb.DRAIN)
        await stub.WithdrawElements(spines)
        migrations = deployment.controller.planning.migrations
        await deployment.until(lambda: bool(migrations.stays_because("job")), "it stays")
        found = {
            e.name: [j.reason for j in e.jobs]
            for e in (await stub.GetFabricStatus(pb.FabricStatusRequest())).elements
        }
        assert found["leaf1"] == ["its workers at h1 need leaf1"]
        assert found["spine1"][0].startswith("no path without failed or withdrawn elements from h1 to h3")
        assert found["spine2"] == []
        steps = list((await stub.ExplainJob(pb.JobName(name="job"))).steps)
        assert any(s.startswith("It uses what is drained, leaf1, spine1, and cannot leave") for s in steps)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (pb.WithdrawElementsRequest(elements=["spin1"], intent=pb.DRAIN), "did you mean 'spine1'?"),
        (pb.WithdrawElementsRequest(elements=["spine1"]), "CORDON, DRAIN or HOLD"),
        (
            pb.WithdrawElementsRequest(elements=["leaf1-spine1"], intent=pb.HOLD, hold_s=5),
            "only switches can",
        ),
        (pb.WithdrawElementsRequest(elements=["leaf1"], intent=pb.HOLD), "at most 86400 s"),
    ],
    ids=["unknown", "no intent", "a held link", "no time"],
)
async def test_what_cannot_be_withdrawn_is_refused(request_, why, tmp_path):
    async with served(leaf_spine(2, 2, 2), tmp_path) as (_, stub):
        with pytest.raises(grpc.aio.AioRpcError, match=why):
            await stub.WithdrawElements(request_)
        assert await code_of(stub.WithdrawElements(request_)) == grpc.StatusCode.INVALID_ARGUMENT
        assert not (await stub.GetFabricStatus(pb.FabricStatusRequest())).elements


@pytest.mark.parametrize("hold_s", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("intent", [pb.CORDON, pb.DRAIN, pb.HOLD])
async def test_a_time_that_is_no_number_does_not_spoil_the_store(intent, hold_s, tmp_path):
    async with ready(leaf_spine(2, 2, 2), tmp_path) as deployment:
        async with asked(deployment) as stub:
            request = pb.WithdrawElementsRequest(elements=["spine1"], intent=intent, hold_s=hold_s)
            if intent == pb.HOLD:
                assert await code_of(stub.WithdrawElements(request)) == grpc.StatusCode.INVALID_ARGUMENT
            else:
                await stub.WithdrawElements(request)
        await deployment.restart()
        async with asked(deployment) as stub:
            withdrawn = [e.name for e in (await stub.GetFabricStatus(pb.FabricStatusRequest())).elements]
            assert withdrawn == [] if intent == pb.HOLD else ["spine1"]
            await stub.GiveBackElements(pb.GiveBackElementsRequest(elements=["spine1"]))


async def test_a_status_that_the_store_cannot_give_is_refused_with_the_reason(tmp_path, monkeypatch):
    async with deployed(leaf_spine(2, 2, 2), tmp_path) as deployment, asked(deployment) as stub:

        def broken(*_: Any, **__: Any) -> pb.FabricStatus:
            raise StoreError("state.db: disk I/O error")

        monkeypatch.setattr(servicer, "fabric_status", broken)
        with pytest.raises(grpc.aio.AioRpcError, match=r"state\.db: disk I/O error"):
            await stub.GetFabricStatus(pb.FabricStatusRequest())


async def test_a_job_whose_epochs_are_used_up_moves_over_what_is_drained(tmp_path):
    async with ready(leaf_spine(2, 1, 2), tmp_path) as deployment:
        controller = deployment.controller
        await deployment.run(JOB)
        controller.planning.maintenance.withdraw(["spine1"], Intent.DRAIN)
        epoch = controller.state.registry.get("job").epoch
        controller.planning.migrations.renew("job", epoch, "all epochs of its slots are used up")
        await deployment.until(lambda: controller.state.registry.get("job").epoch > epoch, "it has moved")
        await deployment.runs("job")


async def test_a_move_that_failed_is_tried_again_later(tmp_path, monkeypatch):
    """Not at once: switches that did not take it would be asked without end."""
    monkeypatch.setattr(migration_scheduler, "LEAVE_AGAIN_S", 0.3)
    async with deployed(leaf_spine(2, 2, 2), tmp_path) as deployment:
        controller = deployment.controller
        await _runs_over(deployment, "spine1")
        migrations = controller.planning.migrations
        plan, requests = migrations._planning.plan, []

        async def refused_once(*args: Any, **options: Any) -> Any:
            requests.append(asyncio.get_running_loop().time())
            if len(requests) == 1:
                raise RefusedError("not now")
            return await plan(*args, **options)

        monkeypatch.setattr(migrations._planning, "plan", refused_once)
        controller.planning.maintenance.withdraw(["spine1"], Intent.DRAIN)
        await deployment.until(lambda: migrations.stays_because("job") == "not now", "it stays")
        controller.state.events.publish(MoveFailed("job", "not now"))
        controller.state.events.publish(CapacityFreed())
        await deployment.until(lambda: "spine1" not in _switches(deployment), "it has left")
        assert requests[1] - requests[0] >= 0.3


def _withdrawn(deployment) -> dict[str, float]:
    """Numbers of withdrawn elements by intent, as Prometheus scrapes them."""
    controller = deployment.controller
    families = ControllerCollector(controller.state, controller.switches, controller.planning).collect()
    (found,) = [family for family in families if family.name == "netfold_withdrawn_elements"]
    return {sample.labels["intent"]: sample.value for sample in found.samples}


async def test_commands_drain_hold_show_and_give_back(tmp_path):
    async with deployed(leaf_spine(2, 2, 2), tmp_path) as deployment:
        await _runs_over(deployment, "spine1")
        told: list[MaintenanceRequested] = []
        deployment.controller.state.events.subscribe(MaintenanceRequested, told.append)
        async with serving(service_of(deployment.controller), f"unix:{tmp_path}/socket", None) as address:

            async def run(app: typer.Typer, *arguments: str) -> tuple[int, str]:
                options = [*arguments, "--controller", address]
                done = await asyncio.to_thread(CliRunner(env={"COLUMNS": "200"}).invoke, app, options)
                return done.exit_code, done.output

            assert await run(fabric_commands.status) == (0, "nothing is withdrawn\n")
            code, _ = await run(fabric_commands.drain, "spine1", "--reason", "new fans", "--wait")
            assert (code, "spine1" in _switches(deployment)) == (0, False)
            code, shown = await run(fabric_commands.status, "--json")
            [element] = json.loads(shown)["elements"]
            assert (element["intent"], element["is_drained"], element["reason"]) == (
                "drain",
                True,
                "new fans",
            )
            code, shown = await run(fabric_commands.hold, "leaf1", "--for", "5m")
            assert code == 0
            assert "hold until" in shown
            assert "new fans" in shown
            assert "job" in shown
            code, shown = await run(fabric_commands.hold, "leaf1", "--for", "soon")
            assert (code, "expected a number and s, m, h or d" in shown) == (2, True)
            code, shown = await run(fabric_commands.cordon, "nothing")
            assert (code, "is no switch, link or host" in shown) == (2, True)
            assert _withdrawn(deployment) == {"cordon": 0, "drain": 1, "hold": 1}
            assert await run(fabric_commands.undrain, "spine1", "leaf1") == (0, "nothing is withdrawn\n")
            assert _withdrawn(deployment) == {"cordon": 0, "drain": 0, "hold": 0}
            assert [event.text for event in told] == [
                "an operator has asked to drain spine1",
                "an operator has asked to hold leaf1 for 300 s",
                "an operator has given leaf1, spine1 back",
            ]
