# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Serves at a unix socket, or at TCP with TLS and tokens. At the end, calls in flight end with UNAVAILABLE, on which
members retry, and not with an exception in the log of the server."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
from grpc_health.v1.health import aio as health_service  # type: ignore[attr-defined]  # its stubs lack it
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server

from netfold.controller.service.access_control import AccessInterceptor, JobsService
from netfold.controller.service.connection_limits import ConnectionLimits, limits_of_process
from netfold.controller.service.events import EventFiles
from netfold.controller.service.interceptor import CallInterceptor, Handler, wrapped
from netfold.controller.service.listening import ListenError, tcp_reason
from netfold.controller.service.request_texts import PlainTexts
from netfold.controller.service.security import Credentials
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.connection import default_socket
from netfold.protocol.runtime import FolderError, make_own

if TYPE_CHECKING:
    Context = grpc.aio.ServicerContext[Any, Any]

log = logging.getLogger(__name__)

MAX_MESSAGE = 8 << 20
ALL_INTERFACES = ("0.0.0.0", "[::]", "::", "*", "")


@asynccontextmanager
async def serving(
    service: JobsService,
    listen: str,
    credentials: Credentials | None,
    limits: ConnectionLimits | None = None,
    events: EventFiles | None = None,
    health: health_service.HealthServicer | None = None,
) -> AsyncIterator[str]:
    """Serve at `unix:PATH` or `HOST:PORT` (TCP needs `credentials`), and yield the address. `limits`: None: those of
    the process. `events`: gets an event for each call that changes something. `health`: answers grpc.health.v1.
    Raises ListenError."""
    calls = CallsInFlight()
    interceptors = [AccessInterceptor(service, credentials, events), PlainTexts(), calls]
    options = [
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", MAX_MESSAGE),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 5000),
        ("grpc.http2.bdp_probe", 0),  # each heartbeat would be answered with a PING, which the member answers
        *(limits or limits_of_process()).options(),
    ]
    server = grpc.aio.server(interceptors=interceptors, options=options)
    pb_grpc.add_ControllerServicer_to_server(service, server)
    if health is not None:
        add_HealthServicer_to_server(health, server)
    address = _bind(server, listen, credentials)
    await server.start()
    log.info("serving at %s", address)
    try:
        yield address
    finally:
        await calls.end()
        await server.stop(grace=0.2)
        if listen.startswith("unix:"):
            Path(listen.removeprefix("unix:")).unlink(missing_ok=True)


def published_address(address: str) -> str:
    """The address at which callers on other machines reach `address`: an address of all interfaces names none of this
    machine."""
    host, _, port = address.rpartition(":")
    return f"{socket.gethostname()}:{port}" if host in ALL_INTERFACES else address


def _bind(server: grpc.aio.Server, listen: str, credentials: Credentials | None) -> str:
    try:
        if listen.startswith("unix:"):
            _clear(Path(listen.removeprefix("unix:")))
            if not _bind_alone(server, listen):
                raise ListenError(f"cannot listen at {listen}; choose another path by --listen")
            return listen
        if credentials is None:
            raise ListenError(
                f"{listen} is TCP, which needs --tls-cert, --tls-key, and --tokens or --identities; or give unix:PATH"
            )
        port = server.add_secure_port(listen, _tls(credentials))
    except (RuntimeError, OSError) as error:
        why = "" if listen.startswith("unix:") else tcp_reason(listen, "--listen")
        raise ListenError(f"cannot listen at {listen}: {why or error}") from error
    return f"{listen.rsplit(':', 1)[0]}:{port}"


def _tls(credentials: Credentials) -> grpc.ServerCredentials:
    """Present the certificate as last read to each new connection. gRPC is given another pair only when it changes: it
    aborts (1.85.1) when handshakes of others use the pair that it drops."""
    given: list[tuple[bytes, bytes]] = []

    def changed() -> Any:  # the types of gRPC leave out None, for no change
        pair = (credentials.current.key, credentials.current.certificate)
        if given == [pair]:
            return None
        given[:] = [pair]
        return grpc.ssl_server_certificate_configuration([pair])

    return grpc.dynamic_ssl_server_credentials(changed(), changed)


def _bind_alone(server: grpc.aio.Server, listen: str) -> int:
    """Bind so that only this user may connect to a unix socket, whatever the umask of the process is."""
    before = os.umask(0o177)
    try:
        return server.add_insecure_port(listen)
    finally:
        os.umask(before)


def _clear(path: Path) -> None:
    """Remove the socket of a process that has ended; leave one that answers."""
    if f"unix:{path}" == default_socket():
        try:
            make_own(path.parent)
        except FolderError as error:
            raise ListenError(str(error)) from error
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    if not path.exists():
        return
    probe = socket.socket(socket.AF_UNIX)
    try:
        probe.connect(str(path))
    except OSError:
        path.unlink(missing_ok=True)
    else:
        raise ListenError(
            f"another process listens at {path}, probably a controller; end it, or choose another path by --listen"
        )
    finally:
        probe.close()


END_S = 2.0


class CallsInFlight(CallInterceptor):
    """Interceptor of a server that records its calls, to end them before it stops."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_stopping = False

    async def end(self) -> None:
        """Cancel all calls, and wait for their ends, at most `END_S` seconds."""
        self._is_stopping = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=END_S)

    async def changed(self, handler: Handler, details: grpc.HandlerCallDetails) -> Handler:
        if not handler:
            return handler
        return wrapped(handler, self._stream if handler.response_streaming else self._unary)

    def _unary(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(request: Any, context: Context) -> Any:
            with self._counted():
                try:
                    return await method(request, context)
                except asyncio.CancelledError:
                    if not self._is_stopping:
                        raise
                return await _refuse(context)

        return call

    def _stream(self, method: Callable[..., Any]) -> Callable[..., AsyncIterator[Any]]:
        async def call(request: Any, context: Context) -> AsyncIterator[Any]:
            with self._counted():
                try:
                    async for message in method(request, context):
                        yield message
                    return
                except asyncio.CancelledError:
                    if not self._is_stopping:
                        raise
                await _refuse(context)

        return call

    @contextmanager
    def _counted(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)


async def _refuse(context: Context) -> NoReturn:
    await context.abort(grpc.StatusCode.UNAVAILABLE, "the controller is stopping")
    raise AssertionError("abort raises")
