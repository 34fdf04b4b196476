# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The last calls of a worker, as session/call_record.h records them."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

from netfold.traffic.engine.native import HEADERS
from netfold.traffic.membership.calls import CallRecord
from netfold.traffic.numerics import DTYPES

CALLS_MAX = 4096
"""NF_CALL_LOG of session/call_record.h."""
_STATES = ("waiting", "handover", "data", "specials", "re-encoded", "closing", "finished")
"""enum call_state of call/call.h."""


class CallKind(IntEnum):
    """The collective of the program. The members are those of `enum nf_kind` in call/request.h."""

    ALL_REDUCE = 0
    REDUCE_SCATTER = 1
    ALL_GATHER = 2
    BROADCAST = 3
    REDUCE = 4
    BARRIER = 5

    @property
    def label(self) -> str:
        return self.name.lower()


class RawCallRecord(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_call_record")


def record_of(raw: Any, statuses: type[IntEnum]) -> CallRecord:
    """The record of C. `statuses`: names of `enum nf_status`."""
    record = CallRecord(*(getattr(raw, name) for name in CallRecord._fields))
    return record._replace(
        kind=CallKind(raw.kind).label,
        dtype=str(DTYPES[raw.dtype]),
        state=_STATES[raw.state],
        status=statuses(raw.status).name.lower(),
    )
