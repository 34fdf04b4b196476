# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The server of the control socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from softswitch.admin.requests import (
    REQUEST,
    AddPort,
    AnyRequest,
    Capture,
    Command,
    Info,
    Ports,
    RemovePort,
    SetFaults,
    SetRate,
    Stats,
    explain,
)
from softswitch.admin.verbs.console import Console
from softswitch.engine.engine import Direction, Engine, EngineError, Faults
from softswitch.errors import SwitchError
from softswitch.state.switch import Switch

log = logging.getLogger(__name__)
LINE_MAX = 64 * 1024


class ControlServer:
    """Serves a Unix socket. Each request is atomic."""

    def __init__(self, switch: Switch, engine: Engine, info: Callable[[], dict[str, Any]]) -> None:
        self._switch = switch
        self._engine = engine
        self._info = info
        self._console = Console(switch, engine)
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def start(self, path: Path) -> None:
        """Listens. Replaces the socket of an ended process. Raises OSError if another process listens there."""
        if path.is_socket():
            await _refuse_if_alive(path)
            path.unlink()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            os.fchmod(listener.fileno(), 0o600)  # mode of the file, regardless of the umask
            listener.bind(os.fspath(path))
        except OSError:
            listener.close()
            raise
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=LINE_MAX)
        self._path = path

    async def close(self) -> None:
        """Stops listening and removes the socket. Idempotent."""
        if self._server is None:
            return
        self._server.close()
        for task in self._clients:
            task.cancel()
        self._server = None
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            while line := await reader.readline():
                writer.write(json.dumps(self.answer(line)).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError, asyncio.CancelledError):
            log.debug("a control client disconnected, or sent a line above %d bytes", LINE_MAX)
        finally:
            self._clients.discard(task)
            with contextlib.suppress(ConnectionError, RuntimeError):
                writer.close()

    def answer(self, line: bytes) -> dict[str, Any]:
        """The answer to one line."""
        try:
            return {"ok": True, "result": self._carry_out(REQUEST.validate_json(line))}
        except ValidationError as error:
            return {"ok": False, "error": explain(error)}
        except (EngineError, SwitchError, OSError) as error:
            return {"ok": False, "error": str(error)}

    def _carry_out(self, request: AnyRequest) -> Any:
        match request:
            case Info():
                return self._info()
            case Ports():
                return self._ports()
            case Stats():
                return {"switch": dict(self._switch.stats()), "engine": self._engine.stats()}
            case AddPort():
                return self._engine.add_port(request.port, request.interface)
            case RemovePort():
                return self._engine.remove_port(request.port)
            case SetRate():
                self._switch.port_config(request.port, request.rate, request.queue)
                return self._engine.service()
            case SetFaults():
                settings = request.model_dump(exclude={"op", "port", "direction"})
                direction = Direction[request.direction.upper()]
                return self._engine.set_faults(request.port, direction, Faults(**settings))
            case Command():
                return self._console.run(request.line)
            case Capture():
                if request.folder is not None:
                    Path(request.folder).mkdir(parents=True, exist_ok=True)
                return self._engine.set_capture(None if request.folder is None else Path(request.folder))

    def _ports(self) -> list[dict[str, Any]]:
        return [
            {
                "port": port.number,
                "interface": port.ifname,
                "up": port.up,
                "oper_up": port.oper_up,
                "merges": port.merges,
                "kind": port.kind,
                "zero_copy": port.zero_copy,
                "error": port.error,
                "link": port.counters,
                "faults": {direction.name.lower(): counts for direction, counts in port.faults.items()},
                "fault_settings": {
                    direction.name.lower(): asdict(settings)
                    for direction, settings in port.fault_settings.items()
                },
                "switch": dict(self._switch.port_stats(port.number)),
            }
            for port in self._engine.ports()
        ]


async def _refuse_if_alive(path: Path) -> None:
    try:
        _, writer = await asyncio.open_unix_connection(path)
    except OSError:
        return
    writer.close()
    raise OSError(f"{os.fspath(path)}: another process answers on this socket")
