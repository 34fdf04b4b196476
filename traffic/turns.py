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

from traffic.native import library
from traffic.transport import LOSSES, Endpoint, Inbox, TransportError, UdpEndpoint

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
    """What a flow lends for a stretch and takes back after it."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("channels", "span", "out", "pieces", "order")),
        *((name, ctypes.c_int64) for name in ("fd", "end", "highest", "window", "under_way", "left")),
        ("pacer", PacerState),
        ("found", Matched),
        ("rtt_sum", ctypes.c_double),
        ("first_back", ctypes.c_double),
        ("last_back", ctypes.c_double),
        ("order_taken", ctypes.c_int64),
        ("order_count", ctypes.c_int64),
        ("held_back", ctypes.c_int64),
        *((name, ctypes.c_double) for name in ("newest_back", "reordering", "probed_at", "timeout")),
    )


class _Stretch(ctypes.Structure):
    _fields_ = (
        ("flows", ctypes.c_void_p),
        ("flow_count", ctypes.c_int64),
        ("fds", ctypes.c_void_p),
        ("fd_count", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("in", "records", "control")),
        ("capacity", ctypes.c_int64),
        *(
            (name, ctypes.c_double)
            for name in ("until", "timers_at", "gap", "received_at", "nap_min", "nap_max")
        ),
        ("error", ctypes.c_int64),
    )


class Carried(Protocol):
    """A flow, as far as a stretch needs it."""

    @property
    def portable(self) -> bool:
        """Whether turns.c can move it at present."""

    def lend(self, state: FlowState) -> None: ...

    def take_back(self, state: FlowState) -> int:
        """Gives how many results came."""


class Turns:
    """Carries flows of the same endpoints. `gap` (seconds between two results, smoothed) and `received_at` (when the
    last came) belong to the session, which sets them before a stretch and reads them after it."""

    def __init__(
        self, code: ctypes.CDLL, endpoints: Sequence[Endpoint], inbox: Inbox, naps: tuple[float, float]
    ) -> None:
        self._code = code
        self._fds = np.array([endpoint.fileno() for endpoint in endpoints], np.int32)
        self._stretch = _Stretch(
            fds=self._fds.ctypes.data,
            fd_count=len(self._fds),
            records=inbox.first_row,
            control=inbox.control_pointer,
            capacity=inbox.capacity,
            nap_min=naps[0],
            nap_max=naps[1],
        )
        setattr(self._stretch, "in", inbox.pointer(0))
        self._flows: Sequence[Carried] = ()
        self._states = (FlowState * 0)()

    def run(
        self, flows: Sequence[Carried], until: float, timers_at: float, gap: float, received_at: float
    ) -> int:
        """Moves the packets of `flows` until `until` (time.monotonic) at the latest; gives how many results came. From
        `timers_at` on it ends when a packet has to go again.

        Raises TransportError, and what `Flow.take_back` raises.
        """
        stretch = self._stretch
        if len(self._states) != len(flows):
            self._states = (FlowState * len(flows))()
            stretch.flows, stretch.flow_count = ctypes.addressof(self._states), len(flows)
        for flow, state in zip(flows, self._states, strict=True):
            flow.lend(state)
        stretch.until, stretch.timers_at = until, timers_at
        stretch.gap, stretch.received_at, stretch.error = gap, received_at, 0
        self._code.nf_turns(ctypes.addressof(stretch))
        results = sum([flow.take_back(state) for flow, state in zip(flows, self._states, strict=True)])
        error = stretch.error
        if error and error not in LOSSES:
            raise TransportError(error, f"recvmmsg: {os.strerror(error)}")
        return results

    @property
    def gap(self) -> float:
        gap: float = self._stretch.gap
        return gap

    @property
    def received_at(self) -> float:
        at: float = self._stretch.received_at
        return at


def make_turns(endpoints: Sequence[Endpoint], inbox: Inbox, naps: tuple[float, float]) -> Turns | None:
    """None where there is no C code, or these endpoints are not sockets."""
    code = library()
    plain = all(isinstance(endpoint, UdpEndpoint) for endpoint in endpoints)
    if code is None or not plain or len(endpoints) > MAX_ENDPOINTS:
        return None
    return Turns(code, endpoints, inbox, naps)
