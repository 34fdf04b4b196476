# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Faults while jobs run: of switches, links, connections, entries, workers. Jobs run around them, or end with a reason,
and the switches hold exactly what they should."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from netfold.controller.jobs.records import JobState
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.generators import leaf_spine, single_switch
from tests.controller.deployment import Deployment, MemberStream, ready, served
from tests.controller.fake_switch import PushKeeps

FABRIC = leaf_spine(2, 2, 2)
SPREAD = "name: job\nworkers: [h1, h3]\nscheme: switchml\nrate: 20\n"
LOCAL = "name: job\nworkers: [h1, h2]\nscheme: switchml\nrate: 20\nlease_ms: 300\n"


async def test_a_restarted_switch_gets_its_entries_back_in_a_new_epoch(tmp_path):
    async with ready(FABRIC, tmp_path) as deployment:
        await deployment.run(SPREAD)
        root = deployment.job("job").placement.plan.trees[0].root
        await deployment.switches[root].restart()
        await deployment.until(lambda: deployment.job("job").epoch == 2, "epoch 2")
        await deployment.settled()
        assert deployment.switches[root].pushes == 2
        assert deployment.state("job") is JobState.RUNNING
        deployment.assert_exact()


async def test_a_broken_control_connection_changes_nothing_in_the_switch(tmp_path):
    async with ready(FABRIC, tmp_path) as deployment:
        await deployment.run(SPREAD)
        switch = deployment.switches["leaf1"]
        before, updates = switch.entries(), switch.updates
        await switch.drop_connections()
        await deployment.until(
            lambda: not deployment.controller.switches.fleet.health("leaf1").ready, "noticed"
        )
        await deployment.settled()
        assert (switch.entries(), switch.updates) == (before, updates)
        assert deployment.job("job").epoch == 1


async def test_jobs_move_around_a_switch_that_hangs(tmp_path):
    """Its connection stays open, and nothing comes back within the time that a switch of this fleet has."""
    async with ready(FABRIC, tmp_path, rpc_timeout_s=0.3) as deployment:
        await deployment.run(SPREAD)
        spine = deployment.spine_of()
        deployment.switches[spine].hangs.set()
        health = deployment.controller.switches.fleet.health(spine)
        await deployment.until(lambda: "within 0.3 s" in health.error, "the switch is given up")
        await deployment.until(lambda: deployment.spine_of() != spine, "the job uses the other spine")
        await deployment.runs("job")
        deployment.switches[spine].hangs.clear()
        await deployment.settled_exactly()


async def test_a_job_that_cannot_do_without_a_switch_fails_with_a_reason(tmp_path):
    async with ready(single_switch(2), tmp_path) as deployment:
        await deployment.run(LOCAL)
        await deployment.switches["s1"].stop()
        await deployment.until(lambda: deployment.state("job") is JobState.FAILED, "failed")
        assert "switch s1 is unreachable for 3 s" in deployment.job("job").reason
        await deployment.switches["s1"].start()
        await deployment.settled_exactly()


@pytest.mark.slow
async def test_a_job_that_cannot_do_without_a_link_has_the_restart_timeout_for_it_to_come_back(tmp_path):
    """Also where another link of the same pair of racks is wrongly called down for a moment."""
    fabric = leaf_spine(2, 1, 2)
    async with ready(fabric, tmp_path) as deployment:
        controller = deployment.controller
        await deployment.run(SPREAD)
        link = frozenset(("leaf1", "spine1"))
        controller.switches.failure_monitor.links_changed(frozenset((link,)))
        await deployment.idle()
        assert deployment.state("job") is JobState.RUNNING
        controller.switches.failure_monitor.links_changed(frozenset())
        await asyncio.sleep(deployment.options.timeouts.restart)  # the timeout of the first time is over
        assert deployment.state("job") is JobState.RUNNING
        controller.switches.failure_monitor.links_changed(frozenset((link,)))
        await deployment.until(lambda: deployment.state("job") is JobState.FAILED, "failed")
        assert "link leaf1-spine1 is down for 3 s" in controller.state.registry.get("job").reason
        controller.switches.failure_monitor.links_changed(frozenset())
        await deployment.settled_exactly()


async def test_a_job_off_a_failed_link_moves_as_soon_as_the_switch_of_its_other_path_is_back(tmp_path):
    timeouts = ControllerTimeouts(reroute=0.05, restart=600.0, start=10.0)
    async with ready(FABRIC, tmp_path, timeouts=timeouts) as deployment:
        controller = deployment.controller
        await deployment.run(SPREAD)
        used = deployment.spine_of()
        other = next(s for s in ("spine1", "spine2") if s != used)
        await deployment.switches[other].stop()
        await deployment.until(lambda: other in controller.state.failures.failed.switches, "given up for now")
        controller.switches.failure_monitor.links_changed(frozenset((frozenset(("leaf1", used)),)))
        await asyncio.gather(*controller.state.tasks.under_way)
        assert deployment.spine_of() == used
        await deployment.switches[other].start()
        await deployment.until(lambda: deployment.spine_of() == other, "moved")
        await deployment.runs("job")


async def test_a_job_waits_for_a_switch_that_hangs_and_which_it_cannot_do_without(tmp_path):
    """For longer than any timeout: what is slow is not dead. The job says what it waits for."""
    timeouts = ControllerTimeouts(reroute=0.05, restart=0.5, start=10.0)
    async with ready(single_switch(2), tmp_path, rpc_timeout_s=0.3, timeouts=timeouts) as deployment:
        await deployment.run(LOCAL)
        controller, clock = deployment.controller, asyncio.get_running_loop().time
        health = controller.switches.fleet.health("s1")
        deployment.switches["s1"].hangs.set()
        await deployment.until(lambda: health.silent, "it is silent")
        assert "within 0.3 s" in health.error
        await deployment.until(lambda: clock() - health.since > 4 * timeouts.restart, "for long")
        assert deployment.state("job") is JobState.RUNNING
        steps = await deployment.explain("job")
        assert any("It waits for s1" in s and "this machine is too busy" in s for s in steps)
        deployment.switches["s1"].hangs.clear()
        await deployment.settled()
        await deployment.runs("job")
        deployment.assert_exact()


async def test_jobs_move_off_a_link_that_is_down(tmp_path):
    """How soon is in test_links.py, by probes."""
    async with ready(FABRIC, tmp_path, probe_s=0.05) as deployment:
        await deployment.run(SPREAD)
        spine = deployment.spine_of()
        deployment.cut.add(frozenset(("leaf1", spine)))
        await deployment.until(lambda: deployment.spine_of() != spine, "moved")
        await deployment.runs("job")
        await deployment.settled_exactly()
        deployment.cut.clear()
        await deployment.until(
            lambda: not deployment.controller.state.failures.failed.links, "the link is back"
        )
        await deployment.settled_exactly()


async def test_a_job_cut_off_by_links_fails_and_names_them(tmp_path):
    async with ready(FABRIC, tmp_path, probe_s=0.05) as deployment:
        await deployment.run(SPREAD)
        deployment.cut |= {frozenset(("leaf1", "spine1")), frozenset(("leaf1", "spine2"))}
        await deployment.until(lambda: deployment.state("job") is JobState.FAILED, "failed")
        assert "no path without failed or withdrawn elements from h1 to h3" in deployment.job("job").reason
        await deployment.settled_exactly()


async def test_the_audit_repairs_drift_and_counts_it(tmp_path):
    async with ready(single_switch(2), tmp_path, audit_s=0.1) as deployment:
        await deployment.run(LOCAL)
        switch = deployment.switches["s1"]
        lost = next(k for k, e in switch.state.tables.items() if e.priority == 20)
        del switch.state.tables[lost]
        switch.state.groups[999] = next(iter(switch.state.groups.values())).__class__(multicast_group_id=999)
        await deployment.until(
            lambda: deployment.controller.switches.fleet.health("s1").repaired == 2, "repaired"
        )
        await deployment.settled()
        await deployment.until(
            lambda: 999 not in switch.state.groups and lost in switch.state.tables, "as before"
        )
        deployment.assert_exact()
        assert deployment.job("job").epoch == 1


async def test_a_failed_write_is_tried_again(tmp_path):
    async with ready(single_switch(2), tmp_path) as deployment:
        switch = deployment.switches["s1"]
        failures = iter([True, False, True])

        def sometimes(_: int) -> None:
            if next(failures, False):
                raise RuntimeError("no room just now")

        switch.before_update = sometimes
        await deployment.run(LOCAL)
        deployment.assert_exact()


async def test_a_switch_that_refuses_an_entry_for_good_fails_the_job(tmp_path):
    async with ready(single_switch(2), tmp_path) as deployment:

        def never(_: int) -> None:
            raise RuntimeError("no room")

        deployment.switches["s1"].before_update = never
        await deployment.controller.requests.submit(LOCAL, queue=False)
        await deployment.until(lambda: deployment.state("job") is JobState.FAILED, "failed")
        assert "switches did not take its entries" in deployment.job("job").reason
        deployment.switches["s1"].before_update = lambda n: None
        await deployment.settled_exactly()


async def test_a_switch_with_foreign_entries_is_given_its_pipeline_again(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "own").mkdir()
    fabric = single_switch(2)
    first = Deployment(fabric, tmp_path / "other")
    second = Deployment(fabric, tmp_path / "own")
    second.switches = first.switches
    switch = first.switches["s1"]
    await switch.start()
    first.start()
    await first.settled()
    await first.run(LOCAL)
    await first.kill()
    second.start()
    try:
        await second.settled()
        assert switch.pushes == 2
        second.assert_exact()
    finally:
        await second.kill()
        await switch.stop()


@pytest.mark.parametrize("kept", [PushKeeps.HIDDEN_GROUPS, PushKeeps.GROUPS])
async def test_groups_that_outlive_a_push_make_no_copies(kept, tmp_path):
    """Both stores hand out tree number 1, with other workers."""
    fabric = single_switch(4)
    deployments = []
    for folder in ("other", "own"):
        (tmp_path / folder).mkdir()
        deployments.append(Deployment(fabric, tmp_path / folder))
        deployments[-1].switches = deployments[0].switches
    first, second = deployments
    switch = first.switches["s1"]
    switch.push_keeps = kept
    await switch.start()
    first.start()
    await first.settled()
    await first.run(LOCAL)
    await first.kill()
    assert switch.state.groups
    second.start()
    try:
        await second.settled()
        await second.run(LOCAL.replace("[h1, h2]", "[h3, h4]"))
        assert switch.pushes == 2
        second.assert_exact()
        groups = {n: sorted(r.egress_port for r in g.replicas) for n, g in switch.state.groups.items()}
        assert {n: sorted(switch.state.copies[n]) for n in groups} == groups
    finally:
        await second.kill()
        await switch.stop()


async def test_survivors_hear_at_once_that_a_worker_is_gone(tmp_path):
    async with served(single_switch(2), tmp_path) as (deployment, stub):
        await deployment.run(LOCAL)
        silent, survivor = MemberStream(stub, "job", "h1"), MemberStream(stub, "job", "h2")
        await survivor.say()
        assert (await survivor.hear()).HasField("assignment")
        await silent.say()
        await silent.hear()
        beats = asyncio.create_task(_beat(survivor))
        over = (await survivor.hear()).ended
        beats.cancel()
        assert over.state == pb.FAILED
        assert "the lease of h1 expired" in over.reason
        await deployment.settled_exactly()


async def test_a_job_may_go_on_without_a_worker(tmp_path):
    fabric = single_switch(3)
    spec = "name: job\nscheme: switchml\nlease_ms: 300\non_worker_loss: continue\n"
    async with served(fabric, tmp_path) as (deployment, stub):
        await deployment.run(spec)
        members = {h: MemberStream(stub, "job", h) for h in ("h1", "h2", "h3")}
        for member in members.values():
            await member.say()
            assert (await member.hear()).assignment.workers == 3
        beats = [asyncio.create_task(_beat(members[h])) for h in ("h1", "h3")]
        told = (await members["h3"].hear()).assignment
        assert (told.workers, told.rank, told.epoch) == (2, 1, 2)
        assert (await members["h1"].hear()).assignment.rank == 0
        for beat in beats:
            beat.cancel()
        late = MemberStream(stub, "job", "h2", process_of=members["h2"])
        await late.say(epoch=1)
        assert "continued without 'h2'" in str(await _error_of(late))
        await deployment.settled_exactly()


async def _beat(member: MemberStream) -> None:
    while True:
        await asyncio.sleep(0.05)
        await member.say()


async def _error_of(member: MemberStream) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await member.call.read()
    return caught.value.details() or ""
