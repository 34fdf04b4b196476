# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Stretches of a worker's loop in C (turns.c): as long as packets only come and go, no Python runs.

A stretch ends at a given time, when a flow is done, a window of its results is in or a packet has to go again, and when
a socket took less than it was given. What follows from that (congestion control, timers, what is lost, the next works)
is said once, in Python.
Only flows whose work is a span and whose endpoint is a plain socket can be carried; all others go turn by turn.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.packets.transport import LOSSES, Endpoint, Inbox, TransportError, UdpEndpoint
from netfold.traffic.worker.native import library

MAX_ENDPOINTS = 64


class Matched(ctypes.Structure):
    """Results that were waited for: how many, how many of them were marked, went only once, overflowed; and of those
    that went only once, the sum and the latest of when."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("count", "marked", "fresh", "overflowed")),
        *((name, ctypes.c_double) for name in ("sent_sum", "sent_max")),
    )


class PacerState(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_double) for name in ("tokens", "depth", "per_second", "filled"))


class FlowState(ctypes.Structure):
    """A flow as turns.c sees it: what is set for each work, what for each stretch, and what a stretch finds."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("channels", "span", "out", "pieces", "order")),
        *((name, ctypes.c_int64) for name in ("fd", "end")),
        *((name, ctypes.c_int64) for name in ("highest", "window", "under_way", "left", "patience")),
        ("pacer", PacerState),
        *((name, ctypes.c_double) for name in ("newest_back", "reordering", "probed_at", "timeout")),
        ("found", Matched),
        *((name, ctypes.c_double) for name in ("rtt_sum", "first_back", "last_back")),
        *((name, ctypes.c_int64) for name in ("order_taken", "order_count", "held_back")),
    )


class _Stretch(ctypes.Structure):
    _fields_ = (
        ("flows", ctypes.c_void_p),
        ("flow_count", ctypes.c_int64),
        ("fds", ctypes.c_void_p),
        ("fd_count", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("in", "records", "control")),
        ("capacity", ctypes.c_int64),
        *((name, ctypes.c_double) for name in ("until", "timers_at", "received_at")),
        ("error", ctypes.c_int64),
        ("lacking", ctypes.c_int64),
    )


class Carried(Protocol):
    """A flow, as far as a stretch needs it."""

    @property
    def portable(self) -> bool:
        """Whether turns.c can move it at present."""

    @property
    def state(self) -> FlowState: ...

    def lend(self) -> None:
        """Sets in `state` what a stretch begins with."""

    def take_back(self) -> int:
        """Goes on from what the stretch left in `state`; gives how many results came."""


class Turns:
    """Carries flows of the same endpoints."""

    def __init__(self, code: ctypes.CDLL, endpoints: Sequence[Endpoint], inbox: Inbox) -> None:
        self._code = code
        self._fds = np.array([endpoint.fileno() for endpoint in endpoints], np.int32)
        self._stretch = _Stretch(
            fds=self._fds.ctypes.data,
            fd_count=len(self._fds),
            records=inbox.first_row,
            control=inbox.control_pointer,
            capacity=inbox.capacity,
        )
        setattr(self._stretch, "in", inbox.pointer(0))
        self._at = ctypes.addressof(self._stretch)
        self._flows: list[Carried] = []
        self._states: NDArray[np.uint64] = np.zeros(0, np.uint64)

    def run(self, flows: Sequence[Carried], until: float, timers_at: float, received_at: float) -> int:
        """Moves the packets of `flows` until `until` (time.monotonic) at the latest; gives how many results came. From
        `timers_at` on it ends when a packet has to go again.

        Raises TransportError, and what `Flow.take_back` raises.
        """
        stretch = self._stretch
        if flows != self._flows:
            self._flows = list(flows)
            self._states = np.array([ctypes.addressof(flow.state) for flow in flows], np.uint64)
            stretch.flows, stretch.flow_count = self._states.ctypes.data, len(flows)
        for flow in flows:
            flow.lend()
        stretch.until, stretch.timers_at, stretch.received_at = until, timers_at, received_at
        self._code.nf_turns(self._at)
        results = 0
        for flow in flows:
            results += flow.take_back()
        error = stretch.error
        if error and error not in LOSSES:
            raise TransportError(error, f"recvmmsg: {os.strerror(error)}")
        return results

    @property
    def lacking(self) -> bool:
        """Whether the last stretch found packets that are to go again."""
        return bool(self._stretch.lacking)

    @property
    def received_at(self) -> float:
        """When the last packets came: in the last stretch, or what it was told."""
        at: float = self._stretch.received_at
        return at


def make_turns(endpoints: Sequence[Endpoint], inbox: Inbox) -> Turns | None:
    """None where there is no C code, or these endpoints are not sockets."""
    code = library()
    plain = all(isinstance(endpoint, UdpEndpoint) for endpoint in endpoints)
    if code is None or not plain or len(endpoints) > MAX_ENDPOINTS:
        return None
    return Turns(code, endpoints, inbox)
