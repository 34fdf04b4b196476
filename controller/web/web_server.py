# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Serves the page until the process is told to stop, over connections that are limited in number and in time: any
process of the machine may open them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from netfold.controller.service.listening import reason
from netfold.controller.web.access import is_loopback
from netfold.controller.web.app import make_app
from netfold.controller.web.source import LineSource

GRACE_S = 1
BACKLOG = 128

MAX_CONNECTIONS = 256

REQUEST_S = 10.0
"""A connection without a whole request is closed after this time, or twice that."""


class WebError(Exception):
    """The page cannot be served; the message says where and why."""


@dataclass(frozen=True)
class WebSecurity:
    """Certificate and key (PEM files), and the tokens of which a browser shows one."""

    certificate: Path
    key: Path
    tokens: frozenset[str]


@dataclass(frozen=True)
class WebOptions:
    """`port` 0: a free one; `descriptor`: of a socket that listens already, in place of both. Beyond loopback
    `security` is required."""

    host: str = "127.0.0.1"
    port: int = 0
    descriptor: int | None = None
    security: WebSecurity | None = None


async def serve(
    source: LineSource, options: WebOptions, on_ready: Callable[[str], None], stop: asyncio.Event
) -> None:
    """Serve until `stop` is set. `on_ready` is called with the page's address. Raises WebError."""
    async with _listening(options) as listener:
        server = _server(source, options)
        scheme = "http" if options.security is None else "https"
        host, port = listener.getsockname()[:2]
        host = f"[{host}]" if ":" in host else host
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        stopping = asyncio.create_task(stop.wait())
        try:
            while not server.started and not serving.done():
                await asyncio.wait([serving], timeout=0.01)
            if not serving.done():
                on_ready(f"{scheme}://{host}:{port}/")
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            server.should_exit = True
            await asyncio.gather(serving, return_exceptions=True)


def _server(source: LineSource, options: WebOptions) -> uvicorn.Server:
    security = options.security
    app = make_app(
        source, tokens=None if security is None else security.tokens, loopback_only=security is None
    )
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="on",
        server_header=False,
        ws="none",
        http=BoundedConnection,
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=None if security is None else str(security.certificate),
        ssl_keyfile=None if security is None else str(security.key),
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise WebError(f"certificate or key cannot be used: {error}") from error
    return _Server(config)


class _Server(uvicorn.Server):
    """Leaves signals to the caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def _listening(options: WebOptions) -> AsyncIterator[socket.socket]:
    """Raises WebError."""
    if options.descriptor is None:
        _check_reach(options, options.host, options.port)
    listener = _listener(options)
    try:
        _check_reach(options, *listener.getsockname()[:2])
        yield listener
    finally:
        listener.close()


def _check_reach(options: WebOptions, host: str, port: int) -> None:
    """Raises WebError for an address beyond loopback without security."""
    if options.security is None and not is_loopback(host):
        raise WebError(
            f"{host}:{port} is reached from other machines, which needs --tls-cert, --tls-key and --tokens; "
            "or give a loopback address"
        )


def _listener(options: WebOptions) -> socket.socket:
    if options.descriptor is not None:
        try:
            return socket.socket(fileno=options.descriptor)
        except OSError as error:
            raise WebError(f"descriptor {options.descriptor} is no socket: {error}") from error
    try:
        family, _, _, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        why = reason(error, options.port, "--listen")
        raise WebError(f"cannot listen at {options.host}:{options.port}: {why}") from error


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
