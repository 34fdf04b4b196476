# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""netfold softswitch: the command line, shaped like that of simple_switch_grpc."""

from __future__ import annotations

import asyncio
import logging
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from netfold.softswitch.admin.requests import DEFAULT_QUEUE, PORT_MAX, QUEUE_MAX, parse_rate

if TYPE_CHECKING:
    from netfold.softswitch.process import Link

app = typer.Typer(add_completion=False)


class LogLevel(StrEnum):
    """The levels of simple_switch_grpc; trace is as debug."""

    TRACE = "trace"
    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"
    OFF = "off"


_LEVELS = {
    LogLevel.TRACE: logging.DEBUG,
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARN: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
    LogLevel.OFF: logging.CRITICAL + 1,
}


class Joined(TyperCommand):
    """Takes the command lines of simple_switch_grpc, which puts "--" before the options of the target."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [argument for argument in args if argument != "--"])


@app.command(cls=Joined)
def softswitch(
    program: Annotated[
        Path | None,
        typer.Argument(
            help="BMv2 JSON of p4c-bm2-ss, to run from the start; needs --p4info. Without it the switch drops all "
            "frames until a controller pushes a program.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    interface: Annotated[
        list[str],
        typer.Option(
            "-i",
            "--interface",
            metavar="PORT@IFACE",
            help="Attach a network interface as a port. May be repeated. An interface that is missing, or goes away, "
            "is attached when it appears.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer's way to say "none"
    device_id: Annotated[int, typer.Option(min=1, help="P4Runtime device id.")] = 1,
    grpc_server_addr: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where P4Runtime is served. Port 0 takes a free one.")
    ] = "0.0.0.0:9559",
    cpu_port: Annotated[
        int, typer.Option(min=0, max=PORT_MAX, help="The port of packet-in and packet-out.")
    ] = 510,
    drop_port: Annotated[
        int, typer.Option(min=0, max=PORT_MAX, help="The egress_spec that means drop.")
    ] = 511,
    pcap: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Record each port's frames in DIR/IFACE_in.pcap and DIR/IFACE_out.pcap."
        ),
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="What to log, to standard error.")] = LogLevel.INFO,
    no_p4: Annotated[
        bool, typer.Option("--no-p4", help="Start without a program, as when none is given.")
    ] = False,
    p4info: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="P4Info of the program, in protobuf's text form."),
    ] = None,
    port_rate: Annotated[
        list[str],
        typer.Option(
            metavar="PORT=RATE",
            help="Emulate a link of this rate behind a port: 1=100mbit, 2=2.5gbit. May be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    port_queue: Annotated[
        list[str],
        typer.Option(
            metavar="PORT=PACKETS",
            help=f"Bound of the egress queue of a port with a rate; {DEFAULT_QUEUE} unless given. May be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    control_socket: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Unix socket for ports, rates, faults and counters at run time, in lines of JSON.",
        ),
    ] = None,
    cache_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Compiled programs are kept here. [default: $NETFOLD_CACHE, or netfold in the user's cache folder]",
            show_default=False,
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Server certificate (PEM): serve over TLS."),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Key of the server certificate (PEM).")
    ] = None,
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Take only clients with a certificate of this CA (PEM)."
        ),
    ] = None,
    ready_fd: Annotated[
        int | None,
        typer.Option(
            metavar="FD", help='Write "ready GRPC_PORT" to this file descriptor once all is served.'
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the program's random().")] = 1,
) -> None:
    """Run a P4 program natively, as a drop-in for simple_switch_grpc.

    The program is what p4c-bm2-ss emits for v1model; it is translated to C, compiled with gcc, cached and loaded.
    SIGTERM forwards what was received, ends the streams, and exits 0.
    """
    from netfold.softswitch.build.native import default_cache_dir
    from netfold.softswitch.process import Settings, StartError, Tls, serve

    logging.basicConfig(
        level=_LEVELS[log_level], format=f"%(asctime)s %(levelname)s device {device_id}: %(message)s"
    )
    if no_p4 and program is not None:
        raise typer.BadParameter(f"no program may be given with --no-p4, but {program} is")
    if (tls_cert is None) != (tls_key is None) or (tls_ca is not None and tls_cert is None):
        raise typer.BadParameter("TLS needs --tls-cert and --tls-key; --tls-ca is optional besides")
    settings = Settings(
        cache_dir=cache_dir or default_cache_dir(),
        ports=_parse_interfaces(interface),
        links=_parse_links(port_rate, port_queue),
        device_id=device_id,
        address=grpc_server_addr,
        cpu_port=cpu_port,
        drop_port=drop_port,
        program=program,
        p4info=p4info,
        captures=pcap,
        control_socket=control_socket,
        tls=Tls(tls_cert, tls_key, tls_ca) if tls_cert is not None and tls_key is not None else None,
        ready_fd=ready_fd,
        seed=seed,
    )
    try:
        asyncio.run(serve(settings))
    except StartError as error:
        typer.echo(f"netfold softswitch: {error}", err=True)
        raise typer.Exit(1) from error


def _parse_interfaces(texts: list[str]) -> dict[int, str]:
    ports: dict[int, str] = {}
    for text in texts:
        number, at, name = text.partition("@")
        if not at or not name:
            raise typer.BadParameter(f"-i {text}: write it as PORT@IFACE, like 1@veth0")
        port = _parse_number(number, f"-i {text}", PORT_MAX)
        if port in ports or name in ports.values():
            raise typer.BadParameter(f"-i {text}: the port or the interface is given twice")
        ports[port] = name
    return ports


def _parse_links(rates: list[str], queues: list[str]) -> dict[int, Link]:
    from netfold.softswitch.process import Link

    bounds = dict(_parse_pair(text, "--port-queue") for text in queues)
    links: dict[int, Link] = {}
    for text in rates:
        port, value = _parse_pair(text, "--port-rate")
        try:
            rate = parse_rate(value)
        except ValueError as error:
            raise typer.BadParameter(f"--port-rate {text}: {error}") from error
        queue = bounds.pop(port, str(DEFAULT_QUEUE))
        links[port] = Link(rate, _parse_number(queue, f"--port-queue {port}={queue}", QUEUE_MAX))
    if bounds:
        raise typer.BadParameter(f"--port-queue {min(bounds)}=...: port {min(bounds)} has no --port-rate")
    return links


def _parse_pair(text: str, option: str) -> tuple[int, str]:
    port, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{option} {text}: write it as PORT=VALUE")
    return _parse_number(port, f"{option} {text}", PORT_MAX), value


def _parse_number(text: str, what: str, largest: int) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > largest:
        raise typer.BadParameter(f"{what}: {text!r} is not a number in 0..{largest}")
    return int(text)
