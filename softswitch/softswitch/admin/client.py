# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A client of the control socket."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import TracebackType
from typing import Any


class ControlSocketError(Exception):
    """The switch rejected the request or did not answer."""


class ControlClient:
    """One connection. `timeout` is in seconds and bounds each request."""

    def __init__(self, path: Path, timeout: float = 5.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            reason = error.strerror or error
            raise ControlSocketError(f"{path}: cannot connect to the control socket: {reason}") from error
        self._file = self._socket.makefile("rb")

    def request(self, op: str, **arguments: Any) -> Any:
        """The result of one request (requests.py lists them). Raises ControlSocketError."""
        try:
            self._socket.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
            line = self._file.readline()
        except OSError as error:
            raise ControlSocketError(f"{op}: {error}") from error
        if not line:
            raise ControlSocketError(f"{op}: the switch closed the connection")
        answer = json.loads(line)
        if not answer["ok"]:
            raise ControlSocketError(f"{op}: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def __enter__(self) -> ControlClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
