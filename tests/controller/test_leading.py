# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Leadership: a standby takes over from the leader; a controller that loses a switch to another one yields it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest
from finsy.proto import U128, p4r, p4r_grpc, rpc_code

from netfold.controller.core import Controller
from netfold.controller.jobs.engine import NotLeaderError
from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.slot_allocator import Range
from netfold.controller.jobs.store import Store
from netfold.controller.jobs.stored_fabric import fabric_text
from netfold.controller.lifecycle.events import LeaseExpired
from netfold.controller.lifecycle.job_registry import ReplacedError
from netfold.controller.observation.recorder import MIN_PAUSE_S
from netfold.controller.service import daemon
from netfold.controller.service.access_control import JobsService
from netfold.controller.service.events import EventFiles
from netfold.controller.service.leadership import Leadership
from netfold.controller.service.security import Security
from netfold.controller.switches.election import controller_election_id, tool_election_id
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.finsy_adapter import log_state_changes_only
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.generators import leaf_spine, single_switch
from tests.controller.deployment import (
    DEADLINE_S,
    TIMEOUTS,
    Deployment,
    MemberStream,
    asked,
    deployed,
    ready,
)

SPEC = "name: job\nworkers: [h1, h2]\nscheme: switchml\nrate: 20\nlease_ms: 2000\n"


async def test_the_standby_takes_over_and_no_job_is_lost(tmp_path):
    async with deployed(leaf_spine(2, 2, 2), tmp_path) as deployment:
        standby = Store(tmp_path / "state.db", fabric_text(deployment.fabric))
        await deployment.settled()
        await deployment.controller.requests.submit(SPEC, queue=False)
        await deployment.settled()
        assert Leadership(standby).try_lead() is None
        before = {n: (s.entries(), s.updates) for n, s in deployment.switches.items()}
        standby.close()
        await deployment.restart()
        assert {n: (s.entries(), s.updates) for n, s in deployment.switches.items()} == before
        assert (deployment.state("job"), deployment.job("job").epoch) == (
            JobState.RUNNING,
            1,
        )
        await deployment.run(SPEC.replace("job", "more"))
        deployment.assert_exact()


async def test_members_of_a_running_job_hardly_notice_a_new_controller(tmp_path):
    async with deployed(single_switch(2), tmp_path) as deployment:
        async with asked(deployment) as stub:
            await deployment.settled()
            await deployment.controller.requests.submit(SPEC, queue=False)
            for host in ("h1", "h2"):
                member = MemberStream(stub, "job", host)
                await member.say()
                first = (await member.hear()).assignment
        await deployment.kill()
        deployment.start()
        async with asked(deployment) as stub:
            member = MemberStream(stub, "job", "h2", process_of=member)
            await member.say()
            assert (await member.hear()).assignment == first


@pytest.mark.slow
async def test_a_member_from_before_the_restart_has_to_return_within_the_lease(tmp_path):
    async with ready(single_switch(2), tmp_path) as deployment:
        await deployment.run(SPEC.replace("2000", "400"))
        deployment.controller.jobs.members.heartbeat("job", "h1")
        await deployment.kill()
        deployment.start()
        await deployment.until(lambda: deployment.state("job") is JobState.FAILED, "failed")
        assert "the lease of h1 expired" in deployment.job("job").reason


async def test_a_leader_that_loses_its_lease_before_it_runs_changes_nothing(tmp_path, monkeypatch):
    """Its address cannot be published. A heartbeat that comes late gets no lease, which would expire later."""
    made: list[Controller] = []

    def make(*arguments: Any, **options: Any) -> Controller:
        made.append(Controller(*arguments, **options))
        return made[-1]

    class Listener(daemon.Listener):
        async def serve(self, service: JobsService, *, leads: bool = True) -> None:
            """Serve at no address."""

    class Lost(Leadership):
        def publish(self, address: str, security: Security | None) -> None:
            raise NotLeaderError("the lease is over")

    monkeypatch.setattr(daemon, "Controller", make)
    async with ready(single_switch(2), tmp_path) as deployment, AsyncExitStack() as stack:
        await deployment.run(SPEC)
        deployment.controller.jobs.members.heartbeat("job", "h1")
        await deployment.end_controller()
        store = deployment.store
        options = daemon.DaemonOptions(store.engine, store.engine.path, "", None, deployment.options, 9559)
        events = EventFiles(tmp_path / "events")
        stack.callback(events.close)
        listener = Listener(stack, options, events)
        with pytest.raises(NotLeaderError, match="the lease is over"):
            await daemon._lead(
                lambda fabric: (fabric, options),
                store,
                Lost(store),
                2,
                listener,
                print,
                asyncio.Event(),
                float,
            )
        (ended,) = made
        ended.jobs.members.heartbeat("job", "h1")
        ended.jobs.members.on_lease_expired(LeaseExpired("job", "h1"))  # one that a full disk has delayed
        assert (ended.jobs.lifecycle.lease_holders, ended.state.tasks.timers) == (frozenset(), 0)
        with pytest.raises(ReplacedError), ended.state.registry.change():
            ended.state.registry.write(ended.state.registry.get("job"))


async def test_a_higher_election_id_wins_and_the_other_waits(tmp_path):
    """A second controller with the same store but a greater term, as after a takeover that the first one missed."""
    async with ready(single_switch(2), tmp_path) as deployment:
        (tmp_path / "copy").mkdir()
        newer = Store(tmp_path / "copy" / "state.db", fabric_text(deployment.fabric))
        config = FabricConfig(deployment.fabric, deployment.addressing(), deployment.store.mark)
        term = deployment.store.number("term") + 1
        winner = Controller(config, newer, deployment.options, term, deployment.plans)
        running = asyncio.create_task(winner.run())
        try:
            loser = deployment.controller.switches.fleet
            await deployment.until(lambda: winner.switches.fleet.health("s1").ready, "the newer one leads")
            other = "another controller is primary"
            await deployment.until(lambda: loser.health("s1").error == other, "the older one gave way")
            assert not loser.health("s1").ready
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            newer.close()
        await deployment.settled()
        assert loser.health("s1").ready, "it leads again when the other one is gone"


def test_a_newer_stream_has_a_higher_election_id_than_all_older_ones_of_its_controller_and_of_older_terms():
    ids = [controller_election_id(term, stream) for term in (1, 2, 2**31) for stream in (1, 2, 2**20)]
    assert sorted(set(ids)) == ids
    assert ids[0] > tool_election_id()
    assert ids[-1] < 2**128


async def test_a_controller_leads_again_at_a_switch_that_has_not_noticed_the_end_of_its_last_streams(
    tmp_path,
):
    """P4Runtime refuses a second stream with the election id of another one, also of one that only the switch has."""
    async with deployed(single_switch(2), tmp_path) as deployment:
        switch = deployment.switches["s1"]
        switch.forgets_no_stream = True
        for streams in (1, 2, 3):
            await deployment.settled()
            assert len(switch.clients) == streams
            switch.end_streams()
            health = deployment.controller.switches.fleet.health("s1")
            await deployment.until(lambda health=health: not health.ready, "noticed")


async def test_a_switch_that_refuses_every_stream_is_one_line_of_log_and_a_reason_of_its_status(
    tmp_path, caplog
):
    log_state_changes_only()
    async with ready(single_switch(2), tmp_path) as deployment:
        caplog.clear()
        switch = deployment.switches["s1"]
        switch.refuses = "no stream for anyone"
        refused = switch.refused
        switch.end_streams()
        await deployment.until(lambda: switch.refused >= refused + 3, "it was tried again")
        async with asked(deployment) as stub:
            (row,) = (await stub.GetStatus(pb.StatusRequest())).switches
        assert not row.ready
        assert "no stream for anyone" in row.reason
        switch.refuses = ""
        await deployment.settled()
        async with asked(deployment) as stub:
            (row,) = (await stub.GetStatus(pb.StatusRequest())).switches
        assert row.ready
        assert row.reason == ""
        (warning,) = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
        assert warning.startswith("s1 (")


HASTY = replace(TIMEOUTS, restart=0.8)


@asynccontextmanager
async def other_primary(deployment: Deployment) -> AsyncIterator[None]:
    """Another controller is primary at s1, and has been for longer than a switch may be unreachable. It writes
    nothing."""
    switch, health = deployment.switches["s1"], deployment.controller.switches.fleet.health("s1")
    async with grpc.aio.insecure_channel(switch.address) as channel:
        stream = p4r_grpc.P4RuntimeStub(channel).StreamChannel()
        update = p4r.MasterArbitrationUpdate(device_id=switch.device_id)
        update.election_id.CopyFrom(U128.encode(1 << 100))
        await stream.write(p4r.StreamMessageRequest(arbitration=update))
        await deployment.until(lambda: health.preempted, "another controller is primary")
        now, longest = asyncio.get_running_loop().time, deployment.options.timeouts.restart
        await deployment.until(lambda: now() - health.since > 1.5 * longest, "for too long")
        yield
        stream.cancel()


async def test_a_controller_that_takes_a_switch_away_fails_no_job_of_it(tmp_path):
    async with ready(single_switch(2), tmp_path, timeouts=HASTY) as deployment:
        await deployment.run(SPEC)
        switch, health = deployment.switches["s1"], deployment.controller.switches.fleet.health("s1")
        before = switch.entries()
        async with other_primary(deployment):
            assert deployment.state("job") is JobState.RUNNING
        await deployment.settled()
        assert not health.preempted
        assert (deployment.state("job"), switch.entries()) == (JobState.RUNNING, before)


async def test_a_switch_that_goes_away_after_it_was_taken_away_fails_its_job(tmp_path):
    async with ready(single_switch(2), tmp_path, timeouts=HASTY) as deployment:
        await deployment.run(SPEC)
        async with other_primary(deployment):
            await deployment.switches["s1"].stop()
        await deployment.until(lambda: deployment.state("job") is JobState.FAILED, "failed")
        assert "switch s1 is unreachable for 0.8 s" in deployment.job("job").reason


async def test_a_tool_reads_beside_the_controller_and_never_replaces_it(tmp_path):
    """As `netfold network shell`, also in the store's first term, and two at once."""
    async with deployed(single_switch(2), tmp_path) as deployment, AsyncExitStack() as stack:
        await deployment.settled()
        channel = await stack.enter_async_context(
            grpc.aio.insecure_channel(deployment.switches["s1"].address)
        )
        for _ in range(2):
            update = p4r.MasterArbitrationUpdate(device_id=deployment.switches["s1"].device_id)
            update.election_id.CopyFrom(U128.encode(tool_election_id()))
            stream = p4r_grpc.P4RuntimeStub(channel).StreamChannel()
            stack.callback(stream.cancel)
            await stream.write(p4r.StreamMessageRequest(arbitration=update))
            answer = await asyncio.wait_for(stream.read(), 10)
            assert answer.arbitration.status.code == rpc_code.ALREADY_EXISTS
        await deployment.run(SPEC)


async def test_slots_that_are_nearly_worn_are_reset_in_band(tmp_path):
    async with ready(single_switch(2, slots=64), tmp_path) as deployment:
        await deployment.controller.requests.submit(SPEC + "slots: 16\n", queue=False)
        with deployment.store.change():
            deployment.store.use_slots({"s1": [Range(0, 64)]}, 4000)
        resets = []
        deployment.slot = lambda switch, slot: (resets.append(slot), (0, 0))[1]
        assert await deployment.controller.switches.recycler.recycle("s1") == 3
        assert resets == list(range(16, 64)), "all but the job's own"
        assert deployment.store.epochs("s1") == {0: 4000}


async def test_a_job_that_used_up_its_epochs_moves_to_other_slots_and_starts_at_epoch_1(tmp_path):
    """Make-before-break: the old entries go when all switches have the new ones."""
    async with ready(single_switch(2, slots=256), tmp_path) as deployment:
        await deployment.run(SPEC + "slots: 16\n")
        registry = deployment.controller.state.registry
        for last, expected in ((3000, 3001), (4094, 4095), (4095, 1)):
            job = registry.get("job")
            used = next(iter(job.placement.trees[0].bases.values()))
            with deployment.store.change():
                deployment.store.use_slots({"s1": [Range(used, 16)]}, last)
            if last == 4095:
                assert job.epoch == last
            before = job.placement.trees
            for _ in range(3):  # the member requests it until it has it
                deployment.controller.jobs.members.heartbeat("job", "h1", unusable_epoch=job.epoch)
            await deployment.idle()
            await deployment.runs("job")
            job = registry.get("job")
            assert (job.epoch, job.previous) == (expected, None)
            assert (job.placement.trees == before) is (expected > 1)
        deployment.assert_exact()


async def test_a_job_that_used_up_its_epochs_and_has_no_other_slots_ends_with_a_reason(tmp_path):
    async with ready(single_switch(2, slots=16), tmp_path) as deployment:
        await deployment.run(SPEC)
        with deployment.store.change():
            deployment.store.use_slots({"s1": [Range(0, 16)]}, 4095)
        deployment.controller.jobs.members.heartbeat("job", "h1", unusable_epoch=1)
        await deployment.until(lambda: deployment.state("job") is JobState.FAILED, "it has failed")
        reason = deployment.job("job").reason
        assert "all 4095 job epochs of its slots are used up, and it cannot move to other slots" in reason
        await deployment.settled_exactly()


async def test_a_job_file_of_another_version_ends_its_job_and_nothing_else(tmp_path):
    async with ready(single_switch(2), tmp_path) as deployment:
        for name in ("old", "new"):
            await deployment.controller.requests.submit(SPEC.replace("job", name), queue=False)
        await deployment.settled()
        old = deployment.job("old").model_copy(update={"spec_yaml": "name: old\nspeed: 3\n"})
        with deployment.store.change():
            deployment.store.put(old)
        await deployment.restart()
        assert deployment.state("old") is JobState.FAILED
        assert "unknown key 'speed'" in deployment.job("old").reason
        assert deployment.state("new") is JobState.RUNNING
        deployment.assert_exact()


@pytest.mark.parametrize("turns", range(4))
async def test_a_controller_that_is_canceled_beside_a_change_stops(turns, tmp_path):
    """`asyncio.wait_for` drops a cancellation that meets the end of what it waits for."""
    async with ready(single_switch(2), tmp_path) as deployment:
        await asyncio.sleep(3 * MIN_PAUSE_S)  # what records changes waits for the next one
        deployment.controller.state.changes.notify()
        for _ in range(turns):  # of the event loop
            await asyncio.sleep(0)
        async with asyncio.timeout(DEADLINE_S):
            await deployment.kill()
