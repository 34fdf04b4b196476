# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes P4Runtime election ids. The id of any controller is above that of any tool, so that a tool never takes a switch
from a controller.

An id has 128 bits. That of a controller has a mark, its term, and the number of the stream at its switch: a switch
refuses a second stream with the same id, and it may hold a stream that its controller has ended. Tools have a zero high
word."""

from __future__ import annotations

import time

_CONTROLLERS = 1 << 96
_STREAM_BITS = 32


def controller_election_id(term: int, stream: int) -> int:
    """The fencing token for writes of the leader of a term by its `stream`-th stream to a switch: both are >= 1."""
    return _CONTROLLERS | term << _STREAM_BITS | stream


def tool_election_id() -> int:
    """An id that differs between tools, and grows: without a controller the newest tool is primary."""
    return time.time_ns()
