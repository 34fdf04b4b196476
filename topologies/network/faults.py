# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Faults on the links of a running network: what softswitch's ports do to the frames that pass, at run time."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netfold.topologies.network.errors import NetworkError

_MS = 1_000_000


@dataclass(frozen=True)
class Faults:
    """What happens to the frames of one direction of a link.

    loss, duplicate, reorder, corrupt  probabilities, 0 to 1
    delay_ms, jitter_ms                on top of the link's own delay; drawn evenly from delay +- jitter
    seed                               the same seed does the same to the n-th frame
    """

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        for kind in ("loss", "duplicate", "reorder", "corrupt"):
            if not 0 <= getattr(self, kind) <= 1:
                raise NetworkError(f"{kind} is {getattr(self, kind)}; it is a probability from 0 to 1")
        for kind in ("delay_ms", "jitter_ms"):
            if not 0 <= getattr(self, kind) <= 60_000:
                raise NetworkError(f"{kind} is {getattr(self, kind)}; it must be from 0 to 60000")

    def request(self, port: int, direction: str, link_delay_ms: float) -> dict[str, Any]:
        """What the control socket of a switch is told; `direction` "in" or "out" is as seen by the switch."""
        return {
            "op": "set-faults",
            "port": port,
            "direction": direction,
            "loss": float(self.loss),
            "duplicate": float(self.duplicate),
            "reorder": float(self.reorder),
            "corrupt": float(self.corrupt),
            "delay_ns": round((self.delay_ms + link_delay_ms) * _MS),
            "jitter_ns": round(self.jitter_ms * _MS),
            "seed": self.seed,
        }


def ask(control_socket: Path, requests: list[dict[str, Any]], timeout_s: float = 5.0) -> list[Any]:
    """Send requests to a switch's control socket, a line of JSON each, and return the results in order.

    Raises NetworkError if it refuses one (later ones are not sent then) or does not answer within `timeout_s`."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(control_socket))
            with connection.makefile("rb") as answers:
                return [_ask_one(connection, answers, request) for request in requests]
    except (OSError, ValueError, KeyError) as error:
        raise NetworkError(f"the control socket {control_socket} does not answer: {error}") from error


def _ask_one(connection: socket.socket, answers: Any, request: dict[str, Any]) -> Any:
    connection.sendall(json.dumps(request).encode() + b"\n")
    answer = json.loads(answers.readline())
    if not answer["ok"]:
        raise NetworkError(f"the switch refused {request['op']}: {answer['error']}")
    return answer["result"]
