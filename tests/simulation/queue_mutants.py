# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Faults of the queue (mutant.py): in which order jobs wait, what is reserved for them, when they are tried."""

from __future__ import annotations

from tests.simulation.mutant import Mutant

PLACEMENTS = "scheduling/placement_scheduler.py"
QUEUE = "scheduling/job_queue.py"

QUEUE_MUTANTS = (
    Mutant(
        "a submission does not try the queue after capacity was freed while it was refused",
        PLACEMENTS,
        "is_freed = self._queue_requests != requests",
        "is_freed = False",
        "a job ends while another one is planned and refused",
    ),
    Mutant(
        "a request during a try of the queue is lost",
        PLACEMENTS,
        "        self._again = True\n        if not self._is_running and",
        "        self._again = self._again or not self._is_running\n        if not self._is_running and",
    ),
    Mutant(
        "an impossible job may wait",
        PLACEMENTS,
        "                    if kept is None:\n                        await self._planning",
        "                    if False:\n                        await self._planning",
        "a job that can never run is submitted beside one that leaves no capacity",
    ),
    Mutant(
        "a preempted plan is not made again",
        "scheduling/plan_scheduler.py",
        "if not (mine.is_preempted and mine.task.cancelled()):",
        "if True:",
    ),
    Mutant(
        "what fails during planning is not looked at again",
        "scheduling/planning_client.py",
        "if not uses_failed(plan, avoided_now(), lost()):",
        "if True:",
    ),
    Mutant(
        "a queued job is placed though it was canceled while it was planned",
        PLACEMENTS,
        "            job = self._registry.get(name)\n            if job.state is JobState.QUEUED:\n"
        "                with self._registry.change():",
        "            job = self._registry.get(name)\n            if True:\n"
        "                with self._registry.change():",
        "a queued job is canceled while it is planned",
    ),
    Mutant(
        "the queue has its lowest priority first",
        QUEUE,
        "((-priority - age, shares[w.seq], w.seq), w)",
        "((priority - age, shares[w.seq], w.seq), w)",
        "a job of higher priority is queued behind another one",
    ),
    Mutant(
        "waiting raises no priority",
        QUEUE,
        "((-priority - age, shares[w.seq], w.seq), w)",
        "((-priority, shares[w.seq], w.seq), w)",
        "a job waits for so long that a newer one of higher priority stays behind it",
    ),
    Mutant(
        "a queued job is placed where it has a reservation, though that has failed",
        PLACEMENTS,
        "if current_plan is None or uses_failed(current_plan.plan, self._failures.avoided, job.excluded):\n"
        "                raise",
        "if current_plan is None:\n                raise",
        "a spine dies that is reserved for a queued job, and the other one is full",
    ),
    Mutant(
        "a reservation over failed elements counts as one",
        QUEUE,
        "is_usable = held is not None and not uses_failed(held.plan, failed, job.excluded)",
        "is_usable = held is not None",
        "a spine dies that a queued job has reserved, and another job is submitted",
    ),
    Mutant(
        "jobs behind are not tried again when a job is queued ahead of them",
        PLACEMENTS,
        "if is_freed or not self._queue.is_last(name):",
        "if is_freed:",
        "a job is queued ahead of one that fits nowhere behind it, and a small job is submitted",
    ),
    Mutant(
        "capacity that a queued job releases is given to no other job",
        PLACEMENTS,
        "if held not in (None, kept) and not self._queue.is_last(name):",
        "if False:",
        "a job is queued ahead of one that fits nowhere behind it, and a small job is submitted",
    ),
    Mutant(
        "a submission takes what is reserved",
        PLACEMENTS,
        "ahead = functools.partial(self._queue.ahead_of_new, resolved, submitter.tenant)",
        "ahead = list",
        "a small job is submitted behind one that waits for all of a link",
    ),
    Mutant(
        "after a start a submission takes what queued jobs wait for",
        PLACEMENTS,
        "            for job in self._untried(ahead()):\n",
        "            for job in ():\n",
        "the controller starts again, and a small job is submitted before it has tried the queue",
    ),
    Mutant(
        "what is refused while something has failed counts as refused without",
        PLACEMENTS,
        "conditions_of(self._registry.get(name), failed, reservations), kept)",
        "conditions_of(self._registry.get(name), self._failures.failed, reservations), kept)",
        "a switch is back while a reservation is planned, and another job is submitted",
    ),
    Mutant(
        "what is refused behind a job that is canceled meanwhile counts as refused without",
        PLACEMENTS,
        "conditions_of(self._registry.get(name), failed, reservations), kept)",
        "self._queue.conditions(self._registry.get(name), failed), kept)",
        "nothing is reserved behind a job that is canceled meanwhile, and another job is submitted",
    ),
    Mutant(
        "a refusal around what failed during planning counts as one before it failed",
        "scheduling/planning_client.py",
        "failed, avoided = self._failures.avoided, avoided_now()",
        "avoided = avoided_now()",
        "a switch fails and is back while a job is refused, and another job is submitted",
    ),
    Mutant(
        "a submission takes what a job waits for whose switch is back meanwhile",
        PLACEMENTS,
        "            if not self._untried(ahead()):\n                break\n",
        "            break\n",
        "a switch is back while a job is planned, and another one waits for it",
    ),
    Mutant(
        "a queued job takes what is reserved",
        PLACEMENTS,
        "ahead = functools.partial(self._queue.ahead_of, name)",
        "ahead = list",
        "a small job is queued behind one that waits for all of a link",
    ),
    Mutant(
        "only the first of the queue is tried",
        PLACEMENTS,
        "for job in self._queue.jobs():\n                    try:",
        "for job in self._queue.jobs()[:1]:\n                    try:",
        "a job fits behind one that waits",
    ),
    Mutant(
        "reservations of those behind are ahead, too",
        QUEUE,
        "list(itertools.takewhile(",
        "list(filter(",
        "a job fits that waits before a larger one",
    ),
    Mutant(
        "a reservation is never made again",
        QUEUE,
        "return name in self._reservations and self._reservations[name].conditions == conditions",
        "return name in self._reservations",
    ),
    Mutant(
        "a job is planned beside nothing that runs",
        "scheduling/planning_client.py",
        "return add_loads(running, loads_of(reservations))",
        "return loads_of(reservations)",
        "a job of higher priority is queued behind another one",
    ),
    Mutant(
        "a reservation counts as planned under what holds when it arrives",
        PLACEMENTS,
        "self._queue.reserve(name, conditions_of(job, failed, before), kept)",
        "self._queue.reserve(name, self._queue.conditions(job, self._failures.avoided), kept)",
        "a leaf is back while nothing can be reserved for a queued job",
    ),
    Mutant(
        "a reservation counts as planned without a worker that was lost meanwhile",
        PLACEMENTS,
        "        if name in self._registry and self._registry.get(name).state is JobState.QUEUED:",
        "        if name in self._registry and (job := self._registry.get(name)).state is JobState.QUEUED:",
        "a queued job loses a worker while nothing can be reserved, and a job is submitted",
    ),
    Mutant(
        "a queued job is written as it was before its plan",
        PLACEMENTS,
        "        found, reservations, kept_free = await self._plan_behind(\n"
        "            ahead, resolved, plan, is_urgent=is_final_attempt\n"
        "        )\n"
        "        try:\n"
        "            if isinstance(found, RefusedError):\n"
        "                raise found\n"
        "            job = self._registry.get(name)\n",
        "        job = self._registry.get(name)\n"
        "        found, reservations, kept_free = await self._plan_behind(\n"
        "            ahead, resolved, plan, is_urgent=is_final_attempt\n"
        "        )\n"
        "        try:\n"
        "            if isinstance(found, RefusedError):\n"
        "                raise found\n",
        "a worker leaves a queued job while that is planned",
    ),
)
