# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The options of `softswitch run`, in groups, and the settings of a switch that they describe."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from softswitch import bmv2_options
from softswitch.admin.control_sockets import thrift_socket
from softswitch.admin.requests import DEFAULT_QUEUE, PORT_MAX, QUEUE_MAX, parse_rate
from softswitch.build.capi import THREADS_MAX
from softswitch.engine.dpdk.device import DpdkError, name_of
from softswitch.logs import LogFile, LogLevel
from softswitch.settings import Link, Settings, Tls

DESCRIPTOR_MAX = (1 << 31) - 1

_FILE = {"exists": True, "dir_okay": False, "show_default": False}


@dataclass(frozen=True)
class ProgramOptions:
    """The P4 program and how it runs."""

    PANEL = "Program"

    program: Annotated[
        Path | None,
        typer.Argument(
            help="BMv2 JSON from p4c-bm2-ss. Default: none; the switch drops all frames until a controller pushes a "
            "program.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None
    p4info: Annotated[
        Path | None,
        typer.Option(help="P4Info of the program (protobuf text format).", **_FILE),
    ] = None
    no_p4: Annotated[bool, typer.Option("--no-p4", help="Ignore the program argument.")] = False
    seed: Annotated[int, typer.Option(min=0, help="Seed of random().")] = 1
    cache_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of compiled programs. [default: $SOFTSWITCH_CACHE or ~/.cache/softswitch]",
            show_default=False,
        ),
    ] = None


def _per_port(metavar: str, help_text: str, *names: str) -> Any:
    """An option that is given once for each port."""
    return typer.Option(*names, metavar=metavar, help=help_text, show_default=False)


@dataclass(frozen=True)
class PortOptions:
    """Ports, queues and captures."""

    PANEL = "Ports"

    interface: Annotated[
        list[str],
        _per_port(
            "PORT@[xdp:|dpdk:]IFACE",
            "Network interface of a port; repeatable. An absent interface is attached when it appears. xdp: past the "
            "kernel's stack in both directions (AF_XDP), with one receive queue for each thread. dpdk: a device of "
            "DPDK (0000:3b:00.0) with its arguments, and mtu=BYTES, after commas.",
            "-i",
            "--interface",
        ),
    ] = field(default_factory=list)
    socket: Annotated[
        list[str],
        _per_port(
            "PORT=FD",
            "Port on an inherited Unix datagram socket, one frame a datagram; repeatable. Needs no rights.",
        ),
    ] = field(default_factory=list)
    port_rate: Annotated[
        list[str],
        _per_port("PORT=RATE", "Rate of the emulated link of a port: 1=100mbit, 2=2.5gbit; repeatable."),
    ] = field(default_factory=list)
    port_queue: Annotated[
        list[str],
        _per_port(
            "PORT=PACKETS",
            f"Queue bound of a port with a rate, in packets (default {DEFAULT_QUEUE}); repeatable.",
        ),
    ] = field(default_factory=list)
    priority_queues: Annotated[
        int,
        typer.Option(
            min=1,
            max=8,
            help="Queues per port, selected by standard_metadata.priority; the highest number is served first.",
        ),
    ] = 1
    gso: Annotated[
        bool,
        typer.Option(
            "--gso",
            help="Send frames of one flow and length that follow each other as one frame (generic segmentation "
            "offload), where the device segments it. A packet socket at the other end of a veth pair sees it whole.",
        ),
    ] = False
    threads: Annotated[
        int,
        typer.Option(
            min=1,
            max=THREADS_MAX,
            help="Threads of the data plane, a power of two; each has its share of the registers. Refused with "
            "--port-rate, and for programs that index registers in several ways.",
        ),
    ] = 1
    cpu_port: Annotated[
        int,
        typer.Option(min=0, max=PORT_MAX, help="Port of packet-in and packet-out."),
    ] = 510
    drop_port: Annotated[int, typer.Option(min=0, max=PORT_MAX, help="egress_spec that means drop.")] = 511
    pcap: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Capture each port to DIR/IFACE_in.pcap and DIR/IFACE_out.pcap; without DIR to the current folder.",
        ),
    ] = None

    def interfaces(self) -> dict[int, str]:
        """Interface by port. Raises typer.BadParameter."""
        ports: dict[int, str] = {}
        names: set[str] = set()
        for text in self.interface:
            number, at, interface = text.partition("@")
            try:
                name = name_of(interface)
            except DpdkError as error:
                raise typer.BadParameter(f"-i {text}: {error}") from error
            if not at or not name:
                raise typer.BadParameter(f"-i {text}: expected PORT@IFACE, for example 1@veth0 or 1@xdp:eth0")
            port = _number(number, f"-i {text}", PORT_MAX)
            if port in ports or name in names:
                raise typer.BadParameter(f"-i {text}: the port or the interface is given twice")
            ports[port] = interface
            names.add(name)
        return ports

    def sockets(self) -> dict[int, int]:
        """Descriptor by port. Raises typer.BadParameter."""
        ports: dict[int, int] = {}
        for text in self.socket:
            port, value = _pair(text, "--socket")
            if port in ports or port in self.interfaces():
                raise typer.BadParameter(f"--socket {text}: the port is given twice")
            ports[port] = _number(value, f"--socket {text}", DESCRIPTOR_MAX)
        return ports

    def thread_count(self) -> int:
        """Raises typer.BadParameter."""
        if self.threads & (self.threads - 1):
            raise typer.BadParameter(f"--threads {self.threads}: expected a power of two, 1..{THREADS_MAX}")
        if self.threads > 1 and self.port_rate:
            raise typer.BadParameter(
                f"--threads {self.threads}: a link's rate and queue need one thread; leave out --port-rate"
            )
        return self.threads

    def links(self) -> dict[int, Link]:
        """Emulated link by port. Raises typer.BadParameter."""
        bounds = dict(_pair(text, "--port-queue") for text in self.port_queue)
        links: dict[int, Link] = {}
        for text in self.port_rate:
            port, value = _pair(text, "--port-rate")
            try:
                rate = parse_rate(value)
            except ValueError as error:
                raise typer.BadParameter(f"--port-rate {text}: {error}") from error
            queue = bounds.pop(port, str(DEFAULT_QUEUE))
            links[port] = Link(rate, _number(queue, f"--port-queue {port}={queue}", QUEUE_MAX))
        if bounds:
            raise typer.BadParameter(f"--port-queue {min(bounds)}=...: port {min(bounds)} has no --port-rate")
        return links


@dataclass(frozen=True)
class ControlOptions:
    """P4Runtime, TLS and the control socket."""

    PANEL = "Control"

    device_id: Annotated[int, typer.Option(min=0, max=(1 << 64) - 1, help="P4Runtime device id.")] = 0
    grpc_server_addr: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Address of P4Runtime; port 0: a free port."),
    ] = "127.0.0.1:9559"
    insecure_remote: Annotated[
        bool,
        typer.Option(
            "--insecure-remote",
            help="Allow a non-loopback address without TLS. Every client that reaches it can run code here.",
        ),
    ] = False
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            "--tls-cert",
            "--grpc-server-cert",
            help="Server certificate (PEM); enables TLS.",
            **_FILE,
        ),
    ] = None
    tls_key: Annotated[
        Path | None,
        typer.Option(
            "--tls-key",
            "--grpc-server-key",
            help="Private key of the server certificate (PEM).",
            **_FILE,
        ),
    ] = None
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            "--tls-ca",
            "--grpc-server-cacert",
            help="CA of the client certificates (PEM); requires clients to present one.",
            **_FILE,
        ),
    ] = None
    control_socket: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Unix socket for ports, rates, faults and counters at run time (JSON lines).",
        ),
    ] = None
    ready_fd: Annotated[
        int | None,
        typer.Option(
            metavar="FD",
            help='File descriptor that receives "ready GRPC_PORT" once all is served.',
        ),
    ] = None


@dataclass(frozen=True)
class LogOptions:
    """Logs and the packet trace."""

    PANEL = "Logs"

    log_level: Annotated[
        LogLevel | None,
        typer.Option(
            "--log-level",
            "-L",
            help="Log level; trace and debug include the packet trace with --log-console or --log-file. "
            "[default: trace with either, otherwise info, to standard error]",
            show_default=False,
        ),
    ] = None
    log_console: Annotated[
        bool,
        typer.Option("--log-console", help="Trace every packet to standard output."),
    ] = False
    log_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Trace every packet to FILE.txt.",
            show_default=False,
        ),
    ] = None
    log_flush: Annotated[bool, typer.Option("--log-flush", help="Flush the log file after each line.")] = (
        False
    )
    log_file_max_size: Annotated[int, typer.Option(min=1, help="Size of a log file, bytes.")] = 5 << 20
    log_file_max_files: Annotated[int, typer.Option(min=0, help="Rotated log files to keep.")] = 3
    dump_packet_data: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="BYTES",
            help="Log the first BYTES bytes of each frame at level info.",
        ),
    ] = 0

    @property
    def is_traced(self) -> bool:
        """Packets are traced if the level permits."""
        return self.log_console or self.log_file is not None

    @property
    def level(self) -> LogLevel:
        return self.log_level or (LogLevel.TRACE if self.is_traced else LogLevel.INFO)

    def file(self) -> LogFile | None:
        """Raises typer.BadParameter for both a console and a file."""
        if self.log_file is None:
            return None
        if self.log_console:
            raise typer.BadParameter("--log-console and --log-file exclude each other")
        return LogFile(self.log_file, self.log_flush, self.log_file_max_size, self.log_file_max_files)


@dataclass(frozen=True)
class Bmv2Options:
    """Options of simple_switch_grpc that have another name here."""

    PANEL = "BMv2 compatibility"

    thrift_port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            help="Serve the control socket where `softswitch cli --thrift-port` finds it, unless --control-socket is "
            "given. There is no Thrift server.",
            show_default=False,
        ),
    ] = None
    grpc_server_ssl: Annotated[
        bool,
        typer.Option("--grpc-server-ssl", help="Requires --tls-cert and --tls-key."),
    ] = False
    grpc_server_with_client_auth: Annotated[
        bool,
        typer.Option("--grpc-server-with-client-auth", help="Requires --tls-ca."),
    ] = False
    as_bmv2: Annotated[bool, typer.Option("--as-bmv2", hidden=True, help="Called as simple_switch_grpc.")] = (
        False
    )


def settings_of(
    program: ProgramOptions,
    ports: PortOptions,
    control: ControlOptions,
    logs: LogOptions,
    bmv2: Bmv2Options,
    default_cache_dir: Path,
) -> tuple[Settings, list[str]]:
    """The settings, and a phrase for each option without effect. Raises typer.BadParameter."""
    without_effect = []
    tls = _tls(control, bmv2)
    address = control.grpc_server_addr
    if bmv2.as_bmv2 and tls is None and not control.insecure_remote:
        address = bmv2_options.loopback_of(address)
        if address != control.grpc_server_addr:
            without_effect.append(
                f"{control.grpc_server_addr} (serves {address} only; --insecure-remote serves all addresses)"
            )
    control_socket = control.control_socket
    if control_socket is None and bmv2.thrift_port is not None:
        control_socket = thrift_socket(bmv2.thrift_port)
        control_socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings = Settings(
        cache_dir=program.cache_dir or default_cache_dir,
        ports=ports.interfaces(),
        sockets=ports.sockets(),
        gso=ports.gso,
        threads=ports.thread_count(),
        links=ports.links(),
        device_id=control.device_id,
        address=address,
        insecure_remote=control.insecure_remote,
        cpu_port=ports.cpu_port,
        drop_port=ports.drop_port,
        program=None if program.no_p4 else program.program,
        p4info=program.p4info,
        captures=ports.pcap,
        control_socket=control_socket,
        tls=tls,
        ready_fd=control.ready_fd,
        seed=program.seed,
        queues=ports.priority_queues,
        traced=logs.is_traced and logs.level.number <= logging.DEBUG,
        dump_bytes=logs.dump_packet_data if logs.level.number <= logging.INFO else 0,
    )
    return settings, without_effect


def _tls(control: ControlOptions, bmv2: Bmv2Options) -> Tls | None:
    certificate, key, ca = control.tls_cert, control.tls_key, control.tls_ca
    required = bmv2.grpc_server_ssl or bmv2.grpc_server_with_client_auth
    if certificate is None and key is None and ca is None and not required:
        return None
    if certificate is None or key is None or (bmv2.grpc_server_with_client_auth and ca is None):
        raise typer.BadParameter("TLS requires --tls-cert and --tls-key; --tls-ca is optional")
    return Tls(certificate, key, ca)


def _pair(text: str, option: str) -> tuple[int, str]:
    port, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{option} {text}: expected PORT=VALUE")
    return _number(port, f"{option} {text}", PORT_MAX), value


def _number(text: str, what: str, largest: int) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > largest:
        raise typer.BadParameter(f"{what}: {text!r}: expected a number in 0..{largest}")
    return int(text)
