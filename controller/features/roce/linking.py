# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Links the workers of a RoCE job: each registers its queue pairs in each epoch, and when all have, the leaves take the
connections between them."""

from __future__ import annotations

from collections.abc import Iterable

from netfold.controller.features.feature import EpochRequest, RegistrationError
from netfold.controller.jobs.records import ConnectionRecord, JobRecord, JobState, Placement, QueuePairs


def register(job: JobRecord, ends: QueuePairs, jobs: Iterable[JobRecord]) -> JobRecord | EpochRequest | None:
    """The job with a worker's queue pairs; ignored if the epoch has passed. The epoch in which a job that moves has run
    so far has not: if the job stays there, its worker does not register again. Queue pairs other than those that the
    leaves have need a new epoch. Raises RegistrationError."""
    placement = next((p for p in job.placements if p.epoch == ends.epoch), None)
    if placement is None or ends.host not in job.roce or ends in job.queue_pairs:
        return None
    _check(job, placement, ends, jobs)
    if job.roce_installed_epoch == ends.epoch:
        return EpochRequest(f"{ends.host} has other connections")
    others = (e for e in job.queue_pairs if e.host != ends.host)
    return job.model_copy(update={"queue_pairs": (*others, ends)})


def _check(job: JobRecord, placement: Placement, ends: QueuePairs, jobs: Iterable[JobRecord]) -> None:
    wanted = [t.tree for t in placement.trees]
    if sorted(c.tree for c in ends.connections) != sorted(wanted) or not all(
        map(_is_valid, ends.connections)
    ):
        raise RegistrationError(f"'{ends.host}' registers connections that are not those of job '{job.name}'")
    if len(ends.pairs) != 2 * len(ends.connections):
        raise RegistrationError(f"'{ends.host}' registers a queue pair twice")
    for other in jobs:
        theirs = other.registered.get(ends.host)
        if theirs is None or other.name == job.name or not other.state.is_installed:
            continue
        if taken := ends.pairs & theirs.pairs:
            raise RegistrationError(f"queue pair {min(taken)} of '{ends.host}' is of job '{other.name}'")


def _is_valid(connection: ConnectionRecord) -> bool:
    """Whether the numbers of a connection are in range. QPNs 0 and 1 are the device's own."""
    pairs = (connection.send_qpn, connection.recv_qpn)
    return (
        all(1 < q < 1 << 24 for q in pairs) and pairs[0] != pairs[1] and 0 <= connection.first_psn < 1 << 24
    )


def is_complete(job: JobRecord) -> bool:
    """Whether all workers have registered connections of the newest epoch, for each of its trees. After the loss of a
    worker the rings of its trees stay open until the job has moved."""
    known = job.registered
    trees = [] if job.placement is None else [t.tree for t in job.placement.trees]
    planned = () if job.placement is None else job.placement.plan.trees
    workers = {*job.workers, *(w for tree in planned for w in tree.workers_below(tree.root))}
    return all(w in known and all(known[w].of(t) for t in trees) for w in workers)


def is_linked(job: JobRecord) -> bool:
    """Whether the leaves have the connections of all workers."""
    return job.roce_installed_epoch == job.epoch and is_complete(job)


def has_pending_connections(job: JobRecord) -> bool:
    """Whether the leaves have to take connections: the trees are installed, and all workers have registered."""
    return job.state is JobState.RUNNING and job.roce_installed_epoch != job.epoch and is_complete(job)
