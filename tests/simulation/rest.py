# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Invariants of a run that has ended well: nothing is left, and switches hold what the store asks for."""

from __future__ import annotations

from netfold.controller.features.registry import FEATURES
from netfold.controller.jobs.records import JobState
from netfold.controller.switches.desired_state import desired_contents
from netfold.topologies.spec import fabric_from_spec, spec_text
from tests.simulation.rolled_out import wrong_at_rest
from tests.simulation.world import ViolationError, World


def assert_ended(world: World) -> None:
    """Every program came to its end. Raises ViolationError."""
    if world.controller is None:
        raise ViolationError("no controller leads")
    for name, program in world.programs.items():
        if not program.is_acknowledged:
            continue
        job = world.controller.state.registry.get(name)
        if not job.state.is_terminal:
            raise ViolationError(f"{name} is still {job.state}: {job.reason}")
        if program.alive:
            member = program.alive[0]
            raise ViolationError(f"{member.host} of {name} still waits; the job is {job.state}")
        is_harmed = program.excuses or program.is_canceled or job.state is JobState.FAILED
        if job.state is not JobState.DONE and not is_harmed:
            raise ViolationError(f"{name} is {job.state}: {job.reason}")


def assert_clean(world: World) -> None:
    """Raises ViolationError."""
    controller = world.controller
    if controller is None:
        raise ViolationError("no controller leads")
    assert world.process is not None
    for name, pool in controller.state.registry.occupancy().items():
        if pool.in_use:
            raise ViolationError(f"{pool.in_use} slots of {name} are still in use")
    registry = controller.state.registry
    wanted = desired_contents(
        controller.state.config,
        registry.all(),
        controller.state.failures.failed,
        registry.revisions(),
        FEATURES,
    )
    if wrong := world.file.wrong(fabric_from_spec(registry.fabric_store.fabric)):
        raise ViolationError(wrong)
    if world.file.wanted is not None or registry.fabric_store.fabric != spec_text(world.fabric):
        raise ViolationError("the fabric's file is not in use")
    for name, switch in ((n, world.switches[n]) for n in wanted):
        if switch.contents != wanted[name]:
            more = [str(switch.contents[k]) for k in switch.contents.keys() - wanted[name].keys()]
            less = [str(wanted[name][k]) for k in wanted[name].keys() - switch.contents.keys()]
            raise ViolationError(f"{name} holds too much: {more}, and lacks {less}")
    if controller.state.failures.failed.switches or controller.state.failures.failed.links:
        raise ViolationError(f"nothing has failed, and {controller.state.failures.failed} counts as failed")
    if world.rollouts.waits:
        raise ViolationError("the operator still waits for a rollout")
    has_worked = not (world.has_faults or world.draws.intensity.is_noisy or world.busy_until)
    if wrong := wrong_at_rest(
        world.store, world.switches, world.fabric, world.rollouts, has_worked=has_worked
    ):
        raise ViolationError(wrong)
    left = {
        "background tasks": [t.get_name() for t in controller.state.tasks.under_way],
        "timers of jobs": controller.state.tasks.timers,
        "leases": controller.jobs.lifecycle.lease_holders,
        "open streams": controller.state.member_status.open_streams,
        "calls": list(world.calls),
    }
    for what, rest in left.items():
        if rest:
            raise ViolationError(f"{what} are left: {rest}")
