# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Orders of events that once went wrong, or that find a mutant (mutants.py) which few seeds find: a scenario each."""

from __future__ import annotations

from netfold.controller.jobs.records import Transport
from tests.simulation.drain_scenarios import DRAIN_FABRICS, DRAIN_SCENARIOS
from tests.simulation.fabric_scenarios import FABRIC_SCENARIOS
from tests.simulation.leader_scenarios import LEADER_SCENARIOS
from tests.simulation.program import greedy, job
from tests.simulation.scenario import Scenario, Step
from tests.simulation.tenant_scenarios import TENANT_SCENARIOS
from tests.simulation.upgrade_scenarios import UPGRADE_FABRICS, UPGRADE_SCENARIOS


def fill_disk(at_s: float, lasts_s: float) -> Step:
    return Step(at_s, "fill_disk", (lasts_s,))


NEEDS_SERVER = "none"
"""A scheme; on a fabric without parameter servers its jobs can never run."""

HOSTS = ("h1", "h2", "h3", "h4")

SCENARIOS = {
    **DRAIN_SCENARIOS,
    **FABRIC_SCENARIOS,
    **UPGRADE_SCENARIOS,
    **TENANT_SCENARIOS,
    **LEADER_SCENARIOS,
    "workers leave while the disk is full": (
        Step(1.0, "submit", (job("a", "h1", "h3"),)),
        fill_disk(4.0, 20.0),
    ),
    "a switch that a job cannot do without hangs for long": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=60.0),)),
        Step(8.0, "hang", ("leaf1", 40.0)),
    ),
    "a switch that a job cannot do without is slow when the job is installed": (
        Step(5.0, "slow", ("leaf1", 2.0, 40.0)),
        Step(6.0, "submit", (job("a", "h1", "h3", work_s=10.0),)),
    ),
    "the planner is slow when a job has to move": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=60.0),)),
        Step(7.5, "slow_planner", (30.0,)),
        Step(8.0, "power_cut", ("spine1", 30.0)),
    ),
    "the machine stands still twice in a row": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=60.0),)),
        Step(10.0, "stall", (8.0,)),
        Step(12.0, "stall", (20.0,)),
    ),
    "a lease runs out while the disk is full": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=60.0),)),
        Step(8.0, "kill_member", ("a", "h1")),
        fill_disk(9.0, 8.0),
    ),
    "a job is queued and could run while the disk is full": (
        Step(1.0, "submit", (job("a", "h1", "h3", rate=100, work_s=4.0),)),
        Step(2.0, "submit", (job("b", "h1", "h3", rate=100),)),
        Step(8.0, "cancel", ("a",)),
        fill_disk(8.02, 10.0),
    ),
    "the planner crashes with a queued job, which cannot fail while the disk is full": (
        Step(1.0, "submit", (job("a", "h1", "h3", rate=100, work_s=30.0),)),
        Step(2.0, "submit", (job("b", "h1", "h3", rate=100),)),
        Step(7.9, "crash_planner"),
        Step(8.0, "cancel", ("a",)),
        fill_disk(8.02, 10.0),
    ),
    "a running job's switches connect again while the disk is full": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=30.0),)),
        Step(6.0, "request_epoch", ("a", "h1")),
        fill_disk(6.05, 12.0),
        Step(6.5, "drop_connections", ("leaf1",)),
        Step(6.5, "drop_connections", ("leaf2",)),
    ),
    "a worker is added when all jobs have ended, and the run nearly": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=2.0),)),
        Step(75.999, "add_worker", ("a", "h2")),
    ),
    "a job has to move while the disk is full": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=30.0),)),
        fill_disk(8.0, 6.0),
        Step(8.1, "power_cut", ("spine1", 20.0)),
    ),
    "a job that has all slots of its switches has to move": (
        Step(1.0, "submit", (job("a", "h1", "h3", scheme="switchml", slots=4096, work_s=30.0),)),
        Step(8.0, "power_cut", ("spine1", 20.0)),
    ),
    "a worker comes back to a job that has all slots of its switches": (
        Step(
            1.0,
            "submit",
            (job("a", "h1", "h2", "h3", scheme="switchml", slots=4096, work_s=60.0, is_elastic=True),),
        ),
        Step(8.0, "kill_member", ("a", "h2")),
        Step(30.0, "start_member", ("a", "h2")),
    ),
    "the planner crashes in a repair of a job that is done meanwhile": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=8.0),)),
        Step(4.9, "crash_planner"),
        Step(5.0, "hang", ("leaf2", 20.0)),
    ),
    "the store is restored, and a job gets slots that have seen a later epoch": (
        Step(0.5, "back_up_store"),
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=2.0),)),
        Step(2.0, "request_epoch", ("a", "h1")),
        Step(12.0, "restore_store", (1.0,)),
        Step(14.0, "submit", (job("b", "h2", "h4", work_s=2.0),)),
    ),
    "the store is restored, with a lower term than its switches have seen": (
        Step(0.5, "back_up_store"),
        Step(1.0, "restart_controller", (0.5,)),
        Step(3.0, "restart_controller", (0.5,)),
        Step(5.0, "restore_store", (1.0,)),
        Step(8.0, "submit", (job("b", "h2", "h4", work_s=2.0),)),
    ),
    "a queued job is impossible once it has lost a worker": (
        Step(1.0, "submit", (job("a", "h1", "h2", rate=100, work_s=10.0),)),
        Step(2.0, "submit", (job("b", *HOSTS, rate=100, transport=Transport.ROCE, is_elastic=True),)),
        Step(8.0, "kill_member", ("b", "h4")),
    ),
    "a queued job fits once it has lost a worker, beside a job that goes on": (
        Step(1.0, "submit", (job("a", "h1", "h2", rate=100, work_s=90.0),)),
        Step(2.0, "submit", (job("b", "h1", "h3", "h4", rate=100, is_elastic=True),)),
        Step(12.0, "kill_member", ("b", "h1")),
    ),
    "a worker of an elastic job is lost when the other has left": (
        Step(1.0, "submit", (job("a", "h1", "h3", is_elastic=True, work_s=60.0),)),
        Step(7.99, "vanish_member", ("a", "h3")),
        Step(8.0, "leave_member", ("a", "h1")),
    ),
    "a job that can never run is submitted beside one that leaves no capacity": (
        Step(1.0, "submit", (job("a", "h1", "h3", rate=100, work_s=30.0),)),
        Step(8.0, "submit", (job("b", "h1", "h3", rate=100, scheme=NEEDS_SERVER),)),
    ),
    "a worker leaves while the disk is full, and the controller dies before it has room": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=2.0),)),
        fill_disk(4.0, 20.0),
        Step(6.0, "restart_controller", (0.5,)),
    ),
    "a worker comes back while its job moves without it, and leaf1 takes no entries": (
        Step(1.0, "submit", (job("a", "h1", "h2", "h3", is_elastic=True, work_s=60.0),)),
        Step(8.0, "kill_member", ("a", "h2")),
        Step(8.0, "slow", ("leaf1", 1.0, 40.0)),
        Step(12.0, "start_member", ("a", "h2")),
    ),
    "a switch that a job cannot do without refuses connections, and then hangs": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=60.0),)),
        Step(8.0, "refuse_connections", ("leaf1", 4.0)),
        Step(11.9, "hang", ("leaf1", 30.0)),
    ),
    "a worker leaves while the only spine takes no connections for a moment": (
        Step(1.0, "submit", (job("a", "h1", "h2", "h4", is_elastic=True, work_s=30.0),)),
        Step(8.5, "refuse_connections", ("spine1", 5.0)),
        Step(8.7, "leave_member", ("a", "h2")),
    ),
    "the planner crashes while a worker that comes again is planned in": (
        Step(1.0, "submit", (job("a", "h1", "h2", "h3", is_elastic=True, work_s=60.0),)),
        Step(8.0, "kill_member", ("a", "h2")),
        Step(18.0, "crash_planner"),
        Step(18.1, "start_member", ("a", "h2")),
    ),
    "a job ends while another one is planned and refused": (
        Step(1.0, "submit", (job("a", "h1", "h3", rate=100, work_s=4.0),)),
        Step(5.0, "submit", (job("b", "h1", "h3", rate=100),)),
    ),
    "a spine is away for long under a job": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=60.0),)),
        Step(8.0, "power_cut", ("spine1", 45.0)),
    ),
    "the controller dies when one worker has left and another one is about to": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=2.0),)),
        Step(4.45, "break_stream", ("a", "h3", False)),
        Step(4.6, "restart_controller", (0.5,)),
    ),
    "a job moves while one of its switches hangs": (
        Step(1.0, "submit", (job("b", "h1", "h3", rate=60, work_s=4.0),)),
        Step(4.0, "submit", (job("a", "h1", "h3", rate=100, work_s=60.0),)),
        Step(20.0, "replan"),
        Step(20.02, "hang", ("leaf2", 4.0)),
    ),
    "the disk is full when the connections of a RoCE job are installed": (
        Step(1.0, "submit", (job("a", *HOSTS, transport=Transport.ROCE, work_s=20.0),)),
        fill_disk(4.01, 14.5),
    ),
    "a worker ends while the controller is away": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=2.0),)),
        Step(4.5, "restart_controller", (30.0,)),
    ),
    "a job of higher priority is queued behind another one": (
        Step(1.0, "submit", (job("a", "h1", "h3", rate=100, work_s=15.0),)),
        Step(3.0, "submit", (job("b", "h1", "h3", rate=100, work_s=1.0),)),
        Step(5.0, "submit", (job("c", "h1", "h3", rate=100, work_s=1.0, priority=5),)),
    ),
    "a job waits for so long that a newer one of higher priority stays behind it": (
        Step(1.0, "submit", (job("a", "h1", "h3", rate=100, work_s=100.0),)),
        Step(3.0, "submit", (job("b", "h1", "h3", rate=100, work_s=1.0),)),
        Step(56.0, "submit", (job("c", "h1", "h3", rate=100, work_s=1.0, priority=1),)),
    ),
    "a spine dies that is reserved for a queued job, and the other one is full": (
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=100, work_s=200.0),)),
        Step(3.0, "submit", (greedy("b", "h2", "h4", rate=100, work_s=200.0),)),
        Step(5.0, "submit", (greedy("c", "h1", "h3", rate=100, work_s=2.0),)),
        Step(8.0, "power_cut", ("spine1", 30.0)),
        Step(8.6, "cancel", ("a",)),
    ),
    "a job goes back to where it was, and another one was planned meanwhile": (
        Step(1.0, "submit", (job("d", "h2", "h4", rate=60, scheme="switchml", work_s=60.0),)),
        Step(2.0, "submit", (job("b", "h1", "h3", rate=60, scheme="switchml", work_s=7.0),)),
        Step(4.0, "submit", (job("a", "h1", "h3", rate=100, scheme="switchml", work_s=60.0),)),
        Step(20.0, "replan"),
        Step(20.02, "hang", ("spine2", 25.0)),
        Step(20.6, "submit", (job("c", "h2", "h4", scheme="switchml", work_s=30.0),)),
    ),
    "a small job is submitted behind one that waits for all of a link": (
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=60, work_s=60.0),)),
        Step(5.0, "submit", (greedy("b", "h1", "h3", rate=100, work_s=1.0),)),
        Step(10.0, "submit", (greedy("c", "h1", "h3", rate=40, work_s=60.0),)),
    ),
    "a small job is queued behind one that waits for all of a link": (
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=60, work_s=60.0),)),
        Step(3.0, "submit", (greedy("b", "h1", "h3", rate=40, work_s=20.0),)),
        Step(10.0, "submit", (greedy("c", "h1", "h3", rate=100, work_s=1.0),)),
        Step(15.0, "submit", (greedy("d", "h1", "h3", rate=40, work_s=60.0),)),
    ),
    "the controller starts again, and a small job is submitted before it has tried the queue": (
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=60, work_s=60.0),)),
        Step(5.0, "submit", (greedy("b", "h1", "h3", rate=100, work_s=1.0),)),
        Step(20.0, "restart_controller", (0.3,)),
        Step(20.4, "submit", (greedy("c", "h1", "h3", rate=40, work_s=60.0),)),
    ),
    "a job fits that waits before a larger one": (
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=60, work_s=90.0),)),
        Step(3.0, "submit", (greedy("b", "h1", "h3", rate=40, work_s=15.0),)),
        Step(10.0, "submit", (greedy("c", "h1", "h3", rate=40, work_s=1.0),)),
        Step(15.0, "submit", (greedy("d", "h1", "h3", rate=60, work_s=1.0),)),
    ),
    "a job fits behind one that waits": (
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=100, work_s=90.0),)),
        Step(3.0, "submit", (greedy("b", "h2", "h4", rate=60, work_s=10.0),)),
        Step(8.0, "submit", (greedy("c", "h1", "h3", rate=100, work_s=1.0),)),
        Step(9.0, "submit", (greedy("d", "h2", "h4", rate=60, work_s=1.0),)),
    ),
    "a job goes back to where a link failed, and another one was planned meanwhile": (
        Step(1.0, "submit", (job("a", "h1", "h3", rate=100, scheme="switchml", work_s=60.0),)),
        Step(10.0, "cut_link", ("leaf1", "spine1", 12.0)),
        Step(15.0, "hang", ("spine2", 25.0)),
        Step(18.5, "submit", (job("c", "h4", "h5", rate=100, scheme="switchml", work_s=30.0),)),
    ),
    "nothing is reserved behind a job that is canceled meanwhile, and another job is submitted": (
        Step(1.0, "submit", (greedy("a", "h2", "h3", "h5", "h6", rate=60, work_s=5.0),)),
        Step(2.8, "submit", (greedy("b", "h3", "h4", "h5", rate=60, work_s=5.0),)),
        Step(3.1, "submit", (greedy("c", "h1", "h3", "h5", "h6", rate=100, work_s=1.0),)),
        Step(9.7, "submit", (greedy("d", "h1", "h3", "h5", "h6", rate=60, work_s=20.0),)),
        Step(10.1, "cancel", ("b",)),
    ),
    "a switch is back while a job is planned, and another one waits for it": (
        Step(5.0, "power_cut", ("leaf2", 14.0)),
        Step(7.0, "submit", (greedy("b", "h1", "h3", "h5", rate=50, work_s=20.0),)),
        Step(19.3, "submit", (greedy("c", "h1", "h5", rate=60, work_s=20.0),)),
    ),
    "a switch is back while a reservation is planned, and another job is submitted": (
        Step(5.0, "power_cut", ("leaf2", 5.2)),
        Step(7.0, "submit", (greedy("b", "h1", "h3", "h5", rate=50, work_s=20.0),)),
        Step(13.0, "submit", (greedy("c", "h1", "h5", rate=60, work_s=20.0),)),
    ),
    "a switch fails and is back while a job is refused, and another job is submitted": (
        Step(1.0, "submit", (greedy("a", "h1", "h5", rate=100, work_s=60.0),)),
        Step(5.0, "submit", (greedy("b", "h1", "h3", "h5", rate=50, work_s=20.0),)),
        Step(8.2, "power_cut", ("leaf2", 2.0)),
        Step(8.7, "submit", (greedy("c", "h1", "h5", rate=60, work_s=20.0),)),
        Step(10.2, "cancel", ("a",)),
    ),
    "a spine dies that a queued job has reserved, and another job is submitted": (
        Step(1.0, "submit", (greedy("a", "h1", "h2", rate=100, work_s=60.0),)),
        Step(5.0, "submit", (greedy("b", "h1", "h3", rate=60, work_s=20.0),)),
        Step(12.0, "power_cut", ("spine1", 30.0)),
        Step(12.4, "submit", (greedy("c", "h4", "h5", rate=60, work_s=60.0),)),
    ),
    "a job is queued ahead of one that fits nowhere behind it, and a small job is submitted": (
        Step(1.0, "submit", (greedy("a", "h3", "h4", rate=60, work_s=90.0),)),
        Step(5.0, "submit", (greedy("b", "h2", "h3", rate=100, work_s=1.0),)),
        Step(9.0, "submit", (greedy("c", "h3", "h4", rate=60, work_s=1.0, priority=1),)),
        Step(10.0, "submit", (greedy("d", "h1", "h2", rate=60, work_s=1.0),)),
    ),
    "a spine hangs before a RoCE job's connections are installed": (
        Step(0.6, "submit", (job("b", "h1", "h3", work_s=60.0),)),
        Step(1.0, "submit", (job("a", *HOSTS, transport=Transport.ROCE, work_s=20.0),)),
        Step(6.4, "hang", ("spine1", 40.0)),
        Step(6.8, "cancel", ("b",)),
    ),
    "a job is placed over a spine that hangs": (
        Step(0.9, "hang", ("spine1", 40.0)),
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=60, work_s=5.0),)),
    ),
    "a leaf is back while nothing can be reserved for a queued job": (
        Step(1.0, "submit", (greedy("a", "h1", "h2", rate=60, work_s=90.0),)),
        Step(6.0, "submit", (greedy("b", "h1", "h2", "h5", rate=80, work_s=5.0),)),
        Step(16.0, "power_cut", ("leaf3", 5.0)),
    ),
    "a job's priority rises by its age while it is planned, behind one that fits nowhere": (
        Step(1.0, "submit", (greedy("a", "h1", "h2", rate=100, work_s=200.0),)),
        Step(1.5, "power_cut", ("leaf3", 58.0)),
        Step(5.0, "submit", (greedy("c", "h3", "h5", rate=100, work_s=1.0),)),
        Step(10.0, "submit", (greedy("d", "h1", "h2", rate=100, work_s=5.0),)),
        Step(23.2, "power_cut", ("spine1", 36.0)),
        Step(23.6, "cancel", ("a",)),
    ),
    "a queued job loses a worker while nothing can be reserved, and a job is submitted": (
        Step(1.0, "submit", (greedy("a", "h1", "h2", rate=60, work_s=90.0),)),
        Step(6.0, "submit", (greedy("b", "h1", "h2", "h5", rate=80, work_s=5.0, is_elastic=True),)),
        Step(16.0, "power_cut", ("leaf3", 40.0)),
        Step(18.0, "kill_member", ("b", "h5")),
        Step(20.0, "submit", (greedy("c", "h1", "h2", rate=40, work_s=60.0),)),
    ),
    "a worker leaves a queued job while that is planned": (
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=100, work_s=90.0),)),
        Step(6.0, "submit", (greedy("b", "h1", "h2", "h3", rate=100, work_s=20.0, is_elastic=True),)),
        Step(20.0, "cancel", ("a",)),
        Step(20.5, "leave_member", ("b", "h2")),
    ),
    "a queued job is canceled while it is planned": (
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=100, work_s=5.0),)),
        Step(5.0, "submit", (greedy("b", "h1", "h3", rate=100, work_s=5.0),)),
        Step(11.0, "cancel", ("b",)),
    ),
    "a job is canceled while its move is planned": (
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=60, work_s=60.0),)),
        Step(15.0, "power_cut", ("spine1", 20.0)),
        Step(16.0, "cancel", ("a",)),
    ),
    "cross traffic leaves a job little where it is, and another spine is free": (
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=60, work_s=80.0),)),
        Step(10.0, "cross_traffic", ("leaf1", "spine1", 0.9, 60.0)),
        Step(10.0, "cross_traffic", ("spine1", "leaf1", 0.9, 60.0)),
    ),
    "a worker begins again while no controller runs": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=60.0, is_elastic=True),)),
        Step(8.0, "restart_controller", (4.0,)),
        Step(9.0, "kill_member", ("a", "h1")),
        Step(9.5, "start_member", ("a", "h1")),
    ),
    "a worker is started again within its lease": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=60.0),)),
        Step(8.0, "kill_member", ("a", "h1")),
        Step(8.5, "start_member", ("a", "h1")),
    ),
    "a worker of an elastic job is started again within its lease": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=60.0, is_elastic=True),)),
        Step(8.0, "kill_member", ("a", "h1")),
        Step(8.5, "start_member", ("a", "h1")),
    ),
    "a worker of a RoCE job is started again within its lease": (
        Step(1.0, "submit", (job("a", *HOSTS, transport=Transport.ROCE, work_s=60.0, is_elastic=True),)),
        Step(8.0, "kill_member", ("a", "h1")),
        Step(8.5, "start_member", ("a", "h1")),
    ),
    "a parameter server is started again within its lease": (
        Step(1.0, "submit", (job("a", "h1", "h3", scheme=NEEDS_SERVER, work_s=60.0),)),
        Step(8.0, "kill_member", ("a", "ps1")),
        Step(8.5, "start_member", ("a", "ps1")),
    ),
    "a worker is started again while its job moves, and the job goes back": (
        Step(1.0, "submit", (job("d", "h2", "h4", rate=60, scheme="switchml", work_s=60.0),)),
        Step(2.0, "submit", (job("b", "h1", "h3", rate=60, scheme="switchml", work_s=7.0),)),
        Step(
            4.0, "submit", (job("a", "h1", "h3", rate=100, scheme="switchml", work_s=60.0, is_elastic=True),)
        ),
        Step(20.0, "replan"),
        Step(20.02, "hang", ("spine2", 25.0)),
        Step(21.0, "kill_member", ("a", "h1")),
        Step(22.0, "start_member", ("a", "h1")),
    ),
    "a second worker is started while the first has lost its stream": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=60.0, is_elastic=True),)),
        Step(8.0, "break_stream", ("a", "h1", True)),
        Step(8.05, "start_second", ("a", "h1")),
    ),
    "a worker never joins, and the controller starts again every 21 s": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=60.0, is_elastic=True),)),
        Step(1.1, "keep_away", ("a", "h1")),
        *(Step(at, "restart_controller", (0.5,)) for at in (3.0, 24.0, 45.0)),
    ),
    "a spine dies that a queued job has reserved, and another job waits behind that alone": (
        Step(1.0, "submit", (greedy("a", "h4", "h5", rate=100, work_s=90.0),)),
        Step(3.0, "submit", (greedy("b", "h1", "h4", rate=100, work_s=1.0),)),
        Step(6.0, "submit", (greedy("c", "h1", "h2", rate=100, work_s=1.0),)),
        Step(12.0, "power_cut", ("spine1", 40.0)),
    ),
    "a job is placed behind one that waits, and a worker leaves it before it is looked at": (
        Step(1.0, "submit", (job("a", "h1", "h3", rate=100, work_s=60.0),)),
        Step(2.0, "submit", (greedy("d", "h4", "h6", rate=40, work_s=60.0),)),
        Step(3.0, "submit", (job("b", "h3", "h4", rate=100, min_rate=100, work_s=1.0),)),
        Step(4.0, "submit", (job("c", "h1", "h5", rate=60, min_rate=60, work_s=20.0, is_elastic=True),)),
        Step(13.55, "cancel", ("a",)),
        Step(17.58, "leave_member", ("c", "h5")),
    ),
    "the store is backed up while no controller runs, and restored twice": (
        Step(0.95, "hang", ("leaf2", 8.0)),
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=60.0),)),
        Step(5.0, "restart_controller", (8.0,)),
        Step(6.0, "back_up_store"),
        Step(8.0, "restore_store", (4.0,)),
        Step(25.0, "restore_store", (1.0,)),
    ),
}

SLOW_PLANS = {
    "the controller starts again right after it has answered a drain",
    "another job ends while a job is planned to leave a drained spine",
    "a spine is given back while a job is planned to leave it",
    "a link is given back while a worker that joins is planned",
    "a queued job loses a worker while nothing can be reserved, and a job is submitted",
    "a job's priority rises by its age while it is planned, behind one that fits nowhere",
    "a leaf is back while nothing can be reserved for a queued job",
    "a worker leaves a queued job while that is planned",
    "a switch fails and is back while a job is refused, and another job is submitted",
    "a switch is back while a reservation is planned, and another job is submitted",
    "a queued job is canceled while it is planned",
    "a job is canceled while its move is planned",
    "nothing is reserved behind a job that is canceled meanwhile, and another job is submitted",
    "a switch is back while a job is planned, and another one waits for it",
}

FABRIC_OF = {
    **DRAIN_FABRICS,
    **UPGRADE_FABRICS,
    "a spine dies that a queued job has reserved, and another job waits behind that alone": "one spine",
    "a queued job loses a worker while nothing can be reserved, and a job is submitted": "three leaves, two spines",
    "a job's priority rises by its age while it is planned, behind one that fits nowhere": "three leaves, two spines",
    "a leaf is back while nothing can be reserved for a queued job": "three leaves, two spines",
    "a spine dies that a queued job has reserved, and another job is submitted": "three leaves, two spines",
    "a switch fails and is back while a job is refused, and another job is submitted": "three leaves, two spines",
    "a switch is back while a reservation is planned, and another job is submitted": "three leaves, two spines",
    "nothing is reserved behind a job that is canceled meanwhile, and another job is submitted": "one spine",
    "a switch is back while a job is planned, and another one waits for it": "three leaves, two spines",
    "a job is placed behind one that waits, and a worker leaves it before it is looked at": "one leaf",
    "a worker leaves while the only spine takes no connections for a moment": "one spine",
    "a job that can never run is submitted beside one that leaves no capacity": "three leaves, two spines",
    "a job goes back to where a link failed, and another one was planned meanwhile": "three leaves, two spines",
}
"""Where another one is needed."""


def regression(name: str) -> Scenario:
    """One of SCENARIOS. Links are probed where one is cut."""
    steps = SCENARIOS[name]
    probe_s = 1.0 if any(s.kind == "cut_link" for s in steps) else 0.0
    fabric = FABRIC_OF.get(name, "two leaves, two spines")
    controllers = 2 if name in LEADER_SCENARIOS else 0
    slow_plans = name in SLOW_PLANS
    return Scenario(1, fabric, steps, probe_s=probe_s, slow_plans=slow_plans, controllers=controllers)
