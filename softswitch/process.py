# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One switch process: the core, the engine, the P4Runtime server and the control socket, from start to drain."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc
from google.protobuf import text_format

from netfold.softswitch.admin.server import ControlServer
from netfold.softswitch.build.compiler import Builder, compile_here
from netfold.softswitch.build.native import runtime_headers
from netfold.softswitch.build.program import translator_hash
from netfold.softswitch.engine.abi import engine_library
from netfold.softswitch.engine.engine import Engine, EngineError
from netfold.softswitch.errors import SwitchError
from netfold.softswitch.logs import TRACE
from netfold.softswitch.p4runtime.device import Device
from netfold.softswitch.p4runtime.service import P4RuntimeService
from netfold.softswitch.p4runtime.status import Refused
from netfold.softswitch.privileges import keep_only
from netfold.softswitch.state.switch import Switch

log = logging.getLogger(__name__)

# From the data plane, before the requests of controllers have their turn again.
EVENTS_AT_ONCE = 64
# How long an RPC in progress may take to end once the switch is told to stop.
GRACE_S = 1.0
GRPC_OPTIONS = (
    # A program of 256 lanes is some MB of JSON; gRPC takes 4 MiB unless told otherwise.
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    # Two switches on one address are a mistake, not load balancing.
    ("grpc.so_reuseport", 0),
    # A controller that vanished without a word is noticed, and the next one takes over.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 1_000),
)


class StartError(Exception):
    """The switch cannot start as it was told to; the message says what is wrong."""


@dataclass(frozen=True)
class Link:
    """The emulated link behind a port."""

    rate_bps: int
    queue_packets: int


@dataclass(frozen=True)
class Tls:
    """PEM files; with `ca` the clients must show a certificate of it."""

    certificate: Path
    key: Path
    ca: Path | None = None


@dataclass(frozen=True)
class Settings:
    """All that the command line says."""

    cache_dir: Path
    ports: Mapping[int, str] = field(default_factory=dict)
    links: Mapping[int, Link] = field(default_factory=dict)
    device_id: int = 0
    address: str = "127.0.0.1:9559"
    cpu_port: int = 510
    drop_port: int = 511
    program: Path | None = None
    p4info: Path | None = None
    captures: Path | None = None
    control_socket: Path | None = None
    tls: Tls | None = None
    ready_fd: int | None = None
    seed: int = 1
    insecure_remote: bool = False
    traced: bool = False
    dump_bytes: int = 0
    queues: int = 1


async def serve(settings: Settings) -> None:
    """Runs a switch until SIGTERM or SIGINT, then drains it. Raises StartError."""
    require_safe_address(settings)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    # In this order, before there are threads: who compiles becomes another user, then nobody can any more.
    builder = Builder() if os.geteuid() == 0 else None
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    try:
        with _opened(settings) as files:
            keep_only()
            async with _data_plane(settings, files) as (switch, engine):
                switch.log_to(_tell)
                switch.dump_packets(settings.dump_bytes)
                compile_c = compile_here if builder is None else builder.compile
                device = Device(switch, settings.cache_dir, traced=settings.traced, compile_c=compile_c)
                try:
                    await _serve_control_plane(settings, files, switch, engine, device, stopped)
                finally:
                    engine.stop()
                    device.close()
    except (EngineError, SwitchError, OSError) as error:
        raise StartError(str(error)) from error
    finally:
        if builder is not None:
            builder.close()


@dataclass(frozen=True)
class _Pem:
    """What the files of `Tls` hold."""

    certificate: bytes
    key: bytes
    ca: bytes | None


@dataclass(frozen=True)
class _Files:
    """What is read and opened while root may still go into the home of the user who called it: `captures` is a name of
    the folder that stays good afterwards."""

    config: p4r.ForwardingPipelineConfig | None
    tls: _Pem | None
    captures: Path | None


@contextlib.contextmanager
def _opened(settings: Settings) -> Iterator[_Files]:
    """Starts no thread: each would keep root's rights. Raises StartError, OSError, PipelineError."""
    engine_library(settings.cache_dir)
    translator_hash()
    runtime_headers()
    config = None if settings.program is None else _program(settings.program, settings.p4info)
    tls = None if settings.tls is None else _pem(settings.tls)
    if settings.captures is None:
        yield _Files(config, tls, None)
        return
    settings.captures.mkdir(parents=True, exist_ok=True)
    folder = os.open(settings.captures, os.O_PATH | os.O_DIRECTORY)
    try:
        yield _Files(config, tls, Path(f"/proc/self/fd/{folder}"))
    finally:
        os.close(folder)


def _program(program: Path, p4info: Path | None) -> p4r.ForwardingPipelineConfig:
    config = p4r.ForwardingPipelineConfig(p4_device_config=program.read_bytes())
    if p4info is None:
        log.info("no --p4info: controllers must push a program before they can write entries")
        return config
    try:
        text_format.Parse(p4info.read_text(), config.p4info)
    except text_format.ParseError as error:
        raise StartError(f"{p4info}: not P4Info in text form: {error}") from error
    config.p4info.SetInParent()
    return config


def require_safe_address(settings: Settings) -> None:
    """Who reaches P4Runtime may replace the program, which runs as native code. Raises StartError when others than this
    machine's users could, and nobody would ask who they are."""
    host = settings.address.rpartition(":")[0].strip("[]")
    if settings.tls is not None or settings.insecure_remote or settings.address.startswith("unix:"):
        return
    try:
        safe = ipaddress.ip_address(host).is_loopback
    except ValueError:
        safe = host == "localhost"
    if not safe:
        raise StartError(
            f"cannot listen on {settings.address} without TLS: other machines reach it, and whoever does can run code "
            "here. Listen on 127.0.0.1, or give --tls-cert, --tls-key and --tls-ca, or say --insecure-remote"
        )


_LEVELS = {"T": TRACE, "D": logging.DEBUG, "I": logging.INFO, "E": logging.ERROR}


def _tell(level: str, text: str) -> None:
    """What the program says: log_msg() and the trace. In the data plane's thread."""
    log.log(_LEVELS[level], "%s", text)


@contextlib.asynccontextmanager
async def _data_plane(settings: Settings, files: _Files) -> AsyncIterator[tuple[Switch, Engine]]:
    switch = Switch(
        drop_port=settings.drop_port, queues=settings.queues, start_ns=time.monotonic_ns(), seed=settings.seed
    )
    try:
        engine = Engine(switch, settings.cpu_port, settings.cache_dir)
        try:
            if files.captures is not None:
                engine.set_capture(files.captures)
            _set_up_ports(settings, switch, engine)
            engine.start()
            yield switch, engine
        finally:
            engine.close()
    finally:
        switch.close()


def _set_up_ports(settings: Settings, switch: Switch, engine: Engine) -> None:
    for port, link in settings.links.items():
        switch.port_config(port, link.rate_bps, link.queue_packets)
    for port, interface in settings.ports.items():
        engine.add_port(port, interface)
    for status in engine.ports():
        if not status.up:
            log.warning("port %d waits for its interface %s", status.number, status.ifname)


async def _serve_control_plane(
    settings: Settings,
    files: _Files,
    switch: Switch,
    engine: Engine,
    device: Device,
    stopped: asyncio.Event,
) -> None:
    if files.config is not None:
        try:
            device.start_with(files.config)
        except Refused as error:
            raise StartError(f"{settings.program}: {error.message}") from error
    service = P4RuntimeService(device, settings.device_id, engine.packet_out, engine.service)
    _watch_data_plane(switch, engine, service)
    server = grpc.aio.server(options=GRPC_OPTIONS)
    p4r_grpc.add_P4RuntimeServicer_to_server(service, server)
    grpc_port = _bind(server, settings, files.tls)
    await server.start()
    control = ControlServer(switch, engine, lambda: _info(settings, grpc_port, device))
    try:
        if settings.control_socket is not None:
            await _start_control(control, settings.control_socket)
        _announce(settings, grpc_port)
        await stopped.wait()
        log.info("stopping")
    finally:
        service.close_streams()
        await server.stop(GRACE_S)
        await control.close()
        _unwatch_data_plane(switch, engine)


async def _start_control(control: ControlServer, path: Path) -> None:
    try:
        await control.start(path)
    except OSError as error:
        raise StartError(f"control socket {path}: {error.strerror or error}") from error


def _watch_data_plane(switch: Switch, engine: Engine, service: P4RuntimeService) -> None:
    def take_packets() -> None:
        for _ in range(EVENTS_AT_ONCE):
            if (frame := engine.packet_in()) is None:
                return
            service.on_packet_in(frame)

    loop = asyncio.get_running_loop()
    loop.add_reader(engine.packet_in_fd(), take_packets)
    loop.add_reader(switch.event_fd(), lambda: service.on_events(switch.events(EVENTS_AT_ONCE)))


def _unwatch_data_plane(switch: Switch, engine: Engine) -> None:
    loop = asyncio.get_running_loop()
    loop.remove_reader(engine.packet_in_fd())
    loop.remove_reader(switch.event_fd())


def _bind(server: grpc.aio.Server, settings: Settings, tls: _Pem | None) -> int:
    try:
        if tls is None:
            port = server.add_insecure_port(settings.address)
        else:
            port = server.add_secure_port(settings.address, _credentials(tls))
    except (RuntimeError, ValueError):
        port = 0
    if port == 0:
        reason = "the address is in use, not of this machine, or not HOST:PORT"
        if settings.tls is not None:
            reason += (
                f"; or {settings.tls.certificate} and {settings.tls.key} are no certificate and its key (PEM)"
            )
        raise StartError(f"cannot listen on {settings.address}: {reason}")
    return port


def _pem(tls: Tls) -> _Pem:
    ca = tls.ca.read_bytes() if tls.ca is not None else None
    return _Pem(tls.certificate.read_bytes(), tls.key.read_bytes(), ca)


def _credentials(pem: _Pem) -> grpc.ServerCredentials:
    pair = (pem.key, pem.certificate)
    return grpc.ssl_server_credentials([pair], pem.ca, require_client_auth=pem.ca is not None)


def _info(settings: Settings, grpc_port: int, device: Device) -> dict[str, Any]:
    running = device.running
    return {
        "device_id": settings.device_id,
        "pid": os.getpid(),
        "grpc_port": grpc_port,
        "program": None if running is None else running.config.p4info.pkg_info.name,
    }


def _announce(settings: Settings, grpc_port: int) -> None:
    host = settings.address.rpartition(":")[0]
    log.info("device %d serves P4Runtime on %s:%d", settings.device_id, host, grpc_port)
    if settings.ready_fd is not None:
        try:
            os.write(settings.ready_fd, f"ready {grpc_port}\n".encode())
            os.close(settings.ready_fd)
        except OSError as error:
            raise StartError(f"--ready-fd {settings.ready_fd}: {error.strerror}") from error
