# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Faults of maintenance (mutant.py): what is withdrawn, and what jobs over it do."""

from __future__ import annotations

from tests.simulation.mutant import Mutant

MAINTENANCE = "scheduling/maintenance.py"
MIGRATIONS = "scheduling/migration_scheduler.py"
FAILURES = "lifecycle/failure_state.py"
CLIENT = "scheduling/planning_client.py"

DRAIN_MUTANTS = (
    Mutant(
        "a drain moves no job",
        MAINTENANCE,
        "        self._migrations.leave_drained()\n        self._placements.try_queue()\n",
        "        self._placements.try_queue()\n",
        "jobs leave a drained spine",
    ),
    Mutant(
        "a cordon moves jobs",
        FAILURES,
        "return self._withdrawn.get(Intent.DRAIN, NO_ELEMENTS)",
        "return self._withdrawn[Intent.DRAIN] | self._withdrawn[Intent.CORDON]",
        "a job stays at a cordoned spine",
    ),
    Mutant(
        "plans do not avoid what is withdrawn",
        FAILURES,
        "return self.of(job) | (self.withdrawn - may_use)",
        "return self.of(job)",
        "a job stays at a cordoned spine",
    ),
    Mutant(
        "a job over drained elements gets no new epoch",
        "lifecycle/members.py",
        "        if self._lifecycle.is_affected(job):\n            return  # a repair replaces the epoch",
        "        if self._lifecycle.is_affected(job) or self._lifecycle.is_over_drained(job):\n"
        "            return  # a repair replaces the epoch",
        "a job over a spine that it cannot leave gets a new epoch",
    ),
    Mutant(
        "a job ends at a start over what it cannot leave",
        "core.py",
        "        if job.state.is_installed and lifecycle.is_affected(job):",
        "        if job.state.is_installed and lifecycle.is_over_drained(job):\n"
        '            lifecycle.end(job.name, JobState.FAILED, "it cannot leave")\n'
        "        if job.state.is_installed and lifecycle.is_affected(job):",
        "the controller starts again over a spine that a job cannot leave",
    ),
    Mutant(
        "a job that has to move may not use what is withdrawn",
        MIGRATIONS,
        "            if not self._failures.withdrawn:\n                raise\n",
        "            raise\n",
        "one spine is drained, and the other one dies",
    ),
    Mutant(
        "a job that comes to have another worker may not use what is withdrawn",
        MIGRATIONS,
        "await self._move_off(job, why, joining)",
        "await self._move(job, why, 0.0, (), is_urgent=True, joining=joining)",
        "a worker comes again to a job over a spine that it cannot leave",
    ),
    Mutant(
        "a job breaks to leave what is drained",
        MIGRATIONS,
        "may_break=not (must_gain or is_leave)",
        "may_break=not must_gain",
        "a job that has all slots of its switches is over a spine that is drained",
    ),
    Mutant(
        "a job that is being installed leaves what is drained, and breaks",
        MIGRATIONS,
        "            (job.state is JobState.RUNNING or job.previous is not None)\n            and job",
        "            job",
        "a job is being installed when its spine is drained",
    ),
    Mutant(
        "a job does not go back to what is drained",
        "lifecycle/states.py",
        "uses_failed(job.previous.plan, self._failures.failed, job.excluded):",
        "uses_failed(job.previous.plan, self._failures.avoided, job.excluded):",
        "the spine that a job leaves a drained one for hangs",
    ),
    Mutant(
        "a job that could go back is planned again, and breaks",
        MIGRATIONS,
        "                if self._lifecycle.roll_back(job, request.why):\n",
        "                if False:\n",
        "the spine that a job leaves a drained one for hangs",
    ),
    Mutant(
        "a job does not leave when room comes",
        "core.py",
        "        on(CapacityFreed, planning.migrations.on_capacity_freed)",
        "        #",
        "there is room to leave a drained spine when another job has ended",
    ),
    Mutant(
        "room that comes while a job is planned to leave is missed",
        MIGRATIONS,
        "        if name in self._leaving:\n            self._leaving[name] = True\n",
        "        if name in self._leaving:\n            pass\n",
        "another job ends while a job is planned to leave a drained spine",
    ),
    Mutant(
        "a job that is bound to a drained leaf leaves nothing",
        MIGRATIONS,
        "may_use=may_use or (lambda: bound)",
        "may_use=may_use or FailedElements",
        "a job leaves a drained spine, though it is bound to a drained leaf",
    ),
    Mutant(
        "a job leaves what was given back while it was planned",
        MIGRATIONS,
        "        if is_leave and not self._may_leave(job):\n",
        "        if False:\n",
        "a spine is given back while a job is planned to leave it",
    ),
    Mutant(
        "a drain is in memory alone",
        "lifecycle/job_registry.py",
        "        self._store.put_withdrawal(withdrawal)\n",
        "        pass\n",
        "the controller starts again right after it has answered a drain",
    ),
    Mutant(
        "withdrawn elements are not read at the start",
        MAINTENANCE,
        "        self._migrations = migrations\n        self._apply()\n",
        "        self._migrations = migrations\n",
        "the controller starts again right after it has answered a drain",
    ),
    Mutant(
        "jobs do not leave what was drained before a start",
        MAINTENANCE,
        "        await self._state.failures.known.wait()\n        self._migrations.leave_drained()\n",
        "        await self._state.failures.known.wait()\n",
        "the controller starts again right after it has answered a drain",
    ),
    Mutant(
        "a drain has its effect before the store has it",
        MAINTENANCE,
        "        elements, now = elements_named(self._state.fabric, names), self._state.clock.wall_s()\n",
        "        elements, now = elements_named(self._state.fabric, names), self._state.clock.wall_s()\n"
        "        self._state.failures.withdraw({intent: elements}, {})\n        self._migrations.leave_drained()\n",
        "the disk is full when a spine is drained",
    ),
    Mutant(
        "no queued job is tried when an element is given back",
        MAINTENANCE,
        "        self._state.events.publish(CapacityFreed())\n",
        "",
        "a spine is given back while a queued job waits for it",
    ),
    Mutant(
        "a job fails while a switch is held",
        "health/failure_monitor.py",
        "        if held_s := self._failures.held_s(switch):",
        "        if held_s := 0.0:",
        "a leaf is away for as long as it is held",
    ),
    Mutant(
        "a job fails for a link of a switch that is held",
        "health/failure_monitor.py",
        "            if held_s := max(map(self._failures.held_s, link)):",
        "            if held_s := 0.0:",
        "the links of a leaf that is held are down",
    ),
    Mutant(
        "a member is lost while its leaf is held",
        "lifecycle/members.py",
        "            if self._held_s(host):",
        "            if False:",
        "a leaf is away for as long as it is held",
    ),
    Mutant(
        "a member has to join while its leaf is held",
        "lifecycle/members.py",
        "        if held_s := max(map(self._held_s, absent)):",
        "        if held_s := 0.0:",
        "a worker has not joined when its leaf is held",
    ),
    Mutant(
        "a hold lasts no longer than a controller",
        MAINTENANCE,
        "(w for w in stored if w.intent is Intent.HOLD)",
        "(w for w in stored if w.intent is Intent.HOLD and w.since > self._state.clock.wall_s() - 3.0)",
        "the controller starts again while a leaf is held",
    ),
    Mutant(
        "a drained parameter server stays in plans",
        CLIENT,
        "return lost() | avoided.switches.intersection(resolved.parameter_servers)",
        "return lost()",
        "a drained parameter server is a job's",
    ),
)
