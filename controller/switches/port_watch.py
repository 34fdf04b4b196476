# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads a switch's ports' counters again and again, as cheaply as may be (repeated_call.py): once a period, and twice
while what they carry changes. Whoever holds it calls `look` in short intervals, for all switches at once: in one it
asks, in the next it takes the answer, so that a process wakes up for all of them and not for each.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from netfold.controller.switches.endpoint import Endpoint, Tls
from netfold.controller.switches.port_counters import AnswerError, PortCounts, PortReader
from netfold.controller.switches.repeated_call import CallError, RepeatedCall, connect

READ = "/p4.v1.P4Runtime/Read"

HURRY = 0.5
"""Of a period: what changed is read again so soon."""

SLACK_S = 0.05
"""Who looks is not exact, and a reading that is as good as due is not put off by a whole turn."""

OPEN_S = 5.0


class PortWatch:
    """`heard` gets what was counted and when that was asked for, and says whether it changes; `doubt` is called when
    the switch does not answer within `answer_s`, and is to be asked by gRPC, which has more patience: then the watch is
    closed, and may be opened again. `refused` hears why it may not: gRPC reads the counters from then on."""

    def __init__(
        self,
        reader: PortReader,
        period_s: float,
        answer_s: float,
        heard: Callable[[PortCounts, float], bool],
        doubt: Callable[[], None],
        refused: Callable[[str], None],
    ) -> None:
        self._reader = reader
        self._period_s = period_s
        self._answer_s = answer_s
        self._heard = heard
        self._doubt = doubt
        self._refused = refused
        self._call: RepeatedCall | None = None
        self._usable = True  # by this switch, as far as is known
        self._asked = self._next = 0.0

    async def open(self, endpoint: Endpoint) -> bool:
        """Whether the watch is open from now on. What could not be opened, or never got an answer, is not tried."""
        if self._call is None and self._usable:
            self._usable = False  # until it has answered
            try:
                async with asyncio.timeout(OPEN_S):
                    await self._open(endpoint)
            except (CallError, OSError, TimeoutError) as error:
                self._refused(str(error) or f"no connection in {OPEN_S:g} s")
        return self._call is not None

    async def _open(self, endpoint: Endpoint) -> None:
        host, _, port = endpoint.address.rpartition(":")
        if not host or not port.isdigit():
            raise CallError(f"'{endpoint.address}' is no host and port")
        request = self._reader.request.SerializeToString()
        tls = endpoint.tls
        call = RepeatedCall(
            READ, endpoint.address, request, self._answered, self._failed, secure=tls is not None
        )
        name = (tls.server_name if tls is not None else "") or host
        try:
            await connect(call, host.strip("[]"), int(port), None if tls is None else _context(tls), name)
            if not call.connected:
                raise CallError("the connection was lost at once")
            self._call = call
        finally:
            if self._call is None:
                call.close()

    def look(self, now: float) -> None:
        """Ask, if it is time to; `now` is of a monotonic clock."""
        if self._call is None:
            return
        if self._call.waits:
            if now - self._asked >= self._answer_s:
                self._failed("no answer")
            else:
                self._call.collect()
        elif now >= self._next - SLACK_S:
            self._asked, self._next = now, now + self._period_s
            self._call.ask()

    def close(self) -> None:
        if self._call is not None:
            self._call.close()
            self._call = None

    def _answered(self, messages: list[bytes]) -> None:
        try:
            counts = self._reader.counts(messages)
        except AnswerError as error:
            self._failed(str(error))
            return
        self._usable = True
        if self._heard(counts, self._asked):
            self._next = self._asked + HURRY * self._period_s

    def _failed(self, why: str) -> None:
        """Of a switch that is away gRPC, which is asked next, says it better."""
        if self._call is not None:
            self.close()
            if not self._usable:
                self._refused(why)
            self._doubt()


def _context(tls: Tls) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(tls.ca))
    if tls.cert is not None:
        context.load_cert_chain(tls.cert, tls.key)
    context.set_alpn_protocols(["h2"])
    return context
