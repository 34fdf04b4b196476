# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Serves the page until the process is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from netfold.controller.web.access import is_loopback
from netfold.controller.web.app import make_app
from netfold.controller.web.bounded_connections import BoundedConnection
from netfold.controller.web.source import LineSource

GRACE_S = 1
BACKLOG = 128


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
    """Until `stop` is set. `on_ready` is called with the page's address. Raises WebError."""
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
        raise WebError(f"cannot listen at {options.host}:{options.port}: {error}") from error
