# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""HTTP connections of the page, limited in number and in time: any process of the machine may open them."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 256
REQUEST_S = 10.0
"""A connection without a whole request is closed after this time, or twice that."""


class BoundedConnection(H11Protocol):
    """At MAX_CONNECTIONS a new connection takes the place of the one that has waited longest for a request. Where all
    have a request, the new one is closed."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._began = self.loop.time()
        self._seen: object = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= MAX_CONNECTIONS and not self._make_room():
            transport.abort()
            return
        super().connection_made(transport)
        self._timer = self.loop.call_later(REQUEST_S, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is None:  # it was refused
            return
        self._timer.cancel()
        super().connection_lost(exc)

    def _make_room(self) -> bool:
        idle = [c for c in self.connections if isinstance(c, BoundedConnection) and c.is_idle]
        if not idle:
            return False
        oldest = min(idle, key=lambda c: c._began)
        self.connections.discard(oldest)  # its end is told later
        oldest.transport.abort()
        return True

    def _check(self) -> None:
        if self.is_idle and self.cycle is self._seen:
            self.transport.abort()
            return
        self._seen = self.cycle
        self._timer = self.loop.call_later(REQUEST_S, self._check)
