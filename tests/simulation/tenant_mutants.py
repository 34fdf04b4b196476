# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Faults of what orders the jobs of tenants (mutant.py): their usage, their weights, and the known ends of jobs."""

from __future__ import annotations

from tests.simulation.mutant import Mutant

QUEUE = "scheduling/job_queue.py"
LEDGER = "lifecycle/tenant_ledger.py"
USAGE = "jobs/tenant_usage.py"
PLACEMENTS = "scheduling/placement_scheduler.py"
STATES = "lifecycle/states.py"

TENANT_MUTANTS = (
    Mutant(
        "shares of tenants order no jobs",
        QUEUE,
        "if len(tenants) <= 1:",
        "if True:",
        "a tenant that has used nothing waits behind many jobs of another one",
    ),
    Mutant(
        "a tenant's jobs do not count those ahead of them",
        QUEUE,
        "taken[w.tenant] = held + w.demand",
        "taken[w.tenant] = held",
        "a tenant that has used nothing waits behind many jobs of another one",
    ),
    Mutant(
        "weights count for nothing",
        USAGE,
        ".largest_part_of(whole) / self.weight",
        ".largest_part_of(whole)",
        "a tenant of twice the weight gets twice as many turns",
    ),
    Mutant(
        "a weight is not stored",
        LEDGER,
        "        if row.weight != weight:",
        "        if False:",
        "a tenant of twice the weight gets twice as many turns",
    ),
    Mutant(
        "a running job counts only for what it has used",
        QUEUE,
        "dict(registry.held())",
        "{}",
        "a tenant's running job counts before it has run for long",
    ),
    Mutant(
        "what a tenant has used counts for nothing",
        USAGE,
        "(self.recent + held.times(ADVANCE_S))",
        "held.times(ADVANCE_S)",
        "the controller starts again while tenants wait that have used the fabric",
    ),
    Mutant(
        "usage is in memory alone",
        LEDGER,
        "        self._store.put_usage(row)\n",
        "",
        "the controller starts again while tenants wait that have used the fabric",
    ),
    Mutant(
        "a job counts for what it holds now, for as long as its tenant has held anything",
        LEDGER,
        "        if known == self.held_by(job):",
        "        if job.state.is_installed or known == self.held_by(job):",
        "the controller starts again while tenants wait that have used the fabric",
    ),
    Mutant(
        "shares come before priority",
        QUEUE,
        "((-priority - age, shares[w.seq], w.seq), w)",
        "((shares[w.seq], -priority - age, w.seq), w)",
        "a tenant's priority comes before its share",
    ),
    Mutant(
        "the age of jobs of one priority comes before their shares",
        QUEUE,
        "turns = sorted(alike, key=lambda w: (shares[w.seq], w.seq))",
        "turns = sorted(alike, key=lambda w: w.seq)",
        "jobs of two tenants wait for so long that age would order them",
    ),
    Mutant(
        "the wait of a job counts for another one of its priority",
        QUEUE,
        "ages = itertools.accumulate((w.age for w in turns), min)",
        "ages = sorted((w.age for w in turns), reverse=True)",
        "a fresh job's turn is before that of one that waits for long, and both are less urgent than another",
    ),
    Mutant(
        "a job has no end by its max_s",
        STATES,
        "            if not before.ran_since:\n",
        "            if False:\n",
        "a job is still at work when its time is over",
    ),
    Mutant(
        "a start of the controller forgets the end of a job",
        STATES,
        "        if job.state.is_installed:\n            self._limit(job)",
        "        if False:\n            self._limit(job)",
        "the controller starts again when the time of a job is nearly over",
    ),
    Mutant(
        "a job with an end takes what others wait for",
        PLACEMENTS,
        "start_time(self._fabric, reserved, before, until) < end:",
        "start_time(self._fabric, reserved, before, until) < 0:",
        "a job would end after a reservation can start",
    ),
)
