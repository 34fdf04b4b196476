# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server as a process: from joining the job to its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from types import FrameType

from netfold.traffic.errors import JobFailed, TrafficError
from netfold.traffic.membership.part import Membership
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer


def serve(members: Membership, local: str, reply_to: Sequence[Address]) -> dict[str, int]:
    """Serves until the job is over or SIGTERM or SIGINT comes; must run in the main thread. Gives the
    packets by verdict. Raises JobFailed (not for a job that is done), ControllerUnreachable,
    TransportError."""
    server = ParameterServer(members.current(), local, reply_to)
    failure: list[TrafficError] = []
    ended = threading.Event()

    def changed() -> None:
        try:
            server.assign(members.current())
        except TrafficError as error:
            failure.append(error)
            server.stop()

    def stop(number: int, frame: FrameType | None) -> None:
        ended.set()
        server.stop()

    previous = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    members.on_change(changed)
    changed()  # what came between `current` and `on_change`
    try:
        server.serve()
    finally:
        members.on_change(None)
        for number, handler in previous.items():
            signal.signal(number, handler)
        members.close()
        server.close()
    if failure and not ended.is_set() and not (isinstance(failure[0], JobFailed) and failure[0].done):
        raise failure[0]
    return server.counts()
