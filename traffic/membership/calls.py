# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The calls of a worker as it reports them. Times are those of time.monotonic."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from netfold.protocol import netfold_pb2 as pb

CALL_TIMES = ("submitted", "started", "ended")
"""Fields of a CallRecord."""


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

    def message(call: CallRecord) -> pb.CallRecord:
        fields = call._asdict()
        for name in CALL_TIMES:
            then = fields.pop(name)
            fields[f"{name}_ago_s"] = max(0.0, now - then) if then else -1.0
        return pb.CallRecord(**fields)

    return pb.CallDump(number=number, location=location, calls=map(message, calls))
