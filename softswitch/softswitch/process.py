# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One switch process: starts and stops core, engine, P4Runtime server and control socket."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc
from google.protobuf import text_format

from softswitch.admin.server import ControlServer
from softswitch.build.compiler import Compile, CompilerProcess, NoOtherUserError, cancel, compile_here
from softswitch.build.native import runtime_headers
from softswitch.build.program import translator_hash
from softswitch.engine import xdp
from softswitch.engine.abi import engine_library
from softswitch.engine.dpdk import device as dpdk
from softswitch.engine.dpdk import eal
from softswitch.engine.engine import Engine, EngineError
from softswitch.errors import SwitchError
from softswitch.logs import TRACE
from softswitch.p4runtime.device import Device
from softswitch.p4runtime.service import P4RuntimeService
from softswitch.p4runtime.status import StatusError
from softswitch.privileges import keep_only
from softswitch.settings import Settings, Tls
from softswitch.state.switch import Switch

log = logging.getLogger(__name__)

# Events of the data plane handled per call, so that requests of controllers are not delayed.
EVENTS_AT_ONCE = 64
# Time for RPCs in progress to end at a stop.
GRACE_S = 1.0
# Connections at once; further ones are closed.
CONNECTIONS_MAX = 256
GRPC_OPTIONS = (
    ("grpc.max_allowed_incoming_connections", CONNECTIONS_MAX),
    # One that is no HTTP/2 connection by then is closed.
    ("grpc.server_handshake_timeout_ms", 10_000),
    # RPCs and streams of one connection at once; gRPC lets further ones wait.
    ("grpc.max_concurrent_streams", CONNECTIONS_MAX),
    # Programs have several MB of JSON; gRPC's default limit is 4 MiB.
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    # An address in use is an error; the default would share it.
    ("grpc.so_reuseport", 0),
    # Detects a controller that vanished, so that a backup takes over.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 1_000),
)


class StartError(Exception):
    """The switch cannot start with these settings."""


async def serve(settings: Settings) -> None:
    """Runs a switch until SIGTERM or SIGINT, then drains it. Raises StartError."""
    require_safe_address(settings)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
        # At once: the loop, which is notified too, may wait for gcc.
        signal.signal(number, lambda *_: cancel())
    with contextlib.ExitStack() as started:
        try:
            # Before threads start: the compiler's process changes its user, then this one gives up the right to.
            compile_c: Compile = compile_here
            if os.geteuid() == 0:
                with contextlib.suppress(NoOtherUserError):  # then gcc has the rights of this process
                    compiler = CompilerProcess()
                    started.callback(compiler.close)
                    compile_c = compiler.compile
            with _open_files(settings) as files:
                keep_only()
                await _run(settings, files, compile_c, stopped)
        except (EngineError, SwitchError, OSError) as error:
            raise StartError(str(error)) from error


async def _run(settings: Settings, files: _Files, compile_c: Compile, stopped: asyncio.Event) -> None:
    async with _data_plane(settings, files) as (switch, engine):
        switch.log_to(_log_message)
        switch.dump_packets(settings.dump_bytes)
        device = Device(switch, settings.cache_dir, traced=settings.traced, compile_c=compile_c)
        try:
            await _serve_control_plane(settings, files, switch, engine, device, stopped)
        finally:
            engine.stop()
            device.close()


@dataclass(frozen=True)
class _Pem:
    """Contents of the files of `Tls`."""

    certificate: bytes
    key: bytes
    ca: bytes | None


@dataclass(frozen=True)
class _Files:
    """Files read before root gives up the right to enter a private home. `captures` is a path of the folder that stays
    valid afterwards. `xdp`: programs by port, loaded before root gives up the right to."""

    config: p4r.ForwardingPipelineConfig | None
    tls: _Pem | None
    captures: Path | None
    xdp: Mapping[int, xdp.XdpProgram]


@contextlib.contextmanager
def _open_files(settings: Settings) -> Iterator[_Files]:
    """Must not start threads: each would keep root's rights. Raises StartError, OSError, PipelineError."""
    engine_library(settings.cache_dir)
    if any(map(dpdk.is_dpdk, settings.ports.values())):
        eal.library(settings.cache_dir)
    translator_hash()
    runtime_headers()
    config = None if settings.program is None else _program(settings.program, settings.p4info)
    tls = None if settings.tls is None else _pem(settings.tls)
    with contextlib.ExitStack() as opened:
        programs = {}
        for port, interface in settings.ports.items():
            if xdp.is_xdp(interface):
                what = f"port {port} on {interface}"
                programs[port] = xdp.load(settings.cache_dir, settings.threads, what)
                opened.callback(programs[port].close)
        captures = None
        if settings.captures is not None:
            settings.captures.mkdir(parents=True, exist_ok=True)
            folder = os.open(settings.captures, os.O_PATH | os.O_DIRECTORY)
            opened.callback(os.close, folder)
            captures = Path(f"/proc/self/fd/{folder}")
        yield _Files(config, tls, captures, programs)


def _program(program: Path, p4info: Path | None) -> p4r.ForwardingPipelineConfig:
    config = p4r.ForwardingPipelineConfig(p4_device_config=program.read_bytes())
    if p4info is None:
        log.info("no --p4info: controllers must push a program before they write entries")
        return config
    try:
        text_format.Parse(p4info.read_text(), config.p4info)
    except text_format.ParseError as error:
        raise StartError(f"{p4info}: expected P4Info in protobuf text format: {error}") from error
    config.p4info.SetInParent()
    return config


def require_safe_address(settings: Settings) -> None:
    """P4Runtime replaces the program, which runs as native code. Raises StartError for an address that other machines
    reach without authentication."""
    host = settings.address.rpartition(":")[0].strip("[]")
    if settings.tls is not None or settings.insecure_remote or settings.address.startswith("unix:"):
        return
    try:
        safe = ipaddress.ip_address(host).is_loopback
    except ValueError:
        safe = host == "localhost"
    if not safe:
        raise StartError(
            f"cannot listen on {settings.address} without TLS: clients on other machines could run code here. Use "
            "127.0.0.1, or --tls-cert, --tls-key and --tls-ca, or --insecure-remote"
        )


_LEVELS = {"T": TRACE, "D": logging.DEBUG, "I": logging.INFO, "E": logging.ERROR}


def _log_message(level: str, text: str) -> None:
    """Logs log_msg() and the trace. Runs in the data plane's thread."""
    log.log(_LEVELS[level], "%s", text)


@contextlib.asynccontextmanager
async def _data_plane(settings: Settings, files: _Files) -> AsyncIterator[tuple[Switch, Engine]]:
    switch = Switch(
        drop_port=settings.drop_port,
        queues=settings.queues,
        threads=settings.threads,
        start_ns=time.monotonic_ns(),
        seed=settings.seed,
    )
    try:
        engine = Engine(switch, settings.cpu_port, settings.cache_dir)
        try:
            if files.captures is not None:
                engine.set_capture(files.captures)
            _set_up_ports(settings, files, switch, engine)
            engine.start()
            yield switch, engine
        finally:
            engine.close()
    finally:
        switch.close()


def _set_up_ports(settings: Settings, files: _Files, switch: Switch, engine: Engine) -> None:
    for port, link in settings.links.items():
        switch.port_config(port, link.rate_bps, link.queue_packets)
    engine.set_gso(settings.gso, len(settings.ports))
    devices = [dpdk.parse(interface) for interface in settings.ports.values() if dpdk.is_dpdk(interface)]
    if devices:  # its threads have only the rights that this one still has
        eal.start(settings.cache_dir, devices)
    for port, interface in settings.ports.items():
        engine.add_port(port, interface, files.xdp.get(port))
    for port, descriptor in settings.sockets.items():
        engine.add_socket(port, descriptor)
    _log_changes(engine)
    for status in engine.ports():
        if status.kind == "xdp" and status.up:
            log.info(
                "port %d: AF_XDP, %s", status.number, "zero copy" if status.zero_copy else "frames are copied"
            )
        elif settings.gso and status.kind == "packet" and status.up and not status.merges:
            log.warning(
                "port %d: frames leave one by one: %s segments none (ethtool -K %s tx-udp-segmentation on tso on)",
                status.number,
                status.ifname,
                status.ifname,
            )


def _log_changes(engine: Engine) -> None:
    """Logs each port whose interface has gone, cannot be opened, or is open again."""
    for port in engine.changed_ports():
        if port.error:
            log.warning("port %d is down: %s: %s", port.number, port.ifname, port.error)
        else:
            log.info("port %d: %s is open", port.number, port.ifname)


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
        except StatusError as error:
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
    loop.add_reader(engine.port_change_fd(), _log_changes, engine)
    loop.add_reader(switch.event_fd(), lambda: service.on_events(switch.events(EVENTS_AT_ONCE)))


def _unwatch_data_plane(switch: Switch, engine: Engine) -> None:
    loop = asyncio.get_running_loop()
    loop.remove_reader(engine.packet_in_fd())
    loop.remove_reader(engine.port_change_fd())
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
        reason = "the address is in use or not local; expected HOST:PORT"
        if settings.tls is not None:
            reason += f"; or {settings.tls.certificate} and {settings.tls.key} are not a certificate and its key (PEM)"
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
