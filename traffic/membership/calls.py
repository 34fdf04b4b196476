# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The calls of a worker as it reports them. Times are those of time.monotonic."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from netfold.protocol import netfold_pb2 as pb


class CallRecord(NamedTuple):
    """One call. `number`: in the job; -1: it has not started. `outstanding`: results that it lacks, or lacked when it
    ended. `retransmits`: of the worker while the call was started. Times: 0: not yet."""

    number: int
    kind: str
    bytes: int
    dtype: str
    context: int
    epoch: int
    trees: int
    outstanding: int
    retransmits: int
    state: str
    status: str
    submitted: float
    started: float
    ended: float


class PresentCall(NamedTuple):
    """The first call that a worker has not finished. `kind`: empty, as long as the call waits for its job epoch."""

    kind: str
    bytes: int
    since: float


class CallProgress(NamedTuple):
    """How far a worker is. `next_call`: number in the job of the first call that it has not finished; `present`: None,
    as long as it has not made this call."""

    next_call: int
    present: PresentCall | None = None

    def message(self) -> pb.CallProgress:
        if self.present is None:
            return pb.CallProgress()
        kind, nbytes, since = self.present
        return pb.CallProgress(
            in_call=True, kind=kind, bytes=nbytes, for_s=max(0.0, time.monotonic() - since)
        )


def calls_message(number: int, calls: Sequence[CallRecord], location: str) -> pb.CallDump:
    """The answer to the request `number` of the controller."""
    now = time.monotonic()

    def ago(then: float) -> float:
        return max(0.0, now - then) if then else -1.0

    return pb.CallDump(
        number=number,
        location=location,
        calls=[
            pb.CallRecord(
                number=c.number,
                kind=c.kind,
                bytes=c.bytes,
                dtype=c.dtype,
                context=c.context,
                epoch=c.epoch,
                trees=c.trees,
                outstanding=c.outstanding,
                retransmits=c.retransmits,
                state=c.state,
                status=c.status,
                submitted_ago_s=ago(c.submitted),
                started_ago_s=ago(c.started),
                ended_ago_s=ago(c.ended),
            )
            for c in calls
        ],
    )
