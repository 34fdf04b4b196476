# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""P4Runtime election ids: any controller's is above any tool's, so that a tool never takes a switch from a controller.

An id has 128 bits. Controllers set the high word and have their term in the low one; tools have a zero high word."""

from __future__ import annotations

import time

_CONTROLLERS = 1 << 64


def controller_election_id(term: int) -> int:
    """Of the leader of a term, >= 1: the fencing token of its writes."""
    return _CONTROLLERS | term


def tool_election_id() -> int:
    """Differs between tools, and grows: without a controller the newest tool is primary."""
    return time.time_ns()
