# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Decides what a member is sent next, from its job and from what the member was sent before in the same stream."""

from __future__ import annotations

from enum import Enum

from netfold.controller.features.registry import features_of
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.lifecycle.departures import departures_of
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.lifecycle.member_status import MemberStatus, OpenStream


class Update(Enum):
    """An update of a member. Each one renews its lease, too."""

    LEASE = "the job does not run yet, or continues without the member"
    ASSIGNMENT = "the part of the member in the present epoch"
    WORKERS_LEFT = "workers that left: calls that no longer complete"
    FEATURE = "an update of a feature of the job, such as the neighbors of a RoCE worker"
    CALLS_REQUEST = "a request of the last calls of the member"
    ENDED = "the job has ended, or continues without the member or with others; this is the last update"


class MemberStream:
    """Tracks what one member was sent in one stream."""

    def __init__(self, stream: OpenStream, registry: JobRegistry, member_status: MemberStatus) -> None:
        self._stream = stream
        self._registry = registry
        self._member_status = member_status
        self._is_open = False
        self._assigned_epoch = self._feature_epoch = 0
        self._sent_limit: int | None = None
        """The limit of calls of the workers that left, as the member was sent it in this epoch."""
        self._sent_request = member_status.calls_request(stream.job).number

    def next_update(self, job: JobRecord) -> Update | None:
        """The update that the member is sent now, which counts as sent from now on; None until the job changes."""
        host = self._stream.host
        if job.has_replaced(host, self._stream.generation):
            return Update.ENDED
        is_first, self._is_open = not self._is_open, True
        if is_first and (job.state in (JobState.QUEUED, JobState.INSTALLING) or host in job.excluded):
            return Update.LEASE
        if job.state.is_terminal or (host in job.excluded and host not in job.rejoining):
            return Update.ENDED
        is_new_epoch = job.state is JobState.RUNNING and job.epoch != self._assigned_epoch
        if is_new_epoch and self._registry.needs(job, host):
            self._assigned_epoch, self._sent_limit = job.epoch, None
            self._member_status.set_assigned(job.name, host)  # also if the stream breaks during the update
            return Update.ASSIGNMENT
        left = departures_of(job, self._registry.resolved_job(job.name).file)
        if left is not None and left.epoch == self._assigned_epoch and left.call_limit != self._sent_limit:
            self._sent_limit = left.call_limit
            return Update.WORKERS_LEFT
        if job.epoch == self._assigned_epoch != self._feature_epoch and any(
            feature.has_controller_update(job, host) for feature in features_of(job)
        ):
            self._feature_epoch = job.epoch
            return Update.FEATURE
        request = self._member_status.calls_request(job.name)
        if request.number > self._sent_request:
            self._sent_request = request.number
            return Update.CALLS_REQUEST
        return None
