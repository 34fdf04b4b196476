# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Upgrades at bad moments: programs are rolled out, and controllers of two versions use one store."""

from __future__ import annotations

from tests.simulation.drain_scenarios import long_job
from tests.simulation.rolled_out import NEXT
from tests.simulation.scenario import Step
from tests.simulation.switch import MUTE, REFUSED

_RUNS = (
    Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
    Step(1.0, "submit", (long_job("b", "h2", "h4"),)),
)


def _roll_out(at_s: float, program: str) -> Step:
    return Step(at_s, "roll_out", (program,))


UPGRADE_SCENARIOS = {
    "a program reaches all switches": (*_RUNS, _roll_out(10.0, NEXT)),
    "no switch takes a program": (*_RUNS, _roll_out(10.0, REFUSED)),
    "a program answers nothing": (*_RUNS, _roll_out(10.0, MUTE)),
    "a program reaches a fabric of one spine": (*_RUNS, _roll_out(10.0, NEXT)),
    "a program fails after another one was rolled out": (
        *_RUNS,
        _roll_out(10.0, NEXT),
        _roll_out(45.0, REFUSED),
    ),
    "a spine that an operator has drained gets another program": (
        *_RUNS,
        Step(5.0, "drain", ("spine1", 50.0)),
        _roll_out(10.0, NEXT),
    ),
    "an operator gives a switch back that fails its check": (
        *_RUNS,
        _roll_out(10.0, MUTE),
        Step(9.5, "drain", ("spine1", 1.0)),
    ),
    "a job waits when its leaf gets another program": (
        Step(1.0, "submit", (long_job("a", "h3", "h4", rate=100, min_rate=100),)),
        Step(5.0, "submit", (long_job("b", "h1", "h3", rate=100, min_rate=100, work_s=5.0),)),
        _roll_out(10.0, NEXT),
    ),
    "the controller restarts in a rollout": (
        *_RUNS,
        _roll_out(10.0, NEXT),
        Step(10.6, "restart_controller", (1.0,)),
        Step(14.0, "restart_controller", (5.0,)),
    ),
    **{
        f"the controller dies {'after' if is_after else 'before'} commit {number} of a rollout{fails}": (
            *_RUNS,
            Step(9.9, "kill_at_commit", (number, is_after, 1.0)),
            _roll_out(10.0, program),
        )
        for program, fails in ((NEXT, ""), (MUTE, " that fails"))
        for number in (1, 3, 5, 7)
        for is_after in (False, True)
    },
    "an operator cancels a rollout while jobs leave its switch": (
        *_RUNS,
        _roll_out(10.0, NEXT),
        Step(10.01, "cancel_rollout"),
    ),
    "an operator cancels a rollout whose switch has its program": (
        *_RUNS,
        _roll_out(10.0, NEXT),
        Step(11.88, "cancel_rollout"),
        Step(11.95, "restart_controller", (1.0,)),
    ),
    "an operator cancels a rollout that begins with a spine that is drained": (
        *_RUNS,
        Step(5.0, "drain", ("spine1", 50.0)),
        Step(9.9, "kill_at_commit", (1, True, 1.0)),
        _roll_out(10.0, NEXT),
        Step(11.1, "cancel_rollout"),
    ),
    **{
        f"the controller dies {'after' if is_after else 'before'} commit {number} of a cancel": (
            *_RUNS,
            _roll_out(10.0, NEXT),
            Step(11.87, "kill_at_commit", (number, is_after, 1.0)),
            Step(11.88, "cancel_rollout"),
        )
        for number in (1, 2, 3, 4)
        for is_after in (False, True)
    },
    "the disk is full in a rollout": (
        *_RUNS,
        _roll_out(10.0, NEXT),
        Step(10.5, "fill_disk", (12.0,)),
    ),
    "a switch loses its power in its rollout": (
        *_RUNS,
        _roll_out(10.0, NEXT),
        Step(10.3, "power_cut", ("spine1", 5.0)),
        Step(14.0, "power_cut", ("leaf1", 3.0)),
    ),
    "two versions use one store": (
        Step(0.5, "use_store_of_before"),
        *_RUNS,
        Step(10.0, "change_version", (1.0,)),
        Step(20.0, "restart_controller", (1.0,)),
        Step(30.0, "change_version", (1.0,)),
        Step(40.0, "restart_controller", (1.0,)),
    ),
    "a rollout waits for the end of an upgrade": (
        Step(0.5, "use_store_of_before"),
        *_RUNS,
        _roll_out(10.0, NEXT),
        Step(15.0, "change_version", (1.0,)),
        Step(20.0, "restart_controller", (1.0,)),
        Step(25.0, "finalize"),
        Step(45.0, "change_version", (1.0,)),
    ),
}

UPGRADE_FABRICS = {"a program reaches a fabric of one spine": "one spine"}
