# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server as a process: from joining the job to its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType

from netfold.traffic.errors import JobFailedError, TrafficError
from netfold.traffic.membership.base import Membership, Stats
from netfold.traffic.packets.host_link import HostLink
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer


@dataclass(frozen=True)
class Served:
    """Counts of packets by verdict, and of those that one thread handed over to another."""

    verdicts: dict[str, int]
    handed_over: int


def serve(
    members: Membership,
    local: str,
    reply_to: Sequence[Address],
    link: HostLink | None = None,
    threads: int = 1,
) -> Served:
    """Serves until the job ends, or SIGTERM or SIGINT; has to run in the main thread. Raises JobFailedError (not if
    all workers left), ControllerUnreachableError, TransportError."""
    server = ParameterServer(members.current(), local, reply_to, link, threads)
    members.report(Stats(socket_errors=lambda: server.socket_errors))
    failure: list[TrafficError] = []
    ended = threading.Event()

    def on_change() -> None:
        try:
            server.assign(members.current())
        except TrafficError as error:
            failure.append(error)
            server.stop()

    def stop(number: int, frame: FrameType | None) -> None:
        ended.set()
        server.stop()

    previous = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    members.on_change(on_change)
    on_change()  # the assignment may have changed since `current`
    try:
        server.serve()
    finally:
        members.on_change(None)
        for number, handler in previous.items():
            signal.signal(number, handler)
        members.close()
        server.close()
    if failure and not ended.is_set() and not (isinstance(failure[0], JobFailedError) and failure[0].done):
        raise failure[0]
    return Served(server.counts(), server.handed_over)
