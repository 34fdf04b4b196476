# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Rollouts of programs: switch by switch, back where a check fails, and on where a controller ends."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace

import grpc
import pytest
from finsy.proto import p4r
from typer.testing import CliRunner

from netfold.controller.health import link_probes, rollouts
from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.program_records import (
    NO_ROLLOUT,
    RolloutRecord,
    RolloutState,
    StoredProgram,
    SwitchProgram,
)
from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.store import SCHEMA_BEFORE, Store
from netfold.controller.jobs.stored_fabric import fabric_text
from netfold.controller.jobs.withdrawal import Intent
from netfold.controller.lifecycle.events import MaintenanceRequested
from netfold.controller.operator.fabric_commands import rollout as rollout_app
from netfold.controller.scheduling.maintenance import MAX_HOLD_S
from netfold.controller.switches.finsy_adapter import read_schema
from netfold.controller.switches.stored_programs import ProgramFiles, read_pipeline, with_stored_programs
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.congestion import MARK_FRACTION
from netfold.topologies.generators import leaf_spine
from tests.controller.deployment import PIPELINE, Deployment, code_of, ready, served

FABRIC = leaf_spine(2, 2, 2)
JOB = "name: job\nworkers: [h1, h3]\nscheme: switchml\nrate: 20\n"
OWN = read_pipeline(PIPELINE)
NEXT = replace(OWN, name="next", blob=OWN.blob + b"\n")
BAD = replace(OWN, name="bad", blob=b"bad")


def _next(**abilities: object) -> StoredProgram:
    return replace(NEXT, abilities=NEXT.abilities.model_copy(update=abilities))


def _request(program: StoredProgram) -> pb.RollOutProgramRequest:
    abilities = program.abilities.model_dump_json().encode()
    return pb.RollOutProgramRequest(
        name=program.name, p4info=program.p4info, blob=program.blob, abilities=abilities
    )


async def _has_ended(deployment: Deployment) -> RolloutState:
    record = deployment.controller.planning.rollouts

    def is_over() -> bool:
        return record.record is not None and record.record.state is not RolloutState.RUNNING

    await deployment.until(is_over, "the rollout has ended")
    assert record.record is not None
    return record.record.state


async def _rolled_out(
    deployment: Deployment, stub: pb_grpc.ControllerStub, program: StoredProgram
) -> RolloutState:
    await stub.RollOutProgram(_request(program))
    return await _has_ended(deployment)


def _blobs(deployment: Deployment) -> dict[str, bytes]:
    configs = {name: s.state.config for name, s in deployment.switches.items()}
    return {name: b"" if config is None else config.p4_device_config for name, config in configs.items()}


def _nothing_is_withdrawn(deployment: Deployment) -> bool:
    return not deployment.controller.state.registry.withdrawals


async def test_a_program_reaches_all_switches_and_stays(tmp_path):
    async with served(FABRIC, tmp_path) as (deployment, stub):
        await deployment.run(JOB)
        status = await stub.RollOutProgram(_request(NEXT))
        assert (status.rollout.program, list(status.rollout.left)) == (
            "next",
            ["spine1", "spine2", "leaf1", "leaf2"],
        )
        assert await code_of(stub.RollOutProgram(_request(OWN))) == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await _has_ended(deployment) is RolloutState.DONE
        assert set(_blobs(deployment).values()) == {NEXT.blob}
        assert _nothing_is_withdrawn(deployment)
        await deployment.runs("job")
        pushes = {name: s.pushes for name, s in deployment.switches.items()}
        assert set(pushes.values()) == {2}
        await deployment.kill()
        deployment.start()  # with the options of before
        await deployment.settled()
        assert {name: s.pushes for name, s in deployment.switches.items()} == pushes
        assert deployment.state("job") is JobState.RUNNING


def _thresholds(deployment: Deployment) -> set[int]:
    table = read_schema(PIPELINE.p4info, PIPELINE.blob).tables["ecn_thresholds"].id
    held = [p4r.TableEntry.FromString(e) for s in deployment.switches.values() for e in s.entries().values()]
    return {int.from_bytes(e.action.action.params[0].value, "big") for e in held if e.table_id == table}


async def test_marking_thresholds_follow_the_program(tmp_path):
    """The program before compares packets, the next one the time in a queue."""
    before = OWN.abilities.model_copy(update={"timed": False})
    switches = tuple(replace(switch, program=before) for switch in FABRIC.switches)
    async with served(replace(FABRIC, switches=switches), tmp_path) as (deployment, stub):
        packets = _thresholds(deployment)
        assert packets == {int(64 * MARK_FRACTION)}
        assert await _rolled_out(deployment, stub, NEXT) is RolloutState.DONE
        await deployment.settled()
        assert len(_thresholds(deployment)) == 1
        assert not _thresholds(deployment) & packets


async def test_the_first_switch_that_fails_gets_its_program_back(tmp_path):
    async with served(FABRIC, tmp_path) as (deployment, stub):
        await deployment.run(JOB)
        assert await _rolled_out(deployment, stub, BAD) is RolloutState.STOPPED
        rollout = (await stub.GetFabricStatus(pb.FabricStatusRequest())).rollout
        assert (rollout.state, list(rollout.done), len(rollout.left)) == ("stopped", [], 4)
        assert rollout.reason == (
            "switch spine1: it is not ready with the program: INVALID_ARGUMENT: no such program"
        )
        await deployment.settled()
        assert set(_blobs(deployment).values()) == {OWN.blob}
        assert _nothing_is_withdrawn(deployment)
        assert [s.pushes for n, s in deployment.switches.items() if n != "spine1"] == [1, 1, 1]
        await deployment.runs("job")
        assert await _rolled_out(deployment, stub, NEXT) is RolloutState.DONE


async def test_a_switch_whose_slots_stay_full_fails_its_check(tmp_path):
    async with served(FABRIC, tmp_path) as (deployment, stub):
        await deployment.run(JOB)
        deployment.slot = lambda switch, slot: (5 << 20, 1)
        assert await _rolled_out(deployment, stub, NEXT) is RolloutState.STOPPED
        rollout = (await stub.GetFabricStatus(pb.FabricStatusRequest())).rollout
        assert "is not empty after a RESET" in rollout.reason
        assert set(_blobs(deployment).values()) == {OWN.blob}


class _LinksOf:
    """The links of the first spine, which are cut while it has another program than its own."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    def __contains__(self, link: object) -> bool:
        assert isinstance(link, frozenset)
        return "spine1" in link and _blobs(self._deployment)["spine1"] == NEXT.blob


@pytest.mark.parametrize("restarts", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_a_switch_whose_links_are_down_with_its_program_fails_its_check(
    tmp_path, monkeypatch, restarts
):
    """It answers the controller. Its links count as down long before the check ends, or the next controller starts."""
    monkeypatch.setattr(link_probes, "LINKS_S", 1.5)
    monkeypatch.setattr(rollouts, "DRAIN_S", 1.0)
    async with ready(FABRIC, tmp_path, probe_s=0.05) as deployment:
        await deployment.run(JOB)
        deployment.cut = _LinksOf(deployment)
        deployment.controller.planning.rollouts.start(NEXT)
        await deployment.until(lambda: _blobs(deployment)["spine1"] == NEXT.blob, "it has the program")
        if restarts:
            await deployment.kill()
            deployment.start()
        assert await _has_ended(deployment) is RolloutState.STOPPED
        assert "no probe got through" in deployment.controller.planning.rollouts.record.reason
        await deployment.settled()
        assert set(_blobs(deployment).values()) == {OWN.blob}


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (_next(lanes=64), "has 64 lanes"),
        (_next(wire=9), "packets of version 9"),
        (_next(quorum=False), "lacks quorum"),
        (_next(children=2), "lacks 32 children"),
        (_next(chip="tofino"), "is for tofino"),
        (replace(NEXT, name="../next"), "a program has a name of letters"),
    ],
)
async def test_a_program_that_jobs_cannot_go_on_with_is_refused(tmp_path, program, why):
    async with served(leaf_spine(1, 1, 2), tmp_path) as (deployment, stub):
        with pytest.raises(grpc.aio.AioRpcError, match=why):
            await stub.RollOutProgram(_request(program))
        assert deployment.store.rollout is None


async def test_a_store_of_the_version_before_has_no_rollout(tmp_path):
    async with served(leaf_spine(1, 1, 2), tmp_path) as (deployment, stub):
        with deployment.store.change():
            deployment.store.set_number("schema", SCHEMA_BEFORE)
        with pytest.raises(grpc.aio.AioRpcError, match="netfold controller finalize"):
            await stub.RollOutProgram(_request(NEXT))
        with deployment.store.change():
            deployment.store.finalize()
        assert await _rolled_out(deployment, stub, NEXT) is RolloutState.DONE


@pytest.mark.parametrize("reason", ["cables", rollouts.REASON])
async def test_what_an_operator_has_withdrawn_is_so_again(tmp_path, reason):
    async with served(FABRIC, tmp_path) as (deployment, stub):
        deployment.controller.planning.maintenance.withdraw(["leaf1"], Intent.CORDON, reason)
        requested: list[MaintenanceRequested] = []
        deployment.controller.state.events.subscribe(MaintenanceRequested, requested.append)
        assert await _rolled_out(deployment, stub, NEXT) is RolloutState.DONE
        [stays] = deployment.controller.state.registry.withdrawals
        assert (stays.element, stays.intent, stays.reason) == ("leaf1", Intent.CORDON, reason)
        assert [event.text for event in requested] == [
            "a rollout has asked to drain spine1",
            "a rollout has given spine1 back",
            "a rollout has asked to drain spine2",
            "a rollout has given spine2 back",
            "a rollout has asked to drain leaf1",
            "an operator has asked to cordon leaf1",
            "a rollout has asked to drain leaf2",
            "a rollout has given leaf2 back",
        ]


async def test_a_store_of_the_version_before_gets_no_job_that_this_one_alone_can_hold(tmp_path):
    async with served(FABRIC, tmp_path) as (deployment, stub):
        with deployment.store.change():
            deployment.store.set_number("schema", SCHEMA_BEFORE)
        limited = stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=f"{JOB}max_s: 60\n"))
        assert await code_of(limited) == grpc.StatusCode.RESOURCE_EXHAUSTED
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=JOB))
        assert deployment.job("job").random == "", "the version before knows tokens without it"


def test_a_rollout_whose_failed_switch_is_removed_is_over():
    record = RolloutRecord(
        name="bad", digest="d", previous={}, left=("spine1", "spine2"), reason="switch spine1: it failed"
    )
    found = rollouts._without_removed(record, {"spine2"})
    assert found is not None
    assert (found.state, found.left) == (RolloutState.STOPPED, ("spine2",))


async def test_a_hold_of_an_operator_returns_also_when_the_clock_was_set_back(tmp_path):
    async with served(FABRIC, tmp_path) as (deployment, stub):
        controller = deployment.controller
        controller.planning.maintenance.withdraw(["spine1"], Intent.HOLD, "rack", MAX_HOLD_S)
        now = controller.state.clock.wall_s
        await stub.RollOutProgram(_request(NEXT))
        controller.state.clock.wall_s = lambda: now() - 7200
        assert await _has_ended(deployment) is RolloutState.DONE
        [stays] = controller.state.registry.withdrawals
        assert (stays.element, stays.intent, stays.reason) == ("spine1", Intent.HOLD, "rack")


async def test_an_operator_cannot_give_back_a_switch_that_gets_another_program(tmp_path):
    async with served(FABRIC, tmp_path) as (deployment, stub):
        maintenance = deployment.controller.planning.maintenance
        maintenance.withdraw(["leaf1"], Intent.DRAIN, "cables")
        await stub.RollOutProgram(_request(NEXT))

        def is_under_way() -> bool:
            return [w.is_for_rollout for w in deployment.controller.state.registry.withdrawals] == [True]

        await deployment.until(is_under_way, "the rollout has withdrawn leaf1")
        back, cordon = (
            stub.GiveBackElements(pb.GiveBackElementsRequest(elements=["leaf1"])),
            stub.WithdrawElements(pb.WithdrawElementsRequest(elements=["leaf1"], intent=pb.CORDON)),
        )
        assert await code_of(back) == grpc.StatusCode.INVALID_ARGUMENT
        assert await code_of(cordon) == grpc.StatusCode.INVALID_ARGUMENT
        assert await _has_ended(deployment) is RolloutState.DONE
        await stub.GiveBackElements(pb.GiveBackElementsRequest(elements=["leaf1"]))
        assert _nothing_is_withdrawn(deployment)


async def test_a_rollout_is_canceled_once_and_only_while_it_is_under_way(tmp_path):
    async with served(FABRIC, tmp_path) as (deployment, stub):
        request = pb.CancelRolloutRequest()
        assert await code_of(stub.CancelRollout(request)) == grpc.StatusCode.RESOURCE_EXHAUSTED
        await stub.RollOutProgram(_request(NEXT))
        options = ["--cancel", "--controller", f"unix:{deployment.folder}/s"]
        done = await asyncio.to_thread(CliRunner().invoke, rollout_app, options)
        assert done.exit_code == 0, done.output
        assert "rollout of program next: canceled, 0 of 4 switches" in done.stdout
        assert (await stub.CancelRollout(request)).rollout.state == "canceled", (
            "a repeated call changes nothing"
        )
        assert await _rolled_out(deployment, stub, NEXT) is RolloutState.DONE
        with pytest.raises(
            grpc.aio.AioRpcError, match="no rollout is under way: that of program next is done"
        ):
            await stub.CancelRollout(request)


@pytest.mark.parametrize(
    "arguments", [[], ["netfold-bmv2-64", "--cancel"], ["--cancel", "--program", "next.json"]]
)
def test_a_rollout_has_a_program_or_is_canceled(arguments):
    done = CliRunner().invoke(rollout_app, arguments)
    assert done.exit_code == 2
    assert "a rollout has a PROGRAM, and --cancel has none" in done.stderr


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_cancel_leaves_what_an_operator_has_withdrawn(tmp_path, has_begun):
    async with served(FABRIC, tmp_path) as (deployment, _):
        controller = deployment.controller
        controller.planning.maintenance.withdraw(["spine1"], Intent.CORDON, "cables")
        controller.planning.rollouts.start(NEXT)
        withdrawals = lambda: controller.state.registry.withdrawals  # noqa: E731
        if has_begun:
            await deployment.until(lambda: withdrawals()[0].is_for_rollout, "the rollout has withdrawn it")
        controller.planning.rollouts.cancel()
        assert await _has_ended(deployment) is RolloutState.CANCELED
        [stays] = withdrawals()
        assert (stays.element, stays.intent, stays.reason) == ("spine1", Intent.CORDON, "cables")


async def test_what_an_operator_has_withdrawn_is_so_again_where_the_switch_stays_away(tmp_path, monkeypatch):
    monkeypatch.setattr(rollouts, "READY_S", 0.5)
    async with served(FABRIC, tmp_path) as (deployment, _):
        controller = deployment.controller
        controller.planning.maintenance.withdraw(["spine1"], Intent.HOLD, "cables", MAX_HOLD_S)
        await deployment.switches["spine1"].stop()
        controller.planning.rollouts.start(NEXT)
        withdrawals = lambda: controller.state.registry.withdrawals  # noqa: E731
        await deployment.until(lambda: withdrawals()[0].is_for_rollout, "the rollout has withdrawn it")
        controller.planning.rollouts.cancel()
        assert await _has_ended(deployment) is RolloutState.CANCELED
        [stays] = withdrawals()
        assert (stays.element, stays.intent, stays.reason) == ("spine1", Intent.HOLD, "cables")
        assert deployment.store.rollout.reason.endswith("with its own program, and stays withdrawn")


def test_the_progress_of_a_rollout():
    record = RolloutRecord(name="next", digest="d", previous={}, done=("spine1",), left=("spine2", "leaf1"))
    seen = {
        state: [
            n
            for n, count in record.model_copy(update={"state": state}).progress.items()
            for _ in range(count)
        ]
        for state in RolloutState
    }
    assert seen == {
        RolloutState.RUNNING: ["done", "under_way", "waiting"],
        RolloutState.STOPPED: ["done", "failed", "waiting"],
        RolloutState.CANCELED: ["done", "waiting", "waiting"],
        RolloutState.DONE: ["done", "waiting", "waiting"],
    }
    assert set(NO_ROLLOUT.progress.values()) == {0}


async def test_what_an_operator_has_withdrawn_is_so_again_when_the_disk_is_full_at_the_end(
    tmp_path, monkeypatch
):
    async with served(leaf_spine(2, 1, 2), tmp_path) as (deployment, _):
        deployment.controller.planning.maintenance.withdraw(["spine1"], Intent.CORDON, "cables")
        forget, failures = deployment.store.forget_unused_programs, []

        def forget_late() -> None:
            if not failures:
                failures.append(StoreError("the disk is full"))
                raise failures[0]
            forget()

        monkeypatch.setattr(deployment.store, "forget_unused_programs", forget_late)
        deployment.controller.planning.rollouts.start(BAD)
        assert await _has_ended(deployment) is RolloutState.STOPPED
        assert failures
        [stays] = deployment.controller.state.registry.withdrawals
        assert (stays.intent, stays.reason) == (Intent.CORDON, "cables")


async def test_a_switch_that_was_given_back_is_freed_again_before_it_gets_its_program_back(
    tmp_path, monkeypatch
):
    """The disk is full as the switch is done, and its next check fails."""
    async with served(FABRIC, tmp_path) as (deployment, stub):
        put, failures, requests = deployment.store.put_rollout, list[StoreError](), list[str]()
        deployment.controller.state.events.subscribe(MaintenanceRequested, lambda e: requests.append(e.text))

        def put_late(record: RolloutRecord) -> None:
            if record.done and not failures:
                failures.append(StoreError("the disk is full"))
                deployment.slot = lambda switch, slot: (5 << 20, 1)
                raise failures[0]
            put(record)

        monkeypatch.setattr(deployment.store, "put_rollout", put_late)
        assert await _rolled_out(deployment, stub, NEXT) is RolloutState.STOPPED
        assert failures
        assert requests == ["a rollout has asked to drain spine1", "a rollout has given spine1 back"] * 2
        assert _nothing_is_withdrawn(deployment)


async def test_a_fabric_without_the_next_switch_does_not_end_the_controller(tmp_path):
    async with served(FABRIC, tmp_path) as (deployment, _):
        deployment.controller.planning.rollouts.start(NEXT)
        record = deployment.store.rollout
        await deployment.kill()
        with closing(Store(deployment.folder / "state.db", "")) as store, store.change():
            store.put_rollout(record.model_copy(update={"left": ("spine9", *record.left)}))
        deployment.start()
        assert await _has_ended(deployment) is RolloutState.DONE
        assert set(_blobs(deployment).values()) == {NEXT.blob}


async def test_a_program_whose_files_cannot_be_written_does_not_end_the_controller(tmp_path, caplog):
    async with served(FABRIC, tmp_path) as (deployment, _):
        await deployment.run(JOB)
        folder = deployment.folder / "programs"
        folder.write_text("a file, so that no folder can be made")
        deployment.controller.planning.rollouts.start(NEXT)
        await deployment.until(lambda: "cannot be written" in caplog.text, "the files cannot be written")
        folder.unlink()
        assert await _has_ended(deployment) is RolloutState.DONE
        assert set(_blobs(deployment).values()) == {NEXT.blob}


@pytest.mark.parametrize("change", [{"lanes": 64}, {"wire": 9}])
def test_a_program_of_other_packets_gives_way_once_no_job_is_left(tmp_path, change):
    fabric = leaf_spine(1, 1, 2)
    other = _next(**change)
    with closing(Store(tmp_path / "state.db", fabric_text(fabric))) as store:
        with store.change():
            store.put_program(other)
            store.put_switch_program("leaf1", SwitchProgram(other.digest, was_rolled_out=True))
        assert with_stored_programs(store, fabric, PIPELINE, {}, ProgramFiles(tmp_path)) == {}


@pytest.mark.parametrize("p4info", [b"nonsense", b"\xff"])
async def test_a_p4info_that_cannot_be_read_is_a_refusal(tmp_path, monkeypatch, p4info):
    monkeypatch.setattr(rollouts, "DRAIN_S", 1.0)
    monkeypatch.setattr(rollouts, "READY_S", 3600.0)
    async with served(leaf_spine(2, 1, 2), tmp_path) as (deployment, _):
        await deployment.run(JOB)
        deployment.controller.planning.rollouts.start(replace(NEXT, p4info=p4info))
        assert await _has_ended(deployment) is RolloutState.STOPPED
        await deployment.settled()
        assert _nothing_is_withdrawn(deployment)
        await deployment.runs("job")
